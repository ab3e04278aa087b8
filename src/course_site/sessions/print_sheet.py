"""The printed sheet of a session: one sheet of A4, the minutes on the front, the board on the back.

The back has what is typed in the room and asked there too. Black on white, no letter under 8 pt, no clock times until
somebody types a start. In handbook/run/, sheet.html is its frame, sheet.css lays it out, and sheet.js fills in the
times.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from course_site.sessions import fields
from course_site.sessions.fields import BELOW, Field
from course_site.sessions.handouts import read_handouts, recorded_on
from course_site.sessions.on_page import OnPage, Switch, alone
from course_site.sessions.run_view import FOLDER, filled, whole_options

FRAME = "sheet.html"
SOURCES = ("sheet.css", "sheet.js")
Plain = Mapping[str, Any]


def sheet_name(session_id: str) -> str:
    """Return the file of a session's sheet, beside its run view."""
    return f"{session_id}_print.html"


def sheet_files(sessions: Iterable[Plain], root: Path, switch: Switch = alone) -> dict[str, str]:
    """Return every file of the printed sheets by its place in the edition; script and style are the same for all.

    Args:
        sessions: each map as `plain_data.as_plain` gives it.
        root: the repository.
        switch: what each page says of its edition.
    """
    frame = (root / FOLDER / FRAME).read_text(encoding="utf-8")
    files: dict[str, str] = {}
    for session in sessions:
        here = switch(f"{FOLDER}/{sheet_name(session['id'])}")
        recorded = recorded_on(read_handouts(root, session["id"]))
        files[sheet_name(session["id"])] = sheet(session, frame, recorded, here)
        if not here.folder:
            files |= {name: (root / FOLDER / name).read_text(encoding="utf-8") for name in SOURCES}
    return {f"{FOLDER}/{name}": content for name, content in files.items()}


def sheet(
    session: Plain, frame: str, recorded: Mapping[str, str] | None = None, here: OnPage | None = None
) -> str:
    """Return the sheet of one session, whole, in its frame.

    Args:
        recorded: the printed sheet whose solved twin shows the numbers of a demo, by the demo's name.
        here: what it says of its edition; nothing where there is one alone.
    """
    here = here or OnPage()
    parts = {
        "root": here.root,
        "shared": here.shared(FOLDER),
        "edition": here.meta,
        "editions": here.nav,
        "card": f'<span class="card">Numbers: {html.escape(here.card)}</span>' if here.card else "",
        "id": session["id"],
        "kind": session["kind"],
        "name": html.escape(session["name"]),
        "about": session["about"]["html"],
        "artifact": session["artifact"]["html"],
        "rows": "".join(_block(block, session["steps"]) for block in session["blocks"]),
        "board": session["board"]["svg"],
        "checks": _checks(session["steps"]),
        "demos": _demos(session["demos"], recorded or {}),
        "stages": _stages(session["steps"]),
        "below": _below(session["steps"]),
        "questions": _pairs("Likely questions", session["questions"]),
        "exit": _pairs("Exit ticket", session["exit_ticket"]),
        "before": _before(session),
    }
    return filled(frame, {name: whole_options(text) for name, text in parts.items()})


def _block(block: Plain, steps: list[Plain]) -> str:
    own = [step for step in steps if step["number"] in block["steps"]]
    return f"<tbody>{''.join(map(_row, own))}</tbody>"


def _row(step: Plain) -> str:
    kind = step["kind"]
    start, minutes = step["start"], step["minutes"]
    clock = f'<b data-minute="{start}">{start}</b> <span>{minutes} min</span> <i>{html.escape(kind)}</i>'
    stop = "" if step["title"]["text"].endswith(("?", "!", ".")) else "."
    title = f"<b>{step['number']} {step['title']['html']}{stop}</b>"
    return (
        f'<tr class="{"break" if kind == "break" else "step"}"><td class="clock">{clock}</td>'
        f"<td>{title} {_column('say', step)}</td><td>{_column('fingers', step)}</td>"
        f"<td>{_column('board', step)}</td></tr>\n"
    )


def _column(column: str, step: Plain) -> str:
    return "".join(_field(field, step) for field in fields.in_column(column))


