"""The explorable of four bits against the encoder in NumPy, over many blocks; and what it shows at which step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from course_kernels.nvfp4 import blocks, formats
from course_site.charts.explorables import four_bits

WAYS = ("nearest", "second", "power", "plain")
SIXTEEN = [
    0.03,
    -0.11,
    0.27,
    0.08,
    -0.02,
    0.15,
    -0.19,
    0.05,
    0.12,
    -0.07,
    0.01,
    -0.24,
    0.09,
    0.18,
    -0.14,
    0.06,
]


def state(**other: Any) -> dict[str, Any]:
    return {"numbers": SIXTEEN, "scale": "nearest", "at": 4, **other}


def drawn(draw: random.Random) -> list[float]:
    """Sixteen numbers of all sizes, with zeros, and with some that are ties once they are over a step."""
    size = 10.0 ** draw.uniform(-9, 5.9)
    tie = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]
    kinds = (
        lambda: draw.gauss(0, size / 4),
        lambda: draw.choice(tie) * draw.choice((1, -1)) * 2.0 ** round(np.log2(size)),
        lambda: draw.choice((0.0, -0.0, size)),
    )
    some = [draw.choices(kinds, (6, 3, 1))[0]() for _ in range(16)]
    return [max(-1e6, min(x, 1e6)) for x in some]


def by_numpy(numbers: list[float], way: str) -> tuple[float, float, list[int], np.ndarray[Any, Any]]:
    """Scale, second scale, codes and decoded numbers, of the encoder."""
    x = np.array(numbers, dtype=np.float32)
    if way == "plain":
        codes = formats.encode(x, formats.E2M1)
        return 1.0, 1.0, codes.tolist(), formats.decode(codes, formats.E2M1).astype(np.float32)
    form = blocks.MXFP4 if way == "power" else blocks.NVFP4
    if way == "power":
        x = np.concatenate([x, np.zeros(16, dtype=np.float32)])
    made = blocks.encode(x, form, second=1 if way == "nearest" else None)
    scale = float(formats.values(form.scale)[made.scales[0]])
    return scale, float(made.second), made.codes[:16].tolist(), blocks.decode(made, form)[:16]


@pytest.mark.parametrize("way", WAYS)
def test_every_block_is_that_of_the_encoder(way):
    draw = random.Random(way)
    for numbers in [SIXTEEN, [0.0] * 16, [-0.0] * 16, *(drawn(draw) for _ in range(400))]:
        single = [four_bits.single(x) for x in numbers]
        _, scale, above, codes = four_bits.encoded(single, way)
        expected = by_numpy(numbers, way)
        assert (scale, above, codes) == expected[:3], numbers
        shown = four_bits.work(state(numbers=numbers, scale=way), {})
        back = [float(x) for x in expected[3]]
        assert [shown.marks[f"b{i}"]["text"] for i in range(16)] == [four_bits.told(x) for x in back]
        misses = [abs(x - y) for x, y in zip(single, back, strict=True)]
        assert shown.texts["off"] == four_bits.told(sum(misses))
        assert shown.texts["worst"] == four_bits.told(max(misses))


def test_the_numbers_of_both_formats_are_those_of_the_definition():
    assert list(four_bits.E2M1) == formats.magnitudes(formats.E2M1).tolist()
    assert list(four_bits.E4M3) == formats.magnitudes(formats.E4M3).tolist()


@pytest.mark.parametrize("step", range(5))
def test_a_step_shows_nothing_that_comes_after_it(step):
    shown = four_bits.work(state(at=step), {})
    filled = {name for name in "xqcbm" if shown.marks[f"{name}0"]["text"]}
    assert filled == {0: {"x"}, 1: {"x"}, 2: set("xqc"), 3: set("xqcb"), 4: set("xqcbm")}[step]
    assert shown.says == (("largest", "nearest", "codes", "decoded", "error")[step],)


def test_the_sixteen_of_the_page_by_hand():
    shown = four_bits.work(state(), {})
    assert (shown.texts["largest"], shown.texts["scale"], shown.texts["zeros"]) == ("0.27", "0.04688", "1")
    assert [shown.marks[f"{name}11"]["text"] for name in "xcb"] == ["−0.24", "1 11 1", "−0.2813"]
    assert four_bits.work(state(scale="plain"), {}).texts["zeros"] == "15"


def test_a_number_that_is_too_large_draws_nothing():
    shown = four_bits.work(state(numbers=[1e7, *SIXTEEN[1:]]), {})
    assert shown.says == ("too_large",)
    assert {mark.get("text", "") + mark.get("d", "") for mark in shown.marks.values()} == {""}


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0625, "1.063"),
        (99995.0, "100000"),
        (1e6, "1000000"),
        (2.0**-30, "9.313e−10"),
    ],
)
def test_four_digits_are_told(x, text):
    assert four_bits.told(x) == text
