"""What students bring along: three earlier questions, spaced by the calendar; and what a page ends with."""

from pathlib import Path

import pytest

from course_site.sessions.cohort import read_cohort
from course_site.sessions.session import load_sessions
from course_site.sessions.spaced_questions import BROUGHT, brought_along

ROOT = Path(__file__).resolve().parents[2]
COHORT, SESSIONS = read_cohort(ROOT), load_sessions(ROOT)
TAUGHT = {one: (day.week, day.day) for day in COHORT.days for one in day.sessions}
ORDER = list(TAUGHT)


def brought(name):
    return [(session.id, i) for session, i in brought_along(name, COHORT, SESSIONS)]


def test_the_first_session_brings_nothing_and_the_next_what_there_is():
    assert brought("opening") == []
    assert {name for name, _ in brought("l1")} == {"opening"}


@pytest.mark.parametrize("name", ORDER[2:])
def test_three_questions_of_earlier_sessions_none_twice(name):
    found = brought(name)
    assert len(set(found)) == len(found) == BROUGHT
    assert all(ORDER.index(other) < ORDER.index(name) for other, _ in found)
    assert all(0 <= i < len(SESSIONS[other].exit_ticket) for other, i in found)


@pytest.mark.parametrize("name", [name for name in ORDER if TAUGHT[name][0] > 1])
def test_one_of_the_last_time_one_of_a_week_back_one_of_week_one(name):
    last, back, first = (other for other, _ in brought(name))
    week, day = TAUGHT[name]
    assert last == ORDER[ORDER.index(name) - 1]
    between = 7 * (week - TAUGHT[back][0]) + day - TAUGHT[back][1]
    nearer = [
        other
        for other in ORDER[ORDER.index(back) + 1 :]
        if 7 * (week - TAUGHT[other][0]) + day - TAUGHT[other][1] >= 7
    ]
    assert between >= 7
    assert nearer == []
    assert TAUGHT[first][0] == 1


def test_the_weeks_ask_different_questions_of_week_one():
    asked = [brought(name)[2] for name in ORDER if TAUGHT[name][0] > 1]
    assert len(set(asked)) >= 7
    counts = [found for name in ORDER[2:] for found in brought(name)]
    assert max(map(counts.count, counts)) <= 3


@pytest.fixture(scope="module")
def pages(our_course):
    course, rendered = our_course
    return {page.path.as_posix(): rendered[page.id] for page in course.pages}


@pytest.mark.parametrize(
    "session",
    [s for s in SESSIONS.values() if s.stop and (ROOT / s.student_page).exists()],
    ids=lambda s: s.id,
)
def test_a_session_page_opens_with_them_and_ends_with_its_own(pages, session):
    text = pages[session.student_page].markdown
    opening, _, rest = text.partition("**Bring along.**")
    assert "\n## " not in opening
    assert opening.count("\n# ") + opening.startswith("# ") == 1
    before, _, ending = rest.partition("## The exit ticket")
    own = before.split("\n## ")[0]
    assert own.count('<details class="answer"') == len(brought(session.id))
    assert own.count("It is in *") == len(brought(session.id))
    to_come = [
        one
        for one, _ in brought(session.id)
        if SESSIONS[one].stop and SESSIONS[one].student_page not in pages
    ]
    assert ("there is no page for it yet" in own) == bool(to_come)
    assert ending.count('<details class="answer"') == len(session.exit_ticket)
    assert ending.index("## What to read") < ending.index("**To do**")
    for item in session.read:
        assert f"[^{item.source}]" in ending
    if session.worklog:
        assert "Worklog: " in ending


def test_other_pages_have_neither(pages):
    for path, rendered in pages.items():
        if path not in {s.student_page for s in SESSIONS.values() if s.stop}:
            assert "**Bring along.**" not in rendered.markdown, path
