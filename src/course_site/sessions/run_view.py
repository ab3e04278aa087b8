"""The run view of a session: one HTML file that a mentor has in hand in the room, with or without a network.

The page holds the words of every step; handbook/run/run.js tells the time and shows where the session is.
The frame of the page, run.html, lies in handbook/run/ too; so do the style and the service worker, which are copied.
"""

from __future__ import annotations

import hashlib
import html
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from course_site.pages.doors import DOORS
from course_site.sessions import fields
from course_site.sessions.calendar_form import SCRIPT, calendar_data, calendar_form, session_entries
from course_site.sessions.on_page import OnPage, Switch, alone

FOLDER = "handbook/run"
FRAME = "run.html"
WORKER = "service_worker.js"
SOURCES = ("run.css", "run.js", SCRIPT, WORKER)
# What the pages show besides: kept on the mentor's device too. Places in the built site.
SHARED = (
    "assets/favicon.svg",
    "assets/js/storage.js",
    "assets/js/edition.js",
    "assets/js/words.js",
    "assets/vendor/fonts/source-serif-4-latin-wght-normal.woff2",
    "assets/vendor/fonts/source-serif-4-rest-wght-normal.woff2",
    "assets/vendor/fonts/source-serif-4-latin-wght-italic.woff2",
    "assets/vendor/fonts/source-serif-4-rest-wght-italic.woff2",
    "assets/vendor/fonts/source-sans-3-latin-wght-normal.woff2",
    "assets/vendor/fonts/source-sans-3-rest-wght-normal.woff2",
    "assets/vendor/fonts/source-code-pro-latin-wght-normal.woff2",
    "assets/vendor/fonts/source-code-pro-rest-wght-normal.woff2",
)

Plain = Mapping[str, Any]


def run_files(sessions: Iterable[Plain], root: Path, switch: Switch = alone) -> dict[str, str]:
    """Return every file of the run views by its place in the edition.

    Scripts and styles are the same for all editions; the worker keeps the views of its own folder, so each has one.

    Args:
        sessions: each map as `plain_data.as_plain` gives it.
        root: the repository.
        switch: what each page says of its edition.
    """
    sessions = list(sessions)
    here = switch(f"{FOLDER}/{WORKER}")
    frame = (root / FOLDER / FRAME).read_text(encoding="utf-8")
    files = {
        f"{session['id']}.html": run_page(session, frame, sessions, switch(f"{FOLDER}/{session['id']}.html"))
        for session in sessions
    }
    sources = {name: (root / FOLDER / name).read_text(encoding="utf-8") for name in SOURCES}
    shared = {here.root + name: root / "docs" / name for name in SHARED}
    kept = {name: text for name, text in (files | sources).items() if name != WORKER}
    contents = [text.encode() for text in kept.values()] + [path.read_bytes() for path in shared.values()]
    names = [(here.shared(FOLDER) if name in SOURCES else "") + name for name in kept]
    worker = filled(
        sources[WORKER].replace('"%FILES%"', json.dumps([*names, *shared])),
        {"VERSION": _digest(contents), "EDITION": f"{here.folder}-" if here.folder else ""},
    )
    files |= {WORKER: worker} if here.folder else {**sources, WORKER: worker}
    return {f"{FOLDER}/{name}": content for name, content in files.items()}


def _digest(contents: list[bytes]) -> str:
    """Return one name for all contents together: it changes when any of them does."""
    return hashlib.sha256(b"".join(hashlib.sha256(c).digest() for c in contents)).hexdigest()[:16]


def run_page(
    session: Plain, frame: str, all_sessions: Iterable[Plain] = (), here: OnPage | None = None
) -> str:
    """Return the run view of one session, whole; it links those of all sessions, for a mentor without a network.

    Args:
        here: what it says of its edition; nothing where there is one alone.
    """
    title, here = session["title"], here or OnPage()
    parts = {
        "root": here.root,
        "shared": here.shared(FOLDER),
        "edition": here.meta,
        "editions": here.nav,
        "name": html.escape(session["name"]),
        "stop": html.escape(session["stop"]),
        "title": html.escape(title),
        "about": session["about"]["html"],
        "artifact": session["artifact"]["html"],
        "data": embedded(_minutes(session) | {"calendar": _calendar(session)}),
        "calendar": calendar_form("session", "Date"),
        "links": _around(session),
        "prepare": "".join(f"<li>{text['html']}</li>" for text in session["prepare"]),
        "preflight": "".join(map(_preflight, session["demos"])),
        "blocks": "".join(_block(block, session["steps"]) for block in session["blocks"]),
        "board": _board(session["board"]),
        "questions": _pairs("Likely questions", session["questions"]),
        "exit": _pairs("Exit ticket", session["exit_ticket"]),
        "home": _home(session),
        "others": " ".join(_other(other) for other in all_sessions if other["id"] != session["id"]),
    }
    return filled(frame, {name: whole_options(text) for name, text in parts.items()})


