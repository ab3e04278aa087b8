"""``nox -s calendar``: one cohort of four weeks as a calendar file, from handbook/sessions/cohort.toml.

The plan holds no dates. You give the Monday of the first week, a time and a time zone; every event is written as an
instant in UTC, so that each calendar shows it in its owner's own time, summer time included.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from course_site.sessions.course_road import FOLDER, read_road
from course_site.sessions.plan_file import Plan, PlanError, read_plan
from course_site.sessions.session import Session, read_sessions, visible

FILE = f"{FOLDER}/cohort.toml"


@dataclass(frozen=True)
class Day:
    """One teaching day with its sessions, one after the other; the homework is that of the last one's map."""

    week: int
    day: int
    sessions: tuple[str, ...]


@dataclass(frozen=True)
class Milestone:
    """One date of the capstone."""

    week: int
    day: int
    title: str
    text: str


@dataclass(frozen=True)
class Cohort:
    """A whole cohort without dates."""

    title: str
    days: tuple[Day, ...]
    milestones: tuple[Milestone, ...]


@dataclass(frozen=True)
class Entry:
    """One entry of the calendar before anybody has typed a date.

    Attributes:
        name: with the date typed it is the entry's identity, so that a calendar read in twice holds it once.
        day: days from the first day of the cohort.
        after: minutes from the start of that day's teaching.
        minutes: 0 for an entry that lasts all day.
        page: the page behind it, as a place in the site, or "".
    """

    name: str
    title: str
    text: str
    day: int
    after: int = 0
    minutes: int = 0
    page: str = ""


@dataclass(frozen=True)
class Event:
    """One entry of the calendar. `start` is an instant, or a date for an event that lasts all day.

    `uid` is who it is: a calendar that finds it again overwrites it. Two cohorts of one day stand side by side, so the
    hour and the zone are part of it.
    """

    uid: str
    title: str
    text: str
    start: datetime | date
    minutes: int = 0


def read_cohort(root: Path) -> Cohort:
    """Return the plan, checked: every session on exactly one day, in an order that goes forward.

    Raises:
        PlanError: see the class.
    """
    plan = read_plan(root, FILE, ("title", "weeks", "days_per_week", "day", "capstone"))
    sessions, week = read_road(root).sessions, (plan.whole("weeks"), plan.whole("days_per_week"))
    if not 1 <= week[1] <= 7:
        raise plan.wrong(f"a week has 1 to 7 days, not {week[1]}", "days_per_week")
    days = []
    for table in plan.tables("day", ("week", "day", "sessions")):
        names = table.sessions("sessions", sessions)
        if not names:
            raise table.wrong(f"name one or more of {', '.join(sessions)}", "sessions")
        days.append(Day(*_place(table, *week), names))
    milestones = tuple(
        Milestone(*_place(table, *week), table.text("title"), table.text("text"))
        for table in plan.tables("capstone", ("week", "day", "title", "text"))
    )
    for before, after in itertools.pairwise(days):
        if (before.week, before.day) >= (after.week, after.day):
            raise plan.wrong(
                f"week {after.week}, day {after.day} comes after week {before.week}, day {before.day}: "
                "put the days in their order"
            )
    taught = [name for day in days for name in day.sessions]
    for name in sessions:
        if taught.count(name) != 1:
            raise plan.wrong(f"session {name!r} is on {taught.count(name)} days; it needs exactly one")
    return Cohort(plan.text("title"), tuple(days), milestones)


def entries(cohort: Cohort, sessions: Mapping[str, Session]) -> list[Entry]:
    """Return all entries of the calendar, without dates: the one source of the file, here and in the browser.

    Raises:
        PlanError: a session has no map yet, or a text holds what a calendar cannot show.
    """
    found: list[Entry] = []
    for number, day in enumerate(cohort.days):
        after = 0
        for name in day.sessions:
            if name not in sessions:
                raise PlanError(f"{FILE}: session {name!r} has no map yet: write {FOLDER}/{name}.toml")
            session = sessions[name]
            text = (
                f"{_words(session.about, session.path)}\n"
                f"You leave with: {_words(session.artifact, session.path)}"
            )
            page = f"{session.map_page.rsplit('.', 1)[0]}.html"
            found.append(Entry(name, session.name, text, _offset(day), after, session.minutes, page=page))
            after += session.minutes
        last = sessions[day.sessions[-1]]
        if last.homework and number + 1 < len(cohort.days):
            due = _offset(cohort.days[number + 1])
            title = f"Due today: homework of {last.id.upper()}"
            found.append(
                Entry(f"homework-{last.id}", title, _words(last.at_home.replace("\n\n", " "), last.path), due)
            )
    found += [
        Entry(f"capstone-{i}", f"Capstone: {m.title}", _words(m.text, FILE), _offset(m))
        for i, m in enumerate(cohort.milestones, 1)
    ]
    return found


