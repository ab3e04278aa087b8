"""A page is kept by all that decides it, and by nothing else."""

import ast
from collections import Counter
from pathlib import Path

import kept_pages
import pytest
import test_site

PAGE, VERSION = "lectures/l1.html", "156.0.1"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in (
        "assets/site.css",
        "assets/mark.svg",
        "assets/its.svg",
        PAGE,
        "lectures/l1.values.js",
        "lectures/l2.html",
        "index.html",
        "handbook/run/run.js",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"of {name}")
    (tmp_path / "assets/site.css").write_text("url(mark.svg)")
    (tmp_path / PAGE).write_text('<img src="../assets/its.svg"><script src="../handbook/run/run.js">')
    yield tmp_path
    forget()


def forget():
    for each in (
        kept_pages._digest,
        kept_pages._assets,
        kept_pages._asked_by_name,
        kept_pages._for_all,
        kept_pages._of_files,
        test_site.leads_nowhere,
        test_site.text_of,
    ):
        each.cache_clear()


def key(site: Path, *more: object, version: str = VERSION) -> str:
    forget()
    return kept_pages.key_of(site, PAGE, version, *more)


@pytest.mark.parametrize(
    "name",
    [
        "assets/site.css",
        "assets/new.js",
        "assets/mark.svg",
        "assets/its.svg",
        "handbook/run/run.js",
        PAGE,
        "lectures/l1.values.js",
    ],
)
def test_what_a_page_may_ask_for_decides(site: Path, name: str) -> None:
    before = key(site)
    (site / name).write_text("another")
    assert key(site) != before


def test_other_pages_do_not_decide(site: Path) -> None:
    before = key(site)
    (site / "lectures/l2.html").write_text("another")
    (site / "index.html").write_text("new")
    (site / "assets/of_another.svg").write_text("another")
    assert key(site) == before


def test_browser_tests_and_what_is_asked_decide(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {key(site), key(site, True), key(site, False), key(site, version="157")}
    monkeypatch.setattr(kept_pages, "TESTS", kept_pages.TESTS[1:])
    keys.add(key(site))
    monkeypatch.setattr(kept_pages, "_fonts", lambda: "others")
    kept_pages.made_with.cache_clear()
    keys.add(key(site))
    kept_pages.made_with.cache_clear()
    assert len(keys) == 6


def test_the_text_of_every_file_that_the_kept_tests_import_decides() -> None:
    found, ahead = set(), {"test_site.py", "conftest.py"}
    while ahead:
        found.add(name := ahead.pop())
        for each in ast.walk(ast.parse((kept_pages.HERE / name).read_text())):
            modules = [each.module or ""] if isinstance(each, ast.ImportFrom) else (
                [one.name for one in each.names] if isinstance(each, ast.Import) else [])  # fmt: skip
            ahead |= {f"{one}.py" for one in modules if (kept_pages.HERE / f"{one}.py").is_file()} - found
    assert found - {"kept_tests.py"} == set(
        kept_pages.TESTS
    )  # that one leaves tests out, and asks no page anything


def test_a_file_that_its_key_does_not_know_is_told(site: Path) -> None:
    forget()
    asked = {PAGE, "assets/site.css", "lectures/l1.values.js", "lectures/l2.html", "gone.js"}
    assert kept_pages.unknown_files(site, PAGE, asked) == ["lectures/l2.html"]


def test_one_of_64_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {f"page {n:02x}": f"{n:02x}" for n in range(256)}
    monkeypatch.setattr(kept_pages, "known", lambda: ([], pages, "76"))
    states = Counter(kept_pages.state_of(name, key) for name, key in pages.items())
    assert states == {kept_pages.KEPT: 252, kept_pages.DRAWN: 4}
    assert kept_pages.state_of("page 76", "76") == kept_pages.state_of("page 75", "75") == kept_pages.DRAWN
    assert kept_pages.state_of("page 86", "87") == kept_pages.state_of("new", "80") == kept_pages.UNKNOWN


def test_a_file_that_has_gone_cold_is_told() -> None:
    assert not kept_pages.cold(Counter({kept_pages.KEPT: 70, kept_pages.DRAWN: 5, kept_pages.UNKNOWN: 25}))
    assert "26 of the 100 pages" in kept_pages.cold(Counter({kept_pages.KEPT: 74, kept_pages.UNKNOWN: 26}))


def test_a_kept_page_whose_links_lead_nowhere_is_told(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(test_site, "SITE", site)
    (site / PAGE).write_text(
        '<p id="here"><a class="x" href="l2.html#there">a</a> <a href="l2.html#gone">b</a> <a href="../no.html">c</a>'
        ' <a href="#here">d</a> <a href="#not">e</a> <a href="https://example.org/x">f</a>'
        '<a href="../index.html">g</a>'
    )
    (site / "lectures/l2.html").write_text('<p id="there">')
    assert test_site.still_leads(PAGE) == ["/lectures/l1.html#not", "/lectures/l2.html#gone", "/no.html"]