def filled(frame: str, parts: Mapping[str, str]) -> str:
    """Return a frame with each %name% replaced by its part; what a part says is left as it is."""
    return re.sub(r"%(\w+)%", lambda match: parts[match[1]], frame)


def whole_options(text: str) -> str:
    """No line ends inside an option of a command: `-` at the end of one and `-stage` on the next is another command."""
    return re.sub(
        r"(?<=<code>)[^<]*(?=</code>)",
        lambda code: re.sub(r"(?<!\S)-\S{1,24}", r'<span class="option">\g<0></span>', code[0]),
        text,
    )


def embedded(data: object) -> str:
    """JSON that is safe inside a script element whatever its strings say."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _minutes(session: Plain) -> dict[str, Any]:
    """Return the script's data: the minutes, and which cuts to propose at each step, in their order."""
    blocks = {block["number"]: block for block in session["blocks"]}
    steps = [
        {
            "title": step["title"]["text"],
            "block": blocks[step["block"]]["title"]["text"],
            "kind": step["kind"],
            "minutes": step["minutes"],
            "saves": step["saves"],
            "cuts": [number - 1 for number in step["cuts"]],
            "room": whole_options(_for_the_room(step)),
            "first": step["number"] == blocks[step["block"]]["steps"][0],
        }
        for step in session["steps"]
    ]
    return {"id": session["id"], "title": session["name"], "steps": steps}


def _calendar(session: Plain) -> dict[str, Any]:
    """Return the data from which calendar.js makes the session's calendar file."""
    root = f"{posixpath.relpath('.', FOLDER)}/"
    return calendar_data(session_entries(session, FOLDER), session["id"], root)


def _for_the_room(step: Plain) -> str:
    """Return the projector's text while they work: the map's `room`, or the fingers before they tell the answer."""
    if step["room"]:
        return str(step["room"]["html"])
    import markdown  # slow to import

    told = markdown.markdown(
        re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", before_the_answer(step["fingers_source"]))
    )
    return told.removeprefix("<p>").removesuffix("</p>")


_TELLS = re.compile(
    r"(?:^|(?<=[.!?;] ))(?:there (?:now )?stands?|the grader|the screen|it says|in them|at the end|afterwards|"
    r"what the grader|both (?:slips|sheets)? ?end)\b",
    re.IGNORECASE,
)


def before_the_answer(fingers: str) -> str:
    """Return the text of `fingers` up to its result: a value, or words that lead to one."""
    kept = _TELLS.split(fingers)[0]
    value = kept.find("{{")
    if value >= 0:
        ends = [match.end() for match in re.finditer(r"[.:;](?= )", kept[:value])]
        kept = kept[: ends[-1]] if ends else ""
    kept = kept.strip().rstrip(":;,")
    return kept if not kept or kept[-1] in ".!?*`" else f"{kept}."


def _link(link: Plain | None, words: str) -> str:
    """Return a link, or nothing while its page is to come."""
    return f'<a href="{html.escape(link["href"])}">{words}</a>' if link and link["href"] else ""


def _around(session: Plain) -> str:
    """Return the pages around the view, where they exist."""
    links = (session[key] for key in ("map", "chapter", "student"))
    return " · ".join(filter(None, (_link(link, html.escape(link["label"])) for link in links if link)))


def _other(session: Plain) -> str:
    title = html.escape(session["title"], quote=True)
    return f'<a href="{session["id"]}.html" title="{title}">{html.escape(session["stop"] or session["title"])}</a>'


def _block(block: Plain, steps: list[Plain]) -> str:
    inside = "".join(_step(step) for step in steps if step["block"] == block["number"])
    start, end = block["from"], block["to"]
    return (
        f'<section class="block"><h3><span class="when" data-start="{start}" data-end="{end}">'
        f"{start}–{end}</span> {block['title']['html']}</h3><ol>{inside}</ol></section>\n"
    )