def _field(field: Field, step: Plain) -> str:
    """Return one field of a step in its column; "" where it is empty."""
    value = step[field.key]
    if not field.is_text:
        return f" <b>{_SPELLED[field.key](value)}.</b>" if value else ""
    said = value["html"] if value else field.heart[1] * step["protected"]
    if not said or not field.sheet:
        return str(said)
    return (
        f' <span class="late">{fields.labelled(field.sheet, step["priority"], step["saves"])} {said}</span>'
    )


def _demo(demo: Plain) -> str:
    return f"Demo: {html.escape(demo['name'])}"


def _stage(stage: Plain) -> str:
    return f"Lab {html.escape(stage['lab'])}, stage {stage['number']}"


_SPELLED = {"demo": _demo, "stage": _stage}


def _checks(steps: list[Plain]) -> str:
    items = [
        f"<li value={step['number']}>{step['check']['ask']['html']} <em>{step['check']['answer']['html']}</em></li>"
        for step in steps
        if step["check"]
    ]
    return f"<ol>{''.join(items)}</ol>"


def _below(steps: list[Plain]) -> str:
    """Fields with a list of their own, each text under the number of its step."""
    lists = []
    for field in fields.in_column(BELOW):
        said = [(step["number"], step[field.key]) for step in steps if step[field.key]]
        items = "".join(f"<li value={number}>{text['html']}</li>" for number, text in said)
        lists.append(f"<h3>{field.sheet}</h3><ol>{items}</ol>" if said else "")
    return "".join(lists)


def _pairs(title: str, pairs: list[Plain]) -> str:
    items = [f"<li>{pair['ask']['html']} <em>{pair['answer']['html']}</em></li>" for pair in pairs]
    return f"<h3>{title}</h3><ul>{''.join(items)}</ul>" if items else ""


def _demos(demos: list[Plain], recorded: Mapping[str, str]) -> str:
    """Return the commands of the room, how long each keeps it waiting, and where the numbers are if it fails."""
    items = []
    for demo in demos:
        said = [f"You wait about {demo['wait']}."] if demo["wait"] else []
        page, label = (html.escape(demo["fallback"][key]) for key in ("page", "label"))
        place = f"<em>{page}</em>, <em>{label}</em>" if page else f"<em>{label}</em>"
        sheet = recorded.get(demo["name"])
        paper = f"on paper <em>{html.escape(sheet)}</em>, marked SOLVED; " if sheet else ""
        said.append(f"If it fails, the numbers: {paper}on the site {place}.")
        items.append(
            f"<li><b>{html.escape(demo['name'])}</b> {demo['title']['html']}: "
            f"<code>{html.escape(demo['command'])}</code> {' '.join(said)}</li>"
        )
    return f"<h3>What you type</h3><ul>{''.join(items)}</ul>" if items else ""


def _stages(steps: list[Plain]) -> str:
    """Return the stages of the lab by their steps.

    Each says what the grader says when it is done, and how those behind catch up.
    """
    staged = [(step["number"], step["stage"]) for step in steps if step["stage"]]
    if not staged:
        return ""
    items = [
        f"<li value={number}>{stage['title']['html']}: <em>{html.escape(_first_reason(stage))}</em></li>"
        for number, stage in staged
    ]
    rescues = dict.fromkeys(re.sub(r"\d+$", "K", stage["rescues"][0]) for _, stage in staged)
    commands = " or ".join(f"<code>{html.escape(rescue)}</code>" for rescue in rescues)
    return (
        f"<h3>What the grader says after a stage</h3><ol>{''.join(items)}</ol>"
        f"<p>Fell behind? {commands} writes the file as it is after stage K.</p>"
    )


def _first_reason(stage: Plain) -> str:
    """Return the grader's words through the door that the lab offers first, up to their details."""
    said: str = next(iter(stage["says"].values()))[0]
    return said.partition(";")[0]


def _before(session: Plain) -> str:
    # What is typed the day before stands on the map: in the room nobody types it, and paper is short.
    items = [f"<li>{text['html']}</li>" for text in session["prepare"]]
    return f"<h3>Before the door opens</h3><ul>{''.join(items)}</ul>"
