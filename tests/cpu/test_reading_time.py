"""How long a page takes, what of it is folded, and that the core of each session's page fits its session."""

import dataclasses
from pathlib import Path

import pytest

from course_site.pages import blocks
from course_site.pages.blocks import DirectiveError
from course_site.pages.headings import beyond_the_core, headings, unmarked
from course_site.pages.page import Cell, Page
from course_site.site import callouts
from course_site.site.render import optional_sections, reading_time
from course_site.site.render.page import BLOCKS, RULE, _minutes
from course_site.site.render.reading_time import Minutes
from course_site.site.render.writer import Writer

ROOT = Path(__file__).parents[2]


def shown(markdown, slots=None, words=None):
    return reading_time.minutes(markdown, slots or {}, words or {})[0]


def hidden(markdown, slots=None, words=None):
    return reading_time.minutes(markdown, slots or {}, words or {})[1]


def words(count):
    return " ".join(["word"] * count)


# --- the rule --------------------------------------------------------------------------------------


def test_prose_is_read_at_150_words_a_minute():
    assert shown(words(300)) == Minutes(reading=2)


def test_marks_addresses_and_notes_are_no_words():
    markdown = (
        '**two** [words](../a/long_address.html#part)[^source] <span title="not me">4.8</span> {.beyond}'
    )
    assert shown(markdown).reading == pytest.approx(3 / 150)


def test_a_table_counts_its_cells_and_not_its_rule():
    assert shown("| a | b |\n| --- | ---: |\n| c | d |").reading == pytest.approx(4 / 150)


def test_code_is_read_by_lines_and_empty_ones_are_none():
    assert shown("``` { .python }\na = 1\n\n# a comment of many words\n```") == Minutes(reading=2 / 10)


def test_what_a_cell_printed_is_read_as_words():
    assert shown("``` { .text .output .no-copy }\none two three\n```").reading == pytest.approx(3 / 150)


def test_a_picture_takes_half_a_minute():
    assert shown("slot0of_ptoken", {"slot0of_ptoken": "<figure><svg></svg></figure>"}) == Minutes(reading=0.5)


def test_the_icon_of_a_callout_takes_no_time():
    assert shown("slot0of_ptoken", {"slot0of_ptoken": callouts.icon("trip")}) == Minutes()


def test_a_diff_counts_its_lines_where_it_stands_open():
    said = {"slot0of_ptoken": "From a to b\n\n``` { .diff }\n+ one\n+ two\n```"}
    listing = '<details class="fold diff"{}><summary>From a to b</summary>lines</details>'
    assert shown("slot0of_ptoken", {"slot0of_ptoken": listing.format(" open")}, said).reading == 0.2
    closed = {"slot0of_ptoken": listing.format("")}
    assert (shown("slot0of_ptoken", closed, said), hidden("slot0of_ptoken", closed, said).reading) == (
        Minutes(),
        0.2,
    )


def test_predictions_exercises_and_labs_have_minutes():
    page = (
        '<div class="predict" markdown="1" data-minutes="1">\n</div>\n'
        '<div class="exercise" markdown="1" data-minutes="4">\n</div>\n'
        f'<div class="lab" markdown="1" data-minutes="30">\n{words(600)}\n```\ncode\n```\n</div>'
    )
    assert shown(page) == Minutes(0, 1, 4, 30)


def test_what_is_folded_counts_apart_and_a_reveal_does_not():
    page = f'<details class="{{}}" markdown="1">\n<summary>Open</summary>\n\n{words(150)}\n\n</details>'
    for css in ("answer", "fold", "fold hint", "beyond"):
        assert shown(page.format(css)) == Minutes()
        assert hidden(page.format(css)).reading == pytest.approx(151 / 150)
    assert shown(page.format("reveal")).reading == pytest.approx(151 / 150)


def test_html_that_only_code_names_opens_nothing():
    assert shown("a `<details class='fold'>` and `</div>` stray </div> end").reading > 0
    assert hidden("a `<details class='fold'>`\n\nwords after it") == Minutes()


