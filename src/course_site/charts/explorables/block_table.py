"""Block tables: six requests write, a token each step, into pages that are handed out one at a time, or reserved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, box, digits, mark, shape

SLIPS = (3, 9, 4, 6, 2, 5)  # tokens that each request writes; they come in this order
SEATS, ROOM = 4, 36  # requests that write at once, at most; places of the cache
RESERVED = 12  # places for the longest answer that anybody may ask for; such a page is a reservation
SIZES = (1, 2, 4, RESERVED)
MOST = 18  # steps, however small the room

KNOBS = {
    "size": Knob("choice", choices={size: str(size) for size in SIZES}),
    "step": Knob("steps", 0, MOST),
}
DATA: dict[str, tuple[str, ...]] = {}
SENTENCES = ("start", "going", "no_page", "waiting", "done")
CASES = (
    {
        "start": ("{room}",), "going": ("{held}", "{used} with a token", "{empty} empty"),
        "no_page": ("no page",), "waiting": ("seats",), "done": ("last",),
    },
)  # fmt: skip

_X, _WIDE, _HIGH, _PITCH, _TOP, _COLUMNS = 20, 26, 20, 42, 32, 12


@dataclass
class Guest:
    """A request under way: which one, how many tokens it has written, its block table."""

    who: int
    tokens: int = 0
    table: list[int] = field(default_factory=list)


def given() -> Mapping[str, Any]:
    """Return the slips, and the room."""
    return {"slips": list(SLIPS), "seats": SEATS, "room": ROOM, "reserved": RESERVED}


def states(size: int) -> list[tuple[list[Guest], int, bool]]:
    """After every step: who is under way, how many wait, and whether one of them has a seat and lacks a page."""
    count = ROOM // size
    free = [(7 * i + 3) % count for i in range(count - 1, -1, -1)]  # the last one is taken next
    waiting, here = list(range(len(SLIPS))), list[Guest]()
    found = [(list[Guest](), len(waiting), False)]
    while waiting or here:
        for guest in here:
            if guest.tokens == SLIPS[guest.who]:
                free += reversed(guest.table)
        here = [Guest(g.who, g.tokens, list(g.table)) for g in here if g.tokens < SLIPS[g.who]]
        for guest in here:  # whoever writes comes before whoever waits
            if guest.tokens == size * len(guest.table):
                guest.table.append(free.pop())
        while waiting and len(here) < SEATS and free:
            here.append(Guest(waiting.pop(0), 0, [free.pop()]))
        for guest in here:
            guest.tokens += 1
        if here:
            found.append((here, len(waiting), bool(waiting) and len(here) < SEATS))
    return found


def work(state: State, data: Data) -> Shown:
    """Return who holds which page after so many steps, and how many places stand empty in them."""
    size = state["size"]
    all_steps = states(size)
    step = min(state["step"], len(all_steps) - 1)
    here, waiting, lacks = all_steps[step]
    held = size * sum(len(guest.table) for guest in here)
    used = sum(guest.tokens for guest in here)
    if step == 0:
        says = ["start"]
    else:
        says = ["going"]
        if step == len(all_steps) - 1:
            says.append("done")
        elif waiting:
            says.append("no_page" if lacks else "waiting")
    texts: dict[str, str | list[str]] = {
        "step": digits(step), "steps": digits(len(all_steps) - 1), "seated": digits(len(here)),
        "waiting": digits(waiting), "held": digits(held), "used": digits(used), "empty": digits(held - used),
        "share": digits(100 * (held - used) / held) if held else "0", "room": digits(ROOM),
    }  # fmt: skip
    letters, parts = [""] * ROOM, {"tokens": "", "waste": "", "pages": ""}
    for guest in here:
        for place in range(size * len(guest.table)):
            where = guest.table[place // size] * size + place % size
            filled = place < guest.tokens
            letter = chr(ord("A") + guest.who)
            letters[where] = letter if filled else letter.lower()
            parts["tokens" if filled else "waste"] += _place(where, 1)
    marks: dict[str, dict[str, str]] = {}
    for where in range(ROOM):
        first = where % size == 0
        if first:
            parts["pages"] += box(*_corner(where), size * _WIDE, _HIGH)
        marks[f"n{where}"] = {"text": digits(where // size) if first else ""}
        marks[f"p{where}"] = {"text": letters[where]}
    marks |= {name: {"d": d} for name, d in parts.items()}
    for seat in range(SEATS):
        marks[f"t{seat}"] = {"text": _line(here[seat]) if seat < len(here) else ""}
    return Shown(tuple(says), texts, marks, {"step": len(all_steps) - 1})


def _line(guest: Guest) -> str:
    return f"{chr(ord('A') + guest.who)}, {guest.tokens} of {SLIPS[guest.who]}: {' '.join(map(str, guest.table))}"


def _corner(where: int) -> tuple[float, float]:
    return _X + _WIDE * (where % _COLUMNS), _TOP + _PITCH * (where // _COLUMNS)


def _place(where: int, inset: float) -> str:
    x, y = _corner(where)
    return box(x + inset, y + inset, _WIDE - 2 * inset, _HIGH - 2 * inset)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return the places of the cache, page by page, with whoever holds them; below, the block tables."""
    parts = [
        shape("text", "page numbers; a capital is a token, a small letter held and empty", x=_X - 8, y=12),
        shape("path", css="outline", d="".join(_place(where, 0) for where in range(ROOM))),
        mark("path", "waste", marks, css="waste"),
        mark("path", "tokens", marks, css="cold"),
        mark("path", "pages", marks, css="axis"),
    ]
    for where in range(ROOM):
        x, y = _corner(where)
        middle = x + _WIDE / 2
        parts.append(mark("text", f"n{where}", marks, x=x + 2, y=y - 4))
        parts.append(
            mark("text", f"p{where}", marks, x=middle, y=y + 14.5, text_anchor="middle", css="strong")
        )
    bottom = _TOP + _PITCH * (ROOM // _COLUMNS)
    parts.append(shape("text", "request, tokens: its block table", x=_X - 8, y=bottom + 4))
    for seat in range(SEATS):
        x, y = _X - 8 + 176 * (seat % 2), bottom + 24 + 18 * (seat // 2)
        parts.append(mark("text", f"t{seat}", marks, x=x, y=y, css="strong"))
    return bottom + 52, "".join(parts)
