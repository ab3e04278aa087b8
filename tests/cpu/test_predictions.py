"""A prediction is not answered before it is made: not above it, not in sight below it, not in a heading."""

import collections
import dataclasses
from pathlib import Path

import pytest

from course_site.lint import covers, predictions
from course_site.pages.blocks import parse, walk_blocks
from course_site.pages.choices import name_of, taken_apart
from course_site.pages.page import Cell, Page
from course_site.site.render.page import BLOCKS, _render
from course_site.site.render.writer import Writer
from course_site.values.claims import judge
from course_site.values.values import Define, Scope

ROOT = Path(__file__).parents[2]


def quantity(value):
    return {"kind": "quantity", "value": value, "unit": "1", "how": "computed"}


NAMES = {
    "ours": quantity(8.0),
    "theirs": quantity(2.0),
    "steps": {"a": quantity(1.0), "b": quantity(3.0)},
    "other": quantity(5.0),
}
PREDICT = "/// predict | How fast?\nOnce · twice\n/// reveal\n{{ ours:.0f }} it is.\n///"
TABLE = '/// table\ncolumns: [a, b]\nrows:\n  - [us, "{{ ours:.0f }}"]\n///'
LONG = " ".join(["word"] * 12 * (predictions.SCREEN + 1))


def faults(*cells, outputs=(), names=NAMES):
    """What is wrong with a page of Markdown cells; a tuple is a code cell."""
    kinds = [Cell("code", *cell) if isinstance(cell, tuple) else Cell("markdown", cell) for cell in cells]
    scope = Scope("p", names, None)
    scope.defines["ratio"] = Define("ratio", "ours / theirs")
    return list(predictions.faults(Page(Path("docs/p.py"), "p", "P", cells=tuple(kinds)), scope, outputs))


def test_an_honest_prediction():
    assert faults("# P\n\nIt has {{ other:.0f }}.", PREDICT, LONG, TABLE) == []


@pytest.mark.parametrize(
    "above",
    [
        "**The headline: {{ ours:.0f }}.**",
        "## It takes {{ ours:.0f }}",
        TABLE,
        "/// chart | bars\ntitle: All\nbars:\n  - {name: ours, label: ours}\n///",
        "/// claim | ours > 1\n{{ ours:.0f }} here.\n///",
        "/// exercise | Count\nHow?\n/// answer\n{{ ours:.0f }}\n///",
    ],
)
def test_an_answer_that_stands_above_is_found(above):
    [fault] = faults(f"# P\n\n{above}", PREDICT)
    assert "How fast?" in fault
    assert "stands above, ours" in fault


def test_a_chart_of_a_group_shows_all_of_it():
    asked = PREDICT.replace("ours", "steps.b")
    chart = "/// chart | lines\nseries:\n  - {name: steps.*, label: all}\n///"
    assert "steps.b" in faults(chart, asked)[0]
    assert faults(chart.replace("steps.*", "steps.a"), asked) == []


def test_of_a_ratio_both_sides_must_be_known():
    asked = PREDICT.replace("ours:.0f", "ours / theirs:.1f")
    assert faults("{{ theirs:.0f }}", asked) == []
    assert len(faults("{{ theirs:.0f }} and {{ ours:.0f }}", asked)) == 1
    assert len(faults("{{ theirs:.0f }} and {{ ours:.0f }}", PREDICT.replace("ours", "ratio"))) == 1


def test_what_the_question_gives_is_no_answer():
    asked = (
        "/// predict | From {{ theirs:.0f }} to?\nHow many?\n/// reveal\n{{ ours / theirs:.0f }} times.\n///"
    )
    assert faults("{{ theirs:.0f }}", asked) == []
    [fault] = faults(asked.replace("How many?", "It is {{ ours:.0f }}."))
    assert "its question shows the answer" in fault


def test_the_first_value_of_a_reveal_is_the_answer():
    known_first = PREDICT.replace("{{ ours:.0f }} it is", "{{ theirs:.0f }} before, {{ ours:.0f }} now")
    assert "theirs" in faults("{{ theirs:.0f }}", known_first)[0]


