"""The cohort on its page, from handbook/sessions/*.toml: four weeks as a table, and the form for its calendar."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from course_site.sessions.calendar_form import SCRIPT, calendar_data, calendar_form
from course_site.sessions.cohort import Cohort, Day, Milestone, entries
from course_site.sessions.run_view import FOLDER, embedded
from course_site.sessions.session import Session

CALENDAR_SCRIPT = f"{FOLDER}/{SCRIPT}"
Words = Callable[[str], str]
Address = Callable[[str], str | None]


def weeks_table(cohort: Cohort, sessions: Mapping[str, Session], words: Words, address: Address) -> str:
    """Week by week and day by day: what is taught, what to do until the next day, and the dates of the capstone.

    Args:
        words: Markdown to HTML of one line.
        address: a page of the repository to its address, or None while it is to come.
    """
    weeks = sorted({day.week for day in cohort.days} | {one.week for one in cohort.milestones})
    bodies = "".join(
        f"<tbody>{''.join(_week(week, cohort, sessions, words, address))}</tbody>" for week in weeks
    )
    return (
        '<div class="scroll cohort" tabindex="0" role="region" aria-label="The four weeks">'
        f'<table><thead><tr><th scope="col">Day</th><th scope="col">In the room</th>'
        f'<th scope="col">Until the next time</th></tr></thead>{bodies}</table></div>'
    )


def _week(
    week: int, cohort: Cohort, sessions: Mapping[str, Session], words: Words, address: Address
) -> Iterator[str]:
    yield f'<tr class="week"><th scope="rowgroup" colspan="3">Week {week}</th></tr>'
    dated: list[Day | Milestone] = [*cohort.days, *cohort.milestones]
    taken = {one.day for one in dated if one.week == week}
    for number in sorted(taken):
        days = [day for day in cohort.days if (day.week, day.day) == (week, number)]
        milestones = [one for one in cohort.milestones if (one.week, one.day) == (week, number)]
        rows = [_day(day, sessions, words, address) for day in days]
        rows += [_milestone(milestone, words) for milestone in milestones]
        for i, row in enumerate(rows):
            head = f'<th scope="row" rowspan="{len(rows)}">{number}</th>' if i == 0 else ""
            yield f"<tr>{head}{row}</tr>"


def _day(day: Day, sessions: Mapping[str, Session], words: Words, address: Address) -> str:
    taught = []
    for session in (sessions[name] for name in day.sessions):
        title, href = html.escape(session.name), address(session.map_page)
        linked = f'<a href="{html.escape(href)}">{title}</a>' if href else title
        taught.append(f'<p>{linked} <span class="minutes">{session.minutes} minutes</span></p>')
    # Without its links, which are the map's own.
    homework = re.sub(
        r"\[([^\]]*)\]\([^)]*\)", r"\1", sessions[day.sessions[-1]].at_home.replace("\n\n", " ")
    )
    return f"<td>{''.join(taught)}</td><td>{words(homework)}</td>"


def _milestone(milestone: Milestone, words: Words) -> str:
    title = html.escape(milestone.title)
    return f'<td colspan="2" class="capstone"><b>Capstone: {title}.</b> {words(milestone.text)}</td>'


def cohort_form(cohort: Cohort, sessions: Mapping[str, Session], folder: str, script: str) -> str:
    """Return the form for the calendar of the whole cohort, with the plan.

    Args:
        folder: the folder of the page in its edition.
        script: the address of `CALENDAR_SCRIPT` from the page.
    """
    root = f"{posixpath.relpath('.', folder)}/"
    data = calendar_data(entries(cohort, sessions), "cohort", root, title=cohort.title, monday=True)
    return (
        f'<script type="application/json" id="cohort">{embedded({"calendar": data})}</script>'
        f'{calendar_form("cohort", "Monday of week 1", monday=True)}<script src="{script}"></script>'
    )
