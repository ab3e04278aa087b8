"""Layouts: addresses, coordinates, strides, and what is made of layouts: composed, complemented, tiled, inverted.

What is right is a table here, the addresses of a layout in the order of its indices, and no algebra: a file may write
the same layout as it likes. Where an answer is what a usual slip gives, the complaint names the slip.
"""

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_judge.host import Broken
from course_labs.interactive_cases import Asked, Play, Slip, with_advice

LANES = BANKS = 32

NEXT_OF_ORDER = "the first number runs first: which coordinate comes right after (0, 0)?"
NEXT_OF_PAIRS = "a number of the shape may be a list itself: what does `flat` make of it?"
NEXT_OF_THE_INNER = "the inner layout is asked first; what it answers is an index of the outer one."
NEXT_OF_A_RUN = (
    "the elements run past the end of the first number: with what step do they go on in the next one?"
)
NEXT_OF_THE_BOUND = "count: the elements of both layouts together must be as many as the bound."
NEXT_OF_A_LAYOUT = "return a shape and a stride, two lists of the same form."

Numbers = list[int]
Layout = tuple[Any, Any]  # shape and stride, of numbers or of lists of them
Slips = Mapping[str, Any]  # what to say -> the answer, or the table of an answer, for which it is said


def cases() -> list[Play]:
    """From an address to an inverse, each function from its smallest case up."""
    return [
        *addresses(), *sizes(), *coordinates(),
        *majors(), *nested(), *coalesced(),
        *throughs(), *everies(), *composed(),
        *complements(), *divided(), *products(), *dealt(),
        *fragments(), *swizzled(), *queues(), *inverses(),
    ]  # fmt: skip


# --- layouts as tables ----------------------------------------------------------------------------


def flat(numbers: Any) -> Numbers:
    """All numbers of a shape or a stride, from the left."""
    return [numbers] if isinstance(numbers, int) else [one for part in numbers for one in flat(part)]


def table(shape: Any, stride: Any) -> Numbers:
    """The addresses of a layout in the order of its indices, the first number running first."""
    counts, steps = flat(shape), flat(stride)
    return [
        sum(digit * step for digit, step in zip(reversed(digits), steps, strict=True))
        for digits in itertools.product(*map(range, reversed(counts)))
    ]


def last_first(shape: Any, stride: Any) -> Numbers:
    """The same where the last number runs first: the usual slip."""
    return table(flat(shape)[::-1], flat(stride)[::-1])


def repeats(places: Sequence[int], bound: int) -> Numbers:
    """Where a layout must be repeated so that all addresses below a bound are taken: always the first free one."""
    taken, found = set[int](), Numbers()
    for place in range(bound):
        if place not in taken:
            found.append(place)
            taken |= {place + one for one in places}
    return found


def told(shape: Any, stride: Any) -> str:
    """A layout as CuTe writes it."""
    return f"{brackets(shape)}:{brackets(stride)}"


def brackets(numbers: Any) -> str:
    """A shape, a stride or a coordinate in round brackets; a single number has none."""
    if isinstance(numbers, int) or len(numbers) == 1:
        return str(numbers if isinstance(numbers, int) else numbers[0])
    return f"({', '.join(map(brackets, numbers))})"


# --- looking at an answer -------------------------------------------------------------------------


def look_at_number(asked: Asked, name: str, *given: Any, due: int, slips: Slips | None = None) -> None:
    """The function gives this number."""
    call, got = _called(name, given), _answer(asked, name, given).number(name)
    if got != due:
        raise Slip("wrong", f"{call}: expected {due}, got {got}", _advice(got, due, slips))


def look_at_list(asked: Asked, name: str, *given: Any, due: Numbers, slips: Slips | None = None) -> None:
    """The function gives these numbers, in a list or a tuple."""
    call, got = _called(name, given), _answer(asked, name, given).list(name, "numbers")
    if got != due:
        why = f"{call}: expected {due}, got {str(got)[:60]}"
        raise Slip("wrong", why, _advice(got, due, slips))


