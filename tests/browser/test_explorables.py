"""Explorables in a real Chromium, by keyboard and by touch: their numbers are the record's and those of Python."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import SITE, pages_of, settled
from playwright.sync_api import Browser, Locator, Page, expect

from course_site.charts import explorables
from course_site.charts.explorables import Knob

STATES = 250  # at random, of each explorable
HOLES = re.compile(r"\{(\w+)\}")
WITH_ONE = [
    name for name in pages_of(SITE) if "data-explorable=" in (SITE / name).read_text(encoding="utf-8")
]
L1, L3 = "lectures/l1_what_a_gpu_is.html", "lectures/l3_memory.html"
W2, W4 = "workshops/w2_hopper.html", "workshops/w4_serving.html"
# What the script must draw and say as the build did, once a knob was turned and turned back.
AS_DRAWN = """(figure, drawn) => {
  const knob = figure.querySelector("input:not(:checked)");
  knob.type === "range" ? knob.value = knob.value === knob.min ? knob.max : knob.min : knob.checked = true;
  knob.dispatchEvent(new Event("input", { bubbles: true }));
  knob.form.reset();
  knob.dispatchEvent(new Event("input", { bubbles: true }));
  const before = new DOMParser().parseFromString(drawn, "text/html").body;
  const of = root => [...root.querySelectorAll("[data-mark]")].map(e => e.outerHTML).concat(
    [...root.querySelectorAll(".says, tbody tr, .at")].map(e => e.textContent),
    [...root.querySelectorAll(".says a, tbody a")].map(e => e.getAttribute("href")));
  return [of(before), of(figure)];
}"""
WORK = """([name, states]) => {
  const figure = document.querySelector(`[data-explorable="${name}"]`);
  const { data } = JSON.parse(figure.querySelector("script").textContent);
  return states.map(state => PercentOfPeak.explorables[name].work(state, data));
}"""


@pytest.fixture(scope="module")
def opened(browser: Browser, base: str) -> Iterator[Any]:
    """Every page once, on a phone with a keyboard."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    pages: dict[str, Page] = {}
    faults: list[str] = []

    def page_of(name: str) -> Page:
        if name not in pages:
            pages[name] = context.new_page()
            pages[name].on("pageerror", lambda error: faults.append(f"{name}: {error}"))
            settled(pages[name], base + name)
        pages[name].bring_to_front()
        return pages[name]

    yield page_of
    assert faults == []
    context.close()


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    rows = json.loads((SITE / "ledger.json").read_text(encoding="utf-8"))["values"]
    return {row["name"]: row for row in rows if row["kind"] == "measurement"}


def unfolded(figure: Locator) -> Locator:
    """An explorable, out of the folds that it stands in."""
    for fold in figure.locator("xpath=ancestor::details[not(@open)]").all():
        fold.locator("> summary").click()
    return figure


def moved(page: Page, name: str) -> Locator:
    """One explorable, as its page began."""
    figure = unfolded(page.locator(f'[data-explorable="{name}"]'))
    waits = figure.locator("xpath=ancestor::*[contains(@class, 'covered')][@hidden]/preceding-sibling::*[1]")
    if waits.count():  # it shows what a prediction above asks for
        waits.get_by_role("button", name="Show me").click()
    figure.get_by_role("button", name="Start again").click()
    return figure


def tap(part: Locator, across: float) -> None:
    """A finger on a part, at this share of its width and half its height."""
    box = part.bounding_box()
    part.tap(position={"x": across * box["width"], "y": box["height"] / 2})


def at_random(knob: Knob) -> Any:
    if knob.kind in ("range", "steps"):
        return random.randint(knob.low, knob.high)
    if knob.kind == "numbers":
        return [round(random.uniform(-9, 9), 1) for _ in range(random.randint(knob.low, knob.high))]
    return random.choice(list(knob.choices))


