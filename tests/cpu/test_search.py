"""What the search is told of a page, and of words."""

import json
from random import Random

import pytest

from course_site.pages.glossary import Term
from course_site.site import search
from course_site.site.search import Section

PAGE = """
<nav class="road">L1 L2</nav>
<h1 id="top">Memory<a class="headerlink" href="#top">&para;</a></h1>
<div class="stamp"><details><summary>Measured</summary></details></div>
<p>A cook &amp; a <abbr title="32 threads">warp</abbr>.<br>Next line</p>
<figure class="chart"><svg><title>drawn</title><text>12 %</text></svg><details class="data"><summary>Numbers</summary>
<table><tr><td>rows</td></tr></table></details></figure>
<p>Said<sup id="fnref:x"><a class="footnote-ref" href="#fn:x">1</a></sup> of
<math><msup><mi>x</mi><mn>2</mn></msup></math>all.</p>
<h2 class="beyond" id="banks">Banks</h2>
<details class="beyond"><summary>Beyond the core, 2 minutes</summary>
<h3 id="banks-inside">Inside</h3>
<details class="fold"><summary>The code</summary>
<pre><code>tl.<b>dot</b>(a, b)  # the note; BLOCK_K, kernelLaunch, x</code></pre></details>
<table><tr><td>tuned</td><td class="num">80 %</td></tr></table>
</details>
<div class="footnote"><ol><li id="fn:x">A paper</li></ol></div>
"""


def test_a_page_falls_into_sections_without_what_is_no_sentence_of_it():
    assert search.sections(PAGE) == [
        Section("top", "Memory", "A cook & a warp. Next line Said of all."),
        Section("banks", "Banks", ""),
        Section("banks-inside", "Inside", "The code tuned", "tl.dot BLOCK_K kernelLaunch"),
    ]


def test_words_before_any_heading_are_the_pages():
    assert search.sections("<p>Hello</p>") == [Section("", "", "Hello")]


def test_students_pages_come_first_and_every_section_has_its_place():
    pages = [
        search.Said("handbook/a.html", "Map", search.rank("handbook/a.py", {}), [Section("", "Map")]),
        search.Said("numbers.html", "Numbers", search.rank("numbers.md", {"search": {"rank": 2}}), []),
        search.Said(
            "l3.html", "Memory", search.rank("lectures/l3.py", {}), [Section("banks", "Bänke", "32")]
        ),
    ]
    files = search.scripts(pages, search.Words({"oom": ["out of memory"]}, ["the"]))
    assert list(files) == ["search/index.js", "search/part1.js", "search/part2.js"]
    before, _, index = files["search/index.js"].rstrip(";\n").partition("=")
    assert before == "PercentOfPeak.searchIndex"
    assert json.loads(index) == {
        "pages": [["l3.html", "Memory", 0], ["handbook/a.html", "Map", 1], ["numbers.html", "Numbers", 2]],
        "parts": ["search/part1.js", "search/part2.js"],
        "core": 1,
        "means": {"oom": ["out of memory"]},
        "plain": ["the"],
    }
    assert files["search/part1.js"] == 'PercentOfPeak.searchPart([[0,"banks","Bänke","32",""]]);\n'
    assert files["search/part2.js"] == 'PercentOfPeak.searchPart([[1,"","Map","",""]]);\n'
    assert list(search.locations(files.__getitem__)) == ["l3.html#banks", "handbook/a.html"]


def test_no_part_is_larger_than_the_limit_and_none_mixes_students_with_others(monkeypatch):
    """Every section stands in one part, in the order of pages, however many there are."""
    monkeypatch.setattr(search, "PART_BYTES", 2000)
    random = Random(7)
    pages = [
        search.Said(
            f"{number:03}.html",
            "Page",
            random.choice((0, 0, 1, 2)),
            [Section(f"s{i}", "Bänke", "ä" * random.randrange(600)) for i in range(random.randrange(9))],
        )
        for number in range(60)
    ]
    files = search.scripts(pages, search.Words({}, []))
    index = json.loads(files.pop(search.FILE).removeprefix("PercentOfPeak.searchIndex=").rstrip(";\n"))
    assert index["parts"] == list(files)
    assert 1 < index["core"] < len(files)
    seen = []
    for number, text in enumerate(files.values()):
        assert len(text.encode()) <= 2000
        rows = json.loads(text.removeprefix("PercentOfPeak.searchPart(").rstrip(");\n"))
        assert {index["pages"][page][2] == 0 for page, *_ in rows} == {number < index["core"]}
        seen += [(index["pages"][page][0], anchor) for page, anchor, *_ in rows]
    ordered = sorted(pages, key=lambda page: (page.rank, page.url))
    assert seen == [(page.url, section.anchor) for page in ordered for section in page.sections]
    # Nearly full, all but the last of either kind: a part costs a request.
    sizes = [len(text.encode()) for text in files.values()]
    assert all(size > 2000 - 1300 for size in sizes[: index["core"] - 1] + sizes[index["core"] : -1])


@pytest.mark.parametrize("name", ["search/index.js", "search/part1.js"])
def test_a_file_that_is_no_index_is_named(name):
    files = search.scripts([search.Said("a.html", "A", 0, [Section("", "A")])], search.Words({}, []))
    with pytest.raises(ValueError, match=rf"^{name}: is not a search index$"):
        list(search.locations((files | {name: "[]"}).__getitem__))


def test_a_term_is_found_by_what_it_is_also_called(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / search.WORDS).write_text('plain = ["the"]\n[means]\n"vram" = ["HBM"]\n"tray" = ["memory"]\n')
    terms = [Term("block", "block", "", also=("blocks", "CTA")), Term("sm", "SM", "", also=("tray",))]
    assert search.load_words(tmp_path, terms) == search.Words(
        {"cta": ["block"], "tray": ["memory"], "vram": ["HBM"]}, ["the"]
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("plain = [", "is not TOML"),
        ("synonyms = 1", "'synonyms' is not known here: write `plain` or `means`"),
        ('plain = "the"', "`plain` must be a list of words"),
        ('[means]\noom = "memory"', "`oom` must be a list of what the pages say"),
        ("[means]\noom = []", "`oom` must be a list of what the pages say"),
        ('[means]\nOOM = ["memory"]', "`OOM`: write it in small letters"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, text, says):
    (tmp_path / "docs").mkdir()
    (tmp_path / search.WORDS).write_text(text)
    with pytest.raises(ValueError, match=says.replace(".", r"\.")):
        search.load_words(tmp_path)