def look_at_layout(asked: Asked, name: str, *given: Any, due: Numbers, slips: Slips | None = None) -> Layout:
    """The function gives a layout with this table, however it is written; returns it."""
    call = _called(name, given)
    got = _answer(asked, name, given).list(name, "two, the shape and the stride")
    if len(got) != 2 or not _alike(*got):
        raise Slip("wrong result", f"{call}: expected (shape, stride), got {str(got)[:60]}", NEXT_OF_A_LAYOUT)
    written = told(*got)
    if any(count < 1 for count in flat(got[0])):
        raise Slip(
            "wrong", f"{call}: {written} has a size below 1", "which numbers has the coordinate there?"
        )
    count = math.prod(flat(got[0]))
    if count != len(due):
        made = table(*got) if count <= 4 * len(due) else None
        why = f"{call}: expected {len(due)} elements, and {written[:80]} has {count}"
        raise Slip("wrong", why, _advice(made, due, slips))
    made = table(*got)
    if made != due:
        index = next(i for i, (mine, right) in enumerate(zip(made, due, strict=True)) if mine != right)
        why = f"{call}: index {index} of your {written[:80]} leads to {made[index]}; {due[index]} is due"
        raise Slip("wrong", why, _advice(made, due, slips))
    return got[0], got[1]


def _called(name: str, given: Sequence[Any]) -> str:
    shown = ", ".join(map(str, given))
    return f"{name}({shown if len(shown) <= 160 else f'{shown[:110]} … {shown[-40:]}'})"


def _answer(asked: Asked, name: str, given: Sequence[Any]) -> Any:
    try:
        return asked.call(name, *given)
    except Broken as broken:
        if "'list'" not in broken.why:
            raise
        raise with_advice("crashed", NEXT_OF_PAIRS, broken) from None


def _advice(got: Any, due: Any, slips: Slips | None) -> str:
    return next(
        (words for words, slip in (slips or {}).items() if slip not in (None, due) and slip == got), ""
    )


def _alike(shape: Any, stride: Any) -> bool:
    """Whether both are whole numbers, or lists of the same form."""
    if isinstance(shape, list) and isinstance(stride, list):
        return len(shape) == len(stride) and all(map(_alike, shape, stride))
    return all(isinstance(one, int) and not isinstance(one, bool) for one in (shape, stride))


def _play(job: str, look: Callable[..., Any], *given: Any, **how: Any) -> Play:
    return Play(job, lambda asked, _: look(asked, *given, **how))


def _by_chance(job: str, look: Callable[[Asked, random.Random], Any], times: int = 12) -> Play:
    """Numbers that nobody announced; once the same each time, then others."""

    def run(asked: Asked, draw: random.Random) -> None:
        for _ in range(times):
            look(asked, draw)

    return Play(job, run, again=2)


# --- layouts by chance ----------------------------------------------------------------------------


def drawn(draw: random.Random, most: int = 4, sizes: Sequence[int] = (2, 3, 4, 5, 7, 8)) -> Layout:
    """A layout in which no two elements share a place: its numbers in any order, with gaps between some."""
    counts = [draw.choice(sizes) for _ in range(draw.randint(1, most))]
    steps, step = [0] * len(counts), draw.choice((1, 1, 1, 2, 3))
    for at in draw.sample(range(len(counts)), len(counts)):
        steps[at] = step
        step = step * counts[at] + draw.choice((0, 0, 1, 4))
    return counts, steps


def compact(draw: random.Random, sizes: Sequence[int], most: int = 4) -> Layout:
    """The same without a gap."""
    counts = [draw.choice(sizes) for _ in range(draw.randint(1, most))]
    steps, step = [0] * len(counts), 1
    for at in draw.sample(range(len(counts)), len(counts)):
        steps[at], step = step, step * counts[at]
    return counts, steps


def folded(draw: random.Random, layout: Layout) -> Layout:
    """The same layout with some of its numbers in brackets."""
    shape, stride = layout
    if len(shape) < 2:
        return shape, stride
    cut = draw.randint(1, len(shape) - 1)
    return [shape[:cut], *shape[cut:]], [stride[:cut], *stride[cut:]]


# --- from coordinate to address -------------------------------------------------------------------