def test_a_lab_in_a_folded_section_is_folded():
    page = '<details class="beyond" markdown="1">\n<div class="lab" data-minutes="50">\n</div>\n</details>'
    assert (shown(page), hidden(page)) == (Minutes(), Minutes(typing=50))


def test_the_line_at_the_head():
    core, folded = Minutes(51.6, 6, 4, 26), Minutes(reading=60)
    assert reading_time.in_words(core, folded) == (
        "Core: 88 minutes: 52 reading, 6 predicting, 4 on exercises, 26 typing. With all that is folded: 148."
    )
    assert reading_time.in_words(Minutes(reading=0.3), Minutes()) == "1 minute."


def test_a_head_may_say_other_minutes():
    [block] = blocks.parse("/// exercise | Long | 15 minutes\nDo.\n/// answer\nDone.\n///")
    assert (block.argument, block.minutes) == ("Long", 15)
    [block] = blocks.parse("/// predict | a | b\n/// reveal\n1\n///")
    assert (block.argument, block.minutes) == ("a | b", 0)


# --- the fold ----------------------------------------------------------------------------------------

SECTIONS = (
    "# Page\n\nlead\n\n## One {.beyond}\n\nfirst\n\n### Inner\n\nsecond\n\n"
    "```\n## no heading\n```\n\n## Two\n\nthird"
)


def test_a_marked_section_is_folded_to_the_next_heading_of_its_level():
    text = optional_sections.folded(SECTIONS, {}, {})
    before, _, rest = text.partition('<details class="beyond" markdown="1">')
    inside, _, after = rest.partition("</details>")
    assert before.endswith("## One {.beyond}\n\n")
    assert "<summary>Beyond the core, 1 minute</summary>" in inside
    assert "### Inner" in inside
    assert "## no heading" in inside
    assert after.strip() == "## Two\n\nthird"


def test_a_section_that_is_the_last_is_folded_to_the_end():
    assert (
        optional_sections.folded("# P\n\n## Z {.beyond}\n\nlast", {}, {})
        .rstrip()
        .endswith("last\n\n</details>")
    )


def test_without_a_mark_nothing_changes():
    plain = SECTIONS.replace(" {.beyond}", "")
    assert optional_sections.folded(plain, {}, {}) == plain


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("# Page {.beyond}\n\ntext", "whole page"),
        ("# P\n\n## A {.beyond}\n\n### B {.beyond}\n\ntext", "folded already"),
        ('# P\n\n<div class="predict" markdown="1">\n\n## A {.beyond}\n\ntext\n\n</div>', "in a block"),
        ("# P\n\n## A {.beyond}\n\n## B\n\ntext", "nothing to fold"),
    ],
)
def test_a_mark_that_folds_nothing_is_refused(page, why):
    with pytest.raises(DirectiveError, match=why):
        optional_sections.folded(page, {}, {})


def test_the_mark_is_no_part_of_a_heading():
    page = Page(
        Path("docs/p.py"), "p", "P", cells=(Cell("markdown", SECTIONS + "\n\n## Old {#name .beyond}\n\nx"),)
    )
    assert headings(page) == {"page": "Page", "one": "One", "inner": "Inner", "two": "Two", "name": "Old"}
    assert beyond_the_core(page) == {"one", "inner", "name"}
    assert unmarked("## Old {#name .beyond}\n## One {.beyond}") == "## Old {#name}\n## One"


# --- the pages of the course ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course(our_course):
    return our_course[0]


@pytest.fixture(scope="module")
def rendered(our_course):
    return our_course[1]


def student_pages(course):
    pages = {page.path.as_posix(): page for page in course.pages}
    found = [
        (s, pages[s.student_page])
        for s in course.maps.sessions.values()
        if s.stop and s.student_page in pages
    ]
    assert len(found) >= 7
    return found


def test_the_core_of_every_page_fits_its_session(course, rendered):
    for session, page in student_pages(course):
        core, _ = rendered[page.id].minutes
        assert 0 < core.whole <= session.minutes, f"{page.path}: {core}"
    assert [problem for problem in course.problems if "core" in problem.message] == []