def _step(step: Plain) -> str:
    kind = "" if step["kind"] == "break" else f' <span class="kind">{html.escape(step["kind"])}</span>'
    return (
        f'<li class="step {step["kind"].replace(" ", "-")}" id="step-{step["number"]}"><details><summary>'
        f'<span class="when">{step["start"]}</span><span class="really"></span>'
        f'<span class="title">{step["title"]["html"]}{kind}</span>'
        f'<span class="length">{step["minutes"]} min</span></summary>{_taken(step)}'
        f'<dl class="fields">{"".join(_fields(step))}</dl>'
        f'<p class="here"><button type="button" class="quiet jump" data-step="{step["number"] - 1}">'
        "We are at this step</button></p></details></li>"
    )


def _taken(step: Plain) -> str:
    """Return the minutes of earlier runs, where mentors handed them in."""
    taken = step["taken"]
    if not taken:
        return ""
    runs = f"{taken['runs']} run" + ("" if taken["runs"] == 1 else "s")
    return f'<p class="aside taken">Planned {step["minutes"]}, median of {runs} {taken["median"]:g}.</p>'


def _fields(step: Plain) -> Iterator[str]:
    """Everything that a step says, each part under its name; what is empty is left out."""
    for field in fields.in_run_view():
        value = step[field.key]
        if field.is_text:
            said = value["html"] if value else field.heart[0] * step["protected"]
        else:
            said = _SPELLED[field.key](value) if value else ""
        label = fields.labelled(field.run, step["priority"], step["saves"])
        if said:
            yield f'<div class="{field.css[1] or field.key}"><dt>{label}</dt><dd>{said}</dd></div>'


def _check(check: Plain) -> str:
    return f'{check["ask"]["html"]}<p class="answer">{check["answer"]["html"]}</p>'


def _page(anchor: Plain) -> str:
    return _link(anchor, html.escape(anchor["label"]))


def _demo(demo: Plain) -> str:
    said = [f"You wait about {demo['wait']}."] if demo["wait"] else []
    recorded = _link(demo["fallback"], "the recorded result")
    if recorded:
        said.append(f"If the GPU fails: {recorded}.")
    aside = f'<p class="aside">{" ".join(said)}</p>' if said else ""
    return f"{demo['title']['html']}<pre><code>{html.escape(demo['command'])}</code></pre>{aside}"


def _stage(stage: Plain) -> str:
    """Return the typing of this stage of the lab, and how those who fell behind catch up."""
    doors = stage["type"]
    typed = "".join(
        (f'<p class="aside">Through {html.escape(DOORS.get(door, door))}:</p>' if len(doors) > 1 else "")
        + f"<div>{text['html']}</div>"
        + "".join(f"<p>The grader: <code>{html.escape(line)}</code></p>" for line in stage["says"][door])
        for door, text in doors.items()
    )
    rescues = " or ".join(f"<code>{html.escape(command)}</code>" for command in stage["rescues"])
    return (
        f"Lab <code>{html.escape(stage['lab'])}</code>, stage {stage['number']}: {stage['title']['html']}."
        f'<details class="typed"><summary>What is typed, and what the grader says</summary>{typed}</details>'
        f'<p class="aside">Fell behind? {rescues}</p>'
    )


_SPELLED = {"demo": _demo, "stage": _stage, "anchor": _page, "check": _check}


def _preflight(demo: Plain) -> str:
    return (
        f"<li>The day before, for the demo <em>{demo['title']['html']}</em>:"
        f"<pre><code>{html.escape(demo['preflight'])}</code></pre></li>"
    )


def _board(board: Plain) -> str:
    """Return the finished board, drawn into the page, so that it needs no file."""
    if not board["svg"]:
        return ""
    return f'<details class="fold"><summary>The finished board</summary><figure>{board["svg"]}</figure></details>'


def _home(session: Plain) -> str:
    """Return the tasks and readings until the next session."""
    said = "".join(f"<p>{session[key]['html']}</p>" for key in ("homework", "worklog") if session[key])
    items = "".join(
        f"<li>{_link(item['source'], html.escape(item['source']['label']))}: {item['why']['html']}</li>"
        for item in session["read"]
    )
    read = f"<p>What to read:</p><ul>{items}</ul>" if items else ""
    return f'<details class="fold"><summary>At home</summary>{said}{read}</details>' if said or read else ""


def _pairs(title: str, pairs: list[Plain]) -> str:
    items = "".join(
        f'<dt>{pair["ask"]["html"]}</dt><dd class="answer">{pair["answer"]["html"]}</dd>' for pair in pairs
    )
    return (
        f'<details class="fold"><summary>{title}</summary><dl class="pairs">{items}</dl></details>'
        if items
        else ""
    )
