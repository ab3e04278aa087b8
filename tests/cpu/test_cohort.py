"""The cohort's plan as a calendar: right instants, every session once, and one clear line for what is wrong."""

import itertools
import re
import shutil
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from word_for_word import same_as_kept

from course_site.sessions import cohort
from course_site.sessions.cohort import Cohort, Day, Entry, Milestone, calendar, entries, events, read_cohort
from course_site.sessions.course_road import FILE as ROAD_FILE
from course_site.sessions.course_road import read_road
from course_site.sessions.plan_file import PlanError
from course_site.sessions.session import load_sessions

icalendar = pytest.importorskip("icalendar")

ROOT = Path(__file__).resolve().parents[2]
START = date(2027, 3, 15)  # two weeks before the clocks change in Berlin


@pytest.fixture(scope="module")
def sessions():
    return load_sessions(ROOT)


def parsed(sessions, zone="Europe/Berlin", start=START, at=time(18, 5)):
    found = events(read_cohort(ROOT), sessions, start, at, ZoneInfo(zone), "https://example.org/course/")
    book = icalendar.Calendar.from_ical(calendar("a cohort", found, datetime(2027, 1, 1, tzinfo=UTC)))
    return {str(event["uid"]).split("@")[0]: event for event in book.walk("VEVENT")}


def test_every_session_stands_in_the_calendar_once_and_as_long_as_it_is(sessions):
    book = parsed(sessions)
    for name in read_road(ROOT).sessions:
        event = book[f"{name}-{START}"]
        assert event["dtend"].dt - event["dtstart"].dt == timedelta(minutes=sessions[name].minutes)
        assert sessions[name].title in str(event["summary"])


def test_the_instants_are_right_before_and_after_the_clocks_change(sessions):
    book = parsed(sessions)
    assert book[f"opening-{START}"]["dtstart"].dt == datetime(2027, 3, 15, 17, 5, tzinfo=UTC)
    assert book[f"l1-{START}"]["dtstart"].dt == datetime(2027, 3, 15, 17, 10, tzinfo=UTC)
    assert book[f"l7-{START}"]["dtstart"].dt == datetime(2027, 3, 29, 16, 5, tzinfo=UTC)
    kolkata = parsed(sessions, "Asia/Kolkata")
    assert kolkata[f"w1-{START}"]["dtstart"].dt == datetime(2027, 3, 26, 12, 35, tzinfo=UTC)


def test_no_two_sessions_overlap(sessions):
    timed = sorted(
        (event["dtstart"].dt, event["dtend"].dt)
        for event in parsed(sessions).values()
        if isinstance(event["dtstart"].dt, datetime)
    )
    assert len(timed) == len(read_road(ROOT).sessions)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(timed))


def test_homework_is_due_on_the_next_teaching_day_and_the_capstone_has_its_dates(sessions):
    book = parsed(sessions)
    assert book[f"homework-l1-{START}"]["dtstart"].dt == date(2027, 3, 16)
    assert book[f"homework-l2-{START}"]["dtstart"].dt == date(2027, 3, 18)
    assert f"homework-w6-{START}" not in book
    demo = [event for uid, event in book.items() if uid.startswith("capstone")][-1]
    assert demo["dtstart"].dt == book[f"w6-{START}"]["dtstart"].dt.date()
    assert all("`" not in str(event["description"]) for event in book.values())


def test_two_cohorts_of_one_day_stand_side_by_side(sessions):
    plan = read_cohort(ROOT)
    cohorts = [(time(10), "Europe/Berlin"), (time(18), "Europe/Berlin"), (time(10), "America/New_York")]
    found = [events(plan, sessions, START, at, ZoneInfo(zone)) for at, zone in cohorts]
    assert len({event.uid for one in found for event in one}) == sum(len(one) for one in found)
    again = events(plan, sessions, START, time(10), ZoneInfo("Europe/Berlin"), "https://example.org/")
    assert [event.uid for event in again] == [event.uid for event in found[0]]  # found again, and overwritten


def test_a_measured_value_has_no_place_in_a_calendar(sessions):
    planted = {**sessions, "w2": replace(sessions["w2"], homework="Reach {{ l5.sgemm.last_of_cublas }}.")}
    with pytest.raises(PlanError, match=r"w2.toml: .*holds a measured value, and a calendar"):
        events(read_cohort(ROOT), planted, START, time(18, 5), ZoneInfo("UTC"))


