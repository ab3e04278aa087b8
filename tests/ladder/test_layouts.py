"""Our layouts against CuTe's own, evaluated while it traces a function: the explorable, and the answer of the lab.

Needs nvidia-cutlass-dsl and no card: nothing is compiled for one.
"""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cutlass", reason="CuTe's Python dialect: pip install nvidia-cutlass-dsl")

import cutlass.cute as cute

from course_labs.lab import find_lab, load_file
from course_site.charts.explorables import layouts

LAB = find_lab(Path(__file__).parents[2], "layouts")
answer = load_file(LAB.solution("python"), "answer")
truth = load_file(LAB.folder / "truth.py", "truth")
DRAWN = 60


def traced(asked: Any) -> Any:
    """What a function returns that is run inside a function of CuTe's, where layouts are known."""
    found = []

    @cute.jit
    def run():
        found.append(asked())

    run()
    return found[0]


def laid(shape: Any, stride: Any) -> Any:
    """One of CuTe's layouts."""
    return cute.make_layout(tupled(shape), stride=tupled(stride))


def tupled(numbers: Any) -> Any:
    """A shape or a stride as CuTe takes it; a single number is no tuple."""
    if isinstance(numbers, int):
        return numbers
    return tupled(numbers[0]) if len(numbers) == 1 else tuple(map(tupled, numbers))


def table(layout: Any) -> list[int]:
    """The addresses of one of CuTe's layouts, in the order of its indices."""
    return [int(layout(index)) for index in range(cute.size(layout))]


def drawn(count: int = DRAWN, seed: int = 3) -> list[Any]:
    draw = random.Random(seed)
    return [truth.folded(draw, truth.drawn(draw)) for _ in range(count)]


def test_a_layout_of_ours_is_the_layout_of_cute():
    """`where` of the lab, `address_of` and `digits_of` of the explorable, size and cosize, index by index."""
    cases = [*drawn(), ([[4, 8], [2, 2, 2]], [[32, 1], [16, 8, 128]])]

    def all_of_it():
        made = [(laid(*case), *case) for case in cases]
        return [
            (table(one), cute.size(one), cute.cosize(one), [flat(cute.idx2crd(i, one.shape)) for i in range(5)])
            for one, *_ in made
        ]  # fmt: skip

    for (shape, stride), (places, size, cosize, coordinates) in zip(cases, traced(all_of_it), strict=True):
        sizes, steps = answer.flat(shape), answer.flat(stride)
        assert [answer.where(shape, stride, index) for index in range(size)] == places
        assert [layouts.address_of(index, sizes, steps) for index in range(size)] == places
        assert truth.table(shape, stride) == places
        assert (answer.size(sizes), answer.cosize(sizes, steps)) == (size, cosize)
        for index, coordinate in enumerate(coordinates):
            if index < size:
                assert layouts.digits_of(index, sizes) == answer.coordinate(index, sizes) == coordinate


def flat(numbers: Any) -> list[int]:
    if isinstance(numbers, tuple):
        return [one for part in numbers for one in flat(part)]
    return [int(numbers)]


def written(layout: Any) -> tuple[list[int], list[int]]:
    return flat(layout.shape), flat(layout.stride)


def test_coalesce_is_cutes():
    draw = random.Random(4)
    cases = []
    for _ in range(DRAWN):
        shape, stride = [], []
        for _ in range(draw.randint(1, 5)):
            goes_on = shape and draw.random() < 0.5
            stride.append(shape[-1] * stride[-1] if goes_on else draw.randint(1, 40))
            shape.append(draw.choice((1, 2, 2, 3, 4)))
        cases.append((shape, stride))
    for case, theirs in zip(
        cases, traced(lambda: [written(cute.coalesce(laid(*c))) for c in cases]), strict=True
    ):
        ours = answer.coalesce(*case)
        assert (list(ours[0]) or [1], list(ours[1]) or [0]) == theirs, case


def pairs(count: int = DRAWN) -> list[Any]:
    draw = random.Random(5)
    fixed = [(([6, 2], [8, 2]), ([4, 3], [3, 1])), (([20], [2]), ([5, 4], [4, 1]))]
    return [*fixed, *(truth.drawn_pair(draw) for _ in range(count))]


def test_composition_is_cutes():
    def all_of_it():
        made = [cute.composition(laid(*outer), laid(*inner)) for outer, inner in pairs()]
        return [(table(one), written(one)) for one in made]

    for (outer, inner), (places, theirs) in zip(pairs(), traced(all_of_it), strict=True):
        assert truth.table(*answer.compose(outer, inner)) == places, (outer, inner)
        together = layouts.composed(*outer, list(zip(*inner, strict=True)))
        assert together is not None
        flat_ = [pair for part in together for pair in part]
        assert tuple(map(list, zip(*flat_, strict=True))) == theirs, (outer, inner)