def test_the_lab_of_a_session_is_typed_in_its_core(course, rendered):
    for session, page in student_pages(course):
        lab = session.lab and ROOT / "labs" / session.lab / "lab.toml"
        if lab and page.path.as_posix() in lab.read_text():
            assert rendered[page.id].minutes[0].typing > 0, page.path


def planted(course, page, edit):
    """The page as a writer sees it once one Markdown cell is another one, and what is then wrong."""
    cells = list(page.cells)
    number = next(
        i for i, cell in enumerate(cells) if cell.kind == "markdown" and edit(cell.source) != cell.source
    )
    cells[number] = dataclasses.replace(cells[number], source=edit(cells[number].source))
    changed = dataclasses.replace(page, cells=tuple(cells))
    writer = Writer(course, changed, BLOCKS)
    text = "\n\n".join(cell.source for cell in changed.cells if cell.kind == "markdown")
    before = len(course.problems)
    _minutes(writer, text)
    found = [problem.message for problem in course.problems[before:]]
    del course.problems[before:]
    return found


def test_a_core_that_is_too_long_is_refused(course, rendered):
    session, page = student_pages(course)[0]
    [fault] = planted(course, page, lambda text: text + "\n\n" + words(150 * session.minutes))
    assert "its core is longer than its session of 120 minutes" in fault
    assert "{.beyond}" in fault


def test_a_few_words_more_on_another_card_stop_nothing(course, rendered, monkeypatch):
    session, page = student_pages(course)[0]
    monkeypatch.setattr(course, "rebuilt", True)
    assert planted(course, page, lambda text: text + "\n\n" + words(150 * session.minutes)) == []


def test_a_step_of_a_map_leads_to_the_core(course, rendered):
    session, page = student_pages(course)[0]
    faults = planted(
        course, page, lambda text: text.replace("## The receipt\n", "## The receipt {.beyond}\n")
    )
    assert any("#the-receipt is beyond the core" in fault and session.path in fault for fault in faults)


def test_in_the_first_page_typing_begins_within_twenty_minutes(course, rendered):
    out = rendered["start"]
    assert reading_time.until_typing(out.markdown, out.slots, out.words) <= 20
    assert reading_time.until_typing(words(150 * 20) + "\n" + out.markdown, out.slots, out.words) > 20
    assert reading_time.until_typing(words(10), {}, {}) is None


def test_readers_are_told_the_rule_that_is_used(rendered):
    page, _, anchor = RULE.partition("#")
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.partition("## The minutes at the top of a page")[2].partition("# %%")[0]
    for said in (
        "150 words a minute",
        "ten lines a minute",
        "half a minute",
        "one minute for a prediction",
        "four for an exercise",
    ):
        assert said in section
    assert (
        reading_time.WORDS_A_MINUTE,
        reading_time.LINES_A_MINUTE,
        reading_time.PICTURE,
        reading_time.PREDICTION,
        reading_time.EXERCISE,
    ) == (
        150,
        10,
        0.5,
        1,
        4,
    )
    assert f"#{anchor}" in rendered["measured"].markdown


# --- exercises that ask to measure -----------------------------------------------------------------------


def without_our_run(page):
    """Exercises with a command that measures, whose answer shows no value of a run."""
    for cell in page.cells:
        for block in blocks.walk_blocks(blocks.parse(cell.source)) if cell.kind == "markdown" else ():
            asked = block.kind == "exercise" and "course_kernels.measure" in block.text
            if asked and not any("{{" in text for text in block.parts["answer"] if isinstance(text, str)):
                yield block.argument


def test_an_exercise_that_asks_to_measure_shows_what_our_run_gave(course):
    for page in course.pages:
        assert list(without_our_run(page)) == [], page.path
    start = next(page for page in course.pages if page.id == "start")
    cells = tuple(
        dataclasses.replace(cell, source=cell.source.replace("{{ l2.rows", "l2.rows")) for cell in start.cells
    )
    assert list(without_our_run(dataclasses.replace(start, cells=cells))) == ["Change the size of the tables"]
