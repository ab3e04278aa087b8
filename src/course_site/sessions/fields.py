"""The fields of a step, one row each: its length in the map, and its label and place in every view.

Pages, run views and printed sheets go through these rows, so a new field of plain text needs a row here and nothing
else. The demo, the stage, the heading and the check are no texts: each view says in its own words what they are.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# The halves of a step on its map's page, and the order of the lists on the printed sheet.
SIDES = ("you", "they")
BELOW = "below"


@dataclass(frozen=True)
class Field:
    """One field of a step.

    A label may hold {priority} and {saves} of the step's cut, and {s}, which is the s of more than one minute. A field
    is left out of a view where its label is ""; in a column of the sheet it then has none.

    Attributes:
        key: its name in the map and in the plain data.
        needed: what to write there, for a field that no step may leave out; a break may leave out `say`.
        limit: the most characters that a reader may see; 0 where nothing limits them.
        is_text: Markdown in the map, which is linted and filled in; else something that each view spells out.
        side: one of SIDES.
        page, run: its label on the map's page and in the run view.
        sheet: its label on the printed sheet, or the heading of its list.
        column: its column on the printed sheet, say, fingers or board; or BELOW for a list of its own under them.
        css: its classes on the page and in the run view, where these are not its key.
        heart: the text of a step that is protected and has none, on a screen and on paper.
        last: it ends the step in the run view.
    """

    key: str
    needed: str = ""
    limit: int = 0
    is_text: bool = True
    side: str = ""
    page: str = ""
    run: str = ""
    sheet: str = ""
    column: str = ""
    css: tuple[str, str] = ("", "")
    heart: tuple[str, str] = ("", "")
    last: bool = False


# In the order of the run view.
FIELDS = (
    Field("title", "what the step is called", 45),
    Field("say", "what to say", 260, side="you", page="Say", run="Say", column="say"),
    Field("board", limit=160, side="you", page="Board", run="Board", column="board"),
    Field(
        "fingers",
        "what the students' fingers do, and what is there at the end",
        200,
        side="they",
        page="Fingers",
        run="Fingers",
        column="fingers",
    ),
    Field("room", limit=160),  # on the projector, see `run_view`
    Field(
        "remote",
        limit=240,
        side="they",
        page="From afar, or without seeing it",
        run="From afar",
        sheet="From afar, or without seeing it",
        column=BELOW,
    ),
    Field("demo", is_text=False, side="you", page="Demo", run="Demo", column="say"),
    Field(
        "stage", is_text=False, side="they", page="Stage", run="Type", column="fingers", css=("stage", "type")
    ),
    Field("anchor", is_text=False, side="they", page="Page", run="Page", css=("page", "see"), last=True),
    Field("feeds", side="they", page="Feeds"),
    Field("check", is_text=False, side="they", page="Check", run="Ask"),
    Field(
        "trip",
        limit=160,
        side="you",
        page="If they trip",
        run="Trip",
        sheet="Where they trip",
        column=BELOW,
    ),
    Field(
        "cut",
        limit=120,
        side="you",
        page="Late? Cut {priority}, {saves} minute{s}",
        run="If late, saves {saves} min",
        sheet="✂{priority} wins {saves} min:",
        column="board",
    ),
    Field(
        "keep",
        limit=120,
        side="you",
        page="Keep",
        run="Keep",
        sheet="Keep:",
        column="board",
        heart=("All of it: this is the heart of the session.", "the heart, no cut."),
    ),
)


def keys() -> frozenset[str]:
    """Return the names of all fields in the map."""
    return frozenset(field.key for field in FIELDS)


def texts() -> dict[str, str]:
    """Return the fields that are Markdown, each with what to write there; "" for one that may be left out."""
    return {field.key: field.needed for field in FIELDS if field.is_text}


def limit(key: str) -> int:
    """Return the most characters of a text, 0 for as many as you like; a block's title is as long as a step's."""
    return next((field.limit for field in FIELDS if field.key == key), 0)


def on_page(side: str) -> Iterator[Field]:
    """Return the fields of one half of a step on the map's page."""
    return (field for field in FIELDS if field.page and field.side == side)


def in_run_view() -> list[Field]:
    """Return the fields of a step in the run view."""
    return sorted((field for field in FIELDS if field.run), key=lambda field: field.last)


def in_column(column: str) -> Iterator[Field]:
    """Return the fields in one column of the printed sheet, or below its table; what you do before what they do."""
    fields = (field for field in FIELDS if field.column == column)
    return iter(sorted(fields, key=lambda field: SIDES.index(field.side))) if column == BELOW else fields


def labelled(label: str, priority: int, saves: int) -> str:
    """Return a label, with the cut of its step filled in."""
    return label.format(priority=priority, saves=saves, s="s" * (saves != 1))
