"""The cohort's plan as a calendar: right instants, every session once, and one clear line for what is wrong."""

import itertools
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from course_site.sessions import cohort
from course_site.sessions.cohort import calendar, events, read_cohort
from course_site.sessions.plan_file import PlanError
from course_site.sessions.session import load_sessions
from course_site.sessions.stops import FILE as ROAD_FILE
from course_site.sessions.stops import read_road

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


def test_a_measured_value_has_no_place_in_a_calendar(sessions):
    planted = {**sessions, "w2": replace(sessions["w2"], homework="Reach {{ l5.sgemm.last_of_cublas }}.")}
    with pytest.raises(PlanError, match=r"w2.toml: .*holds a measured value, and a calendar"):
        events(read_cohort(ROOT), planted, START, time(18, 5), ZoneInfo("UTC"))


def test_a_map_is_linked_where_the_site_is_known(sessions):
    where = str(parsed(sessions)[f"w1-{START}"]["description"]).splitlines()[-1]
    assert where == "https://example.org/course/handbook/04_the_pivot/w1_map.html"


def run(tmp_path, *arguments):
    return cohort.main([*arguments, "--out", str(tmp_path / "cohort.ics")], ROOT)


def test_the_command_writes_a_file_that_parses(tmp_path, capsys):
    assert run(tmp_path, "--start", "2027-01-11", "--at", "18:00", "--zone", "America/New_York") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["cohort.ics"]
    book = icalendar.Calendar.from_ical((tmp_path / "cohort.ics").read_bytes())
    assert f"{len(book.walk('VEVENT'))} events from 2027-01-11" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--start", "2027-01-12", "--at", "18:00", "--zone", "UTC"),
            "is a Tuesday; the plan begins on a Monday",
        ),
        (("--start", "11.1.2027", "--at", "18:00", "--zone", "UTC"), "is no date; write it as 2027-01-11"),
        (("--start", "2027-01-11", "--at", "6pm", "--zone", "UTC"), "is no time of day; write it as 18:00"),
        (
            ("--start", "2027-01-11", "--at", "18:00", "--zone", "Berlin"),
            "is no time zone; write it as Europe",
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


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["opening", "l1"]', '["l1"]', "session 'opening' stands on 0 days; it needs exactly one"),
        ('["l2"]', '["l2", "l1"]', "session 'l1' stands on 2 days"),
        ('["l3"]', '["l9"]', "day 3, sessions: 'l9' is no session"),
        ("week = 4\nday = 5\nsessions", "week = 5\nday = 1\nsessions", "lies outside of 4 weeks of 5 days"),
        ("week = 1\nday = 4", "week = 1\nday = 1", "put the days in their order"),
        ("sessions = ", "session = ", "day 1, session: unknown key"),
        ("week = 1\nday = 1\nsessions", 'week = "1"\nday = 1\nsessions', "day 1, week: needs a whole number"),
        ("weeks = 4", "weeks = ", "cannot be read as TOML"),
    ],
)
def test_a_wrong_plan_is_refused_by_name(tmp_path, old, new, said):
    assert old in PLAN
    path = tmp_path / cohort.FILE
    path.parent.mkdir(parents=True)
    path.write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    shutil.copy(ROOT / ROAD_FILE, tmp_path / ROAD_FILE)
    with pytest.raises(PlanError) as raised:
        read_cohort(tmp_path)
    assert str(raised.value).startswith(f"{cohort.FILE}: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
