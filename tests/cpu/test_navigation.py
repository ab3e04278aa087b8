"""The navigation follows from the pages: a new page finds its place, and one without a place is refused by name."""

import shutil
from pathlib import Path

import pytest
import yaml
from tiny_repository import make_repository, write

from course_site.pages.urls import site_uri
from course_site.sessions.course_road import FILE as ROAD_FILE
from course_site.site.course import load_course
from course_site.site.ledger import entries
from course_site.site.ledger_pages import ledger_of
from course_site.site.navigation import filled, in_order, roads, students_road

REPOSITORY = Path(__file__).resolve().parents[2]
NAV = ["index.md", "Multiply", {"Mentors": [{"The opening": "handbook/00_opening"}]}, "Make the model fast"]
SESSION = """
title = "Attention"
kind = "lecture"
student_page = "docs/l8.md"
map_page = "handbook/l8_map.md"
chapter = "handbook/l8_chapter.md"
"""


def page(root, path, **head):
    lines = "".join(f"{key}: {value}\n" for key, value in head.items())
    title = "" if "title" in head else f"title: {Path(path).stem}\n"
    write(root, path, f"---\nid: {Path(path).stem}\n{title}{lines}---\n# Page\n")


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch, gpus=())
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "")
    write(root, "handbook/sessions/l8.toml", SESSION)
    shutil.copy(REPOSITORY / ROAD_FILE, root / ROAD_FILE)
    page(root, "docs/index.md", nav="Home")
    page(root, "docs/start.md", section="Multiply", order=1)
    page(root, "docs/l8.md")
    page(root, "handbook/00_opening/plan.md", order=2)
    return root


def of(root):
    course = load_course(root, draft=True)
    nav = filled(NAV, course)
    return nav, [str(problem) for problem in course.problems]


def test_sections_are_filled_from_heads_folders_and_sessions(root):
    assert of(root) == (
        [
            {"Home": "index.md"},
            {"Multiply": [{"start": "start.md"}]},
            {"Mentors": [{"The opening": [{"plan": "handbook/00_opening/plan.md"}]}]},
            {"Make the model fast": [{"L8 · Attention": "l8.md"}]},
        ],
        [],
    )


def test_a_new_page_stands_at_its_place(root):
    page(root, "handbook/00_opening/before.md", order=1, nav="Read this first")
    page(root, "docs/after.md", section="Make the model fast", order=85)
    page(root, "docs/ahead.md", section="Make the model fast", order=2)
    nav, problems = of(root)
    assert problems == []
    assert [*nav[2]["Mentors"][0]["The opening"][0]] == ["Read this first"]
    assert [title for entry in nav[3]["Make the model fast"] for title in entry] == [
        "ahead",
        "L8 · Attention",
        "after",
    ]


def test_the_pages_of_a_session_need_no_head_of_their_own(root):
    page(root, "handbook/00_opening/zz.md", order=81)
    (root / "handbook/sessions/l8.toml").write_text(
        SESSION.replace("handbook/l8_", "handbook/00_opening/l8_")
    )
    page(root, "handbook/00_opening/l8_map.md")
    page(root, "handbook/00_opening/l8_chapter.md", order=90)
    nav, problems = of(root)
    assert problems == []
    entries = [title for entry in nav[2]["Mentors"][0]["The opening"] for title in entry]
    assert entries == ["plan", "l8_map", "zz", "L8 · Attention"]


