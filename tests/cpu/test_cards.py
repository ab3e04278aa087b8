"""A value of another card stands on a page only beside that card's name: planted in every kind of text."""

import pytest
from test_another_card import BESIDE, H100, WAITS
from test_another_card import two_cards as two_cards  # the fixture
from test_render import NAMES, PAGE, problems, record_it, render
from test_sessions import DEMOS, change
from test_sessions import root as workshop  # noqa: F401  the fixture
from tiny_repository import write

from course_site.lint import cards
from course_site.pages.page import read_page
from course_site.records.record import record_path
from course_site.sessions.handouts import Part, asked_beside
from course_site.values.data_sheet import short_name

FAULT = "is of an NVIDIA H100 80GB HBM3, and this page of an NVIDIA H200: name the H100 beside it"
FOREIGN, OWN = "w1.flash.us", "flash.us"


def on_the_other_card(root, name, **names):
    """A record of the H100 alone."""
    record_it(root, names, provenance=H100, name=name)
    page = read_page(root / name, root)
    beside = record_path(root, BESIDE, page)
    beside.parent.mkdir(parents=True, exist_ok=True)
    record_path(root, "nvidia-h200", page).replace(beside)


@pytest.fixture
def site(two_cards):
    """faults(text): what is wrong with it on a page of an H200, beside w1, which is an H100's."""
    root, reference, _ = two_cards
    reference.unlink()
    record = {**NAMES, "said": {"kind": "text", "value": "a printed line"}}
    on_the_other_card(root, "docs/w1.py", **record)

    def faults(text):
        lines = "\n".join(f"# {line}".rstrip() for line in text.strip().splitlines())
        page = (
            PAGE.lstrip()
            .replace("id: w1", "id: w2")
            .replace("# The last paragraph", f"{lines}\n#\n# The last")
        )
        write(root, "docs/w2.py", page)
        record_it(root, NAMES, name="docs/w2.py")
        found = problems(root)
        return [line for line in found if line.startswith("docs/w2.py: ") and " is of an " in line], found

    return faults


