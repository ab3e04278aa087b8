"""The ledger's pages: what each number is, how it came to be, and that the search is not told of the rows."""

import re

import pytest
from test_record import quantity
from test_render import NAMES, PAGE, render, repository

from course_site.site.ledger import address, entries
from course_site.site.ledger_pages import CHUNK, ORDER, SORTS, ledger_of, sort_of, table_html
from course_site.site.recorded_expressions import Origin


@pytest.mark.parametrize(
    ("row", "typed", "sort"),
    [
        ({"kind": "measurement", "unit": "µs", "n": 9}, False, "measured"),
        ({"kind": "timed", "unit": "µs"}, False, "measured"),
        ({"kind": "trace", "unit": "points"}, False, "measured"),
        ({"kind": "counted", "unit": "cycles", "n": 5}, False, "measured"),
        ({"kind": "device", "unit": "s"}, False, "measured"),
        ({"kind": "counted", "unit": "B"}, False, "counted"),
        ({"kind": "device", "unit": "1"}, False, "counted"),
        ({"kind": "computed", "unit": "1"}, False, "computed"),
        ({"kind": "derived", "unit": "×"}, False, "computed"),
        ({"kind": "given", "unit": "GB/s"}, False, "given"),
        ({"kind": "computed", "unit": "1"}, True, "given"),  # nothing was worked out
    ],
)
def test_every_number_is_one_of_four_things(row, typed, sort):
    assert sort_of(row, Origin("16", typed, ())) == sort
    assert set(SORTS.values()) == set(ORDER)


CELL = 'record(by_hand=quantity(2 * ROWS, "B"), sheet=quantity(card.bandwidth_gb_per_s, "GB/s", "given"))'


def test_beside_each_number_stands_what_it_is(tmp_path, monkeypatch):
    page = PAGE.replace("kernel.FACTOR", f"kernel.FACTOR\n\n# %%\n{CELL}")
    names = {**NAMES, "by_hand": quantity(3.0), "sheet": {**quantity(4800.0), "how": "given"}}
    root = repository(tmp_path, monkeypatch, page, names)
    course, rendered = render(root)
    assert course.problems == []
    ledger = ledger_of(course, entries(course, {"w1": rendered.shown}))
    chapter = ledger.chapters["numbers/w1.md"].inlined()
    rows = dict(re.findall(r'<tr id="([^"]+)">(.*?)</tr>', chapter))
    assert 'class="measured">measured<' in rows["w1.flash"]
    assert "p/k01 · dtype=bfloat16,N=4" in rows["w1.flash"]
    assert "flash over SDPA: <code>flash.tflops / sdpa.tflops</code>" in rows["w1.ratio.full"]
    assert 'class="computed">computed</td><td><span><code>2 * ROWS</code>' in rows["w1.by_hand"]
    assert "the data sheet of the card: <code>card.bandwidth_gb_per_s</code>" in rows["w1.sheet"]
    assert re.findall(r"<td class=num>(\d*)</td>", ledger.index) == [str(len(rows)), "2", "", "3", "1"]


def test_the_search_is_not_told_of_the_rows_and_links_lead_to_them(tmp_path, monkeypatch):
    course, rendered = render(repository(tmp_path, monkeypatch))
    chapter = ledger_of(course, entries(course, {"w1": rendered.shown})).chapters["numbers/w1.md"]
    assert "search: {exclude: true}" in chapter.markdown
    assert "w1.flash" not in chapter.markdown
    assert address("w1.flash") == "numbers/w1.html#w1.flash"
    assert 'href="../w1.html"' in chapter.inlined()


def test_rows_come_in_groups_that_a_browser_may_skip():
    row = {"name": "a.b", "kind": "computed", "value": 1, "unit": "1"}
    table = table_html(
        [row] * (2 * CHUNK + 1), ["computed"] * (2 * CHUNK + 1), ["<span></span>"] * (2 * CHUNK + 1)
    )
    assert re.findall(r"<tbody style=\"--rows:(\d+)\">", table) == [str(CHUNK), str(CHUNK), "1"]
    assert f"{2 * CHUNK + 1} rows" in table
