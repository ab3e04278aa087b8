"""Order of the labs along the sessions of the course. Standard library only."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_labs.lab import Lab, LabError

OFF_THE_ROAD = "—"  # on a page of no session, such as the first steps


def along_the_road(labs: Iterable[Lab], root: Path) -> list[tuple[str, Lab]]:
    """(session, lab) in the order of the road; labs on pages of no session come first.

    A lab's place is its page's, the student's or the teaching chapter; labs of one page are in its order.

    Raises:
        LabError: the road or the map of a session cannot be read.
    """
    folder = root / "handbook" / "sessions"
    road = _read(folder / "road.toml").get("road", {}).get("course", {})
    stops = [stop for half in road.get("half", []) for stop in half["stops"]]
    sessions = {stop: _read(folder / f"{stop}.toml") for stop in stops}
    pages = {one.get(key): stop for key in ("chapter", "student_page") for stop, one in sessions.items()}

    def place(lab: Lab) -> tuple[int, int, str]:
        stop = pages.get(lab.page)
        page = root / lab.page
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        return (stops.index(stop) if stop else -1, text.find(f"/// lab | {lab.name}\n"), lab.name)

    return [(pages.get(lab.page, OFF_THE_ROAD).upper(), lab) for lab in sorted(labs, key=place)]


def _read(path: Path) -> dict[str, Any]:
    """Return a TOML file; nothing where there is none, as in a course without sessions."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
