"""A value that names another card's edition is refused by name, but on the one page where cards stand side by side.

There each number stands beside the name of its card. Planted in every kind of text.
"""

import pytest
from test_another_card import BESIDE, H100, SLOWER, recorded
from test_another_card import two_cards as two_cards  # the fixture
from test_record import quantity
from test_render import NAMES, PAGE, problems, record_it, render
from test_sessions import DEMOS, change
from test_sessions import root as workshop  # noqa: F401  the fixture
from tiny_repository import write

from course_site.lint import cards
from course_site.pages.page import read_page
from course_site.records.record import record_path
from course_site.sessions.handouts import Part, asked
from course_site.site.editions import SIDE_BY_SIDE
from course_site.values.data_sheet import short_name
from course_site.values.values import Scope

REFUSAL = "is of the H100, and every page but one is of one card, whole: write 'w1.flash.us'"


def lines(text):
    return "\n".join(f"# {line}".rstrip() for line in text.strip().splitlines())


@pytest.fixture
def site(two_cards):
    """faults(text): what is wrong with it on a page of an H200, beside w1, which both cards have measured."""
    root = two_cards[0]

    def faults(text, page_id="w2"):
        page = PAGE.lstrip().replace("id: w1", f"id: {page_id}")
        if page_id == SIDE_BY_SIDE:  # which measures nothing itself
            page = page[: page.index("# The tuned")].replace("# needs: gpu\n", "") + "# The last paragraph.\n"
        write(root, f"docs/{page_id}.py", page.replace("# The last", f"{lines(text)}\n#\n# The last"))
        if page_id != SIDE_BY_SIDE:
            record_it(root, NAMES, name=f"docs/{page_id}.py")
        return [line for line in problems(root) if line.startswith(f"docs/{page_id}.py: ")]

    return faults


@pytest.fixture
def side_by_side(site):
    """The same on the page of several cards."""
    return lambda text: site(text, SIDE_BY_SIDE)


