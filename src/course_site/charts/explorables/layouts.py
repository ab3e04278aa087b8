"""Layouts: from an index to its coordinate, its products and its address; and two layouts, one after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from course_site.charts.explorables import LEGEND, Data, Knob, Shown, State, at, box, mark, shape

# To begin with: the sizes, the strides, and how many of the numbers make the row of the grid.
LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "rows": ((4, 8), (8, 1), 1),
    "columns": ((4, 8), (1, 4), 1),
    "padded": ((4, 8), (9, 1), 1),
    "blocks": ((2, 2, 2, 4), (1, 16, 2, 4), 2),
    "zigzag": ((2, 2, 2, 2), (1, 4, 2, 8), 2),
    "repeated": ((4, 8), (0, 1), 1),
}
INNER = ("none", "second", "turned", "row", "tile", "dealt")
MOST, ROWS, COLUMNS, STEPS = 64, 8, 16, 99  # elements, rows and columns of the grid; the largest stride
NUMBERS = 4  # of a coordinate

KNOBS = {
    "layout": Knob("select", choices={**dict.fromkeys(LAYOUTS, ""), "own": ""}),
    "shape": Knob("numbers", 1, NUMBERS),
    "stride": Knob("numbers", 1, NUMBERS),
    "split": Knob("choice", choices={1: "1", 2: "2", 3: "3"}),
    "inner": Knob("select", choices=dict.fromkeys(INNER, "")),
    "address": Knob("choice", choices={"shown": "", "hidden": ""}),
    "at": Knob("steps", 0, MOST - 1),
}
DATA: dict[str, tuple[str, ...]] = {}
SENTENCES = (
    "unlike", "no_number", "too_many", "alone", "through", "coordinate", "products", "hidden", "one", "several",
)  # fmt: skip
CASES = (
    {"unlike": ("{sizes}", "{strides}"), "no_number": ("whole",), "too_many": ("too large",)},
    {"alone": ("index {at}",), "through": ("{inner}", "{middle}")},
    {"products": ("{products}", "{address}"), "hidden": ("which address",)},
    {"one": ("{composed}",), "several": ("no layout",)},
)

_X, _TOP, _WIDE, _HIGH = 20.0, 32.0, 325.0, 136.0  # of the grid
_DIGITS, _PITCH, _NUMBER = 190.0, 56.0, 78.0  # of the table of digits
_ORDER, _CELL, _LINE = 282.0, 20.3, 16.0  # of the walk in order

Pairs = list[tuple[int, int]]  # size and stride of each number


def given() -> Mapping[str, Any]:
    """Return the layouts to begin with."""
    return {
        "layouts": {
            name: [list(sizes), list(steps), split] for name, (sizes, steps, split) in LAYOUTS.items()
        }
    }


def digits_of(index: int, sizes: Sequence[int]) -> list[int]:
    """Return the coordinate of an index; the first number runs first."""
    found = []
    for size in sizes:
        found.append(index % size)
        index //= size
    return found


def address_of(index: int, sizes: Sequence[int], steps: Sequence[int]) -> int:
    """Return where a layout puts the element of an index."""
    return sum(digit * step for digit, step in zip(digits_of(index, sizes), steps, strict=True))


def inner_of(name: str, rows: int, columns: int) -> Pairs:
    """Return the layout that is asked first, of indices of a grid with so many rows and columns."""
    count = rows * columns
    quarter = max(1, count // 4)
    return {
        "none": [(count, 1)],
        "second": [(max(1, count // 2), 2)],
        "turned": [(columns, rows), (rows, 1)],
        "row": [(columns, rows)],
        "tile": [(min(2, rows), 1), (min(2, columns), rows)],
        "dealt": [(min(4, count), quarter), (quarter, 1)],
    }[name]


def composed(sizes: Sequence[int], steps: Sequence[int], inner: Pairs) -> list[Pairs] | None:
    """Return the layout that leads through `inner` and then the outer one: for each number of `inner` its own numbers.

    None where a step does not divide a size, nor a size the step, or where two numbers of `inner` carry into each
    other: then no strides of its own numbers say it.
    """
    found = []
    for count, step in inner:
        pairs = Pairs()
        for size, distance in zip(sizes, steps, strict=True):
            if step >= size:
                if step % size:
                    return None
                step //= size
                continue
            room = size // step
            if size % step or (count > room and count % room):
                return None
            taken = min(count, room)
            if taken > 1 and pairs and pairs[-1][0] * pairs[-1][1] == step * distance:
                pairs[-1] = (pairs[-1][0] * taken, pairs[-1][1])
            elif taken > 1:
                pairs.append((taken, step * distance))
            count, step = count // taken, 1
        if count > 1:
            return None
        found.append(pairs or [(1, 0)])
    counts, by = [count for count, _ in inner], [step for _, step in inner]
    own, strides = ([pair[side] for part in found for pair in part] for side in (0, 1))
    right = all(
        address_of(i, own, strides) == address_of(address_of(i, counts, by), sizes, steps)
        for i in range(math.prod(counts))
    )
    return found if right else None


def _brackets(numbers: Sequence[Any]) -> str:
    """Numbers as CuTe writes them: in brackets, a single one without."""
    told = [one if isinstance(one, str) else str(one) for one in numbers]
    return told[0] if len(told) == 1 else f"({', '.join(told)})"


def _written(parts: Sequence[Pairs]) -> str:
    """Sizes and strides, the numbers of one part in brackets of their own."""
    return ":".join(
        _brackets([_brackets([pair[side] for pair in part]) for part in parts]) for side in (0, 1)
    )


def _wrong(state: State) -> str:
    """Return the sentence for what is no layout, or none that fits into the grid; empty for all else."""
    sizes, steps = state["shape"], state["stride"]
    if not all(size >= 1 and size % 1 == 0 for size in sizes):
        return "no_number"
    if not all(0 <= step <= STEPS and step % 1 == 0 for step in steps):
        return "no_number"
    if len(sizes) != len(steps):
        return "unlike"
    rows, columns = (math.prod(part) for part in (sizes[: state["split"]], sizes[state["split"] :]))
    return "too_many" if rows > ROWS or columns > COLUMNS or rows * columns > MOST else ""


def work(state: State, data: Data) -> Shown:
    """Return an index on its way to its address; see `digits_of`, `address_of`, `inner_of` and `composed`."""
    wrong, hidden = _wrong(state), state["address"] == "hidden"
    sizes, steps = ([1], [0]) if wrong else ([int(n) for n in state[name]] for name in ("shape", "stride"))
    split = state["split"]
    rows, columns = math.prod(sizes[:split]), math.prod(sizes[split:])
    inner = inner_of(state["inner"], rows, columns)
    counts, by = [count for count, _ in inner], [step for _, step in inner]
    total = math.prod(counts)
    index = min(state["at"], total - 1)
    walk = [address_of(i, counts, by) for i in range(total)]  # indices of the outer layout
    middle = walk[index]
    digits, address = digits_of(middle, sizes), address_of(middle, sizes, steps)
    together = composed(sizes, steps, inner)

    says = [wrong]
    if not wrong:
        says = ["alone" if state["inner"] == "none" else "through", "coordinate"]
        says.append("hidden" if hidden else "products")
        if state["inner"] != "none" and not hidden:
            says.append("one" if together else "several")
    pairs = list(zip(sizes, steps, strict=True))
    texts: dict[str, str | list[str]] = {
        "at": str(index), "last": str(total - 1), "middle": str(middle),
        "sizes": str(len(state["shape"])), "strides": str(len(state["stride"])),
        "outer": _written([part for part in (pairs[:split], pairs[split:]) if part]),
        "inner": _written([[pair] for pair in inner]),
        "coordinate": _brackets([_brackets(part) for part in (digits[:split], digits[split:]) if part]),
        "products": " + ".join(f"{d}\u00a0×\u00a0{s}" for d, s in zip(digits, steps, strict=True)),
        "address": "?" if hidden else str(address), "composed": _written(together or []) if together else "",
    }  # fmt: skip

    wide, high = min(40.0, _WIDE / columns), min(26.0, _HIGH / rows)
    parts = dict.fromkeys(("cells", "reached", "walked", "now", "order", "here"), "")
    marks: dict[str, dict[str, str]] = {}
    known = {walk[i] for i in range(index if hidden else total)}  # whose addresses stand in the grid
    for cell in range(MOST):
        where = {"x": "0", "y": "0", "text": ""}
        if not wrong and cell < rows * columns:
            x, y = _X + wide * (cell // rows), _TOP + high * (cell % rows)
            shown = (not hidden and cell not in walk) or cell in known
            text = str(address_of(cell, sizes, steps)) if shown else ""
            where = {"x": at(x + wide / 2), "y": at(y + high / 2 + 4), "text": text}
            parts["cells"] += box(x, y, wide, high)
            if cell in walk and state["inner"] != "none":
                parts["reached"] += box(x + 1, y + 1, wide - 2, high - 2)
            if cell in walk[:index]:
                parts["walked"] += box(x + 1, y + 1, wide - 2, high - 2)
            if cell == middle:
                parts["now"] = box(x, y, wide, high)
                where["text"] = str(texts["address"])
        marks[f"c{cell}"] = where
        text = ""
        if not wrong and cell < total:
            x, y = _X + _CELL * (cell % COLUMNS), _ORDER + _LINE * (cell // COLUMNS)
            parts["order"] += box(x, y, _CELL, _LINE)
            if cell == index:
                parts["here"] = box(x, y, _CELL, _LINE)
            if cell < index or not hidden:
                text = str(address_of(walk[cell], sizes, steps))
            elif cell == index:
                text = "?"
        marks[f"o{cell}"] = {"text": text}
    for i in range(NUMBERS):
        is_there = not wrong and i < len(sizes)
        for name, number in (("n", sizes), ("d", digits), ("s", steps)):
            marks[f"{name}{i}"] = {"text": str(number[i]) if is_there else ""}
        product = str(digits[i] * steps[i]) if is_there and not hidden else ""
        marks[f"p{i}"] = {"text": product}
    marks |= {name: {"d": d} for name, d in parts.items()}
    marks["sum"] = {"text": "" if wrong else f"together {texts['address']}"}
    return Shown(tuple(says), texts, marks, {"at": total - 1})


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return the grid of addresses, below it the digits of one coordinate, and all addresses in order."""
    parts = [
        shape("text", "row down, column across; in each cell its address", x=0, y=LEGEND),
        mark("path", "reached", marks, css="made"),
        mark("path", "walked", marks, css="cold"),
        mark("path", "cells", marks, css="outline"),
        mark("path", "now", marks, css="now"),
    ]
    for cell in range(MOST):
        parts.append(mark("text", f"c{cell}", marks, text_anchor="middle", css="strong"))
    for line, (name, words) in enumerate(
        (("n", "size"), ("d", "number"), ("s", "× stride"), ("p", "= product"))
    ):
        y = _DIGITS + _LINE * line
        css = {"css": "strong"} if name in ("d", "p") else {}
        parts.append(shape("text", words, x=0, y=y, **css))
        for i in range(NUMBERS):
            x = _NUMBER + _PITCH * i
            parts.append(mark("text", f"{name}{i}", marks, x=x + 12, y=y, text_anchor="end", **css))
    parts += [
        mark("text", "sum", marks, x=345, y=_DIGITS + 3 * _LINE, text_anchor="end", css="hot"),
        shape("text", "the addresses in the order of the index", x=0, y=_ORDER - 7),
        mark("path", "order", marks, css="outline"),
        mark("path", "here", marks, css="now"),
    ]
    for cell in range(MOST):
        x, y = _X + _CELL * (cell % COLUMNS + 0.5), _ORDER + _LINE * (cell // COLUMNS) + 12
        parts.append(mark("text", f"o{cell}", marks, x=at(x), y=y, text_anchor="middle"))
    return _ORDER + 4 * _LINE + 6, "".join(parts)
