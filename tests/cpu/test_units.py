"""Roads beside the course: units with hours and needs, a graph that is checked, and a page that lists them."""

import re
from pathlib import Path

import pytest
from tiny_repository import make_repository, write
from word_for_word import same_as_kept

from course_site.pages.needs import fault_of, gpus_of, in_words
from course_site.sessions.course_road import FILE, read_road
from course_site.sessions.plan_file import PlanError
from course_site.sessions.session import load_sessions
from course_site.sessions.units import read_units
from course_site.sessions.units_page import units_table
from course_site.site.course import load_course
from course_site.site.render.page import render_course

ROOT = Path(__file__).resolve().parents[2]
YEAR = """
[road.year]
title = "The year"
[road.year.unit.warm_up]
title = "Warm <up>"
hours = 6
[road.year.unit.tiles]
title = "Tiles once more"
hours = 8.5
needs = ["warm_up", "l5", "gpu"]
page = "docs/tiles.md"
[road.year.unit.counting]
title = "Count what moves"
hours = 8
needs = ["l7", "counters", "capability 9.0+"]
[road.year.unit.two_cards]
title = "Two cards that talk"
hours = 10
needs = ["tiles", "counting", "gpus 2", "gpu h100"]
page = "docs/two_cards.md"
[road.year.unit.end]
title = "The end"
hours = 4
needs = ["two_cards"]
[road.summer]
title = "A summer"
[road.summer.unit.one_week]
title = "One week"
hours = 20
needs = ["end"]
"""
TILES = 'needs = ["warm_up", "l5", "gpu"]'
FAULTS = {
    "stranger": ('"l5"', '"tile"', "year.unit.tiles, needs: 'tile' is neither a unit nor hardware; did you mean "),
    "stranger far": ('"l5"', '"sun"', "year.unit.tiles, needs: 'sun' is neither a unit nor hardware; there are "),
    "itself": ('"l5"', '"tiles"', "year.unit.tiles, needs: needs itself: tiles needs tiles"),
    "circle": ('"l5"', '"end"', "year.unit.tiles, needs: needs itself: tiles needs end needs two_cards needs tiles"),
    "circle of roads": ('"l5"', '"one_week"', "year.unit.tiles, needs: needs itself: tiles needs one_week needs end"),
    "later": (TILES, 'needs = ["counting"]', "year.unit.tiles, needs: 'counting' comes later on this road"),
    "no hours": ("hours = 6\n", "", "year.unit.warm_up, hours: needs a number of hours above 0, got None"),
    "zero": ("hours = 6\n", "hours = 0\n", "year.unit.warm_up, hours: needs a number of hours above 0, got 0"),
    "true": ("hours = 6\n", "hours = true\n", "year.unit.warm_up, hours: needs a number of hours above 0, got True"),
    "endless": ("hours = 6\n", "hours = inf\n", "year.unit.warm_up, hours: needs a number of hours above 0, got inf"),
    "one of several": ('"gpus 2"', '"gpus 1"', "year.unit.two_cards: needs 'gpus 1' is unknown; known: gpu, gpu NAME"),
    "card": ('"gpu h100"', '"gpu h9"', "year.unit.two_cards: needs 'gpu h9' names no card; known: h200, h100"),
    "capability": ("capability 9.0+", "capability 9", "year.unit.counting: needs 'capability 9' is unknown"),
    "session": (".unit.end]", ".unit.w6]", "year.unit.w6: 'w6' is a session of the course"),
    "twice": ("summer.unit.one_week]", "summer.unit.end]", "summer.unit.end: there is a unit 'end' in [road.year"),
    "needs": (TILES, 'needs = "l5"', "year.unit.tiles, needs: needs a list of texts, got 'l5'"),
    "no title": ('title = "The end"\n', "", "year.unit.end, title: needs a text, got None"),
    "key": ("hours = 4", "hour = 4", "year.unit.end, hour: unknown key; known: hours, needs, page, title"),
    "empty": ("[road.summer.unit.one_week]", "[road.summer.week.one_week]", "summer, week: unknown key"),
}  # fmt: skip


@pytest.fixture
def root(tmp_path):
    """A folder with the roads of the course and two more."""
    write(tmp_path, FILE, (ROOT / FILE).read_text(encoding="utf-8") + YEAR)
    return tmp_path


def test_the_course_is_a_road_of_its_sessions_and_beside_it_is_the_year():
    roads, sessions = read_units(ROOT), load_sessions(ROOT)
    assert list(roads) == ["course", "year"]
    assert [unit.name for unit in roads["course"].units] == list(read_road(ROOT).sessions)
    assert [60 * unit.hours for unit in roads["course"].units] == [s.minutes for s in sessions.values()]


