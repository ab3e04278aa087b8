"""The lab of layouts: a right answer may be written otherwise, and what is right is no slip's table."""

import random
from pathlib import Path

import pytest

from course_labs.interactive_cases import Asked, Slip, grade
from course_labs.lab import find_lab, load_file
from course_labs.protocol.messages import Played

ROOT = Path(__file__).parents[2]
LAB = find_lab(ROOT, "layouts")
ANSWER = LAB.snapshot("python", len(LAB.stages))
truth = load_file(LAB.folder / "truth.py", "truth")

# Functions written in another way, by the names that they replace: layouts nested, folded into one number, with digits
# of size 1, with tuples; tables instead of algebra.
OTHERWISE = '''

import itertools
from functools import reduce
from math import prod


def coordinate(index, shape):
    return tuple(index // prod(shape[:at]) % count for at, count in enumerate(shape))


def size(shape):
    return reduce(lambda a, b: a * b, flat(shape), 1)


def cosize(shape, stride):
    return max(where(shape, stride, index) for index in range(size(shape))) + 1


def where(shape, stride, index):
    if isinstance(shape, int):
        return index % shape * stride
    place = 0
    for part, step in zip(shape, stride):
        place += where(part, step, index % size([part]))
        index //= size([part])
    return place


ours = coalesce


def coalesce(shape, stride):
    sizes, steps = ours(shape, stride)
    return (sizes[0], steps[0]) if len(sizes) == 1 else (tuple(sizes), tuple(steps))


def every(shape, stride, count, step):
    return fitted([where(shape, stride, step * n) for n in range(count)])


def fitted(places):
    """A layout with these addresses, one number after the other."""
    sizes, steps = [1], [0]
    while len(places) > 1:
        step = places[1] - places[0]
        run = next((n for n in range(1, len(places)) if places[n] - places[n - 1] != step), len(places))
        run = next(n for n in range(run, 0, -1) if len(places) % n == 0)
        sizes.append(run)
        steps.append(step)
        places = places[::run]
    return sizes, steps


def compose(outer, inner):
    parts = [every(*outer, count, step) for count, step in zip(*inner)]
    return [sizes for sizes, _ in parts], [steps for _, steps in parts]


def divide(outer, tile):
    rest = complement(*tile, size(outer[0]))
    return tuple(zip(compose(outer, tile), compose(outer, rest)))


def product(tile, many):
    rest = complement(*tile, size(tile[0]) * cosize(*many))
    sizes, steps = compose(rest, many)
    return [tile[0], sizes], [tile[1], steps]


def fragment(row_stride):
    return [4, 8, 2, 2, 2], [2, row_stride, 1, 8 * row_stride, 8]


def swizzle(bits, base, shift, place):
    return place ^ (place & (2**bits - 1 << base + shift)) >> shift


def turns(places):
    return max(len({p for p in places if p % 32 == bank}) for bank in range(32))


def inverse(shape, stride):
    places = [where(shape, stride, index) for index in range(size(shape))]
    return fitted([places.index(place) for place in range(len(places))])


def widest(source, destination):
    goes = {where(*source, i): where(*destination, i) for i in range(size(source[0]))}
    return next(n for n in itertools.count() if goes.get(n) != n)
'''


def test_a_right_answer_may_be_written_otherwise(tmp_path):
    file = tmp_path / "layouts.py"
    file.write_text(ANSWER.read_text() + OTHERWISE)
    (found,) = grade(LAB, [file], environment={"CUDA_VISIBLE_DEVICES": "-1"})

    assert found.text.startswith("right: correct in all "), found.text
    assert found.text.splitlines()[-1].startswith("alone: right, and the lab is done: ")


def test_the_table_is_that_of_the_lectures_formula():
    """What CUTLASS says in one line of the A of `mma.m16n8k16`, column by column, and what a lane holds."""
    places = truth.table([[4, 8], [2, 2, 2]], [[32, 1], [16, 8, 128]])
    held = [truth.lane_holds(lane, value) for value in range(8) for lane in range(32)]
    assert [(place % 16, place // 16) for place in places] == held
    assert truth.table([4, 8], [8, 1])[2 + 4 * 3] == 19
    assert truth.table([4, 8], [1, 4])[2 + 4 * 3] == 14


def test_repeats_are_the_first_free_places():
    assert truth.repeats([0, 2, 4, 6], 24) == [0, 1, 8, 9, 16, 17]
    assert truth.repeats([0, 1, 2, 3], 12) == [0, 4, 8]


class Given(Asked):
    """Answers that are given, whatever is asked."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def call(self, name, *given, **_):
        from course_labs.interactive_cases import _answer

        return _answer(Played(self.answers.pop(0), after=given))


def complaint(look, *given, answer, **how):
    with pytest.raises(Slip) as slip:
        look(Given(answer), *given, **how)
    return slip.value


@pytest.mark.parametrize(
    ("answer", "found", "said"),
    [
        ([[4], [2, 1]], "wrong result", "expected (shape, stride)"),
        ([4, 2, 1], "wrong result", "expected (shape, stride)"),
        ([[4, True], [2, 1]], "wrong result", "expected (shape, stride)"),
        ([[4, 0], [2, 1]], "wrong", "has a size below 1"),
        ([[2], [2]], "wrong", "expected 4 elements, and 2:2 has 2"),
        ([[10**9], [2]], "wrong", "expected 4 elements"),
        ([[2, 2], [2, 5]], "wrong", "index 2 of your (2, 2):(2, 5) leads to 5; 4 is due"),
    ],
)
def test_what_is_wrong_with_a_layout_is_said(answer, found, said):
    slip = complaint(truth.look_at_layout, "every", [8], [1], 4, 2, answer=answer, due=[0, 2, 4, 6])
    assert slip.found == found
    assert said in slip.why


def test_a_slip_is_named_only_where_it_is_one():
    """What a slip gives and what is right may be the same by chance; then nothing is said of it."""
    slip = complaint(truth.look_at_number, "address", answer=5, due=4, slips={"yes": 5, "no": 4})
    assert slip.next == "yes"
    assert complaint(truth.look_at_number, "address", answer=6, due=4, slips={"yes": 5}).next == ""


def test_what_is_drawn_can_be_answered():
    """The sizes that are drawn divide each other, and a layout that must fill its gaps can."""
    draw = random.Random(5)
    for _ in range(300):
        shape, stride, bound = truth.drawn_with_room(draw)
        places = truth.table(shape, stride)
        starts = truth.repeats(places, bound)
        assert sorted(a + b for b in starts for a in places) == list(range(bound))
        outer, inner = truth.drawn_pair(draw)
        assert max(truth.table(*inner)) < len(truth.table(*outer))
        apart = truth.table(*truth.drawn(draw))
        assert len(set(apart)) == len(apart)
        compact = truth.table(*truth.compact(draw, (2, 3)))
        assert sorted(compact) == list(range(len(compact)))