@pytest.mark.parametrize(
    "below", [TABLE, "It took {{ ours:.0f }}.", "/// claim | ours > 1\n{{ ours:.0f }}!\n///"]
)
def test_an_answer_right_below_is_found(below):
    [fault] = faults(f"{PREDICT}\n\n{below}")
    assert "ours is in sight below" in fault
    assert faults(f"{PREDICT}\n\n{LONG}\n\n{below}") == []


def test_the_answer_may_stand_in_the_reveal_with_its_table():
    assert faults(PREDICT.replace("it is.", f"it is.\n\n{TABLE}")) == []


def test_a_table_is_seen_from_further_away_than_a_sentence():
    between = " ".join(["word"] * 12 * (predictions.GLANCE + 1))
    assert faults(PREDICT, between, "It took {{ ours:.0f }}.") == []
    assert len(faults(PREDICT, between, TABLE)) == 1


def test_code_between_is_as_high_as_its_lines_and_folded_code_is_one():
    code = "\n".join(["x = 1"] * 40)
    assert faults(PREDICT, (code,), TABLE) == []
    assert len(faults(PREDICT, (code, ("fold",)), TABLE)) == 1


def test_a_folded_section_hides_nothing_behind_it():
    folded = f"## More {{.beyond}}\n\n{LONG}\n\n## On"
    assert len(faults(PREDICT, folded, TABLE)) == 1
    assert faults(PREDICT, f"## More {{.beyond}}\n\n{TABLE}") == []
    assert len(faults(f"## More {{.beyond}}\n\n{PREDICT}", TABLE)) == 1


def test_a_number_that_a_cell_above_printed():
    data = {
        "application/vnd.course.record+json": {"names": {"ours": quantity(8.0)}},
        "text/plain": "recorded",
    }
    recorded = {"output_type": "display_data", "data": data}
    printed = {"output_type": "stream", "name": "stdout", "text": "turns: 8"}
    assert "prints it ('turns: 8')" in faults(("run()",), PREDICT, outputs=[[recorded, printed]])[0]
    assert faults(("run()",), PREDICT, outputs=[[recorded]]) == []
    assert faults(("run()",), PREDICT, outputs=[[recorded, {**printed, "text": "80 others"}]]) == []


@pytest.mark.parametrize(
    "heading",
    ["Eight times slower", "Why is it not faster?", "Half of the time", "Up to 94 %", "Twice as quick"],
)
def test_a_heading_that_tells_the_outcome(heading):
    [fault] = faults("# P", PREDICT, f"{LONG}\n\n## {heading}")
    assert heading in fault
    assert "tells an outcome" in fault
    assert faults(f"# P\n\n## {heading}") == []  # nobody predicts here


@pytest.mark.parametrize(
    "heading",
    ["Two kitchens, three races", "How fast can it turn?", "Thirty-two windows", 'The autopsy of "484 %"'],
)
def test_a_heading_that_asks(heading):
    assert faults("# P", PREDICT, f"## {heading}") == []


def test_values_of_other_pages_count():
    other = Scope("q", NAMES, None)
    scope = Scope("p", {}, None, others={"q": other}.get)
    page = Page(
        Path("docs/p.py"),
        "p",
        "P",
        cells=(Cell("markdown", f"{{{{ q.ours:.0f }}}}\n\n{PREDICT.replace('ours', 'q.ours')}"),),
    )
    assert "q.ours" in next(predictions.faults(page, scope, []))


@pytest.fixture(scope="module")
def course(our_course):
    """The course with its pages rendered: what a page defines is known from then on."""
    return our_course[0]


def of_course(course, page, edit=lambda text: text):
    cells = tuple(
        Cell(c.kind, edit(c.source) if c.kind == "markdown" else c.source, c.tags) for c in page.cells
    )
    record = course.records.get(page.id)
    changed = Page(page.path, page.id, page.title, cells=cells)
    return list(predictions.faults(changed, course.scopes[page.id], record.outputs if record else []))


def test_no_prediction_is_spoiled(course):
    chapters = {session.chapter for session in course.maps.sessions.values()}
    asked = [p for p in course.pages if p.path.parts[0] == "docs" or p.path.as_posix() in chapters]
    assert len(asked) > len(chapters) >= 14
    # A page with numbers was looked at when it was rendered, as in every build.
    assert [str(problem) for problem in course.problems] == []
    for page in asked:
        if not course.records.get(page.id):
            assert of_course(course, page) == [], page.path