def test_the_scripts_stand_where_something_moves_and_nowhere_else() -> None:
    assert {L1, L3} <= set(WITH_ONE)
    for name in pages_of(SITE):
        text = (SITE / name).read_text(encoding="utf-8")
        assert text.count("js/explorable.js") == text.count("css/explorable.css") == (name in WITH_ONE), name


@pytest.mark.parametrize("name", WITH_ONE)
def test_script_and_python_agree(opened: Any, name: str) -> None:
    page, text = opened(name), (SITE / name).read_text(encoding="utf-8")
    for drawn in re.findall(r'<figure class="chart explorable".*?</figure>', text, re.DOTALL):
        kind = re.search(r'data-explorable="(\w+)"', drawn)[1]
        figure = page.locator(f'[data-explorable="{kind}"]')
        expect(figure).to_have_attribute("data-moves", "yes")
        before, after = figure.evaluate(AS_DRAWN, drawn)
        assert before == after

        plan = json.loads(re.search(r'<script type="application/json">(.*?)</script>', drawn)[1])
        twin = explorables.named(kind)
        random.seed(f"{name} {kind}")
        states = [{knob: at_random(how) for knob, how in twin.KNOBS.items()} for _ in range(STATES)]
        found = page.evaluate(WORK, [kind, states])
        for state, shown in zip(states, found, strict=True):
            here = json.loads(json.dumps(dataclasses.asdict(twin.work(state, plan["data"]))))
            assert {"most": {}, **shown} == here, state
            for said in [*(plan["says"][sentence] for sentence in here["says"]), *plan["row"]]:
                assert set(HOLES.findall(said)) <= set(here["texts"]), (state, said)


def test_by_keyboard_a_walk_has_the_time_that_was_measured(opened: Any, measured: Any) -> None:
    page = opened(L3)
    figure = moved(page, "coalescing")
    stride = figure.locator('[data-knob="stride"]')
    stride.focus()
    page.keyboard.press("Home")
    expect(figure.locator(".says")).to_contain_text("All 32 threads want the same 4 bytes: one box.")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    ratio = measured["l3.stride.s8"]["median"] / measured["l3.stride.s1"]["median"]
    expect(figure.locator(".says")).to_contain_text(
        "They are in 32 boxes, in 8 cache lines, so 1,024 bytes are carried"
    )
    expect(figure.locator(".says a.value")).to_have_text(f"{ratio:.1f}")
    assert "l3.stride.s8" in figure.locator(".says a.value").get_attribute("href")
    expect(stride).to_have_attribute("aria-valuetext", "8")
    assert figure.locator("svg").get_attribute("aria-label") == figure.locator(".says").inner_text()

    figure.get_by_role("button", name="Keep this row").focus()
    page.keyboard.press("Enter")
    stride.focus()
    page.keyboard.press("ArrowLeft")
    assert figure.locator("tbody td:first-child").all_inner_texts() == ["7", "8"]


def test_by_touch_walks_and_queues_are_those_that_were_measured(opened: Any, measured: Any) -> None:
    page = opened(L3)
    for name, most, run in (("coalescing", "33", "l3.stride.s32"), ("bank_conflicts", "66", "l3.bank.s2")):
        figure = moved(page, name)
        stride = figure.locator('[data-knob="stride"]')
        tap(stride, 0.99)
        expect(stride).to_have_value(most)
        ratio = measured[run]["median"] / measured[f"{run.rpartition('.')[0]}.s1"]["median"]
        expect(figure.locator(".says a.value").last).to_have_text(f"{ratio:.1f}")
        tap(stride, 0.01)
        expect(figure.locator(".says")).to_contain_text("All 32 threads want the same")


def test_by_keyboard_a_longer_row_ends_the_queue(opened: Any, measured: Any) -> None:
    page = opened(L3)
    figure = moved(page, "bank_conflicts")
    expect(figure.locator(".says")).to_contain_text("The longest queue has 32, so the load takes 32 turns.")
    figure.locator('[data-knob="stride"]').focus()
    page.keyboard.press("ArrowRight")
    expect(figure.locator(".says")).to_contain_text("32 words behind 32 different windows")
    ratio = measured["l3.bank.s33"]["median"] / measured["l3.bank.s1"]["median"]
    expect(figure.locator(".says a.value").last).to_have_text(f"{ratio:.1f}")


