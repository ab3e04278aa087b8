"""What two engines make of the same pages is compared; one that does not run the stage builds nothing."""

import grimp
import pytest

from course_site.site import engines
from course_site.site.staged_folder import as_markdown, linked

PAGE = """<!doctype html><html><head><meta name="generator" content="{engine}"><title>{title}</title>
<script src="../assets/js/site.js"></script></head><body>
<article class="md-content__inner"><h1 id="a">A</h1><p>One <a href="b.html">two</a>.<wbr>{more}</p>
<script>var hidden = 1;</script></article>
<a href="{next}" class="md-footer__link"></a></body></html>"""
SAME = {"engine": "mkdocs", "title": "A", "more": "", "next": "b.html"}


@pytest.fixture
def sites(tmp_path):
    for name, engine in (("ours", "mkdocs"), ("theirs", "another")):
        (tmp_path / name / "part").mkdir(parents=True)
        (tmp_path / name / "part/a.html").write_text(PAGE.format(**SAME | {"engine": engine}))
        (tmp_path / name / "ledger.json").write_text(f'{{"date": "{engine}", "value": 1}}')
    return tmp_path / "ours", tmp_path / "theirs"


def test_an_engine_s_name_and_a_date_of_execution_are_no_difference(sites):
    assert engines.differing(*sites) == []
    assert engines.lacks(*sites) == {}


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("part/a.html", "another", "part/a.html: differs"),
        ("ledger.json", '{"date": "", "value": 2}', "ledger.json: differs"),
        ("part/new.html", "", "part/new.html: only in theirs"),
    ],
)
def test_any_other_difference_is_told(sites, name, content, line):
    (sites[1] / name).write_text(content)
    assert engines.differing(*sites) == [line]
    assert engines.differing(*reversed(sites)) == [line]


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"title": "B"}, {"title"}),
        ({"more": "three"}, {"words"}),
        ({"more": '<svg></svg><div class="box"></div>'}, {"drawings", "boxes"}),
        ({"more": '<a href="c.html"></a>'}, {"links"}),
        ({"next": "c.html"}, {"foot"}),
    ],
)
def test_what_a_reader_has_is_told_apart(sites, changed, what):
    (sites[1] / "part/a.html").write_text(PAGE.format(**SAME | changed))
    found = engines.lacks(*sites)
    assert set(found) == what
    assert all(str(lack).startswith("1 pages, the first part/a.html; ") for lack in found.values())


def test_files_that_are_not_there_are_told_but_for_what_nobody_asked_for(sites):
    for name in ("part/a.ipynb", "h100/a.html"):
        (sites[0] / name).parent.mkdir(exist_ok=True)
        (sites[0] / name).write_text("")
    found = engines.lacks(*sites, but=("h100/",))
    assert {what: lack.pages for what, lack in found.items()} == {"files": ["part/a.ipynb"]}


def test_links_lead_to_pages_by_their_names_in_the_folder():
    pages = {"lectures/l1.py": 0, "index.md": 0}
    assert as_markdown("lectures/l1.py") == "lectures/l1.md"
    text = "[a](../lectures/l1.py#x) [b](l1.py) [c](other.py) [d](../index.md) [e](https://a.b/l1.py)"
    want = "[a](../lectures/l1.md#x) [b](l1.md) [c](other.py) [d](../index.md) [e](https://a.b/l1.py)"
    assert linked(text, "lectures/l2.py", pages) == want


def test_the_stage_knows_no_engine():
    graph = grimp.build_graph("course_site", include_external_packages=True, cache_dir=None)
    engines_known = {"mkdocs", "properdocs", "zensical", "material"}
    assert graph.find_modules_directly_imported_by("course_site.site.hook") & engines_known, (
        "nothing was looked at"
    )
    for name in ("course_site.site.stage", "course_site.site.staged_folder"):
        known = {name, *graph.find_upstream_modules(name)} - engines_known
        assert len(known) > 50
        assert {m for m in known if graph.find_modules_directly_imported_by(m) & engines_known} == set()