def test_every_prediction_of_the_course_has_its_choices(course):
    """The few that are answered in words of one's own are known here, so that no other is forgotten."""
    asked = [
        (page, block)
        for page in course.pages
        for cell in page.cells
        if cell.kind == "markdown"
        for block in walk_blocks(parse(cell.source))
        if block.kind == "predict"
    ]
    assert len(asked) > 100
    assert len({name_of(block) for _, block in asked}) == len(asked)
    open_ones = [page.id for page, block in asked if not taken_apart(block)[1]]
    assert open_ones == ["l5", "teach_l3"]


def test_no_place_among_the_choices_is_the_one_to_guess(course):
    """The surprising choice likes to stand last: who has noticed that needs no thought any more."""
    places = collections.Counter()
    for page in course.pages:
        for cell in page.cells if course.has_numbers(page.id) else ():
            for block in walk_blocks(parse(cell.source)) if cell.kind == "markdown" else ():
                choices = taken_apart(block)[1] if block.kind == "predict" else []
                for place, choice in enumerate(choices):
                    held = choice.condition and judge(choice.condition, course.scopes[page.id]).holds
                    if choice.is_right or held:
                        places["last" if choice is choices[-1] else place] += 1
    assert places.total() > 75
    assert max(places.values()) < 0.45 * places.total(), places


def test_no_prediction_is_answered_by_an_open_neighbour(course):
    """What stands open behind a prediction, to the next heading, does not show its answer before it is made."""
    count = 0
    chapters = {session.chapter for session in course.maps.sessions.values()}
    for page in course.pages:
        if page.path.parts[0] != "docs" and page.path.as_posix() not in chapters:
            continue
        record = course.records.get(page.id)
        trees = [parse(cell.source) if cell.kind == "markdown" else cell for cell in page.cells]
        cells, printed = covers.cover(trees, course.scopes[page.id], record.outputs if record else [])
        count += len(printed) + sum(
            b.kind == "cover" for c in cells if isinstance(c, list) for b in walk_blocks(c)
        )
        assert list(answered(cells, course.scopes[page.id])) == [], page.path
        if page.id == "l1":
            assert len(list(answered(trees, course.scopes[page.id]))) == 4  # as it is written
    assert count > 50


def answered(cells, scope):
    """Questions, each with what answers it in the open: a value, a table or a chart before the next heading."""
    reader, asked = predictions.Reader(scope), []
    for node in (node for cell in cells if isinstance(cell, list) for node in cell):
        if isinstance(node, str):
            for paragraph in node.split("\n\n"):
                if paragraph.lstrip().startswith("#"):
                    asked = []
                yield from (
                    (q.question, paragraph) for q in asked if q.answer - q.given <= reader.values(paragraph)
                )
        elif node.kind == "predict":
            question = reader.asked(node)
            asked += [question] if question.answer - question.given else []
        elif node.kind in ("chart", "table", "claim"):
            shown = reader.all_of([node])
            yield from ((q.question, node.kind) for q in asked if q.answer - q.given <= shown)


def test_a_spoiler_planted_in_a_chapter_stops_the_build(course):
    [page] = [
        p for p in course.pages if p.path.as_posix() == "handbook/06_delivery_craft/l1_what_a_gpu_is.py"
    ]
    before, after = "/// predict", "The right receipt: {{ slips.right:.0f }}.\n\n/// predict"
    cells = tuple(dataclasses.replace(c, source=c.source.replace(before, after)) for c in page.cells)

    def said(page):
        course.problems.clear()
        _render(Writer(course, page, BLOCKS))
        return [problem.message for problem in course.problems]

    [fault] = said(dataclasses.replace(page, cells=cells))
    assert "it stands above, slips.right" in fault
    assert said(page) == []


def test_a_spoiler_planted_in_a_real_page_is_found(course):
    page = course.page("l4")
    headline = "At the foot it is {{ ladder.naive.of_peak:.1%}} of peak.\n\n**The headline:"
    [fault] = of_course(course, page, lambda text: text.replace("**The headline:", headline))
    assert "What percentage of peak will it reach?" in fault
    assert "ladder.naive" in fault
