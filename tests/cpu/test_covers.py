"""What answers a prediction below it is covered, as far as a reader comes before the answer is out of mind."""

from course_site.lint import covers
from course_site.pages.blocks import Block, parse
from course_site.pages.choices import name_of
from course_site.pages.page import Cell
from course_site.values.values import Define, Scope


def quantity(value):
    return {"kind": "quantity", "value": value, "unit": "1", "how": "computed"}


SCOPE = Scope("p", {"ours": quantity(8.0), "theirs": quantity(2.0), "other": quantity(5.0)}, None)
SCOPE.defines["ratio"] = Define("ratio", "ours / theirs")
PREDICT = "/// predict | How fast?\n- [x] twice\n- [ ] once\n/// reveal\n{{ ours:.0f }} it is.\n///"
CHART = "/// chart | bars\nbars:\n  - {name: ours, label: ours}\n///"
TABLE = '/// table\ncolumns: [a, b]\nrows:\n  - [us, "{{ ours:.0f }}"]\n///'
LONG = " ".join(["word"] * 12 * (covers.REACH + 1))


def cover(*cells, outputs=()):
    """The cells of a page after covering, and which outputs are; a tuple is a code cell with its output."""
    kinds = [Cell("code", "run()") if isinstance(cell, tuple) else parse(cell) for cell in cells]
    return covers.cover(kinds, SCOPE, [cell[0] for cell in cells if isinstance(cell, tuple)])


def held(*cells):
    """What is covered, in order: kinds of blocks, and prose."""
    found, _ = cover(*cells)
    inside = [node for cell in found if isinstance(cell, list) for node in cell if isinstance(node, Block)]
    return [
        node.strip() if isinstance(node, str) else node.kind
        for block in inside
        if block.kind == "cover"
        for node in block.body
    ]


def test_what_shows_the_answer_is_covered_and_the_rest_stays():
    assert held(
        f"{PREDICT}\n\nRead on.\n\n{CHART}\n\nIt took {{{{ ours:.0f }}}}.\n\nAnd {{{{ other:.0f }}}}."
    ) == [
        "chart",
        "It took {{ ours:.0f }}.",
    ]
    assert held(PREDICT, TABLE) == ["table"]
    assert held(PREDICT, "/// claim | ours > 1\nIt is much.\n///") == ["claim"]
    assert held(f"{CHART}\n\n{PREDICT}") == []  # above it: `predictions` refuses that


def test_a_chart_of_every_kernel_answers_whatever_is_asked_above_it():
    settings = "title: T\nalt: A\n///"
    assert (
        held(PREDICT, f"/// kernels | roofline\n{settings}", f"/// kernels | shares\n{settings}")
        == ["kernels"] * 2
    )
    assert held(PREDICT, "/// kernels | untimed\n///") == []


def test_neighbours_share_a_cover_that_names_the_prediction():
    [_, [block]] = cover(PREDICT, f"{CHART}\n\n{TABLE}")[0]
    assert (block.kind, block.argument) == ("cover", name_of(parse(PREDICT)[0]))
    assert [node.kind for node in block.body if isinstance(node, Block)] == ["chart", "table"]


def test_of_a_ratio_both_sides_must_show():
    asked = PREDICT.replace("ours:.0f", "ratio:.0f")
    assert held(asked, CHART) == []
    assert held(
        asked, CHART.replace("///\n", "///").replace("  - {name: ours", "  - {name: theirs}\n  - {name: ours")
    ) == ["chart"]


def test_what_decides_which_choice_is_right_answers_too():
    asked = (
        PREDICT.replace("[x]", "[ours > other]")
        .replace("[ ]", "[ours <= other]")
        .replace("ours:.0f", "theirs:.0f")
    )
    assert held(asked, CHART) == []
    assert held(asked, "{{ ours:.0f }} and {{ other:.0f }}") == ["{{ ours:.0f }} and {{ other:.0f }}"]


def test_how_far_it_reaches():
    assert held(PREDICT, LONG, CHART) == ["chart"]  # its section, to the end
    assert held(PREDICT, "## On", CHART) == ["chart"]
    assert held(PREDICT, "## On", LONG, CHART) == []
    assert held(PREDICT, "## On {{ ours:.0f }}") == []  # a heading is refused, and never covered
    assert held(PREDICT, f"## More {{.beyond}}\n\n{CHART}") == []  # folded already
    beyond = f"## More {{.beyond}}\n\n{PREDICT}"
    assert held(beyond, "## On", CHART) == ["chart"]  # who is asked in a fold sees what stands outside
    assert held(beyond, f"## Still more {{.beyond}}\n\n{CHART}") == []


def printed(text, *names):
    data = {"application/vnd.course.record+json": {"names": {name: quantity(1.0) for name in names}}}
    outputs = [{"output_type": "stream", "name": "stdout", "text": text}]
    return ([*outputs, *([{"output_type": "display_data", "data": data}] if names else [])],)


def test_what_a_cell_printed():
    name = name_of(parse(PREDICT)[0])
    assert cover(PREDICT, printed("turns: 8"))[1] == {1: name}
    assert cover(PREDICT, printed("turns: 80"))[1] == {}
    assert cover(PREDICT, printed("eight", "ours"))[1] == {}  # no number in it
    assert cover(PREDICT, printed("8.0", "ours"))[1] == {1: name}
    assert cover(PREDICT, printed("7"), printed("8"))[1] == {}  # some other 8
    assert cover(PREDICT, printed("7"), printed("8", "ours"))[1] == {2: name}


def test_where_the_reveal_has_no_value_the_next_cell_is_its_run():
    words = PREDICT.replace("{{ ours:.0f }} it is", "Twice")
    assert list(cover(words, printed("2"), printed("3"))[1]) == [1]
    assert cover(words, "## On", printed("2"))[1] == {}
    assert list(cover(words, "Look:", printed("2"))[1]) == [2]


def test_a_question_that_tells_the_answer_of_the_one_before_waits_for_it():
    later = PREDICT.replace("How fast?", "After {{ ours:.0f }}?").replace(
        "{{ ours:.0f }} it is", "{{ other:.0f }} it is"
    )
    assert held(PREDICT, later) == ["predict"]
    assert (
        held(
            PREDICT,
            later.replace("After {{ ours:.0f }}?", "After that?").replace(
                "other:.0f }} it is", "ours:.0f }} still"
            ),
        )
        == []
    )


def test_a_paragraph_is_cut_where_it_can_stand_alone():
    text = "One.\n\n- a\n\n- b\n\n    more\n\n```\nx\n\ny\n```\n\n| a |\n|---|\n| b |\n\nTwo,\nand on.\n{: .caption }"
    assert list(covers.paragraphs(text)) == [
        "One.\n\n- a\n\n- b\n\n    more",
        "```\nx\n\ny\n```",
        "| a |\n|---|\n| b |",
        "Two,\nand on.\n{: .caption }",
    ]