BARS = """
/// chart | bars
title: "{title}"
alt: Bars.
x_label: µs
bars:
  - {{name: {own}, label: here}}
  - {{name: {foreign}, label: "{label}", note: "{note}"}}
caption: "{caption}"
///"""
LINES = """
/// chart | lines
title: Lines
alt: Lines.
x: n
y: us
series:
  - {{name: {name}, label: "{label}"}}
///"""
TABLE = """
/// table
columns: [kernel, "{head}"]
rows:
  - [here, "{{{{ flash.us:.0f }}}}"]
  - [there, "{{{{ w1.flash.us:.0f }}}}{cell}"]
caption: "{caption}"
///"""
EXPLORABLE = """
/// explorable | bank_conflicts
ask: "{ask}"
alt: A queue.
knobs:
  stride: {{label: stride, at: 32}}
data:
  time: {{s32: w1.flash.us}}
  counted: {{s32: flash.us}}
says: {{same: one, free: "{{busy}} windows", queue: "{{queue}} turns", measured: there, near: "at {{near}}"}}
row: {{stride: "{{stride}}"}}
///"""
CHART = {
    "own": OWN,
    "foreign": FOREIGN,
    "title": "Bars",
    "label": "there",
    "note": "ours",
    "caption": "Bars.",
}
PREDICTION = """
/// predict | Which?
- [w1.flash.us < 1] Less
- [w1.flash.us >= 1] More
/// reveal
So.
///"""
REFUSED = {
    "a sentence": "There it takes {{ w1.flash.us:.0f }} µs.",
    "the sentence after the one with the name": "Now an H100. It takes {{ w1.flash.us:.0f }} µs.",
    "a card that is another one's": "On an H200 it takes {{ w1.flash.us:.0f }} µs.",
    "a key of the bibliography": "It takes {{ w1.flash.us:.0f }} µs [^nvidia-h100].",
    "a list": "On an H100:\n\n- the first takes {{ w1.flash.us:.0f }} µs",
    "a heading": "## In {{ w1.flash.us:.0f }} µs",
    "a row of Markdown": "| kernel | µs |\n|---|---|\n| flash | {{ w1.flash.us:.0f }} |",
    "a definition of the page's own": "/// define | theirs = w1.flash.us\nunit: µs\n///\n\nIn {{ theirs:.0f }} µs.",
    "a table": TABLE.format(head="µs", cell="", caption="Rows."),
    "a caption over rows of both": TABLE.format(head="µs", cell="", caption="The second is an H100's."),
    "bars": BARS.format(**CHART),
    "a title over bars of both": BARS.format(**CHART | {"title": "An H100 as well"}),
    "an alternative text": BARS.format(**CHART | {"label": "H100"}).replace(
        "alt: Bars.", 'alt: "Bars, to {{ w1.flash.us:.0f }} µs."'
    ),
    "a line": LINES.format(name="w1.flash", label="there"),
    "a claim": "/// claim | w1.flash.us < 0.9 * w1.sdpa.us\nIt is ahead there.\n///",
    "a prediction": PREDICTION,
    "a recorded fact": "/// when | w1.m > 1\nIt has many.\n///",
    "a printed text": "/// text | w1.said\n///",
    "an explorable": EXPLORABLE.format(ask="Which stride?"),
    "a question": "/// exercise | From {{ w1.flash.us:.0f }} µs?\nWork it out.\n/// answer\nSo.\n///",
}
PASSES = {
    "a sentence": "On an H100 it takes {{ w1.flash.us:.0f }} µs.",
    "a sentence with the name as a value": "On an {{ w1.gpu.name }} it takes {{ w1.flash.us:.0f }} µs.",
    "a value of the page's own": "It takes {{ flash.us:.0f }} µs.",
    "a row of Markdown": "| kernel | µs |\n|---|---|\n| flash, H100 | {{ w1.flash.us:.0f }} |",
    "a head of Markdown": "| kernel | µs on an H100 |\n|---|---|\n| flash | {{ w1.flash.us:.0f }} |",
    "a table's cell": TABLE.format(head="µs", cell=" (H100)", caption="Rows."),
    "a table's head": TABLE.format(head="H200, then H100, µs", cell="", caption="Rows."),
    "a table of one card": TABLE.format(head="µs", cell="", caption="Of an H100.").replace(" flash", " w1.flash"),
    "a bar": BARS.format(**CHART | {"label": "there, H100"}),
    "a bar's note": BARS.format(**CHART | {"note": "{{ w1.gpu.name }}"}),
    "bars of one card": BARS.format(**CHART | {"own": FOREIGN, "caption": "On an H100."}),
    "a line": LINES.format(name="w1.flash", label="H100"),
    "a claim": "/// claim | w1.flash.us < 0.9 * w1.sdpa.us\nOn an H100 it is ahead.\n///",
    "a prediction": PREDICTION.replace("Which?", "On an H100?"),
    "a recorded fact": "/// when | w1.m > 1\nThe H100 has many.\n///",
    "an explorable": EXPLORABLE.format(ask="Which stride, on an H100?"),
    "a number of a source": "/// define | theirs = 7\nunit: µs\nwhat: of others [^a]\n///\n\nIn {{ theirs:.0f }} µs.",
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_value_of_another_card_is_refused(site, kind):
    found, everything = site(REFUSED[kind])
    assert any(FAULT in line for line in found), everything


@pytest.mark.parametrize("kind", PASSES)
def test_beside_the_name_of_its_card_it_may_stand(site, kind):
    found, _ = site(PASSES[kind])
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "/// claim | w1.flash.us < flash.us\nIt is.\n///",
        "/// define | theirs = w1.flash.us\nunit: µs\n///\n\nIt is {{ theirs / flash.us:.2f }} of it.",
        "/// when | w1.m < m\nYes.\n/// otherwise\nNo.\n///",
    ],
)
def test_two_cards_in_one_condition_or_by_a_definition(site, text):
    _, everything = site(text)
    both = "holds numbers of two cards together: NVIDIA H100 80GB HBM3 and NVIDIA H200"
    assert any(both in line for line in everything), everything


def test_the_data_sheet_of_a_pages_card(site, two_cards):
    names = "{{ gpu.tb_per_s:.2f }} TB/s, {{ gpu.sms }} of them, {{ gpu.l2_mib:.0f }} MiB, {{ gpu.name }}"
    found, everything = site(f"Here {names}. On the H100 {names.replace('gpu.', 'w1.gpu.')}.")
    assert (found, everything) == ([], [])
    text = render(two_cards[0], "w2")[1].inlined()
    for shown in (
        ">4.80</span> TB/s",
        ">3.35</span> TB/s",
        ">60</span> MiB",
        ">50</span> MiB",
        ">H100</span>",
    ):
        assert shown in text, shown


