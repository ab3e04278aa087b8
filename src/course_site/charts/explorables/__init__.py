"""Explorables: pictures that move, one file each. Here stands what every one of them must have.

An explorable is a module of this folder, and a script of the same name in docs/assets/js/explorables/, each with the
same function `work(state, data)`: the script answers when a reader turns a knob, and this one draws the state that the
page begins with. A test holds the one against the other over random states. Nothing here knows a page or a record.
"""

from __future__ import annotations

import html
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Protocol

from course_site.charts.plots import WIDTH, text_width

LEGEND = 11.2  # size of the words in a drawing, as explorable.css sets them

State = Mapping[str, Any]  # knob -> where it stands
Texts = Mapping[str, str | list[str]]
Data = Mapping[str, Any]  # what the page recorded, and `given`: what the explorable itself brings


@dataclass(frozen=True)
class Knob:
    """A knob that a reader can turn.

    Attributes:
        kind: "range" (whole numbers from `low` to `high`), "steps" (the same, with buttons for previous, next and
            play), "choice" (one of a few), "select" (one of a list), "numbers" (a list of `low` to `high` numbers).
        choices: of a choice or a list, value -> label; a label that the page gives goes before.
    """

    kind: str
    low: int = 0
    high: int = 0
    choices: Mapping[str | int, str] = field(default_factory=dict)

    def holds(self, value: Any) -> bool:
        """Return whether the knob can stand there."""
        if self.kind in ("range", "steps"):
            return type(value) is int and self.low <= value <= self.high
        if self.kind == "numbers":
            return (
                isinstance(value, list)
                and self.low <= len(value) <= self.high
                and all(type(x) in (int, float) for x in value)
            )
        return value in self.choices


@dataclass(frozen=True)
class Shown:
    """Drawing and texts of a state.

    Attributes:
        says: which of the page's sentences say it, in order.
        texts: what stands in the braces of that sentence, of the table's row and behind a knob of that name. A list
            is the way to a recorded value in the data, which then stands there with its link to the ledger.
        marks: moving part of the drawing -> its attributes; `text` is what it says.
        most: knob -> the highest place it can take in this state, where that is not always the same.
    """

    says: tuple[str, ...]
    texts: Texts
    marks: Mapping[str, Mapping[str, str]]
    most: Mapping[str, int] = field(default_factory=dict)


class Explorable(Protocol):
    """Interface of a module of this folder.

    Attributes:
        KNOBS: what a reader can turn, in order.
        DATA: names that the page must give in `data:`, each with pieces that the recorded names of it have. Each is a
            recorded value, `{"value": …, "html": …}`, or with a `*` in its expression a table of them by what stands in
            its place; of a recorded trace the value is its columns.
        SENTENCES: the page must give each of them in `says:`.
        CASES: sentences and words that exclude each other, each with what tells it from the others: its text has all of
            that, values in braces too, and no word of another one's.
        ALT: left out, or what the alternative text says of the state that the page begins with, by its sentence.
        WORDS: left out, or what the page must give in `words:`, for texts such as `["words", "waits"]`.
    """

    KNOBS: Mapping[str, Knob]
    DATA: Mapping[str, tuple[str, ...]]
    SENTENCES: tuple[str, ...]
    CASES: tuple[Mapping[str, tuple[str, ...]], ...]

    def given(self) -> Mapping[str, Any]:
        """Return what it brings along that is no record, such as data sheets: `data["given"]`."""

    def work(self, state: State, data: Data) -> Shown:
        """Do the arithmetic: pure, and the same as in the script of this name."""

    def draw(self, data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
        """Height of the drawing, and what stands in it; moving parts are made with `mark`."""


def known() -> list[str]:
    """Return the names of all explorables."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def named(name: str) -> Any:
    """Return the explorable of this name."""
    return importlib.import_module(f"{__name__}.{name}")


def svg(explorable: Any, data: Data, shown: Shown, alt: str) -> str:
    """Return the drawing of one state, one unit of it a pixel on a phone."""
    height, inside = explorable.draw(data, shown.marks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{html.escape(alt)}">{inside}</svg>'
    )


def box(x: float, y: float, width: float, height: float) -> str:
    """Return the path of a rectangle."""
    return f"M{at(x)} {at(y)}h{at(width)}v{at(height)}h{at(-width)}z"


def mark(tag: str, name: str, marks: Mapping[str, Mapping[str, str]], **attributes: Any) -> str:
    """Return a part of a drawing that moves: what is given here stays, what stands in `marks` follows the knobs."""
    moving = dict(marks[name])
    text = html.escape(moving.pop("text", ""))
    return shape(tag, text, **{"data-mark": name}, **attributes, **moving)


def shape(tag: str, text: str = "", **attributes: Any) -> str:
    """Return a part of a drawing; `_` in the name of an attribute stands for `-`, `css` for `class`."""
    names = {"css": "class"}
    said = "".join(
        f' {names.get(name, name).replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{said}>{text}</{tag}>"


def legend(*entries: tuple[str, str]) -> str:
    """Return what the colours mean, in a line at the top: the class of a part, and its name."""
    parts, x = [], 0.5
    for css, name in entries:
        parts.append(shape("path", css=css, d=f"M{at(x)} 1.5h11v9h-11z"))
        parts.append(shape("text", name, x=at(x + 15), y=10))
        x += 15 + text_width(name, LEGEND) + 12
    return "".join(parts)


def digits(value: float, after: int = 0) -> str:
    """Return a number as both languages write it: so many digits behind the point, a half upwards.

    >>> digits(12.5), digits(1234.56, 1), digits(-0.04, 1)
    ('13', '1,234.6', '0.0')
    """
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-after), ROUND_HALF_UP)
    return f"{rounded if rounded else abs(rounded):,f}"


def short(value: float) -> str:
    """About three digits, and no nought at the end that says nothing.

    >>> short(1.0), short(0.0833), short(14.04), short(682.7)
    ('1', '0.08', '14', '683')
    """
    text = digits(value, 0 if value >= 100 else 1 if value >= 10 else 2)
    return text.rstrip("0").rstrip(".") if "." in text else text


def at(value: float) -> str:
    """Return a place in a drawing, to a tenth of a pixel and without needless noughts.

    >>> at(12.04), at(3.0), at(-0.01)
    ('12', '3', '0')
    """
    text = digits(value, 1).replace(",", "")
    return text.removesuffix(".0")