def run(tmp_path, *arguments):
    return cohort.main([*arguments, "--out", str(tmp_path / "cohort.ics")], ROOT)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--start", "2027-01-14", "--at", "18:00", "--zone", "UTC"),
            "calendar: --start 2027-01-14: is a Thursday; the plan begins on a Monday, for example 2027-01-11",
        ),
        (("--start", "11.1.2027", "--at", "18:00", "--zone", "UTC"), "is not a date; write it as 2027-01-11"),
        (
            ("--start", "9999-12-27", "--at", "18:00", "--zone", "UTC"),
            "is not a date; write it as 2027-01-11",
        ),
        (
            ("--start", "0227-01-01", "--at", "18:00", "--zone", "UTC"),
            "is not a date; write it as 2027-01-11",
        ),
        (
            ("--start", "2027-01-11", "--at", "6pm", "--zone", "UTC"),
            "is not a time of day; write it as 18:00",
        ),
        (
            ("--start", "2027-01-11", "--at", "18:00", "--zone", "Berlin"),
            "is not a time zone; write it as Europe",
        ),
        (
            ("--start", "2027-03-08", "--at", "02:30", "--zone", "Europe/Berlin"),
            None,  # no teaching day falls on the Sunday when the clocks change
        ),
    ],
)
def test_what_was_typed_wrong_is_said_in_one_line(tmp_path, capsys, arguments, said):
    code = run(tmp_path, *arguments)
    if said is None:
        assert code == 0
        return
    assert code == 1
    complaint = capsys.readouterr().err.strip()
    assert said in complaint
    assert "\n" not in complaint
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path, capsys):
    arguments = [
        "--start",
        "2027-01-11",
        "--at",
        "18:00",
        "--zone",
        "UTC",
        "--out",
        str(tmp_path / "no" / "x.ics"),
    ]
    assert cohort.main(arguments, ROOT) == 1
    assert "name a file in a folder that you may write to" in capsys.readouterr().err


PLAN = (ROOT / cohort.FILE).read_text(encoding="utf-8")


# --- word for word -----------------------------------------------------------------------------------


def small(sessions):
    """Two weeks of three sessions, with a homework and without, and two dates of the capstone."""
    days = (Day(1, 1, ("opening", "l1")), Day(1, 7, ("l2",)), Day(2, 3, ("l3",)))
    milestones = (Milestone(1, 2, "Choose", "Say *what*."), Milestone(2, 7, "Show", "Show it."))
    changed = {
        name: replace(
            sessions[name],
            title=f"Title of {name}; one, two",
            about=f"About [{name}](docs/x.py).",
            artifact="A `thing`.",
            homework="Read *it*." if name in ("l1", "l3") else "",
            map_page=f"handbook/{name}_map.md",
        )
        for name in ("opening", "l1", "l2", "l3")
    }
    return Cohort("A cohort", days, milestones), changed


def test_the_file_word_for_word(sessions):
    plan, changed = small(sessions)
    found = events(plan, changed, START, time(18, 5), ZoneInfo("Europe/Berlin"), "https://example.org/")
    book = calendar(plan.title, found, datetime(2027, 1, 1, tzinfo=UTC)).decode()
    parts = re.split(r"^(?=BEGIN|END)", book.replace("\r\n ", "").replace("\r\n", "\n"), flags=re.MULTILINE)
    # In what order an entry's lines stand, the library may choose.
    same_as_kept(
        "calendar.txt", "".join(line for part in parts for line in sorted(part.splitlines(keepends=True)))
    )


def test_without_a_site_nothing_is_linked(sessions):
    plan, changed = small(sessions)
    found = events(plan, changed, START, time(18, 5), ZoneInfo("UTC"))
    assert [event.text for event in found] == [entry.text for entry in entries(plan, changed)]


def test_an_entry_lasts_all_day_where_nothing_else_is_said():
    entry = Entry("name", "title", "text", 3)
    assert (entry.after, entry.minutes, entry.page) == (0, 0, "")
    assert cohort.Event("uid", "title", "text", START).minutes == 0