BARS = """
/// chart | bars
title: "{title}"
alt: Bars.
x_label: µs
bars:
  - {{name: h200.w1.flash.us, label: "{own}"}}
  - {{name: h100.w1.flash.us, label: "{label}", note: "{note}"}}
caption: "{caption}"
///"""
LINES = """
/// chart | lines
title: Lines
alt: Lines.
x: us
y: us
series:
  - {{name: h100.w1.flash, label: "{label}"}}
///"""
TABLE = """
/// table
columns: [kernel, "{head}"]
rows:
  - ["here, H200", "{{{{ h200.w1.flash.us:.0f }}}}"]
  - [there, "{{{{ h100.w1.flash.us:.0f }}}}{cell}"]
caption: "{caption}"
///"""
CHART = {"title": "Bars", "own": "H200", "label": "there", "note": "ours", "caption": "Bars."}
PREDICTION = """
/// predict | Which?
- [h100.w1.flash.us < 1] Less
- [h100.w1.flash.us >= 1] More
/// reveal
So.
///"""
# On every page but one.
REFUSED = {
    "a sentence": "There it takes {{ h100.w1.flash.us:.0f }} µs.",
    "a sentence that names the card": "On an H100 it takes {{ h100.w1.flash.us:.0f }} µs.",
    "its own edition by name": "It takes {{ h200.w1.flash.us:.0f }} µs.",
    "a quotient": "It is {{ h100.w1.flash.us / flash.us:.2f }} of it.",
    "a heading": "## In {{ h100.w1.flash.us:.0f }} µs",
    "a definition": "/// define | theirs = h100.w1.flash.us\nunit: µs\n///\n\nIn {{ theirs:.0f }} µs.",
    "a table": TABLE.format(head="µs", cell="", caption="Rows."),
    "bars": BARS.format(**CHART | {"label": "H100"}),
    "a line": LINES.format(label="H100"),
    "an alternative text": BARS.format(**CHART).replace(
        "alt: Bars.", 'alt: "Bars, to {{ h100.w1.flash.us:.0f }} µs."'
    ),
    "a claim": "/// claim | h100.w1.flash.us < 0.9 * h100.w1.sdpa.us\nIt is ahead there.\n///",
    "a prediction": PREDICTION,
    "a recorded fact": "/// when | h100.w1.m > 1\nIt has many.\n///",
    "a question": "/// exercise | From {{ h100.w1.flash.us:.0f }} µs?\nWork it out.\n/// answer\nSo.\n///",
    "the data sheet": "There {{ h100.gpu.tb_per_s:.2f }} TB/s.",
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_value_of_another_edition_is_refused_by_name(site, kind):
    found = site(REFUSED[kind])
    assert any("and every page but one is of one card, whole" in line for line in found), found


def test_the_refusal_says_what_to_write(site):
    assert any(REFUSAL in line for line in site(REFUSED["a sentence"]))


def test_the_same_without_the_name_is_the_cards_own(site, two_cards):
    assert site("It takes {{ w1.flash.us:.0f }} µs, on an {{ gpu.name }}.") == []
    recorded(two_cards[0], record_path(two_cards[0], BESIDE, read_page(two_cards[0] / "docs/w2.py", two_cards[0])),
             H100, SLOWER, "docs/w2.py")  # fmt: skip
    for slug, time, card in (("nvidia-h200", "1000", "H200"), (BESIDE, "2000", "H100")):
        text = render(two_cards[0], "w2", slug=slug)[1].inlined()
        assert f">{time}</a>" in text
        assert f">{card}</span>." in text


# --- the page of several cards ---------------------------------------------------------------------------

UNNAMED = {
    "a sentence": "There it takes {{ h100.w1.flash.us:.0f }} µs.",
    "the sentence after the one with the name": "Now an H100. It takes {{ h100.w1.flash.us:.0f }} µs.",
    "a card that is another one's": "On an H200 it takes {{ h100.w1.flash.us:.0f }} µs.",
    "one card of two": "On an H100 it takes {{ h100.w1.flash.us / h200.w1.flash.us:.2f }} times as long.",
    "a key of the bibliography": "It takes {{ h100.w1.flash.us:.0f }} µs [^nvidia-h100].",
    "a heading": "## In {{ h100.w1.flash.us:.0f }} µs",
    "a row of Markdown": "| kernel | µs |\n|---|---|\n| flash | {{ h100.w1.flash.us:.0f }} |",
    "a definition": "/// define | theirs = h100.w1.flash.us\nunit: µs\n///\n\nIn {{ theirs:.0f }} µs.",
    "a table": TABLE.format(head="µs", cell="", caption="Rows."),
    "a caption over rows of both": TABLE.format(head="µs", cell="", caption="The second is an H100's."),
    "bars": BARS.format(**CHART),
    "a title over bars of both": BARS.format(**CHART | {"title": "An H100 as well"}),
    "a line": LINES.format(label="there"),
    "a claim": "/// claim | h100.w1.flash.us < 0.9 * h100.w1.sdpa.us\nIt is ahead there.\n///",
    "a prediction": PREDICTION,
    "a recorded fact": "/// when | h100.w1.m > 1\nIt has many.\n///",
}
NAMED = {
    "a sentence": "On an H100 it takes {{ h100.w1.flash.us:.0f }} µs.",
    "a sentence with the name as a value": "On an {{ h100.gpu.name }} it takes {{ h100.w1.flash.us:.0f }} µs.",
    "both": "An H100 takes {{ h100.w1.flash.us / h200.w1.flash.us:.2f }} × the time of an H200.",
    "a row of Markdown": "| kernel | µs |\n|---|---|\n| flash, H100 | {{ h100.w1.flash.us:.0f }} |",
    "a head of Markdown": "| kernel | µs on an H100 |\n|---|---|\n| flash | {{ h100.w1.flash.us:.0f }} |",
    "a table's cell": TABLE.format(head="µs", cell=" (H100)", caption="Rows."),
    "a table's head": TABLE.format(head="H200, then H100, µs", cell="", caption="Rows."),
    "a bar": BARS.format(**CHART | {"label": "there, H100"}),
    "a bar's note": BARS.format(**CHART | {"note": "{{ h100.gpu.name }}"}),
    "a line": LINES.format(label="H100"),
    "a claim of both": "/// claim | h200.w1.flash.us < 0.9 * h100.w1.flash.us\nThe H200 is ahead of the H100.\n///",
    "the data sheets": "The H100 has {{ h100.gpu.tb_per_s:.2f }} TB/s, the H200 {{ h200.gpu.tb_per_s:.2f }} TB/s.",
}


@pytest.mark.parametrize("kind", UNNAMED)
def test_side_by_side_each_number_stands_beside_its_card(side_by_side, kind):
    found = side_by_side(UNNAMED[kind])
    assert any("name it beside the value, in words or as a value" in line for line in found), found


@pytest.mark.parametrize("kind", NAMED)
def test_beside_the_name_of_its_card_it_may_stand(side_by_side, kind):
    assert side_by_side(NAMED[kind]) == []


def test_a_value_that_does_not_say_its_card_is_refused_there(side_by_side):
    (line,) = side_by_side("It takes {{ w1.flash.us:.0f }} µs.")
    assert "'w1.flash.us' does not say of which card: write h200.w1.flash.us or h100.w1.flash.us" in line


def test_what_a_page_defines_may_be_quoted_of_each_edition(side_by_side, two_cards):
    text = "An H200 is {{ h200.w1.ratio.full:.2f }} ×, an H100 {{ h100.w1.ratio.full:.2f }} × of its library."
    assert side_by_side(text) == []
    shown = render(two_cards[0], SIDE_BY_SIDE)[1].inlined()
    assert shown.count(">1.50</a>") == 2
    assert 'href="numbers/w1.html#w1.ratio.full"' in shown
    assert 'href="h100/numbers/w1.html#w1.ratio.full"' in shown


def test_a_page_has_not_the_name_of_an_edition(site):
    assert any(
        "its id is 'h100', by which two_cards names the values" in line for line in site("Words.", "h100")
    )


def test_what_a_card_does_not_have_is_said(site):
    found = site("It has {{ gpu.doors:.0f }} of them.")
    assert any("unknown value 'gpu.doors': of a card there are name, gb_per_s" in line for line in found)


@pytest.mark.parametrize(
    ("gpu", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("NVIDIA RTX A6000", "RTX A6000"),
        ("NVIDIA TITAN V", "NVIDIA TITAN V"),
    ],
)  # fmt: skip
def test_the_short_name_of_a_card(gpu, short):
    assert short_name(gpu) == short


# --- maps and sheets --------------------------------------------------------------------------------


@pytest.fixture
def maps(workshop):  # noqa: F811
    """faults(old, new): what is wrong with the workshop's map, in which one text is another, and with its sheets."""
    root = workshop
    write(root, "src/tiny/kernel.py", "FACTOR = 3\n")
    write(root, "handbook/demos.py", DEMOS.lstrip())
    names = {"w1_race": {"wait_s": quantity(12.4, "s")}}
    record_it(root, names, name="handbook/demos.py")
    page = read_page(root / "handbook/demos.py", root)
    recorded(root, record_path(root, BESIDE, page), H100, names, "handbook/demos.py")

    def faults(old="", new="", sheet=""):
        change(root, (old, new))
        write(root, "handbook/handouts/w1.toml", sheet)
        return [line for line in problems(root) if "every page but one is of one card, whole" in line]

    return faults


def test_a_map_names_no_other_edition(maps):
    assert maps() == []
    assert maps("Sharpen pencils.", "Sharpen pencils for {{ demos.w1_race.wait_s:.0f }} s.") == []
    (line,) = maps(
        "Sharpen pencils.", "Sharpen pencils for {{ h100.demos.w1_race.wait_s:.0f }} s, on an H100."
    )
    assert line.startswith("handbook/sessions/w1.toml: 'h100.demos.w1_race.wait_s' is of the H100")


SHEET = """
[[sheet]]
title = "waits"
for = "for every student"
[[sheet.part]]
kind = "table"
columns = ["demo", "s"]
rows = [["race", "[[*yours*; our run: {{{{ {of}demos.w1_race.wait_s:.0f }}}}]]"]]
[[sheet.part]]
kind = "text"
text = "It takes [[= value('{of}demos.w1_race.wait_s') :.0f]] s."
"""


def test_a_sheet_names_no_other_edition(maps):
    assert maps(sheet=SHEET.format(of="")) == []
    found = maps(sheet=SHEET.format(of="h100."))
    assert [line.partition(": 'h100")[0] for line in found] == [
        "handbook/handouts/w1.toml: waits, sheet 1, part 1",
        "handbook/handouts/w1.toml: waits, sheet 1, part 2",
    ]


def test_every_string_of_a_sheet_is_asked():
    drawn = [{"x": [1, "=value('a.b')"], "y": [1, '=value( "a.c" )'], "label": "on an H100"}]
    assert asked(Part("sheet 1, part 1", "axes", {"lines": drawn, "x_title": "{{ a.d }}"})) == [
        "a.b",
        "a.c",
        "a.d",
    ]


def test_a_page_of_one_card_need_not_name_it():
    assert list(cards.faults_of_prose("{{ w1.flash.us:.0f }} µs", Scope("a", {}, None))) == []
