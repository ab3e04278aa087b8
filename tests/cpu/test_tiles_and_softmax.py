"""The sums of two explorables, tiles and softmax, against the records, the sources and another road to the answer."""

from __future__ import annotations

import json
import math
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from course_kernels.sgemm.tiles import BY_CAPABILITY
from course_site.charts.explorables import softmax, tiles

ROOT = Path(__file__).parents[2]
SGEMM = ROOT / "src" / "course_kernels" / "sgemm"
KERNEL_OF = {
    name: (shape, number)
    for shape, (_, kernels) in tiles.SHAPES.items()
    for number, name in kernels
    if not (number == 11 and name != "register_banks")
}


@cache
def recorded(page: str) -> dict[str, Any]:
    """Everything that a page recorded on the reference card, by name."""
    found: dict[str, Any] = {}
    notebook = json.loads((ROOT / "records" / "nvidia-h200" / "docs" / page).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            found |= output.get("data", {}).get("application/vnd.course.record+json", {}).get("names", {})
    return found


def l4() -> dict[str, Any]:
    return recorded("lectures/l4_the_gemm_ladder.ipynb")


def l5() -> dict[str, Any]:
    return recorded("lectures/l5_the_top_of_the_ladder.ipynb")


def data() -> dict[str, Any]:
    """What the page L5 hands to the explorable, without its links."""
    card = recorded("lectures/l1_what_a_gpu_is.ipynb")["card"]
    return {
        "sms": l5()["sms"], "threads": card["threads"], "registers": card["registers"], "shared": card["shared_kib"],
        "counted": {name: {**l4()["vital"], **l5()["vital"]}[name]["registers"] for name in KERNEL_OF},
        "ladder": l5()["ladder"], "shapes": l5()["shape"],
        "sizes": {"register_banks": l5()["smooth"]["whole"]}, "odd": {}, "given": tiles.given(),
    }  # fmt: skip


def state_of(shape: str, size: int = 4096, **other: int) -> dict[str, int]:
    tile = dict(zip(tiles.TILE, tiles.SHAPES[shape][0], strict=True))
    return {**tile, "M": size, "N": size, "bytes": 4, **other}


def number(text: str | list[str]) -> float:
    assert isinstance(text, str)
    return float(text.replace(",", ""))


@pytest.mark.parametrize("name", KERNEL_OF)
def test_the_measured_tiles_are_those_of_the_sources(name: str) -> None:
    shape, step = KERNEL_OF[name]
    source = next(SGEMM.glob(f"k{step:02}_*.cu")).read_text(encoding="utf-8")
    known = {"TILE": 0, "BM": 0, "BN": 0, "BK": 0, "TM": 0, "TN": 0, "STAGES": 1}
    for line in re.findall(r"^constexpr int (.+?);", source, re.MULTILINE):
        known |= {word: int(value) for word, value in re.findall(r"(\w+) = (\d+)\b", line) if word in known}
    names = {**BY_CAPABILITY[9, 0].defines}
    if "BLOCK_M" in source:
        known |= {
            "BM": names["BLOCK_M"],
            "BN": names["BLOCK_N"],
            "TM": names["REGISTER_M"],
            "TN": names["REGISTER_N"],
        }
    if known["TILE"]:
        known |= dict.fromkeys(("BM", "BN", "BK"), known["TILE"])
    padded = 4 if "[BM + 4]" in source else 0
    found = (
        *(known[k] for k in ("BM", "BN", "BK")),
        known["TM"] or 1,
        known["TN"] or 1,
        known["STAGES"],
        padded,
    )
    assert tiles.SHAPES[shape][0] == found


def test_the_race_of_shapes_had_these_tiles() -> None:
    page = (ROOT / "docs" / "lectures" / "l5_the_top_of_the_ladder.py").read_text(encoding="utf-8")
    raced = re.findall(r'"(\w+)": Tiles\(\((\d+), (\d+)\), \(\d+, \d+\), \((\d+), (\d+)\)\)', page)
    of_race = {name: tuple(map(int, tile)) for name, *tile in raced if name not in ("flat", "wide")}
    ours = {
        name: (*tile[:2], *tile[3:5])
        for tile, kernels in tiles.SHAPES.values()
        for _, name in kernels
        if name in of_race
    }
    assert of_race == ours
    assert ours


@pytest.mark.parametrize("name", KERNEL_OF)
def test_shared_memory_and_occupancy_are_what_the_counters_say(name: str) -> None:
    shape, _ = KERNEL_OF[name]
    handed = data()
    handed["counted"] = {name: handed["counted"][name]}
    texts = tiles.work(state_of(shape), handed).texts
    of_l5 = l5()["vital"].get(name)
    kib = (
        of_l5["shared_kib"]["value"] if of_l5 else l4()["vital"][name]["shared_kib"]["value"] + 1
    )  # L4: without the system's
    assert number(texts["shared"]) == pytest.approx(kib, abs=0.0051)
    seats = 100 * (of_l5["occupancy"] if of_l5 else l4()["vital"][name]["seats"])["value"]
    assert seats - 0.1 < number(texts["occupancy"]) < seats + 3  # counted over a run, whose ends are not full


def test_blocks_on_an_sm_are_those_that_the_driver_gives() -> None:
    for name, shape in (("small", "k09"), ("wide", "k11")):
        texts = tiles.work(state_of(shape), data()).texts
        assert number(texts["blocks"]) * number(texts["threads"]) == l5()["places"][name]["value"]


def test_registers_are_handed_out_to_warps_in_pieces() -> None:
    # 4 x 16 sums and 20 numbers are 84 registers, rounded up to 88: 2816 a warp. A quarter of the SM, 16384, has room
    # for five such warps, so the SM for twenty blocks of one. By 65536 / 2816 it would be 23, by 65536 / (84 x 32) 24.
    state = state_of("k05") | {"BM": 32, "BN": 64, "TM": 4, "TN": 16}
    assert tiles.work(state, data()).texts["blocks"] == "20"


def test_waves_are_those_of_the_page() -> None:
    for size, found in ((int(key[1:]), one) for key, one in l5()["waves"].items()):
        texts = tiles.work(state_of("k11", size), data()).texts
        assert number(texts["tiles"]) == found["tiles"]["value"]
        assert number(texts["rounds"]) == found["rounds"]["value"]
        assert number(texts["full"]) == pytest.approx(100 * found["full"]["value"], abs=0.051)


def test_loads_are_those_that_the_pages_work_out() -> None:
    for key, shape in (("t8x8_by16", "k05"), ("t16x8_by16", "k11")):
        texts, by_hand = tiles.work(state_of(shape), data()).texts, l5()["by_hand"][key]
        assert number(texts["share"]) == pytest.approx(100 * by_hand["share"]["value"], abs=0.051)
        assert number(texts["load"]) == pytest.approx(1 / by_hand["loads"]["value"], abs=0.051)
        assert number(texts["near"]) == pytest.approx(by_hand["bytes"]["value"], abs=0.0051)
    for name, shape in (("shared_tiles", "k03"), ("register_column", "k04"), ("register_tile", "k05")):
        assert number(tiles.work(state_of(shape), data()).texts["l2"]) == pytest.approx(
            l4()["hall"][name]["value"], abs=1e-4
        )


@pytest.mark.parametrize(
    ("wrong", "change"),
    [
        ("too_many", {"BM": 128, "BN": 128, "TM": 1, "TN": 1}),
        ("spills", {"TM": 16, "TN": 16}),
        ("too_much", {"BM": 256, "BN": 256, "BK": 64, "stages": 2, "TM": 16, "TN": 8}),
        ("too_wide", {"BM": 256, "BN": 256, "TM": 8, "TN": 8}),
    ],
)
def test_what_cannot_be_launched_says_why_in_one_line(wrong: str, change: dict[str, int]) -> None:
    assert tiles.work(state_of("k05") | change, data()).says == (wrong,)


def test_softmax_holds_what_the_page_recorded() -> None:
    step = recorded("workshops/w1_flash_attention.ipynb")["step"]
    states = softmax.held([1, 3, 2, 5], 2, -math.inf)
    after = {"one": states[2], "repaired": states[3], "two": states[4]}
    for name, state in after.items():
        for note in ("m", "l", "a"):
            if note in step[name]:
                assert getattr(state, note) == pytest.approx(step[name][note]["value"], rel=1e-6)
    assert states[3].factor == pytest.approx(step["repair"]["value"], rel=1e-6)
    assert states[-1].a / states[-1].l == pytest.approx(step["direct"]["out"]["value"], rel=1e-6)


def test_softmax_step_by_step_is_softmax_at_once() -> None:
    draw = random.Random(3)
    for _ in range(300):
        scores = [
            draw.choice((draw.uniform(-9, 9), draw.uniform(-900, 900), -math.inf))
            for _ in range(draw.randint(1, 8))
        ]
        scores[0] = draw.uniform(
            -9, 9
        )  # a tile of nothing but masked scores at the head has a test of its own
        last = softmax.held(scores, draw.choice((1, 2, 4)), -math.inf)[-1]
        p = np.exp(np.array(scores) - max(scores))
        assert last.a / last.l == pytest.approx(p @ softmax.VALUES[: len(p)] / p.sum(), rel=1e-4)


def test_a_masked_tile_at_the_head_breaks_minus_infinity_and_not_the_kernels_number() -> None:
    scores = [-math.inf, -math.inf, 2.0, 5.0]
    assert math.isnan(softmax.held(scores, 2, -math.inf)[-1].l)
    kept = softmax.held([max(s, softmax.NEVER) for s in scores], 2, softmax.NEVER)[-1]
    assert kept.a / kept.l == pytest.approx((30 * math.exp(-3) + 40) / (1 + math.exp(-3)), rel=1e-6)