def test_by_touch_and_keys_fuller_hands_are_the_measured_copy(opened: Any, measured: Any) -> None:
    page = opened(L3)
    figure = moved(page, "littles_law")
    for vectors in (1, 2, 4, 8):
        figure.locator(".places label", has_text=re.compile(rf"^{16 * vectors}$")).tap()
        row = measured[f"l3.flight.v{vectors}.r1"]
        both_ways = 2 * 4 * int(re.search(r"N=(\d+)", row["workload"])[1])
        expect(figure.locator(".says a.value").last).to_have_text(f"{both_ways / row['median'] / 1e3:,.0f}")
    expect(figure.locator(".says")).to_contain_text("32 KiB are in flight on each SM.")
    # And back again by the keys, with two vectors fewer at each.
    figure.locator('[data-knob="bytes"]:checked').focus()
    for vectors in (4, 2, 1):
        page.keyboard.press("ArrowLeft")
        rate = f"l3.flight.v{vectors}.r1"
        expect(figure.locator(".says a.value").last).to_have_attribute("href", re.compile(rate))
    figure.locator('[data-knob="warps"]').focus()
    page.keyboard.press("End")
    expect(figure.locator(".says")).to_contain_text("32 KiB are in flight on each SM.")


def test_by_touch_and_keys_a_job_comes_to_where_one_was_measured(opened: Any, measured: Any) -> None:
    page = opened(L1)
    figure = moved(page, "roofline")
    svg, row = figure.locator("svg"), measured["l1.jobs.add"]
    svg.scroll_into_view_if_needed()
    point = figure.locator("circle", has=page.locator("title", has_text="vector add")).bounding_box()
    page.touchscreen.tap(point["x"] + point["width"] / 2, point["y"] + 40)  # in its column, as a finger does
    tflops = int(re.search(r"N=(\d+)", row["workload"])[1]) / row["median"] / 1e6
    expect(figure.locator(".says")).to_contain_text(f"Measured here: vector add, {tflops:.2f} TFLOP/s.")
    expect(figure.locator('[data-mark="met0"]')).to_have_attribute("visibility", "visible")

    place = figure.locator('[data-knob="place"]')
    there = int(place.input_value())
    place.focus()
    page.keyboard.press("End")
    expect(figure.locator(".says")).to_contain_text("Bound by arithmetic")
    page.keyboard.press("Home")
    expect(figure.locator(".says")).not_to_contain_text("Measured here")
    for _ in range(there):
        page.keyboard.press("ArrowRight")
    expect(figure.locator(".says")).to_contain_text(f"Measured here: vector add, {tflops:.2f} TFLOP/s.")

    figure.locator("select").select_option("a100")
    expect(figure.locator(".says")).to_contain_text("The NVIDIA A100 SXM 80 GB brings 2,039 GB/s")
    expect(figure.locator(".says")).not_to_contain_text("Measured here")
    expect(figure.locator('[data-mark="jobs"]')).to_have_attribute("visibility", "hidden")
    figure.locator(".places label", has_text="bf16").tap()
    expect(figure.locator(".says")).to_contain_text("peak of 312")


