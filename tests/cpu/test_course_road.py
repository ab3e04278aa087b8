"""The road as data: the one of the course holds, and each planted fault is refused in one line."""

from pathlib import Path

import pytest

from course_site.sessions.course_road import FILE, Road, load_road, read_road
from course_site.sessions.plan_file import PlanError
from course_site.sessions.session import read_sessions

ROOT = Path(__file__).resolve().parents[2]
FAULTS = {
    "twice": ('stops = ["l8", "w1"', 'stops = ["l8", "l1"', "…: session 'l1' is there 2 times"),
    "kindless": ('sessions = ["w1", "w2"', 'sessions = ["w1"', "…, kind: 'w2' is of no kind"),
    "two kinds": ('"l7", "l8"]', '"l7", "l8", "w1"]', "….kind.workshop, sessions: 'w1' is a lecture already"),
    "stranger": ('"l7", "l8"]', '"l7", "l9"]', "….kind.lecture, sessions: 'l9' is not a session; known: opening, l1"),
    "bounds": ("w6 = [0, 60, 120, 180]", "w6 = [0, 60, 120]", "…, boundaries, w6: write minutes that rise from 0"),
    "bounds back": ("w6 = [0, 60, 120, 180]", "w6 = [0, 120, 60, 180]", "…, boundaries, w6: write minutes that rise"),
    "bounds of nobody": ("w6 = [0,", "w9 = [0,", "…, boundaries: 'w9' is not a session"),
    "no title": ("title = ", "# title = ", "….half 1, title: needs a text"),
    "no list": ('before = ["opening"]', 'before = "opening"', "…, before: needs a list of sessions"),
    "minutes": ("minutes = 120", 'minutes = "120"', "….kind.lecture, minutes: needs a whole number, got '120'"),
    "worklog": ('worklog_from = "l8"', 'worklog_from = "l9"', "…, worklog_from: 'l9' is not a session; known: opening"),
    "key": ("waits = ", "weights = ", "…, weights: unknown key; known: before, boundaries"),
    "no header": ("[road.course.boundaries]\n", "", "….kind.workshop, opening: unknown key"),
    "no course": ("\n[road.course]", "\n[road.year]", "…, before: needs a list of sessions, got None"),
    "no road": ("\n[road.course]", "\n[road]", "road: is not a table: write [road.NAME]"),
    "toml": ("[road.course.boundaries]", "[road.course.boundaries", "cannot be read as TOML"),
}  # fmt: skip


def test_a_file_without_the_course_is_refused(tmp_path):
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text('[road.year]\ntitle = "The year"\n', encoding="utf-8")
    with pytest.raises(PlanError, match=r"road.toml: road: has no \[road.course\]$"):
        read_road(tmp_path)


def test_the_road_of_the_course():
    road = read_road(ROOT)
    assert len(road.stops) == 14
    assert [title for title, _ in road.halves] == ["Make the multiply fast", "Make the model fast"]
    assert (road.number("opening"), road.number("l1"), road.number("w6")) == (0, 1, 14)
    assert (road.half("l7"), road.half("l8"), road.half("opening")) == (*(t for t, _ in road.halves), "")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refused_in_one_line(tmp_path, fault):
    old, new, said = FAULTS[fault]
    text = (ROOT / FILE).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(PlanError) as raised:
        read_road(tmp_path)
    assert str(raised.value).startswith(f"{FILE}: {said.replace('…', 'road.course')}")
    assert "\n" not in str(raised.value)
    sessions, (complaint,) = read_sessions(tmp_path)
    assert (sessions, str(complaint)) == ({}, str(raised.value))
    assert load_road(tmp_path) == Road()
