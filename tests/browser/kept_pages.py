"""Keep which built pages have passed, by all that decides it: the same page again passes again, and is not looked at.

The key of a page is the text of the tests, the versions of Chromium, axe and Playwright, and every file of the site
that the page may ask for: itself, what stands behind its values, the scripts, styles and fonts of all pages, and what
else of scripts, styles and pictures these or the page name. A page that asks for another file fails. Where its links
lead other pages decide, so that is looked up each time. A key that pages.json has is a page that has passed; one in
64 of those is drawn by the commit and looked at all the same. Options: --anew looks at all of them, --keep writes
pages.json.
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

import axe
import pytest

HERE = Path(__file__).resolve().parent
FILE = HERE / "pages.json"
MADE_WITH, PAGES = "made with", "pages"
TESTS = ("test_site.py", "axe.py", "figures.py", "conftest.py", "kept_pages.py")
# What makes the pages: another version of it makes others, and nobody is to blame that these are not known.
MAKERS = (
    "Markdown", "matplotlib", "math-core", "mkdocs", "mkdocs-jupyter", "mkdocs-material", "Pygments",
    "pymdown-extensions", "rcssmin", "rjsmin",
)  # fmt: skip
PICTURES = (".svg", ".png", ".jpg", ".webp", ".ico")
KEPT, DRAWN, UNKNOWN = "kept", "drawn", "not known"


@functools.cache
def _fonts() -> str:
    """What the system has for a sign that none of the site's own fonts has."""
    kinds = ("serif", "sans-serif", "monospace", "math")
    try:
        found = [subprocess.run(["fc-match", kind], capture_output=True, text=True).stdout for kind in kinds]
    except FileNotFoundError:
        return "unknown"
    return hashlib.sha256("".join(found).encode()).hexdigest()[:12]


@functools.cache
def made_with(chromium: str) -> list[str]:
    """The versions of all that decides what becomes of a page, and how it is looked at."""
    rules = hashlib.sha256(axe.script().encode()).hexdigest()[:12]
    makers = [f"{name} {metadata.version(name)}" for name in ("playwright", *MAKERS)]
    return [f"Chromium {chromium}", f"axe {rules}", f"fonts {_fonts()}", *makers]


@functools.cache
def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@functools.cache
def _assets(site: Path) -> frozenset[str]:
    return frozenset(
        path.relative_to(site).as_posix() for path in (site / "assets").rglob("*") if path.is_file()
    )


@functools.cache
def _asked_by_name(site: Path) -> frozenset[str]:
    """Pictures, and the scripts and styles of some pages."""
    names = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.suffix in (".css", ".js")}
    of_some = {name for name in names - _assets(site) if not name.endswith(".values.js")}
    return of_some | {name for name in _assets(site) if name.endswith(PICTURES)}


@functools.cache
def _for_all(site: Path) -> frozenset[str]:
    """The assets that every page may ask for."""
    code = _assets(site) - _asked_by_name(site)
    text = "".join(
        (site / name).read_text(encoding="utf-8") for name in code if name.endswith((".css", ".js"))
    )
    return code | _named_in(text, site) & _assets(site)


def _named_in(text: str, site: Path) -> frozenset[str]:
    return frozenset(name for name in _asked_by_name(site) if Path(name).name in text)


def files_of(site: Path, page: str) -> frozenset[str]:
    """Every file of the site that a page may ask for."""
    beside = str(Path(page).with_suffix(".values.js").as_posix())
    own = {page} | ({beside} if (site / beside).is_file() else set())
    texts = "".join((site / name).read_text(encoding="utf-8") for name in own)
    return _for_all(site) | own | _named_in(texts, site)


@functools.cache
def _of_files(site: Path, names: frozenset[str]) -> str:
    lines = [f"{name} {_digest(site / name)}" for name in sorted(names)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def key_of(site: Path, page: str, chromium: str, *more: object) -> str:
    """The key of a page by everything that decides whether it passes; `more` is what else its test goes by."""
    tests = [_digest(HERE / name) for name in TESTS]
    assets, own = _of_files(site, _for_all(site)), _of_files(site, files_of(site, page) - _for_all(site))
    versions = [each for each in made_with(chromium) if not each.startswith(MAKERS)]  # these made the files
    return hashlib.sha256(json.dumps([page, tests, assets, own, versions, more]).encode()).hexdigest()[:24]


def unknown_files(site: Path, page: str, asked: set[str]) -> list[str]:
    """What a page has asked for and its key does not know."""
    return sorted(name for name in asked - files_of(site, page) if (site / name).is_file())


@functools.cache
def known() -> tuple[list[str], dict[str, str], str]:
    """What pages.json was made with, what it holds, and two digits: which pages are looked at all the same."""
    if not FILE.exists():
        return [], {}, ""
    text = FILE.read_text(encoding="utf-8")
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True)
    found = json.loads(text)
    return found[MADE_WITH], found[PAGES], hashlib.sha256((said.stdout + text).encode()).hexdigest()[:2]


def state_of(name: str, key: str) -> str:
    """Whether a page is kept, drawn to be looked at all the same, or not known."""
    _, pages, drawn = known()
    if pages.get(name) != key:
        return UNKNOWN
    close = key[0] == drawn[0] and int(key[1], 16) // 4 == int(drawn[1], 16) // 4
    return DRAWN if close else KEPT


def written(made: list[str], pages: dict[str, str]) -> str:
    """The text of pages.json, a line for each."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(key)}" for name, key in sorted(pages.items()))
    return f'{{"{MADE_WITH}": {json.dumps(made)},\n"{PAGES}": {{\n{lines}\n}}}}\n'


def cold(count: Counter[str]) -> str:
    """What is wrong with pages.json, in one line: it does not know more than a quarter of the pages."""
    if count[UNKNOWN] * 4 <= count.total():
        return ""
    return (
        f"{FILE.name} does not know {count[UNKNOWN]} of the {count.total()} pages, so they were looked at anew, which "
        "takes minutes; keep them: nox -s browser -- --keep"
    )


class Plugin:
    """Counts what the tests say of their pages, in the process that hears of all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.keep = config, config.getoption("--keep")
        self.count: Counter[str] = Counter()
        self.passed: dict[str, str] = {}
        self.made: list[str] = []
        self.complaint = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a page, and remember the key of one that has passed."""
        for name, said in report.user_properties if report.when == "call" else ():
            if name == "page":
                page, key, state, self.made = said
                self.count[state] += 1
                if report.passed:
                    self.passed[page] = key

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write pages.json where that is asked for; fail a whole run that had to look at too much anew."""
        options = self.config.option
        whole = not options.keyword and not any("::" in str(each) for each in self.config.args)
        made, pages, _ = known()
        if self.keep and self.passed:
            FILE.write_text(
                written(self.made, self.passed if whole else pages | self.passed), encoding="utf-8"
            )
        elif whole and not self.config.getoption("--anew") and made == self.made and exitstatus < 2:
            self.complaint = cold(self.count)
            if self.complaint:
                session.exitstatus = session.exitstatus or 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was kept."""
        if self.count:
            said = ", ".join(f"{self.count[state]} {state}" for state in (KEPT, DRAWN, UNKNOWN))
            terminalreporter.write_line(f"pages: {said}")
        if self.complaint:
            terminalreporter.write_line(self.complaint, red=True)
