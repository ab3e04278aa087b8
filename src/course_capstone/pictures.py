"""Pictures of board and certificate for the students' page, made of the examples, in the site's colours and letters.

They show what no change of the judge moves: no hash, no date. A board is drawn as a phone shows it, one entry below the
other. `python -m course_capstone --keep` draws them anew.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_capstone.board import command, score_words
from course_capstone.certificate import BY_WORDS, NO_CARD_WORDS
from course_capstone.entry import MARKS, RUN, Outcome, points, read_entry
from course_capstone.table_file import read_json
from course_capstone.tasks import Task

EXAMPLES = Path("capstone/examples")
FIGURES = Path("docs/assets/figures")
WIDTH, EDGE = 352, 14
LETTERS = 54  # of a line between the edges
LINE, SMALL = 15, 11.2
COLOURS = {
    "accent": "#a5431a",
    "ink": "#24211d",
    "ink-soft": "#5f5a52",
    "paper": "#fdfcfa",
    "paper-deep": "#f5f1ea",
}


def examples(root: Path, tasks: Mapping[str, Task]) -> list[Outcome]:
    """Return the examples as they ran, whether or not the judge has changed since."""
    folders = sorted(path.parent for path in (root / EXAMPLES).glob("*/entry.toml"))
    return [
        Outcome(read_entry(folder, root, tasks), read_json(folder / RUN), None)
        for folder in sorted(folders, key=lambda folder: folder.name, reverse=True)
    ]


def pictures(root: Path, tasks: Mapping[str, Task]) -> dict[Path, str]:
    """Return both pictures by their files."""
    found = examples(root, tasks)
    loss = next(one for one in found if one.entry.folder.name == "explained_loss")
    return {
        root / FIGURES / "capstone_board.svg": board_picture(found, root),
        root / FIGURES / "capstone_certificate.svg": certificate_picture(loss),
    }


def certificate_picture(outcome: Outcome) -> str:
    """Return a certificate without a card."""
    entry = outcome.entry
    middle = WIDTH / 2
    drawn = [
        _text(middle, 38, "Percent of Peak", 18),
        _text(middle, 56, "You versus the machine", SMALL, "s"),
        _text(middle, 92, entry.who, 16, weight=600),
        _text(middle, 114, f"answers for {entry.task.name}, written {BY_WORDS[entry.by]},", SMALL),
        _text(middle, 114 + LINE, f"on {entry.task.workload.label}", SMALL),
        _text(middle, 172, "right", 30, weight=600),
    ]
    y = 200.0
    for said in (
        f"{entry.task.least_bytes:,} bytes must move, counted from the problem.",
        NO_CARD_WORDS,
        f"What lost: {entry.lost}",
    ):
        for line in textwrap.wrap(said, LETTERS - 4):
            drawn.append(_text(middle, y, line, SMALL))
            y += LINE
        y += 5
    y += 18
    drawn += [
        f'<path d="M40 {y:g}H150M202 {y:g}H312" stroke="var(--s)" stroke-width="1"/>',
        _text(95, y + LINE, "Date and place", SMALL, "s"),
        _text(257, y + LINE, "Mentor", SMALL, "s"),
        _text(middle, y + 42, "Record: run.json, its seal, date, commit and judge", SMALL, "s"),
    ]
    height = y + 62
    frame = (
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{height - 2:g}" fill="var(--p)"/>'
        f'<rect x="8" y="8" width="{WIDTH - 16}" height="{height - 16:g}" fill="none" stroke="var(--a)"/>'
    )
    return _svg(height, [frame, *drawn])


def board_picture(outcomes: Sequence[Outcome], root: Path) -> str:
    """Return a board of entries that ran without a card, one below the other."""
    drawn: list[str] = []
    y, task = 0.0, ""
    for one in outcomes:
        entry = one.entry
        if entry.task.name != task:
            task = entry.task.name
            drawn.append(_text(0, y + 16, task, 14, at="start", weight=600))
            y += 26
        again = command(one).replace(f"{root}/", "")
        marks = f"; marks: {points(entry.folder)} of 5" if (entry.folder / MARKS).exists() else ""
        lines = textwrap.wrap(f"What lost: {entry.lost}", LETTERS)
        height = 62 + LINE * len(lines) + 26
        drawn += [
            f'<rect x="0" y="{y:g}" width="{WIDTH}" height="{height:g}" rx="5" fill="var(--d)"/>',
            _text(EDGE, y + 19, entry.by, SMALL, "a", "start", 600),
            _text(EDGE, y + 36, entry.who.removeprefix("Example: "), 13, at="start", weight=600),
            _text(EDGE, y + 53, f"{score_words(one)}{marks}", SMALL, at="start"),
            *(
                _text(EDGE, y + 72 + LINE * number, line, SMALL, at="start")
                for number, line in enumerate(lines)
            ),
            _text(EDGE, y + height - 11, again, SMALL, "s", "start"),
        ]
        y += height + 10
    return _svg(y - 10, drawn)


def _text(
    x: float, y: float, text: str, size: float, ink: str = "i", at: str = "middle", weight: int = 400
) -> str:
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    anchor = "" if at == "start" else f' text-anchor="{at}"'
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{anchor}{bold} fill="var(--{ink})">'
        f"{html.escape(text, quote=False)}</text>"
    )


def _svg(height: float, drawn: Sequence[str]) -> str:
    names = {"a": "accent", "i": "ink", "s": "ink-soft", "p": "paper", "d": "paper-deep"}
    inks = ";".join(f"--{short}:var(--{name},{COLOURS[name]})" for short, name in names.items())
    body = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="" '
        f'style="max-width:600px;{inks}">\n{body}\n</svg>\n'
    )
