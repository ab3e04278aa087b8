"""Your own GPU in a real Chromium: its kernels, wrong ones, its arithmetic, its stations by keyboard and by touch.

Chromium runs WebGPU on its software adapter when it is told to. One that has no adapter at all skips what compiles or
runs a kernel, and nothing else.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import faults
from conftest import SITE, launch, settled
from playwright.sync_api import Browser, Page, Playwright, expect

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = "your_gpu.html"
SOFTWARE = ("--enable-unsafe-webgpu",)
WRONG = tomllib.loads((HERE / "wrong_wgsl.toml").read_text(encoding="utf-8"))
CONTRACTS = tomllib.loads((HERE / "wgsl_contracts.toml").read_text(encoding="utf-8"))["contract"]
SOURCES = {
    f"{path.parent.name}/{path.stem}": path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "src" / "course_kernels").glob("*/k[0-9][0-9]_*.wgsl"))
}
FIRST_LOAD = 120_000  # bytes that the page adds to a first load, compressed
SECONDS = 1000

PLAN = (
    "JSON.parse(document.querySelector('.gpu-begin script[type=\"application/json\"]').textContent).kernels"
)
# Each kernel on every size of its contract, drawn anew: what was wrong, by kernel.
RIGHT = """async sources => {
  const kit = PercentOfPeak.yourGpu, session = await kit.open(navigator.gpu, () => performance.now()), wrong = {};
  for (const [name, source] of Object.entries(sources)) {
    const needs = kit.kernels[name].needs;
    if (needs && !session.about.features.includes(needs)) continue;
    try {
      const made = await session.prepare(name, source);
      for (const dims of made.problem.check) {
        if (made.kernel.fits && !made.kernel.fits(dims)) continue;
        await session.check(made, dims, crypto.getRandomValues(new Uint32Array(1))[0]);
      }
    } catch (error) {
      wrong[name] = `${error.reason || error.name} ${error.line || ""} ${error.message}`;
    }
  }
  return wrong;
}"""
# What the page says of each wrong kernel: its reason.
REFUSED = """async wrong => {
  const kit = PercentOfPeak.yourGpu, session = await kit.open(navigator.gpu, () => performance.now()), said = {};
  for (const [name, [of, source]] of Object.entries(wrong)) {
    said[name] = "passed";
    try {
      if (kit.kernels[of].needs && !session.about.features.includes(kit.kernels[of].needs)) throw { reason: "" };
      const made = await session.prepare(of, source);
      for (const dims of made.problem.check) {
        if (made.kernel.fits && !made.kernel.fits(dims)) continue;
        await session.check(made, dims, crypto.getRandomValues(new Uint32Array(1))[0]);
      }
    } catch (error) {
      said[name] = error.reason === "look" ? error.message.split(" ")[0] : error.reason;
    }
  }
  return said;
}"""


def edited(one: dict[str, Any]) -> str:
    text = SOURCES[one["of"]]
    for old, new in one["edits"]:
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def opened(playwright: Playwright, base: str) -> Iterator[Page]:
    """The page on a phone with a keyboard, in a Chromium that runs WebGPU in software."""
    chromium = launch(playwright, *SOFTWARE)
    page = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True).new_page()
    page.set_default_timeout(90 * SECONDS)
    yield settled(page, base + PAGE)
    chromium.close()


@pytest.fixture
def lit(opened: Page) -> Page:
    """The same, where Chromium has an adapter."""
    if not opened.evaluate("async () => Boolean(navigator.gpu && await navigator.gpu.requestAdapter())"):
        pytest.skip("this Chromium has no WebGPU adapter: no kernel is compiled or run here")
    return opened


def test_every_kernel_is_right_on_its_sizes(lit: Page) -> None:
    assert lit.evaluate(RIGHT, lit.evaluate(PLAN)) == {}


def test_wrong_kernels_are_refused_for_their_reason(lit: Page) -> None:
    said = lit.evaluate(REFUSED, {name: [one["of"], edited(one)] for name, one in WRONG.items()})

    assert {name: why for name, why in said.items() if why not in ("", WRONG[name]["refused_for"])} == {}


LOOK = """sources => Object.fromEntries(Object.entries(sources).map(
  ([name, text]) => [name, PercentOfPeak.yourGpu.look(text).map(fault => fault.what.split(" ")[0])]))"""


def test_a_look_at_the_source_sees_races_and_nothing_in_what_is_right(opened: Page) -> None:
    seen = opened.evaluate(LOOK, {name: edited(one) for name, one in WRONG.items()})

    assert opened.evaluate(LOOK, SOURCES) == {name: [] for name in SOURCES}
    assert {name: set(found) for name, found in seen.items()} == {
        name: {one["refused_for"]} if one["refused_for"] in ("barrier", "race") else set()
        for name, one in WRONG.items()
    }


def test_every_barrier_of_every_kernel_is_missed(opened: Page) -> None:
    mark, without = "workgroupBarrier();", {}
    for name, text in SOURCES.items():
        pieces = text.split(mark)
        for n in range(1, len(pieces)):
            without[f"{name} {n}"] = mark.join(pieces[:n]) + mark.join(pieces[n:])
    found = opened.evaluate(LOOK, without)

    assert len(without) > 12
    assert [name for name, faults in found.items() if not faults] == []


# --- arithmetic ---------------------------------------------------------------------------------------


def draws(seed: int) -> Iterator[int]:
    """Whole numbers below 2**32: mulberry32."""
    state = seed
    while True:
        state = (state + 0x6D2B79F5) % 2**32
        t = (state ^ (state >> 15)) * (state | 1) % 2**32
        t = ((t + (t ^ (t >> 7)) * (t | 61)) % 2**32) ^ t
        yield (t ^ (t >> 14)) % 2**32


def quantile(samples: list[float], share: float) -> float:
    ordered = sorted(samples)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def worst_error(out: list[float], truth: list[float], width: int) -> float:
    worst = 0.0
    for start in range(0, len(truth), width or len(truth)):
        part = truth[start : start + (width or len(truth))]
        rms = math.sqrt(math.fsum(x * x for x in part) / len(part))
        for x, y in zip(out[start:], part, strict=False):
            worst = max(worst, 0.0 if rms == 0 and x == y else abs(x - y) / (abs(y) + rms))
    return worst


def test_the_page_s_arithmetic_is_python_s(opened: Page) -> None:
    drawn = random.Random()
    cases = []
    for _ in range(200):
        samples = [drawn.lognormvariate(3, 1) for _ in range(drawn.randint(1, 30))]
        truth = [drawn.gauss(0, 1) for _ in range(drawn.randint(1, 40))]
        cases.append(
            {
                "seed": drawn.randrange(2**32), "samples": samples, "truth": truth,
                "out": [x + drawn.gauss(0, 1e-3) for x in truth], "width": drawn.choice((0, 1, 7)),
                "stamps": [drawn.randrange(1, 10**6) * 100_000 for _ in range(5)],
                "one": drawn.lognormvariate(4, 3), "step": drawn.choice((1.0, 100.0, 65.536)),
                "ms": drawn.lognormvariate(3, 2), "factor": drawn.choice((2, 4, 8)),
                "bytes": drawn.randrange(1, 10**9), "flops": drawn.choice((0, drawn.randrange(1, 10**12))),
                "roofs": {"gb_per_s": drawn.uniform(5, 5000), "gflop_per_s": drawn.uniform(50, 70000)},
                "bounds": sorted(drawn.sample(range(1, 100), 2)),
            }
        )  # fmt: skip
    found = opened.evaluate(
        """cases => cases.map(c => {
          const a = PercentOfPeak.yourGpu.arithmetic, draw = a.draws(c.seed), made = a.summary(c.samples, 0.5);
          const one = { bytes: c.bytes, flops: c.flops, us: c.one };
          return {
            draws: [draw(), draw(), draw()], normal: a.nearlyNormal(a.draws(c.seed)),
            uniform: a.uniform(a.draws(c.seed)), error: a.worstError(c.out, c.truth, c.width),
            summary: [made.n, made.median, made.low, made.high, made.spread],
            step: a.stepOf(c.stamps.map(BigInt)), batch: a.batchOf(c.one, c.step), grows: a.grows(c.ms, c.factor),
            share: a.share(one, c.roofs), answer: a.answer(c.one, c.bounds),
            order: a.shuffled(9, a.draws(c.seed)).sort((x, y) => x - y)
          };
        })""",
        cases,
    )
    for case, said in zip(cases, found, strict=True):
        first = draws(case["seed"])
        three = [next(first) for _ in range(3)]
        low, high = quantile(case["samples"], 0.25), quantile(case["samples"], 0.75)
        fields = sum(three[0] >> 10 * n & 1023 for n in range(3))
        rate = case["flops"] / case["one"] / 1e3
        gb = case["bytes"] / case["one"] / 1e3
        roofs = case["roofs"]
        allowed = min(roofs["gflop_per_s"], case["flops"] / case["bytes"] * roofs["gb_per_s"])

        assert said["draws"] == three
        assert said["normal"] == (fields - 1534.5) / 512
        assert said["uniform"] == (three[0] >> 8) / 2**24
        assert said["summary"] == pytest.approx(
            [len(case["samples"]), quantile(case["samples"], 0.5), low, high, max(high - low, 0.5)]
        )
        assert said["error"] == pytest.approx(worst_error(case["out"], case["truth"], case["width"]))
        assert said["step"] == math.gcd(*case["stamps"]) / 1e3
        assert said["batch"] == max(
            1, min(math.ceil(1000 * case["step"] / case["one"]), math.floor(200_000 / case["one"]))
        )
        assert said["grows"] == (case["ms"] < 50 and case["ms"] * case["factor"] <= 200)
        assert said["share"] == pytest.approx(rate / allowed if case["flops"] else gb / roofs["gb_per_s"])
        assert said["answer"] == sum(case["one"] >= bound for bound in case["bounds"])
        assert said["order"] == list(range(9))


def test_the_page_s_contracts_are_those_of_the_table(opened: Page) -> None:
    found = opened.evaluate(
        """cases => cases.map(({ problem, dims }) => {
          const p = PercentOfPeak.yourGpu.problems[problem];
          return [p.tolerance(dims), p.bytes(dims), p.flops(dims)];
        })""",
        CONTRACTS,
    )

    assert found == [
        [pytest.approx(case["tolerance"], rel=1e-12), case["bytes"], case["flops"]] for case in CONTRACTS
    ]


@pytest.mark.parametrize(
    ("begin", "end", "wall_us", "says"),
    [
        (0, 5_000_000, 6000, "is zero"),
        (5_000_000, 0, 6000, "is zero"),
        (5_000_000, 4_000_000, 6000, "ran backwards"),
        (5_000_000, 5_000_000, 6000, "no time went by"),
        (1, 9_000_000_001, 6000, "longer than the whole wait"),
        (1, 100_001, 900_000, "do not agree"),
        (1, 5_000_001, 0, "stood still"),
        (1, 5_000_001, -3, "stood still"),
        (1, 5_000_001, None, "is no number"),
    ],
)
def test_a_forged_time_is_refused(
    opened: Page, begin: int, end: int, wall_us: float | None, says: str
) -> None:
    found = opened.evaluate(
        """([begin, end, wall]) => {
          const a = PercentOfPeak.yourGpu.arithmetic;
          try { return String(a.duration(BigInt(begin), BigInt(end), wall === null ? NaN : wall, 1)); }
          catch (error) { return error instanceof a.Refused ? error.message : "another error: " + error; }
        }""",
        [begin, end, wall_us],
    )

    assert says in found


def test_an_honest_time_is_believed(opened: Page) -> None:
    believed = "PercentOfPeak.yourGpu.arithmetic.duration(1000n, 5001000n, 6000, 1)"
    assert opened.evaluate(believed) == 5000


# A kernel sampled as the stations do it, by another clock than the browser's: what was measured of it.
BY_CLOCK = """async clock => {
  const kit = PercentOfPeak.yourGpu, at = { turned: false };
  const read = {
    coarse: () => Math.floor(performance.now() * 5) / 5,
    turned: () => (at.turned ? -1 : 1) * performance.now(),
  };
  const session = await kit.open(navigator.gpu, read[clock]);
  if (clock === "coarse") session.about.stamp_step_us = 0;
  at.turned = clock === "turned";
  kit.use(session);
  document.querySelector(".gpu-begin").dataset.rounds = 2;
  const made = await kit.measure([{ kernel: "vector_add/k01_cuda", label: "add" }], true, () => {});
  kit.use(null);
  return made.results[0];
}"""


def test_a_coarse_clock_is_read_in_batches(lit: Page) -> None:
    found = lit.evaluate(BY_CLOCK, "coarse")

    assert "refused" not in found
    assert found["by"] == "clock"
    assert found["step_us"] == pytest.approx(200, rel=0.01)
    assert found["us"] * found["in_a_batch"] > 50 * found["step_us"]
    assert found["spread_us"] >= found["step_us"] / found["in_a_batch"] * 0.99


def test_a_clock_that_is_turned_back_gives_no_time(lit: Page) -> None:
    found = lit.evaluate(BY_CLOCK, "turned")

    assert "Time refused" in found["refused"]
    assert "us" not in found


# --- the page -------------------------------------------------------------------------------------------


def run(page: Page, name: str) -> None:
    """Wait until a station is done."""
    expect(page.locator(".gpu-begin .status")).to_contain_text("Done", timeout=90 * SECONDS)
    expect(page.locator(f"[data-station={name}] .results table")).to_be_visible()


def test_stations_run_by_keyboard_and_by_touch_and_are_kept(lit: Page) -> None:
    lit.evaluate("document.querySelector('.gpu-begin').dataset.rounds = 2")
    roofs = lit.locator("[data-station=roofs]")
    expect(roofs.get_by_role("button", name="Check, then time")).to_be_disabled()
    expect(lit.locator("[data-station=transpose] .call .said")).to_contain_text("roofs come first")

    roofs.get_by_role("radio").first.focus()
    lit.keyboard.press("Space")
    roofs.get_by_role("button", name="Check, then time").focus()
    lit.keyboard.press("Enter")
    run(lit, "roofs")

    expect(roofs.locator(".results td.refused")).to_have_count(0)
    expect(roofs.locator(".results tbody tr")).to_have_count(2)
    expect(roofs.locator(".call .said")).to_contain_text("Your GPU says")
    expect(roofs.get_by_role("radio").first).to_be_disabled()
    expect(lit.locator(".gpu-begin .told")).to_contain_text("This is your processor")

    turn = lit.locator("[data-station=transpose]")
    turn.locator("summary", has_text="Read these kernels").click()
    area = turn.get_by_label("WGSL of transpose/k02_tiled")
    area.fill(area.input_value().replace("workgroupBarrier();", ""))
    turn.locator("label", has_text="or more").last.tap()
    turn.get_by_role("button", name="Check, then time").tap()
    run(lit, "transpose")

    expect(turn.locator(".results tr", has_text="changed by you")).to_contain_text("no barrier between")
    expect(turn.locator(".results td.refused")).to_have_count(1)
    expect(lit.locator(".gpu-roofline circle")).to_have_count(2)

    kept = json.loads(lit.evaluate("PercentOfPeak.yourGpu.exported()"))
    assert "not published" in kept["what"]
    assert kept["results"]["transpose"][0]["n"] == 2
    assert kept["results"]["transpose"][0]["again"]["allowed"] == 0
    assert (
        kept["results"]["transpose"][0]["checked"]["seed"] != kept["results"]["transpose"][0]["again"]["seed"]
    )
    assert faults(lit) == []
    with lit.expect_download() as saved:
        lit.get_by_role("button", name="Save the drawing").click()
    assert "<circle" in Path(saved.value.path()).read_text(encoding="utf-8")

    lit.reload()
    expect(roofs.locator(".results tbody tr")).to_have_count(2)
    expect(lit.locator(".gpu-end .kept")).to_contain_text("sent nowhere")

    roofs.get_by_role("button", name="Once more").click()
    lit.get_by_role("button", name="Stop").click()
    expect(lit.locator(".gpu-begin .status")).to_contain_text("Stopped", timeout=90 * SECONDS)
    expect(roofs.locator(".results tbody tr")).to_have_count(2)


def test_a_run_that_is_stopped_and_a_gpu_that_is_gone(lit: Page) -> None:
    said = lit.evaluate(
        """async source => {
          const kit = PercentOfPeak.yourGpu, session = await kit.open(navigator.gpu, () => performance.now());
          const said = [], copy = "copy/k01_vectorised";
          session.stop();
          try { await session.prepare(copy, source); } catch (error) { said.push(error.name); }
          session.stopped = false;
          session.device.destroy();
          await session.device.lost;
          try { await session.prepare(copy, source); } catch (error) { said.push(error.reason); }
          return said;
        }""",
        SOURCES["copy/k01_vectorised"],
    )

    assert said == ["Stopped", "device"]


NOTHING = "Object.defineProperty(navigator, 'gpu', { value: %s })"
NOT_GIVEN = "{ features: new Set(), requestDevice: async () => { throw new Error('x'); } }"


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        ("undefined", "has no WebGPU"),
        ("{ requestAdapter: async () => null }", "finds nothing to run on"),
        (f"{{ requestAdapter: async () => ({NOT_GIVEN}) }}", "was not given"),
    ],
)
def test_without_a_gpu_one_line_says_what_to_do(browser: Browser, base: str, gpu: str, says: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.add_init_script(NOTHING % gpu)
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    settled(page, base + PAGE)
    page.get_by_role("button", name="Look for my GPU").click()

    expect(page.locator(".gpu-begin .told")).to_contain_text(says)
    expect(page.locator("#the-same-ladder-on-our-card ~ figure.chart").first).to_be_visible()
    assert hosts == {base.split("/")[2]}
    page.close()


def test_without_a_script_the_page_says_so_and_has_our_card(browser: Browser, base: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(base + PAGE)

    expect(page.get_by_text("here no script runs")).to_be_visible()
    expect(page.locator("#the-same-ladder-on-our-card ~ figure.chart").first).to_be_visible()
    context.close()


def test_it_works_from_a_folder(lit: Page) -> None:
    page = lit.context.new_page()
    settled(page, (SITE / PAGE).as_uri())
    page.get_by_role("button", name="Look for my GPU").click()

    expect(page.locator(".gpu-begin .status")).to_contain_text("Found")
    page.close()


def test_the_page_adds_little_to_a_first_load() -> None:
    assets = SITE / "assets"
    files = [SITE / PAGE, assets / "css" / "your_gpu.css", *sorted((assets / "js" / "your_gpu").glob("*.js"))]

    assert len(files) == 8
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < FIRST_LOAD