def test_by_keys_and_touch_requests_write_into_pages_as_in_python(opened: Any) -> None:
    page = opened(W4)
    figure, twin = moved(page, "block_table"), explorables.named("block_table")
    step, says = figure.locator('[data-knob="step"]'), figure.locator(".says")

    def stands(size: int, at: int) -> None:
        """The sentence, the row, the letters in the cache and the block tables are Python's."""
        shown = twin.work({"size": size, "step": at}, {"given": twin.given()})
        of = shown.texts
        wanted = f"Step {at} of {of['steps']}: {of['seated']} write. They hold {of['held']} places, {of['used']} with"
        expect(says).to_contain_text(wanted if at else f"Requests that wait: {of['waiting']}.")
        assert (step.input_value(), step.get_attribute("max")) == (str(at), of["steps"])
        cells = figure.locator("tbody tr").first.locator("td").all_text_contents()
        assert cells[1:] == [of[key] for key in ("seated", "held", "used", "empty", "waiting")]
        drawn = dict(
            figure.locator("text[data-mark]").evaluate_all("e => e.map(t => [t.dataset.mark, t.textContent])")
        )
        assert drawn == {name: mark["text"] for name, mark in shown.marks.items() if "text" in mark}

    step.focus()
    page.keyboard.press("Home")
    stands(4, 0)
    for at in range(1, 10):
        page.keyboard.press("ArrowRight")
        stands(4, at)
    expect(says).to_contain_text("The last token is written.")
    page.keyboard.press("ArrowRight")  # nothing comes after it
    stands(4, 9)
    # Counted by hand: three reservations of twelve fill the 36 places, a token in each of the three, and nobody sits
    # on the fourth seat.
    figure.locator(".places label", has_text="reserved").tap()
    tap(step, 0.01)
    stands(12, 0)
    figure.get_by_role("button", name="Next").tap()
    stands(12, 1)
    expect(says).to_contain_text(
        "3 write. They hold 36 places, 3 with a token in them, 33 empty: 92 in a hundred."
    )
    expect(says).to_contain_text("A seat is free, and still somebody waits (in all 3): no page is left.")
    figure.get_by_role("button", name="Keep this row").tap()
    figure.get_by_role("button", name="Previous").tap()
    stands(12, 0)
    assert figure.locator("tbody tr").last.locator("td").all_inner_texts() == [
        "1 of 11",
        "3",
        "36",
        "3",
        "33",
        "3",
    ]


def test_by_keys_and_touch_a_cursor_stands_at_what_was_stamped(opened: Any) -> None:
    page = opened(W2)
    figure, twin = moved(page, "timelines"), explorables.named("timelines")
    tick, data = (
        figure.locator('[data-knob="tick"]'),
        json.loads(figure.locator("script").inner_text())["data"],
    )
    ticks = [f"{event:.0f}" for event in twin.events("both", data) if event]
    tick.focus()
    page.keyboard.press("Home")
    for stamped in ticks[:2]:
        page.keyboard.press("ArrowRight")
        expect(tick).to_have_value(stamped)
    figure.get_by_role("button", name="Next").tap()
    expect(tick).to_have_value(ticks[2])
    tap(figure.locator("svg"), 0.5)
    assert int(tick.input_value()) == pytest.approx(twin.last(data) / 2, rel=0.02)
    expect(figure.locator(".says")).to_contain_text(f"{int(tick.input_value()):,}")


def test_without_script_a_state_is_drawn_said_and_tabled(browser: Browser, base: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in WITH_ONE:
        page.goto(base + name, wait_until="domcontentloaded")
        for figure in page.locator(".explorable").all():
            expect(unfolded(figure).locator("svg")).to_be_visible()
            expect(figure.locator(".says")).to_be_visible()
            expect(figure.locator("form")).to_be_hidden()
            assert re.search(r"\d", figure.locator(".says").text_content() or "")
            cells = figure.locator("tbody td").all_text_contents()
            assert len(cells) == figure.locator("thead th").count()
            assert re.search(r"\d", cells[0])
            assert figure.locator("button").count() == 0
    context.close()


@pytest.mark.parametrize("name", WITH_ONE)
def test_a_finger_finds_what_it_turns(opened: Any, name: str) -> None:
    page = opened(name)
    small = page.evaluate(
        """() => [...document.querySelectorAll(".explorable :is(button, select, input, .places label)")]
        .map(e => [e.outerHTML.slice(0, 60), e.getBoundingClientRect()])
        .filter(([, box]) => box.width < 44 || box.height < 44).map(([said]) => said)"""
    )
    assert small == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
