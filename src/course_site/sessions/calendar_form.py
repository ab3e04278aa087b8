"""The form that makes a calendar file in the browser, and its data.

The work is done by handbook/run/calendar.js, which lies beside the run views and is used by the page on the cohort's
calendar too. Without JavaScript the form says what to type instead.
"""

from __future__ import annotations

import html
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from course_site.sessions.cohort import Entry

SCRIPT = "calendar.js"
Plain = Mapping[str, Any]


def calendar_data(
    entries: Iterable[Entry], file: str, root: str, *, title: str = "", monday: bool = False
) -> dict[str, Any]:
    """Return the data of calendar.js, for the key `calendar` of the page's JSON.

    Args:
        file: how the file's name begins.
        root: from the page to the root of the site.
        title: a name for the calendar, where it is one of its own.
        monday: the date must be a Monday.
    """
    return {
        "file": file,
        "root": root,
        "title": title,
        "monday": monday,
        "entries": [asdict(entry) for entry in entries],
    }


def session_entries(session: Plain, folder: str) -> list[Entry]:
    """Return one session as a mentor needs it in the calendar: its minutes, and the day before what to prepare.

    Args:
        session: the map as `plain_data.as_plain` gives it.
        folder: the folder in the site to which its links are relative.
    """
    name = session["name"]
    href = session["map"]["href"] if session["map"] else ""
    page = posixpath.normpath(posixpath.join(folder, href)) if href else ""
    minutes = sum(step["minutes"] for step in session["steps"])
    prepare = [text["text"] for text in session["prepare"]]
    prepare += [
        f"To know that the demo {demo['title']['text']} will work: {demo['preflight']}"
        for demo in session["demos"]
    ]
    found = [
        Entry(f"session-{session['id']}", name, "\n".join(_plan(session)), 0, minutes=minutes, page=page)
    ]
    if prepare:
        text = "\n".join(f"- {line}" for line in prepare)
        found.append(Entry(f"prepare-{session['id']}", f"Prepare {name}", text, -1, page=page))
    return found


def _plan(session: Plain) -> Iterator[str]:
    """Yield the session in words: what it is about, and its minutes from the start."""
    yield session["about"]["text"]
    yield f"They leave with: {session['artifact']['text']}"
    for block in session["blocks"]:
        yield ""
        yield f"{block['from']}–{block['to']} {block['title']['text']}"
        for step in session["steps"]:
            if step["block"] == block["number"]:
                kind = "" if step["kind"] == "break" else f" ({step['kind']})"
                end = step["start"] + step["minutes"]
                yield f"· {step['start']}–{end} {step['title']['text']}{kind}"


_TIME = """<p><label for="calendar-time">Start</label>
<input type="time" id="calendar-time" name="time" aria-describedby="calendar-wrong"></p>
<p class="zone"><label for="calendar-zone">Time zone</label>
<input type="text" id="calendar-zone" name="zone" list="calendar-zones" autocomplete="off" autocapitalize="none"
 spellcheck="false" aria-describedby="calendar-wrong"><datalist id="calendar-zones"></datalist></p>
"""
_TYPED = """ On any machine with the course,
<code>nox -s calendar</code> makes the calendar of a whole cohort."""


def calendar_form(plan: str, when: str, *, monday: bool = False, days: bool = False) -> str:
    """Return the form of a calendar.

    Args:
        plan: id of the script element whose JSON has the key `calendar`.
        when: what the date is called.
        monday: let the date picker offer Mondays only.
        days: all entries last a day, so that there is no hour to type.
    """
    weeks = ' step="7"' if monday else ""  # counted from `min`, which is a Monday
    return f"""<div class="calendar" data-plan="{plan}">
<p class="without">A small script makes the file, and this browser runs none.{"" if days else _TYPED}</p>
<form hidden novalidate>
<p><label for="calendar-date">{html.escape(when)}</label>
<input type="date" id="calendar-date" name="date" min="2001-01-01" max="2099-12-31"{weeks}
 aria-describedby="calendar-wrong"></p>
{"" if days else _TIME}<p><button type="submit">Download .ics</button></p>
<p class="wrong" id="calendar-wrong" role="alert" hidden></p>
<p class="made" role="status"></p>
</form>
</div>"""