def test_a_page_that_waits_keeps_the_card_it_was_measured_on(two_cards):
    root, reference, _ = two_cards
    reference.unlink()
    text = PAGE.lstrip().replace("# The last", "# There it takes {{ w3.flash.us:.0f }} µs.\n#\n# The last")
    write(root, "docs/w1.py", text)
    on_the_other_card(root, "docs/w1.py", **NAMES)
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    for name in ("w2", "w3"):
        write(root, f"docs/{name}.py", PAGE.lstrip().replace("id: w1", f"id: {name}"))
    record_it(root, NAMES, name="docs/w2.py")  # the reference is an H200
    on_the_other_card(root, "docs/w3.py", **NAMES)
    write(root, "records/waiting.toml", WAITS)
    course, _ = render(root)
    assert course.states == {"w1": "waiting", "w2": "fresh", "w3": "foreign"}
    assert [str(problem) for problem in course.problems] == []


def test_what_a_card_does_not_have_is_said(site):
    _, everything = site("It has {{ gpu.doors:.0f }} of them.")
    assert any("unknown value 'gpu.doors': of a card there are name, gb_per_s" in line for line in everything)


@pytest.mark.parametrize(
    ("gpu", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "4090"), ("NVIDIA TITAN V", "NVIDIA TITAN V"),
    ],
)  # fmt: skip
def test_the_short_name_of_a_card(gpu, short):
    assert short_name(gpu) == short


# --- maps and sheets --------------------------------------------------------------------------------


@pytest.fixture
def maps(workshop):  # noqa: F811
    """faults(old, new): what is wrong with the workshop's map, in which one text is another, and with its sheets."""
    root = workshop
    text = (root / "pyproject.toml").read_text()
    write(root, "pyproject.toml", f'{text}also = ["{BESIDE}"]\n')
    write(root, "src/tiny/kernel.py", "FACTOR = 3\n")
    write(root, "docs/here.py", PAGE.lstrip().replace("id: w1", "id: here"))
    record_it(root, NAMES, name="docs/here.py")
    write(root, "handbook/demos.py", DEMOS.lstrip())
    from test_record import quantity

    on_the_other_card(root, "handbook/demos.py", w1_race={"wait_s": quantity(12.4, "s")})

    def faults(old="", new="", sheet=""):
        change(root, (old, new))
        write(root, "handbook/handouts/w1.toml", sheet)
        return [line for line in problems(root) if FAULT in line]

    return faults


def test_a_map_names_the_card(maps):
    waits = "{{ demos.w1_race.wait_s:.0f }} s"
    assert maps() == []
    (line,) = maps("Sharpen pencils.", f"Sharpen pencils for {waits}.")
    assert line.startswith("handbook/sessions/w1.toml: 'demos.w1_race.wait_s' is of an NVIDIA H100")
    assert maps("Sharpen pencils.", f"Sharpen pencils for {waits}, on an H100.") == []


SHEET = """
[[sheet]]
title = "waits"
for = "for every student"
[[sheet.part]]
kind = "table"
columns = ["demo", "{head}"]
rows = [["race", "[[*yours*; our run: {{{{ demos.w1_race.wait_s:.0f }}}}]]"]]
[[sheet.part]]
kind = "text"
text = "It takes [[= value('demos.w1_race.wait_s') :.0f]] s{more}."
"""


def test_a_sheet_names_the_card(maps):
    assert len(maps(sheet=SHEET.format(head="s", more=""))) == 2
    (line,) = maps(sheet=SHEET.format(head="s, H100", more=""))
    assert line.startswith("handbook/handouts/w1.toml: sheet 1, part 2: 'demos.w1_race.wait_s'")
    assert maps(sheet=SHEET.format(head="s, H100", more=" on an {{ demos.gpu.name }}")) == []


def test_every_string_of_a_sheet_is_asked():
    lines = [{"x": [1, "=value('a.b')"], "y": [1, '=value( "a.c" )'], "label": "on an H100"}]
    ((asked, beside),) = asked_beside(Part("sheet 1, part 1", "axes", {"lines": lines, "x_title": "x"}))
    assert asked == ["a.b", "a.c"]
    assert "on an H100" in beside
    assert "x" in beside.split()


def test_an_edition_that_is_no_reference_shows_two_cards_side_by_side():
    assert list(cards.faults_of_prose("{{ w1.flash.us:.0f }} µs", "", None)) == []