def planned(tmp_path, old, new):
    """The complaint about the plan of the course, changed."""
    assert old in PLAN
    path = tmp_path / cohort.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    shutil.copy(ROOT / ROAD_FILE, tmp_path / ROAD_FILE)
    try:
        read_cohort(tmp_path)
    except PlanError as error:
        return str(error)
    return f"{cohort.FILE}: nothing"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("days_per_week = 5", "days_per_week = 7", "nothing"),
        ("days_per_week = 5", "days_per_week = 8", "days_per_week: a week has 1 to 7 days, not 8"),
        ("days_per_week = 5", "days_per_week = 0", "days_per_week: a week has 1 to 7 days, not 0"),
        ("days_per_week = 5", "days_per_week = 1", "day 2: week 1, day 2 is outside the 4 weeks of 1 days"),
        ("week = 4\nday = 5\nsessions", "week = 5\nday = 1\nsessions", "day 14: week 5, day 1 is outside the 4"),
        ("week = 1\nday = 1\nsessions", "week = 0\nday = 1\nsessions", "day 1: week 0, day 1 is outside the 4"),
        ("week = 1\nday = 1\nsessions", "week = 1\nday = 0\nsessions", "day 1: week 1, day 0 is outside the 4"),
        ("week = 1\nday = 2", "week = 1\nday = 1", "week 1, day 1 comes after week 1, day 1: put the days in their"),
        ("week = 1\nday = 4", "week = 1\nday = 1", "week 1, day 1 comes after week 1, day 2: put the days in their"),
        ('["opening", "l1"]', '["l1"]', "session 'opening' is on 0 days; it needs exactly one"),
        ('["l2"]', '["l2", "l1"]', "session 'l1' is on 2 days; it needs exactly one"),
        ('["l2"]', "[]", "day 2, sessions: name one or more of opening, l1, l2, l3, l4, l5, l6, l7, l8, w1, w2"),
        ('["l3"]', '["l9"]', "day 3, sessions: 'l9' is not a session"),
        ("sessions = ", "session = ", "day 1, session: unknown key"),
        ("week = 1\nday = 1\nsessions", 'week = "1"\nday = 1\nsessions', "day 1, week: needs a whole number"),
        ("weeks = 4", "weeks = ", "cannot be read as TOML"),
    ],
)  # fmt: skip
def test_a_wrong_plan_is_refused_in_one_line(tmp_path, old, new, said):
    complaint = planned(tmp_path, old, new)
    assert complaint.startswith(f"{cohort.FILE}: {said}")
    assert "\n" not in complaint


def test_a_start_that_the_clocks_leave_out_is_refused(sessions):
    plan, changed = small(sessions)
    with pytest.raises(PlanError, match=r"--at 02:30: does not exist on 2027-03-28 in Europe/Berlin"):
        events(plan, changed, date(2027, 3, 22), time(2, 30), ZoneInfo("Europe/Berlin"))


def test_the_command_writes_a_file_that_parses(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    out = tmp_path / "c.ics"
    assert cohort.main(["--start", "2027-01-11", "--at", "18:00", "--zone", "UTC", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"calendar: 34 events from 2027-01-11 are in {out}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["c.ics"]
    assert len(icalendar.Calendar.from_ical(out.read_bytes()).walk("VEVENT")) == 34


def test_without_icalendar_the_command_says_how_to_run_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "icalendar", None)
    assert run(tmp_path, "--start", "2027-01-11", "--at", "18:00", "--zone", "UTC") == 2
    said = "calendar: icalendar is not installed: run it as `nox -s calendar -- …`\n"
    assert capsys.readouterr().err == said


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path, capsys):
    (tmp_path / "cohort.ics").mkdir()
    assert run(tmp_path, "--start", "2027-01-11", "--at", "18:00", "--zone", "UTC") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cohort.ics"]
    assert "name a file in a folder that you may write to" in capsys.readouterr().err


def test_a_map_with_a_fault_stops_the_command(tmp_path, capsys):
    shutil.copytree(ROOT / "handbook/sessions", tmp_path / "handbook/sessions")
    path = tmp_path / "handbook/sessions/w1.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("title", "tittle", 1), encoding="utf-8")
    out = str(tmp_path / "c.ics")
    assert (
        cohort.main(["--start", "2027-01-11", "--at", "18:00", "--zone", "UTC", "--out", out], tmp_path) == 1
    )
    assert "handbook/sessions/w1.toml: tittle: unknown key" in capsys.readouterr().err