def test_a_year_has_units_with_hours_needs_and_several_entries(root):
    roads = read_units(root)
    assert list(roads) == ["course", "year", "summer"]
    assert [unit.name for unit in roads["year"].entries] == ["warm_up", "counting"]
    two = roads["year"].units[3]
    assert (two.hours, two.needs, two.hardware) == (10, ("tiles", "counting"), ("gpus 2", "gpu h100"))
    assert [unit.name for unit in roads["summer"].entries] == ["one_week"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refused_in_one_line(root, fault):
    old, new, said = FAULTS[fault]
    text = (root / FILE).read_text(encoding="utf-8")
    assert YEAR.count(old) == 1
    (root / FILE).write_text(text.removesuffix(YEAR) + YEAR.replace(old, new), encoding="utf-8")
    with pytest.raises(PlanError) as raised:
        read_units(root)
    assert str(raised.value).startswith(f"{FILE}: road.{said}")
    assert "\n" not in str(raised.value)
    read_road(root)  # the course is right


def test_a_road_without_units_is_refused(root):
    (root / FILE).write_text((ROOT / FILE).read_text(encoding="utf-8") + '[road.year]\ntitle = "The year"\n')
    with pytest.raises(PlanError, match=r"road.year: has no units: write \[road.NAME.unit.NAME\]"):
        read_units(root)


def test_the_list_of_weeks_word_for_word(root):
    there = {"docs/tiles.md": "tiles.html", "docs/lectures/l5_occupancy.py": "l5.html"}
    table = units_table("year", read_units(root), load_sessions(ROOT), there.get)
    same_as_kept("units.txt", re.sub(r"(?=<tr|<thead|<tbody|<table|</tbody)", "\n", table) + "\n")


def test_a_page_lists_the_units_of_a_road_and_says_which_there_are(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch, gpus=())
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "")
    write(root, FILE, (ROOT / FILE).read_text(encoding="utf-8") + YEAR)
    write(root, "docs/tiles.md", "---\nid: tiles\ntitle: Tiles\n---\n# Tiles\n")
    for name in ("year", "decade"):
        write(
            root, f"docs/{name}.md", f"---\nid: {name}\ntitle: All\n---\n# All\n\n/// units | {name}\n///\n"
        )
    course = load_course(root, draft=True)
    pages = render_course(course)
    assert '<a href="tiles.html">Tiles once more</a>' in pages["year"].inlined()
    assert [str(p).partition(": ")[2] for p in course.problems if "decade" in p.path] == [
        "/// units | decade: there is no road 'decade'; there are course, year, summer (line 7)"
    ]


def test_a_fault_of_a_road_is_one_problem_of_the_course(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch, gpus=())
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "")
    text = (ROOT / FILE).read_text(encoding="utf-8")
    write(root, FILE, text + YEAR.replace('"l5"', '"l9"'))
    (found,) = (str(c) for c in load_course(root, draft=True).maps.complaints if c.path == FILE)
    assert found.startswith(f"{FILE}: road.year.unit.tiles, needs: 'l9' is neither a unit")
    write(root, FILE, text.replace('before = ["opening"]', "before = 3"))
    (found,) = (str(c) for c in load_course(root, draft=True).maps.complaints if c.path == FILE)
    assert found == f"{FILE}: road.course, before: needs a list of sessions, got 3"


@pytest.mark.parametrize(
    "need", ["gpu", "gpus 2", "gpus 16", "gpu h100", "compiler", "counters", "capability 9.0+"]
)
def test_needs_of_the_machine_are_known(need):
    assert fault_of(need) == ""


@pytest.mark.parametrize(
    "need", ["gpus", "gpus 0", "gpus 1", "gpus two", "gpu h9", "capability 9", "cards 2", ""]
)
def test_no_other_need_is_known(need):
    assert fault_of(need).startswith(f"needs {need!r} ")


def test_the_most_cards_that_are_asked_for_count():
    assert (gpus_of([]), gpus_of(["gpu", "counters"]), gpus_of(["gpus 2", "gpus 4"])) == (1, 1, 4)
    assert [in_words(need) for need in ("gpu", "gpus 2", "gpu h100", "counters", "capability 9.0", "compiler")] == [
        "a GPU", "2 GPUs", "NVIDIA H100 SXM", "hardware counters", "compute capability 9.0", "a CUDA compiler"
    ]  # fmt: skip