REFUSED = {
    "no section": (
        ("docs/new.md", {"order": 3}),
        "docs/new.md: is in no section of the navigation: write `section` into its head, one of 'Multiply', "
        "'The opening', 'Make the model fast'",
    ),
    "another section": (
        ("docs/new.md", {"order": 3, "section": "Divide"}),
        "docs/new.md: 'Divide' is not a section of the navigation: write `section` into its head, one of 'Multiply', "
        "'The opening', 'Make the model fast'",
    ),
    "no order": (
        ("handbook/00_opening/new.md", {}),
        "handbook/00_opening/new.md: has no place in 'The opening': write `order`, a whole number, into its head",
    ),
    "no number": (
        ("handbook/00_opening/new.md", {"order": "last"}),
        "handbook/00_opening/new.md: order 'last' is not a place in 'The opening': write `order`, a whole number, "
        "into its head",
    ),
    "the same": (
        ("handbook/00_opening/same.md", {"order": 2}),
        "handbook/00_opening/same.md: is at 2 in 'The opening', where handbook/00_opening/plan.md is: "
        "change `order` in a head",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_page_without_a_place_of_its_own_is_refused_in_one_line(root, fault):
    (path, head), said = REFUSED[fault]
    page(root, path, **head)
    assert of(root)[1] == [said]


GUIDE = [*NAV, {"Field guide": "docs/guide"}]


def guide(root, pages=None, **heads):
    """The section of a folder with an index, h100, b200 and the pages named, and what is wrong."""
    page(root, "docs/guide/index.md", id="guide", **({"pages": pages} if pages else {"order": 0}))
    for name, head in ({"h100": {}, "b200": {}} | heads).items():
        page(root, f"docs/guide/{name}.md", **head)
    course = load_course(root, draft=True)
    nav = filled(GUIDE, course)
    return [title for entry in nav[-1]["Field guide"] for title in entry], [str(p) for p in course.problems]


def test_the_pages_of_a_folder_stand_as_its_index_lists_them(root):
    assert guide(root, "[h100, b200]") == (["index", "h100", "b200"], [])
    assert guide(root, "[b200, h100]") == (["index", "b200", "h100"], [])
    assert guide(root, "by name") == (["index", "b200", "h100"], [])


@pytest.mark.parametrize("pages", ["[b200, h100]", "by name"])
def test_a_page_with_an_order_stands_between_those_of_its_folder(root, pages):
    assert guide(root, pages, a10={"order": 15}) == (["index", "b200", "a10", "h100"], [])


def test_forty_pages_need_no_number(root):
    many = {f"card_{number:02}": {} for number in range(40)}
    assert guide(root, "by name", **many) == (["index", "b200", *many, "h100"], [])


INDEX = "docs/guide/index.md: `pages` "


@pytest.mark.parametrize(
    ("pages", "heads", "said"),
    [
        (
            "[h100]",
            {},
            "docs/guide/b200.md: has no place in 'Field guide': write `order`, a whole number, into its head, or its "
            "name into `pages` of docs/guide/index.md",
        ),
        ("[h100, b200, b300]", {}, f"{INDEX}names 'b300', and there is no such page in docs/guide"),
        ("[h100, b200, h100]", {}, f"{INDEX}names 'h100' 2 times"),
        (
            "[h100, b200]",
            {"h100": {"order": 15}},
            f"{INDEX}names 'h100', whose head has an `order`: take one of them out",
        ),
        (
            "by name",
            {"a10": {"order": 10}},
            "docs/guide/b200.md: is at 10 in 'Field guide', where docs/guide/a10.md is: change `order` in a "
            "head",
        ),
    ],
)
def test_a_list_that_does_not_fit_its_folder_is_refused(root, pages, heads, said):
    assert guide(root, pages, **heads)[1] == [said]


def test_a_list_that_nobody_reads_is_refused(root):
    assert guide(root, "[h100, b200]", b200={"pages": "[h100]"})[1] == [
        "docs/guide/b200.md: `pages` is for the index of a folder that has a section in mkdocs.yml"
    ]


def test_what_is_no_list_of_pages_is_refused(root):
    assert guide(root, "by size")[1][0] == (
        f"{INDEX}is 'by size': write the names of its folder's pages, or `by name`"
    )


def test_a_section_without_a_page_is_refused(root):
    (root / "docs/start.md").unlink()
    assert of(root)[1] == ["mkdocs.yml: no page is in the section 'Multiply': take it out"]


def test_every_page_of_the_course_stands_once_in_its_navigation(our_course):
    course, _ = our_course
    before = list(course.problems)
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\ntheme:")[0]
    nav = filled(yaml.safe_load(text)["nav"], course)
    assert course.problems == before

    found = list(in_order(nav))
    assert sorted(found) == sorted(site_uri(page.path.as_posix()) for page in course.pages)
    assert found[0] == "index.md"

    # Nobody who learns is led to a page for who teaches, and a half of the course ends where it ends.
    ways = roads(nav)
    assert [uri for _, way in ways for uri in way] == found
    mixed = [section for section, way in ways if len({uri.startswith("handbook/") for uri in way}) > 1]
    assert mixed == []
    for half, stops in students_road(course):
        named = {stop.session.title: stop.page.title for stop in stops if stop.session and stop.page}
        assert list(named) == list(named.values())  # one name on the page, the map and the road
        way = next(way for section, way in ways if section == half)
        assert [site_uri(stop.page.path.as_posix()) for stop in stops if stop.page] == way
        assert {stop.session.id for stop in stops if stop.session} == set(dict(course.maps.road.halves)[half])


def test_two_sections_are_two_roads_and_all_of_the_mentors_one():
    nav = [
        {"Home": "index.md"},
        {"Learn": [{"One": [{"a": "a.md"}, {"b": "b.md"}]}, {"Two": [{"c": "c.md"}]}]},
        {"Teach": [{"X": [{"d": "handbook/x/d.md"}]}, {"Y": [{"e": "handbook/y/e.md"}]}]},
    ]
    assert [way for _, way in roads(nav)] == [
        ["index.md"],
        ["a.md", "b.md"],
        ["c.md"],
        ["handbook/x/d.md", "handbook/y/e.md"],
    ]


def test_the_ledger_lists_its_pages_as_the_navigation_does(our_course):
    course, _ = our_course
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\ntheme:")[0]
    order = list(in_order(filled(yaml.safe_load(text)["nav"], course)))
    rows = entries(course, {page.id: {} for page in course.pages})
    ledger = ledger_of(course, rows, order)
    listed = [name.removeprefix("numbers/").removesuffix(".md") for name in ledger.chapters]
    places = {page.id: order.index(site_uri(page.path.as_posix())) for page in course.pages}
    assert listed[:3] == ["start", "l1", "l2"]
    assert [places[name] for name in listed] == sorted(places[name] for name in listed)
