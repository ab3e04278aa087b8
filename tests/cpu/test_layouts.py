"""The arithmetic of the explorable of layouts against a definition of its own: a table over all coordinates."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from course_site.charts.explorables import layouts


def table(sizes: Any, steps: Any) -> dict[int, tuple[tuple[int, ...], int]]:
    """Every index with its coordinate and its address: coordinates counted up, the first number fastest."""
    digits = itertools.product(*map(range, reversed(sizes)))
    found = [tuple(reversed(one)) for one in digits]
    return {n: (one, sum(a * b for a, b in zip(one, steps, strict=True))) for n, one in enumerate(found)}


def state(**other: Any) -> dict[str, Any]:
    return {
        "layout": "rows", "shape": [4, 8], "stride": [8, 1], "split": 1, "inner": "none", "address": "shown", "at": 0,
        **other,
    }  # fmt: skip


def begun(name: str, **other: Any) -> dict[str, Any]:
    sizes, steps, split = layouts.LAYOUTS[name]
    return state(layout=name, shape=list(sizes), stride=list(steps), split=split, **other)


@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_every_index_has_the_coordinate_and_the_address_of_the_table(name):
    sizes, steps, _ = layouts.LAYOUTS[name]
    for index, (digits, address) in table(sizes, steps).items():
        assert layouts.digits_of(index, sizes) == list(digits)
        assert layouts.address_of(index, sizes, steps) == address
        shown = layouts.work(begun(name, at=index), {})
        assert shown.says == ("alone", "coordinate", "products")
        assert shown.texts["address"] == str(address) == shown.marks[f"c{index}"]["text"]
        assert shown.marks[f"o{index}"]["text"] == str(address)
        assert [shown.marks[f"d{i}"]["text"] for i in range(len(sizes))] == list(map(str, digits))
        products = [shown.marks[f"p{i}"]["text"] for i in range(len(sizes))]
        assert sum(map(int, products)) == address
        assert shown.most == {"at": math.prod(sizes) - 1}


def test_the_two_of_the_board_are_where_they_were_worked_out():
    for steps, address in (([8, 1], "19"), ([1, 4], "14")):
        shown = layouts.work(state(stride=steps, at=2 + 4 * 3), {})
        assert (shown.texts["coordinate"], shown.texts["address"]) == ("(2, 3)", address)
    shown = layouts.work(begun("blocks", at=13), {})
    assert shown.texts["outer"] == "((2, 2), (2, 4)):((1, 16), (2, 4))"
    assert shown.texts["coordinate"] == "((1, 0), (1, 1))"
    assert shown.texts["products"].replace("\u00a0", " ") == "1 × 1 + 0 × 16 + 1 × 2 + 1 × 4"
    assert shown.texts["address"] == "7"


@pytest.mark.parametrize("inner", layouts.INNER)
@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_two_layouts_lead_through_both_tables(name, inner):
    sizes, steps, split = layouts.LAYOUTS[name]
    pairs = layouts.inner_of(inner, math.prod(sizes[:split]), math.prod(sizes[split:]))
    first, then = table(*zip(*pairs, strict=True)), table(sizes, steps)
    wanted = [then[index][1] for _, index in first.values()]
    for at, address in enumerate(wanted):
        shown = layouts.work(begun(name, inner=inner, at=at), {})
        assert shown.texts["address"] == str(address)
        assert shown.texts["middle"] == str(first[at][1])
        assert shown.marks["now"]["d"]
    assert [shown.marks[f"o{at}"]["text"] for at in range(len(wanted))] == list(map(str, wanted))
    together = layouts.composed(sizes, steps, pairs)
    assert together is not None
    flat = [pair for part in together for pair in part]
    assert [address for _, address in table(*zip(*flat, strict=True)).values()] == wanted
    assert layouts.work(begun(name, inner=inner), {}).says[-1] == ("products" if inner == "none" else "one")


def test_a_composition_is_right_wherever_it_is_one():
    draw, found = random.Random(7), 0
    for _ in range(3000):
        sizes = [draw.choice((1, 2, 3, 4, 6, 8)) for _ in range(draw.randint(1, 4))]
        steps = [draw.randint(0, 40) for _ in sizes]
        inner = [
            (draw.choice((1, 2, 3, 4, 8)), draw.choice((1, 2, 3, 4, 6, 8, 12)))
            for _ in range(draw.randint(1, 2))
        ]
        first, then = table(*zip(*inner, strict=True)), table(sizes, steps)
        if max(index for _, index in first.values()) >= len(then):
            continue
        together = layouts.composed(sizes, steps, inner)
        if together is None:
            continue
        found += 1
        flat = [pair for part in together for pair in part]
        got = [address for _, address in table(*zip(*flat, strict=True)).values()]
        assert got == [then[index][1] for _, index in first.values()], (sizes, steps, inner)
        assert [math.prod(size for size, _ in part) for part in together] == [count for count, _ in inner]
    assert found > 500


def test_what_no_strides_say_is_no_layout():
    """Elements 0, 2, 4 and 6 of (3, 4):(10, 1): 0, 20, 11, 2; and a row of three in a first number of four."""
    assert layouts.composed([3, 4], [10, 1], [(4, 2)]) is None
    assert layouts.composed([4, 3], [3, 1], [(3, 3)]) is None
    assert (
        layouts.composed([2, 8, 4], [31, 10, 20], [(8, 4), (3, 4)]) is None
    )  # the two carry into each other
    shown = layouts.work(state(shape=[3, 4], stride=[10, 1], inner="second"), {})
    assert shown.says[-1] == "several"
    assert shown.marks["o1"]["text"] == "20"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"shape": [4, 8], "stride": [8]}, "unlike"),
        ({"shape": [4, 0], "stride": [8, 1]}, "no_number"),
        ({"shape": [4, 2.5], "stride": [8, 1]}, "no_number"),
        ({"shape": [4, float("-inf")], "stride": [8, 1]}, "no_number"),
        ({"stride": [8, -1]}, "no_number"),
        ({"stride": [8, 100]}, "no_number"),
        ({"shape": [9, 2], "stride": [1, 9]}, "too_many"),
        ({"shape": [2, 17], "stride": [1, 2]}, "too_many"),
        ({"shape": [8, 9], "stride": [1, 8]}, "too_many"),
        ({"shape": [1e300, 1e300], "stride": [1, 8]}, "too_many"),
    ],
)
def test_what_is_no_layout_says_so_and_draws_nothing(other, said):
    shown = layouts.work(state(**other), {})
    assert shown.says == (said,)
    assert {mark.get("text", "") for mark in shown.marks.values()} == {""}
    assert {mark.get("d", "") for mark in shown.marks.values()} == {""}


@pytest.mark.parametrize("inner", ["none", "turned", "second"])
def test_a_hidden_address_stands_nowhere(inner):
    """The reader says it first: neither the grid nor the walk nor a product has it before the next step."""
    for at in range(15):
        shown = layouts.work(state(inner=inner, address="hidden", at=at), {})
        open_ = layouts.work(state(inner=inner, at=at), {})
        assert shown.says[-1] == "hidden"
        assert shown.texts["address"] == "?"
        texts = [shown.marks[f"o{i}"]["text"] for i in range(32)]
        assert texts == [open_.marks[f"o{i}"]["text"] for i in range(at)] + ["?"] + [""] * (31 - at)
        known = {
            int(open_.marks[f"c{cell}"]["text"])
            for cell in range(32)
            if shown.marks[f"c{cell}"]["text"] not in "?"
        }
        assert len(known) == at
        assert int(open_.texts["address"]) not in known
        assert {shown.marks[f"p{i}"]["text"] for i in range(4)} == {""}


def test_a_grid_is_inside_the_drawing():
    for name in layouts.LAYOUTS:
        height, _ = layouts.draw({}, layouts.work(begun(name), {}).marks)
        for cell in range(layouts.MOST):
            mark = layouts.work(begun(name), {}).marks[f"c{cell}"]
            assert 0 <= float(mark["x"]) <= 346
            assert 0 <= float(mark["y"]) <= height
