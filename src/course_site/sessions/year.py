"""The year: 52 weeks for somebody who works alone, read from docs/curriculum/weeks.toml.

A week with a page, docs/curriculum/week_NN.py, has been done; any other is to come. As units of a road the weeks are
checked together with all others, see `units`. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.sessions.cohort import Entry
from course_site.sessions.plan_file import Plan, read_plan

FOLDER = "docs/curriculum"
FILE = f"{FOLDER}/weeks.toml"
ROAD = "year"
# What `card` says of a hands-on, in the words of a page's head.
CARDS = {"": (), "one": ("gpu",), "two": ("gpus 2",)}


@dataclass(frozen=True)
class Reading:
    """Something to read: hours, and its key in the bibliography, "" where no page has leaned on it yet."""

    title: str
    hours: float
    key: str = ""


@dataclass(frozen=True)
class Week:
    """A week of the year.

    Attributes:
        box: its name where there is little room.
        needs: the weeks that come before it.
        hardware: needs of its hands-on, in the words of a page's head.
        lesson: the page of the course that teaches its subject, or "".
        ideas: what is to be understood.
        do, milestone: what is to be done, and what one can do then; "" where the milestone is a later week's.
        hours: of all reading and doing.
    """

    number: int
    title: str
    box: str
    needs: tuple[int, ...]
    hardware: tuple[str, ...]
    lesson: str
    ideas: tuple[str, ...]
    do: str
    do_hours: float
    milestone: str
    reading: tuple[Reading, ...]

    @property
    def name(self) -> str:
        """Name of the unit, and of the file of the page."""
        return f"week_{self.number:02d}"

    @property
    def page(self) -> str:
        """Path of its page, which may be to come."""
        return f"{FOLDER}/{self.name}.py"

    @property
    def reading_hours(self) -> float:
        """Hours of all that is to be read."""
        return sum(one.hours for one in self.reading)

    @property
    def hours(self) -> float:
        """Hours of reading and doing; a capstone has none, for nobody knows them."""
        return self.reading_hours + self.do_hours


@dataclass(frozen=True)
class Part:
    """A row of weeks with one goal."""

    name: str
    goal: str
    weeks: tuple[Week, ...]


@dataclass(frozen=True)
class Year:
    """All weeks, in their parts; none where a repository has no year."""

    parts: tuple[Part, ...] = ()

    @property
    def weeks(self) -> tuple[Week, ...]:
        """All weeks in their order."""
        return tuple(week for part in self.parts for week in part.weeks)

    @property
    def hours(self) -> float:
        """Hours of all weeks."""
        return sum(week.hours for week in self.weeks)

    def week(self, number: int) -> Week:
        """Return a week by its number."""
        return self.weeks[number - 1]

    def part_of(self, week: Week) -> int:
        """Return the number of a week's part, from 1."""
        return 1 + next(i for i, part in enumerate(self.parts) if week in part.weeks)

    def after(self, week: Week) -> Iterator[Week]:
        """Yield the weeks that need a week."""
        return (other for other in self.weeks if week.number in other.needs)


def read_year(root: Path) -> Year:
    """Return the year of a repository; one without weeks if there is none.

    Raises:
        PlanError: weeks that do not count from 1, a part that leaves one out, a word that is none of `CARDS`.
    """
    year, _ = read_tables(root)
    return year


def read_tables(root: Path) -> tuple[Year, dict[str, Plan]]:
    """Return the year, and the table that each of its weeks was read from, by the week's name.

    Raises:
        PlanError: see `read_year`.
    """
    if not (root / FILE).is_file():
        return Year(), {}
    plan = read_plan(root, FILE, ("part", "week"))
    weeks: list[Week] = []
    tables: dict[str, Plan] = {}
    keys = (
        "number",
        "title",
        "box",
        "needs",
        "card",
        "lesson",
        "ideas",
        "do",
        "do_hours",
        "milestone",
        "read",
    )
    for table in plan.tables("week", keys):
        table = Plan(FILE, table.data, tuple(table.data), f"week {len(weeks) + 1}")
        weeks.append(_week(table, len(weeks) + 1))
        tables[weeks[-1].name] = table
    parts, first = [], 1
    for table in plan.tables("part", ("name", "first", "last", "goal")):
        begins, ends = table.whole("first"), table.whole("last")
        if begins != first or not begins <= ends <= len(weeks):
            raise table.wrong(f"begins with week {begins}; write {first}, and end by {len(weeks)}", "first")
        parts.append(Part(table.text("name"), table.text("goal"), tuple(weeks[begins - 1 : ends])))
        first = ends + 1
    if first <= len(weeks):
        raise plan.wrong(f"no part has week {first}", "part")
    return Year(tuple(parts)), tables


def _week(table: Plan, number: int) -> Week:
    if table.whole("number") != number:
        raise table.wrong(
            f"is {table.whole('number')}, and the weeks before it count to {number - 1}", "number"
        )
    card = table.data.get("card", "")
    if card not in CARDS:
        raise table.wrong(f"{card!r} is none of {', '.join(map(repr, CARDS))}", "card")
    return Week(
        number,
        table.text("title"),
        table.text("box"),
        _numbers(table, "needs"),
        CARDS[card],
        _text(table, "lesson"),
        table.texts("ideas"),
        table.text("do"),
        table.hours("do_hours") if "do_hours" in table.data else 0.0,
        _text(table, "milestone"),
        tuple(
            Reading(one.text("title"), one.hours("hours"), _text(one, "key"))
            for one in table.tables("read", ("title", "hours", "key"))
        ),
    )


def _text(table: Plan, key: str) -> str:
    return table.text(key) if key in table.data else ""


def _numbers(table: Plan, key: str) -> tuple[int, ...]:
    value: Any = table.data.get(key, [])
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        raise table.wrong(f"needs a list of weeks by number, got {value!r}", key)
    return tuple(value)


def entries(year: Year, pages: Mapping[str, object]) -> list[Entry]:
    """Return the weeks as entries of a calendar that begins on a Monday, each a day to keep.

    Args:
        pages: those that are there, by their paths.
    """
    return [
        Entry(
            week.name,
            f"Week {week.number}: {week.title}",
            "\n".join(_lines(week)),
            7 * (week.number - 1),
            page=f"curriculum/{week.name}.html" if week.page in pages else "",
        )
        for week in year.weeks
    ]


def _lines(week: Week) -> Iterator[str]:
    if week.hours:
        yield f"{week.hours:g} hours: {week.reading_hours:g} to read, {week.do_hours:g} to do"
    yield f"Do: {week.do}"
    if week.milestone:
        yield f"Then you can: {week.milestone}"
    for one in week.reading:
        yield f"- {one.title}"