@pytest.mark.parametrize("inner", layouts.INNER)
@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_what_the_explorable_writes_of_two_layouts_is_cutes(name, inner):
    sizes, steps, split = layouts.LAYOUTS[name]
    first = layouts.inner_of(inner, math.prod(sizes[:split]), math.prod(sizes[split:]))
    theirs = traced(lambda: written(cute.composition(laid(sizes, steps), laid(*zip(*first, strict=True)))))
    together = layouts.composed(sizes, steps, first)
    flat_ = [pair for part in together for pair in part]
    assert tuple(map(list, zip(*flat_, strict=True))) == theirs


def test_complement_is_cutes():
    draw = random.Random(6)
    cases = [([4], [1], 24), ([2, 2], [1, 6], 24), *(truth.drawn_with_room(draw) for _ in range(DRAWN))]

    def all_of_it():
        return [table(cute.complement(laid(shape, stride), bound)) for shape, stride, bound in cases]

    for case, places in zip(cases, traced(all_of_it), strict=True):
        assert truth.table(*answer.complement(*case)) == places, case
        shape, stride, bound = case
        assert truth.repeats(truth.table(shape, stride), bound) == places, case


def test_tiles_are_cutes():
    draw = random.Random(8)
    many = [(([2, 2], [1, 2]), ([2, 3], [3, 1])), (([4], [2]), ([2], [1]))]
    many += [(truth.compact(draw, (2, 4), 2), truth.compact(draw, (2, 3, 4), 2)) for _ in range(DRAWN)]
    cut = [pair for pair in pairs() if filling(*pair)]
    assert len(cut) > DRAWN / 2

    def all_of_it():
        divided = [table(cute.logical_divide(laid(*outer), laid(*tile))) for outer, tile in cut]
        return divided, [table(cute.logical_product(laid(*tile), laid(*order))) for tile, order in many]

    divided, products = traced(all_of_it)
    for (outer, tile), places in zip(cut, divided, strict=True):
        assert truth.table(*answer.divide(outer, tile)) == places, (outer, tile)
    for (tile, order), places in zip(many, products, strict=True):
        assert truth.table(*answer.product(tile, order)) == places, (tile, order)


def filling(outer: Any, tile: Any) -> bool:
    """Whether copies of the tile fill the indices of the outer layout."""
    count = len(truth.table(*outer))
    inside = truth.table(*tile)
    return sorted(a + b for b in truth.repeats(inside, count) for a in inside) == list(range(count))


def test_the_inverse_is_cutes():
    draw = random.Random(9)
    cases = [([4, 8], [8, 1]), *(truth.compact(draw, (2, 3, 4)) for _ in range(DRAWN))]
    theirs = traced(lambda: [table(cute.right_inverse(laid(*case))) for case in cases])
    for case, places in zip(cases, theirs, strict=True):
        assert truth.table(*answer.inverse(*case)) == places, case


def test_the_swizzle_is_cutes():
    kinds = [one for one in itertools.product((1, 2, 3), (0, 2, 4), (1, 2, 3, 4)) if one[0] <= one[2]]

    def all_of_it():
        return [
            [
                int(cute.make_composed_layout(cute.make_swizzle(*kind), 0, cute.make_layout(1024))(place))
                for place in range(0, 1024, 37)
            ]
            for kind in kinds
        ]

    for kind, places in zip(kinds, traced(all_of_it), strict=True):
        assert [answer.swizzle(*kind, place) for place in range(0, 1024, 37)] == places, kind


def test_the_widest_copy_is_cutes():
    """`max_common_vector`, where both layouts repeat as the first run does."""
    if not hasattr(cute, "max_common_vector"):
        pytest.skip("this version has none")
    cases = [
        (([4, 8], [1, 4]), ([4, 8], [1, 6])), (([4, 8], [8, 1]), ([4, 8], [1, 4])), (([8], [1]), ([8], [1])),
        (([2, 2, 8], [1, 2, 4]), ([2, 2, 8], [1, 2, 8])), (([4, 8], [8, 1]), ([4, 8], [12, 1])),
    ]  # fmt: skip
    theirs = traced(lambda: [int(cute.max_common_vector(laid(*a), laid(*b))) for a, b in cases])
    assert [answer.widest(a, b) for a, b in cases] == theirs
