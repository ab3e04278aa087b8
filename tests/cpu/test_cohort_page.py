"""The cohort on its page: sessions linked, one plan for the page and for the file, a wrong plan refused by name."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_repository import make_repository, write
from word_for_word import same_as_kept

from course_site.sessions import cohort
from course_site.sessions.calendar_form import calendar_data, calendar_form, session_entries
from course_site.sessions.cohort_page import cohort_form, weeks_table
from course_site.sessions.session import load_sessions
from course_site.site.course import load_course
from course_site.site.render.page import render_course

ROOT = Path(__file__).parents[2]
PAGE = """---
id: craft_calendar
title: The calendar
---

# The calendar

/// cohort | weeks
///

/// cohort | calendar
///
"""


@pytest.fixture(scope="module")
def sessions():
    return load_sessions(ROOT)


@pytest.fixture(scope="module")
def plan():
    return cohort.read_cohort(ROOT)


@pytest.fixture
def rendered(tmp_path, monkeypatch):
    """Render the page beside a plan that was changed; returns the page and what is wrong."""
    root = make_repository(tmp_path, monkeypatch, gpus=())
    shutil.copytree(ROOT / "handbook" / "sessions", root / "handbook" / "sessions")
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "")

    def render(old="", new="", page=PAGE):
        path = root / cohort.FILE
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        write(root, "handbook/00_before_you_teach/the_calendar.md", page)
        course = load_course(root, draft=True)
        page = render_course(course)["craft_calendar"].inlined()
        return page, [str(problem) for problem in course.problems]

    return render


def plan_of(page):
    return json.loads(re.search(r'id="cohort">(.*?)</script>', page)[1])["calendar"]


def test_every_session_and_every_date_stands_in_the_table_in_order(plan, sessions):
    table = weeks_table(plan, sessions, lambda text: text, lambda path: f"../{path}")

    linked = re.findall(r'<a href="\.\./([^"]+)">', table)
    assert linked == [sessions[name].map_page for day in plan.days for name in day.sessions]
    assert [int(week) for week in re.findall(r">Week (\d)<", table)] == [1, 2, 3, 4]
    for milestone in plan.milestones:
        assert f"Capstone: {milestone.title}." in table
    assert table.count("<tr") == table.count("</tr>")
    assert not re.search(r"\b\d\d:\d\d\b", table)


def test_a_day_with_two_rows_is_named_once(plan, sessions):
    table = weeks_table(plan, sessions, lambda text: text, lambda path: None)

    second_week = table.split(">Week 2<")[1].split(">Week 3<")[0]
    assert re.findall(r'<th scope="row" rowspan="(\d)">(\d)</th>', second_week) == [
        ("2", "1"),
        ("2", "2"),
        ("1", "4"),
        ("2", "5"),
    ]
    assert "<a " not in table  # no map, no link


def test_the_form_has_the_entries_of_the_command(plan, sessions):
    data = plan_of(cohort_form(plan, sessions, "handbook/00_before_you_teach", "../run/calendar.js"))

    wanted = cohort.entries(plan, sessions)
    assert [entry["name"] for entry in data["entries"]] == [entry.name for entry in wanted]
    assert [entry["text"] for entry in data["entries"]] == [entry.text for entry in wanted]
    assert (data["root"], data["monday"], data["file"]) == ("../../", True, "cohort")


def test_the_page_has_a_table_and_a_form_that_says_what_to_do_without_a_script(rendered):
    page, wrong = rendered()

    assert wrong == []
    assert page.count("<table") == 1
    assert "<form hidden novalidate>" in page
    assert "nox -s calendar" in page
    assert '<script src="../run/calendar.js"></script>' in page
    assert "<code>roofline</code>" in page
    assert len(plan_of(page)["entries"]) == 34


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["l2"]', '["l2", "l1"]', "session 'l1' is on 2 days; it needs exactly one"),
        ('["l3"]', '["l9"]', "day 3, sessions: 'l9' is not a session"),
        ("sessions = ", "session = ", "day 1, session: unknown key"),
    ],
)
def test_a_wrong_plan_stops_the_build_by_name_and_once(rendered, old, new, said):
    page, wrong = rendered(old, new)

    assert len(wrong) == 1
    assert wrong[0].startswith(f"{cohort.FILE}: ")
    assert said in wrong[0]
    assert "<table" not in page


def test_a_typed_number_in_the_plan_is_said_of_the_plan(rendered):
    _, wrong = rendered("what you tried, what it gained", "700 TFLOP/s")

    assert wrong
    assert all(line.startswith(f"{cohort.FILE}: typed number '700 TFLOP/s'") for line in wrong)


def test_a_session_without_a_map_is_named(rendered, tmp_path):
    next(tmp_path.rglob("w5.toml")).unlink()

    _, wrong = rendered()

    assert f"{cohort.FILE}: session 'w5' has no map yet: write handbook/sessions/w5.toml" in wrong


def test_a_part_that_is_not_there_is_refused(rendered):
    _, wrong = rendered(page=PAGE.replace("| weeks", "| months"))

    assert len(wrong) == 1
    assert "write `/// cohort | weeks` or `/// cohort | calendar`" in wrong[0]


def words(text):
    return {"text": text, "html": text}


def session(**changes):
    usual = {
        "id": "w1",
        "stop": "W1",
        "title": "A session",
        "name": "W1 · A session",
        "about": words("What it is about."),
        "artifact": words("a kernel"),
        "map": {"label": "The map", "href": "../04_the_pivot/w1_map.html"},
        "prepare": [words("Chalk.")],
        "demos": [{"title": words("The race"), "preflight": "nvidia-smi"}],
        "blocks": [{"number": 1, "from": 0, "to": 20, "title": words("First"), "steps": [1, 2]}],
        "steps": [
            {"block": 1, "start": 0, "minutes": 12, "title": words("Draw"), "kind": "board"},
            {"block": 1, "start": 12, "minutes": 8, "title": words("Tea"), "kind": "break"},
        ],
    }
    return usual | changes


def test_a_session_is_one_entry_and_the_day_before_another():
    event, before = session_entries(session(), "handbook/run")

    assert (event.day, event.minutes, event.title) == (0, 20, "W1 · A session")
    assert event.page == before.page == "handbook/04_the_pivot/w1_map.html"
    assert event.text.splitlines() == [
        "What it is about.",
        "They leave with: a kernel",
        "",
        "0–20 First",
        "· 0–12 Draw (board)",
        "· 12–20 Tea",
    ]
    assert (before.day, before.minutes, before.title) == (-1, 0, "Prepare W1 · A session")
    assert before.text == "- Chalk.\n- To know that the demo The race will work: nvidia-smi"


def test_nothing_to_prepare_makes_no_entry():
    assert len(session_entries(session(prepare=[], demos=[], map=None), "handbook/run")) == 1


def test_each_field_has_its_name_and_its_complaint():
    form = calendar_form("session", "Date")

    for name in ("date", "time", "zone"):
        assert f'<label for="calendar-{name}">' in form
        assert re.search(rf'id="calendar-{name}"[^>]*aria-describedby="calendar-wrong"', form, re.DOTALL)
    assert "step=" not in form
    assert 'step="7"' in calendar_form("cohort", "Monday", monday=True)


def test_the_table_and_the_form_word_for_word(sessions):
    """Days one to seven, two rows for one day, a map to come, a date in a week without a session."""
    changed = {
        name: replace(
            sessions[name],
            title="Fast & right",
            about="About.",
            artifact="A thing.",
            homework="See [it](docs/a.py) & go." if name == "l1" else "",
            map_page=f"handbook/{name}.md",
        )
        for name in ("opening", "l1", "l2")
    }
    days = (cohort.Day(1, 1, ("opening", "l1")), cohort.Day(1, 7, ("l2",)))
    milestones = (cohort.Milestone(1, 7, "A & B", "Show."), cohort.Milestone(3, 2, "End", "Go."))
    plan = cohort.Cohort("A cohort", days, milestones)
    table = weeks_table(
        plan,
        changed,
        lambda text: f"‹{text}›",
        {"handbook/l1.md": "../l1.html?a&b", "handbook/l2.md": ""}.get,
    )
    form = cohort_form(plan, changed, "handbook/a", "../run/calendar.js")
    entries = [session_entries(session(), "handbook/run"), calendar_data([], "x", "../")]
    whole = f"{table}\n{form}\n{calendar_form('session', 'Day & date')}\n{entries}\n"
    same_as_kept("cohort_page.txt", whole.replace("><", ">\n<").replace("},{", "},\n{"))