def events(
    cohort: Cohort, sessions: Mapping[str, Session], start: date, at: time, zone: ZoneInfo, site: str = ""
) -> list[Event]:
    """Return every event of a cohort whose first week begins on `start`.

    Args:
        start: the Monday of the first week.
        at: when a teaching day begins, in `zone`.
        site: the address of the published site, for a link to each map; left out if "".
    """
    found: list[Event] = []
    place = zone.key.lower().replace("/", "-")
    for entry in entries(cohort, sessions):
        day = start + timedelta(days=entry.day)
        text = entry.text + (f"\n{site.rstrip('/')}/{entry.page}" if site and entry.page else "")
        when: datetime | date = day
        if entry.minutes:
            when = _moment(day, at, zone) + timedelta(minutes=entry.after)
        uid = f"{entry.name}-{start}@{at:%H%M}.{place}.percent-of-peak"
        found.append(Event(uid, entry.title, text, when, entry.minutes))
    return found


def calendar(title: str, dated: Sequence[Event], stamp: datetime) -> bytes:
    """Return the events as an iCalendar file (RFC 5545)."""
    import icalendar

    book = icalendar.Calendar()
    book.add("prodid", "-//Percent of Peak//cohort//EN")
    book.add("version", "2.0")
    book.add("x-wr-calname", title)
    for entry in dated:
        event = icalendar.Event()
        event.add("uid", entry.uid)
        event.add("dtstamp", stamp)
        event.add("summary", entry.title)
        event.add("description", entry.text)
        event.add("dtstart", entry.start)
        if isinstance(entry.start, datetime):
            event.add("dtend", entry.start + timedelta(minutes=entry.minutes))
        else:
            event.add("dtend", entry.start + timedelta(days=1))
            event.add("transp", "TRANSPARENT")  # a date to keep, no time that is taken
        book.add_component(event)
    content: bytes = book.to_ical()
    return content


def main(arguments: list[str], root: Path | None = None) -> int:
    """Write the calendar; returns the exit code."""
    root = root or Path.cwd()
    parser = argparse.ArgumentParser(
        prog="nox -s calendar --", description="A whole cohort as one .ics file, from the plan in " + FILE
    )
    parser.add_argument("--start", required=True, metavar="DATE", help="the Monday of week 1, as 2027-01-11")
    parser.add_argument("--at", required=True, metavar="TIME", help="when a teaching day begins, as 18:00")
    parser.add_argument(
        "--zone", required=True, metavar="ZONE", help="the time zone's name, as Europe/Berlin"
    )
    parser.add_argument("--site", default="", metavar="URL", help="where the site is published, for links")
    parser.add_argument(
        "--out", type=Path, default=Path("cohort.ics"), metavar="FILE", help="cohort.ics if left out"
    )
    options = parser.parse_args(arguments)
    try:
        start, at, zone = _start(options.start), _time(options.at), _zone(options.zone)
        cohort = read_cohort(root)
        sessions, complaints = read_sessions(root)
        if complaints:
            raise PlanError(str(complaints[0]))
        found = events(cohort, sessions, start, at, zone, options.site)
        content = calendar(cohort.title, found, datetime.now(UTC))
        _write(options.out, content)
    except PlanError as error:
        print(f"calendar: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError:
        print("calendar: icalendar is not installed: run it as `nox -s calendar -- …`", file=sys.stderr)
        return 2
    print(f"calendar: {len(found)} events from {start} are in {options.out}")
    return 0


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise PlanError(
            f"--out {path}: {error.strerror}; name a file in a folder that you may write to"
        ) from None


def _start(text: str) -> date:
    try:
        found = date.fromisoformat(text)
        if (
            not 2000 <= found.year < 3000
        ):  # a slip of the finger; and the last day there is has no day after it
            raise ValueError
    except ValueError:
        raise PlanError(f"--start {text}: is not a date; write it as 2027-01-11") from None
    if found.weekday() != 0:
        monday = found - timedelta(days=found.weekday())
        raise PlanError(f"--start {text}: is a {found:%A}; the plan begins on a Monday, for example {monday}")
    return found


def _time(text: str) -> time:
    try:
        return datetime.strptime(text, "%H:%M").time()
    except ValueError:
        raise PlanError(f"--at {text}: is not a time of day; write it as 18:00") from None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PlanError(f"--zone {name}: is not a time zone; write it as Europe/Berlin") from None


def _words(text: str, where: str) -> str:
    """Return a text without marks. Measured values have no place in a calendar, which nobody renews."""
    if "{{" in text:
        raise PlanError(
            f"{where}: {text[:40]!r} …: holds a measured value, and a calendar cannot renew it: leave it out"
        )
    return visible(text)


def _offset(place: Day | Milestone) -> int:
    return 7 * (place.week - 1) + place.day - 1


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    local = datetime.combine(day, at, tzinfo=zone)
    moment = local.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        raise PlanError(f"--at {at:%H:%M}: does not exist on {day} in {zone}: the clocks go forward")
    return moment


def _place(table: Plan, weeks: int, days: int) -> tuple[int, int]:
    week, day = table.whole("week"), table.whole("day")
    if not 1 <= week <= weeks or not 1 <= day <= days:
        raise table.wrong(f"week {week}, day {day} is outside the {weeks} weeks of {days} days")
    return week, day