def addresses() -> list[Play]:
    """The function `address`."""

    def look(asked: Asked, coordinate: Numbers, stride: Numbers) -> None:
        due = sum(map(int.__mul__, coordinate, stride))
        slips = {
            "each number goes with the stride in the same place, the first with the first.": sum(
                map(int.__mul__, coordinate, stride[::-1])
            ),
            "which of the numbers did you leave out?": sum(map(int.__mul__, coordinate[:2], stride[:2])),
            "the sum of the numbers is no address: by what is each multiplied first?": sum(coordinate),
        }
        look_at_number(asked, "address", coordinate, stride, due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        shape, stride = drawn(draw)
        look(asked, [draw.randrange(count) for count in shape], stride)

    fixed = [([2, 3], [8, 1]), ([2, 3], [1, 4]), ([0, 5], [0, 3]), ([1, 2, 3], [1, 2, 8]), ([3], [7])]
    return [
        *(_play(f"{brackets(at)} with strides {brackets(by)}", look, at, by) for at, by in fixed),
        _by_chance("coordinates by chance", by_chance),
    ]


def sizes() -> list[Play]:
    """The functions `size` and `cosize`."""

    def look(asked: Asked, shape: Numbers, stride: Numbers) -> None:
        count, places = math.prod(shape), table(shape, stride)
        slips = {"how many pairs are there of 4 first numbers and 8 second ones?": sum(shape)}
        look_at_number(asked, "size", shape, due=count, slips=slips)
        slips = {
            "size counts elements. How far apart are the first place and the last one?": count,
            "address 0 is a place too: how many places are there from 0 to 3?": max(places),
            "the largest number of a coordinate is one less than its size.": reach(shape, stride),
            "the largest number is one less than its size: four of them are 0 to 3.": reach(shape, stride) + 1,
        }  # fmt: skip
        look_at_number(asked, "cosize", shape, stride, due=max(places) + 1, slips=slips)

    def reach(shape: Numbers, stride: Numbers) -> int:
        return sum(map(int.__mul__, shape, stride))

    fixed = [([4, 8], [8, 1]), ([4, 8], [9, 1]), ([4, 8], [0, 1]), ([3], [5]), ([2, 2, 3], [1, 4, 10])]
    return [
        *(_play(told(*layout), look, *layout) for layout in fixed),
        _by_chance("sizes by chance", lambda asked, draw: look(asked, *drawn(draw)), 6),
    ]


def coordinates() -> list[Play]:
    """The function `coordinate`."""

    def look(asked: Asked, index: int, shape: Numbers) -> None:
        digits = [list(one[::-1]) for one in itertools.product(*map(range, shape[::-1]))]
        others = [list(one) for one in itertools.product(*map(range, shape))]
        slips = {
            NEXT_OF_ORDER: others[index],
            "in which order are the numbers returned?": digits[index][::-1],
        }
        look_at_list(asked, "coordinate", index, shape, due=digits[index], slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        shape, _ = drawn(draw)
        look(asked, draw.randrange(math.prod(shape)), shape)

    fixed = [(0, [4, 8]), (6, [4, 8]), (14, [4, 8]), (31, [4, 8]), (17, [2, 3, 5]), (6, [7])]
    return [
        *(_play(f"index {index} in {brackets(shape)}", look, index, shape) for index, shape in fixed),
        _by_chance("indices by chance", by_chance),
    ]


# --- strides, brackets, fewer numbers -------------------------------------------------------------


def majors() -> list[Play]:
    """The functions `column_major` and `row_major`."""

    def column(asked: Asked, shape: Numbers) -> None:
        due = [math.prod(shape[:at]) for at in range(len(shape))]
        slips = {
            "column by column, neighbours in memory differ in the first number: which stride has it?": [
                math.prod(shape[at + 1 :]) for at in range(len(shape))
            ],
            "the stride of a number is what all numbers before it have run through, multiplied.": [1, *shape[:-1]],
        }  # fmt: skip
        look_at_list(asked, "column_major", shape, due=due, slips=slips)

    def row(asked: Asked, rows: int, columns: int, pad: int) -> None:
        slips = {
            "from one row to the next you step over the padding too.": [columns, 1],
            "row by row, neighbours in memory differ in the second number: which stride has it?": [1, rows],
            "a whole row lies between two elements of one column: how many places is that?": [rows + pad, 1],
            "the padding comes after the row, not after each element.": [columns + pad, 1 + pad],
        }
        look_at_list(asked, "row_major", rows, columns, pad, due=[columns + pad, 1], slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        column(asked, drawn(draw)[0])
        row(asked, draw.randint(1, 99), draw.randint(1, 99), draw.choice((0, 1, 4, 8)))

    shapes, padded = [[4, 8], [8], [2, 3, 5], [2, 2, 4, 2]], [(4, 8, 0), (4, 8, 1), (3, 5, 4)]
    return [
        *(_play(f"{brackets(shape)}, column by column", column, shape) for shape in shapes),
        *(
            _play(
                f"a {rows} by {columns} matrix row by row, {pad} places of padding", row, rows, columns, pad
            )
            for rows, columns, pad in padded
        ),
        _by_chance("strides by chance", by_chance),
    ]


def nested() -> list[Play]:
    """The function `where`."""

    def look(asked: Asked, shape: Any, stride: Any, index: int) -> None:
        pairs = [math.prod(flat(part)) for part in shape], [flat(part)[0] for part in stride]
        slips = {NEXT_OF_ORDER: last_first(shape, stride)[index]}
        if pairs[0] != shape:
            slips["a number in brackets has strides of its own: a single one is not enough."] = table(*pairs)[
                index
            ]
        look_at_number(asked, "where", shape, stride, index, due=table(shape, stride)[index], slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        shape, stride = folded(draw, drawn(draw))
        look(asked, shape, stride, draw.randrange(math.prod(flat(shape))))

    fixed = [
        ([4, 8], [8, 1], 14),
        ([[2, 2], [4, 2]], [[1, 8], [2, 16]], 1),
        ([[2, 2], [4, 2]], [[1, 8], [2, 16]], 13),
        ([[4, 8], [2, 2, 2]], [[32, 1], [16, 8, 128]], 5),
        ([[2, [2, 3]], 2], [[1, [8, 20]], 100], 11),
    ]
    return [
        *(_play(f"index {at} of {told(shape, stride)}", look, shape, stride, at) for shape, stride, at in fixed),
        _by_chance("shapes in shapes by chance", by_chance),
    ]  # fmt: skip


def coalesced() -> list[Play]:
    """The function `coalesce`."""

    def look(asked: Asked, shape: Numbers, stride: Numbers) -> None:
        count, by_size = math.prod(shape), sorted(zip(stride, shape, strict=True))
        slips = {
            "two numbers become one only if the second goes on where the first has ended.": table([count], stride[:1]),
            "keep the order: whoever sorts by stride walks another way.": table(
                [one for _, one in by_size], [one for one, _ in by_size]
            ),
        }  # fmt: skip
        got = look_at_layout(asked, "coalesce", shape, stride, due=table(shape, stride), slips=slips)
        used = [one for one in zip(shape, stride, strict=True) if one[0] > 1]
        joints = [b for a, b in itertools.pairwise(used) if b[1] != a[0] * a[1]]
        fewest, has = len(joints) + bool(used), len(flat(got[0]))
        if has > max(1, fewest):
            ones = any(one == 1 for one in flat(got[0]))
            call = _called("coalesce", (shape, stride))
            why = f"{call}: {told(*got)} has {has} numbers, and {max(1, fewest)} would do"
            raise Slip(
                "wrong",
                why,
                "a number of size 1 is always 0: is it needed?"
                if ones
                else "where does the second number go on, if the first is as long as its size times its stride?",
            )

    def by_chance(asked: Asked, draw: random.Random) -> None:
        shape, stride = Numbers(), Numbers()
        for _ in range(draw.randint(1, 5)):
            goes_on = bool(shape) and draw.random() < 0.5
            stride.append(shape[-1] * stride[-1] if goes_on else draw.randint(1, 40))
            shape.append(draw.choice((1, 2, 2, 3, 4)))
        look(asked, shape, stride)

    fixed = [
        ([2, 4], [1, 2]), ([4, 8], [8, 1]), ([2, 2, 4], [3, 6, 12]), ([2, 1, 4], [1, 7, 2]), ([2, 4, 2], [1, 2, 16]),
        ([1], [5]), ([4, 2], [0, 0]),
    ]  # fmt: skip
    return [
        *(_play(f"{told(*layout)} with fewer numbers", look, *layout) for layout in fixed),
        _by_chance("layouts by chance, some of which go on", by_chance),
    ]


# --- one after the other --------------------------------------------------------------------------


def throughs() -> list[Play]:
    """The function `through`."""

    def look(asked: Asked, outer: Layout, inner: Layout, index: int) -> None:
        first, then = table(*inner), table(*outer)
        slips: dict[str, Any] = {
            "that is the inner layout alone: what is its answer an index of?": first[index]
        }
        if index < len(then):
            slips["that is the outer layout alone: which of its indices does the inner one ask for?"] = then[
                index
            ]
            if then[index] < len(first):
                slips[NEXT_OF_THE_INNER] = first[then[index]]
        look_at_number(asked, "through", list(outer), list(inner), index, due=then[first[index]], slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        inner = compact(draw, (2, 3, 4))
        count = math.prod(inner[0])
        look(
            asked,
            ([count, 3], [5, 1]) if draw.random() < 0.3 else drawn_of(count, draw),
            inner,
            draw.randrange(count),
        )

    fixed = [
        (([4, 8], [8, 1]), ([2, 2, 8], [2, 1, 4]), 5),
        (([4, 8], [8, 1]), ([4], [2]), 3),
        (([4, 8], [8, 1]), ([8, 4], [4, 1]), 9),
        (([6, 2], [8, 2]), ([4, 3], [3, 1]), 6),
    ]
    return [
        *(
            _play(f"index {index} of {told(*inner)}, then {told(*outer)}", look, outer, inner, index)
            for outer, inner, index in fixed
        ),
        _by_chance("two layouts by chance", by_chance),
    ]  # fmt: skip


def drawn_of(least: int, draw: random.Random) -> Layout:
    """A layout by chance with at least so many elements."""
    while True:
        layout = drawn(draw)
        if math.prod(layout[0]) >= least:
            return layout


def everies() -> list[Play]:
    """The function `every`."""

    def look(asked: Asked, shape: Numbers, stride: Numbers, count: int, step: int) -> None:
        all_of_it = table(shape, stride)
        slips = {
            NEXT_OF_A_RUN: table([count], [step * stride[0]]),
            "every step-th element, not the first ones: where does `step` come in?": all_of_it[:count],
            "that is every step-th place of memory; every step-th index is asked for.": table(
                [count], [step]
            ),
        }
        due = all_of_it[: count * step : step]
        look_at_layout(asked, "every", shape, stride, count, step, due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        shape, stride = drawn(draw, sizes=(2, 4, 8))
        step = 2 ** draw.randint(0, round(math.log2(math.prod(shape))) - 1)
        look(asked, shape, stride, 2 ** draw.randint(0, round(math.log2(math.prod(shape) // step))), step)

    fixed = [
        ([8], [3], 4, 2), ([4, 8], [8, 1], 2, 2), ([4, 8], [8, 1], 4, 4), ([4, 8], [8, 1], 8, 2),
        ([4, 8], [8, 1], 2, 8), ([6, 2], [8, 2], 4, 3),
        ([6, 2], [8, 2], 3, 1), ([2, 2, 8], [8, 20, 1], 8, 2), ([4, 8], [8, 1], 32, 1),
    ]  # fmt: skip
    return [
        *(
            _play(
                f"{count} elements of {told(shape, stride)}, with step {step}",
                look,
                shape,
                stride,
                count,
                step,
            )
            for shape, stride, count, step in fixed
        ),
        _by_chance("every so many of a layout by chance", by_chance),
    ]


def composed() -> list[Play]:
    """The function `compose`."""

    def look(asked: Asked, outer: Layout, inner: Layout) -> None:
        first, then = table(*inner), table(*outer)
        slips: dict[str, Any] = {
            "each number of the inner layout asks for `every` by itself; put the answers one after the other.": table(
                inner[0], [a * outer[1][0] for a in inner[1]]
            ),
        }
        if max(then) < len(first):
            slips[NEXT_OF_THE_INNER] = [first[place] for place in then]
        due = [then[place] for place in first]
        look_at_layout(asked, "compose", list(outer), list(inner), due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        look(asked, *drawn_pair(draw))

    fixed = [
        (([4, 8], [8, 1]), ([2, 2, 8], [2, 1, 4])),
        (([4, 8], [8, 1]), ([2, 4], [2, 4])),
        (([4, 8], [8, 1]), ([8, 4], [4, 1])),
        (([4, 8], [1, 4]), ([4, 8], [8, 1])),
        (([6, 2], [8, 2]), ([4, 3], [3, 1])),
        (([20], [2]), ([5, 4], [4, 1])),
        (([4, 8], [9, 1]), ([2, 2, 8], [1, 16, 2])),
    ]
    return [
        *(_play(f"{told(*inner)}, then {told(*outer)}", look, outer, inner) for outer, inner in fixed),
        _by_chance("compositions by chance", by_chance),
    ]


def drawn_pair(draw: random.Random) -> tuple[Layout, Layout]:
    """An outer layout by chance, and an inner one with as many elements, of powers of two, or some of its numbers."""
    outer = drawn(draw, sizes=(2, 4, 8))
    bits, steps, counts = round(math.log2(math.prod(outer[0]))), Numbers(), Numbers()
    at = 0
    while at < bits:
        more = draw.randint(1, bits - at)
        counts.append(2**more)
        steps.append(2**at)
        at += more
    kept = draw.sample(range(len(counts)), draw.randint(1, len(counts)))
    return outer, ([counts[i] for i in kept], [steps[i] for i in kept])


# --- tiles ----------------------------------------------------------------------------------------


def complements() -> list[Play]:
    """The function `complement`."""

    def look(asked: Asked, shape: Numbers, stride: Numbers, bound: int) -> None:
        places = table(shape, stride)
        due = repeats(places, bound)
        inside = math.prod(shape)
        gaps = repeats(places, max(places) + 1)
        slips = {
            NEXT_OF_THE_BOUND: gaps,
            "that is the layout itself: which places does it leave free?": places,
            "as many elements as that, but where? The first repeat begins at the first free place.": list(
                range(bound // inside)
            ),
        }
        if gaps == due:
            del slips[NEXT_OF_THE_BOUND]
        look_at_layout(asked, "complement", shape, stride, bound, due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        look(asked, *drawn_with_room(draw))

    fixed = [
        ([4], [1], 24), ([4], [2], 24), ([4], [6], 24), ([2, 4], [1, 6], 24), ([2, 2], [1, 6], 24),
        ([2, 2], [8, 2], 32),
    ]  # fmt: skip
    return [
        *(
            _play(f"what {told(shape, stride)} leaves of {bound} places", look, shape, stride, bound)
            for shape, stride, bound in fixed
        ),
        _by_chance("what layouts by chance leave", by_chance),
    ]


def drawn_with_room(draw: random.Random) -> tuple[Numbers, Numbers, int]:
    """A layout by chance whose gaps it fills itself when it is repeated, and a bound."""
    pieces, step = list[tuple[int, int]](), draw.choice((1, 1, 2, 3))
    for _ in range(draw.randint(1, 3)):
        count = draw.choice((2, 3, 4))
        pieces.append((count, step))
        step *= count * draw.choice((1, 1, 2, 3))
    draw.shuffle(pieces)
    return [count for count, _ in pieces], [one for _, one in pieces], step * draw.randint(1, 4)


def divided() -> list[Play]:
    """The function `divide`."""

    def look(asked: Asked, outer: Layout, tile: Layout) -> None:
        then, inside = table(*outer), table(*tile)
        others = repeats(inside, len(then))
        slips = {
            "first the element in its tile, then the tile: which of the two runs first in yours?": [
                then[a + b] for a in inside for b in others
            ],
            "that is one tile alone: how many are there?": [then[a] for a in inside],
            "the tile says which indices belong together; where these lie says the outer layout.": [
                a + b for b in others for a in inside
            ],
        }
        due = [then[a + b] for b in others for a in inside]
        look_at_layout(asked, "divide", list(outer), list(tile), due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        look(asked, *drawn_pair(draw))

    fixed = [
        (([16], [1]), ([4], [1])),
        (([16], [1]), ([4], [4])),
        (([4, 8], [8, 1]), ([2, 2], [1, 4])),
        (([4, 8], [8, 1]), ([4], [1])),
        (([4, 8], [9, 1]), ([2, 4], [1, 4])),
        (([4, 2, 3], [2, 1, 8]), ([4], [2])),
    ]
    return [
        *(_play(f"{told(*outer)} in tiles of {told(*tile)}", look, outer, tile) for outer, tile in fixed),
        _by_chance("tiles by chance", by_chance),
    ]


def products() -> list[Play]:
    """The function `product`."""

    def look(asked: Asked, tile: Layout, many: Layout) -> None:
        inside, order = table(*tile), table(*many)
        free = repeats(inside, len(inside) * (max(order) + 1))
        slips = {
            "two tiles lie on one another there: where is the first free place after a tile?": [
                a + b for b in order for a in inside
            ],
            "the second tile is not always the one right behind the first: what does `many` say?": [
                a + free[b] for b in range(len(order)) for a in inside
            ],
            "first the element in its tile, then the tile: which of the two runs first in yours?": [
                a + free[b] for a in inside for b in order
            ],
        }
        due = [a + free[b] for b in order for a in inside]
        look_at_layout(asked, "product", list(tile), list(many), due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        tile, many = compact(draw, (2, 4), 2), compact(draw, (2, 3, 4), 2)
        if draw.random() < 0.5:
            tile = tile[0], [2 * step for step in tile[1]]
            many = [2, *many[0]], [1, *(2 * step for step in many[1])]
        look(asked, tile, many)

    fixed = [
        (([4], [1]), ([3], [1])),
        (([2, 2], [1, 2]), ([3, 2], [1, 3])),
        (([2, 2], [1, 2]), ([2, 3], [3, 1])),
        (([4], [2]), ([2], [1])),
        (([2, 2], [4, 1]), ([6], [1])),
    ]
    return [
        *(_play(f"a tile of {told(*tile)}, laid as {told(*many)} says", look, tile, many) for tile, many in fixed),
        _by_chance("repeated tiles by chance", by_chance),
    ]  # fmt: skip


def dealt() -> list[Play]:
    """The functions `blocked` and `raked`."""

    def look(asked: Asked, threads: int, values: int) -> None:
        side = [thread * values + value for value in range(values) for thread in range(threads)]
        own = [value * threads + thread for value in range(values) for thread in range(threads)]
        words = "with value 0, where are thread 0 and thread 1? And with thread 0, values 0 and 1?"
        turned = "the thread comes first in the coordinate, then the value."
        for name, due, other in (("blocked", side, own), ("raked", own, side)):
            # The same dealing with the two numbers of the coordinate exchanged.
            swapped = [due[value * threads + thread] for thread in range(threads) for value in range(values)]
            slips = {words: other} | ({turned: swapped} if name == "raked" else {})
            look_at_layout(asked, name, threads, values, due=due, slips=slips)

    return [
        *(_play(f"{t} threads with {v} values each", look, t, v) for t, v in ((4, 2), (32, 4), (3, 5), (1, 4))),
        _by_chance("threads by chance", lambda asked, draw: look(asked, draw.randint(1, 32), draw.randint(1, 9)), 6),
    ]  # fmt: skip


# --- threads, banks, and back ---------------------------------------------------------------------


def lane_holds(lane: int, value: int) -> tuple[int, int]:
    """Row and column of A, 16 by 16, that a lane has as its value, by the table of `mma.m16n8k16`."""
    row = lane // 4 + (8 if value in (2, 3, 6, 7) else 0)
    return row, lane % 4 * 2 + value % 2 + (8 if value >= 4 else 0)


def fragments() -> list[Play]:
    """The function `fragment`."""

    def look(asked: Asked, row_stride: int) -> None:
        def of(held: Callable[[int, int], tuple[int, int]], by: int = row_stride) -> Numbers:
            return [r * by + c for r, c in (held(lane, value) for value in range(8) for lane in range(LANES))]

        due = of(lane_holds)
        slips: dict[str, Any] = {
            "that is the tile without padding: a row is `row_stride` places from the next one.": of(lane_holds, 16),
            "that is A column by column; here a row is in one piece.": [
                c * row_stride + r for r, c in (lane_holds(lane, v) for v in range(8) for lane in range(LANES))
            ],
            "value 2 is eight rows below value 0, and value 4 is eight columns on.": of(
                lambda lane, value: lane_holds(lane, value & 1 | (value & 2) << 1 | (value & 4) >> 1)
            ),
            "neighbouring lanes are two columns apart, since each holds a pair.": of(
                lambda lane, value: (lane_holds(lane, value)[0], lane_holds(lane, value)[1] - lane % 4)
            ),
        }  # fmt: skip
        look_at_layout(asked, "fragment", row_stride, due=due, slips=slips)

    strides = (16, 24, 40)
    return [
        *(_play(f"the lanes of A in rows of {by} places", look, by) for by in strides),
        _by_chance("rows by chance", lambda asked, draw: look(asked, draw.randint(16, 200)), 3),
    ]


def swizzled() -> list[Play]:
    """The function `swizzle`."""

    def look(asked: Asked, bits: int, base: int, shift: int, place: int) -> None:
        def moved(width: int, low: int, high: int, of: int = place) -> int:
            for bit in range(width):
                of ^= (place >> (high + bit) & 1) << (low + bit)
            return of

        slips: dict[str, Any] = {
            "the lowest `base` bits stay as they are: at which bit does the change begin?": moved(
                bits, 0, shift
            ),
            "only `bits` bits take part: how many did you take?": place ^ (place >> (base + shift) << base),
            "the bits above are read and the ones below are changed; yours goes the other way.": place
            ^ (place >> base & 2**bits - 1) << (base + shift),
            "the bits are exclusive-ored: where both are 1 comes a 0.": place
            | (place >> (base + shift) & 2**bits - 1) << base,
            "that is added, and carries into other bits: exclusive-or.": place
            + ((place >> (base + shift) & 2**bits - 1) << base),
        }
        due = moved(bits, base, base + shift)
        look_at_number(asked, "swizzle", bits, base, shift, place, due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        bits = draw.randint(1, 3)
        look(asked, bits, draw.randint(0, 4), draw.randint(bits, 4), draw.randrange(4096))

    fixed = [(2, 0, 2, 3), (2, 0, 2, 4), (2, 0, 2, 15), (3, 4, 3, 0x90), (3, 4, 3, 0x1F7), (2, 3, 3, 0x158)]
    return [
        *(_play(f"place {at} under Swizzle<{b}, {m}, {s}>", look, b, m, s, at) for b, m, s, at in fixed),
        _by_chance("places by chance", by_chance),
    ]


def queues() -> list[Play]:
    """The function `turns`."""

    def look(asked: Asked, places: Numbers) -> None:
        behind = [[place for place in places if place % BANKS == bank] for bank in range(BANKS)]
        slips = {
            "lanes that want the same word get it in one turn.": max(map(len, behind)),
            "so many banks are busy; how long is the longest queue?": sum(map(bool, behind)),
            "banks have nothing to do with rows: the bank is the address modulo 32.": len({p // BANKS for p in places}),
        }  # fmt: skip
        due = max(len(set(queue)) for queue in behind)
        look_at_number(asked, "turns", places, due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        if draw.random() < 0.5:
            stride, start = draw.randint(0, 66), draw.randrange(99)
            look(asked, [start + lane * stride for lane in range(LANES)])
        else:
            most = draw.choice((8, 64, 4096))
            look(asked, [draw.randrange(most) for _ in range(LANES)])

    def column(by: int) -> Numbers:
        return [lane * by for lane in range(LANES)]

    swizzles = [32 * row + (5 ^ row) for row in range(LANES)]
    named = {
        "a row of 32 words": column(1),
        "one word for all": column(0),
        "a column of a matrix of 32 words a row": column(32),
        "a column of a matrix of 40 words a row": column(40),
        "a column of 32 words a row with one word of padding": column(33),
        "every second word": column(2),
        "eight lanes for each word of a row": [lane // 8 for lane in range(LANES)],
        "a swizzled column": swizzles,
    }  # fmt: skip
    return [
        *(_play(name, look, places) for name, places in named.items()),
        _by_chance("addresses by chance", by_chance),
    ]


def inverses() -> list[Play]:
    """The function `inverse`."""

    def look(asked: Asked, shape: Numbers, stride: Numbers) -> None:
        places = table(shape, stride)
        due = [places.index(place) for place in range(len(places))]
        slips = {
            "that is the layout itself. Which index lies at address 1?": places,
            "sorted by stride is right; the new strides say how far apart the indices are.": list(
                range(len(places))
            ),
            "index 1 is the first number's step: which of your strides is 1?": last_first(
                shape[::-1], stride
            ),
        }
        look_at_layout(asked, "inverse", shape, stride, due=due, slips=slips)

    def by_chance(asked: Asked, draw: random.Random) -> None:
        look(asked, *compact(draw, (2, 3, 4, 5)))

    fixed = [
        ([8], [1]), ([4, 8], [8, 1]), ([4, 8], [1, 4]), ([2, 4, 3], [4, 1, 8]), ([2, 3, 5], [15, 1, 3]),
        ([2, 2, 4, 2], [1, 8, 2, 16]),
    ]  # fmt: skip
    return [
        *(_play(f"back from an address of {told(*layout)} to its index", look, *layout) for layout in fixed),
        _by_chance("inverses by chance", by_chance),
    ]
