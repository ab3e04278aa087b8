"""Keep which tests have passed on a site as a whole: the same site, by the same code, passes again and is not opened.

Who clicks, types and follows links may come to any page, so one key stands for all of these tests: every file of the
site, the project's code and texts, and the versions of Chromium, axe and Playwright. tests.json holds the key and the
names of what has passed. One test in 16 is drawn by the commit and run all the same; a test with a mark `always`, for
what another process or a clock decides, is run each time. Pages that are looked at one by one have keys of their own,
see kept_pages.py. Options: --anew runs all of them, --keep writes tests.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kept_pages
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FILE = HERE / "tests.json"
# What a test may read of the project besides the site: to draw a part of a page, or to know what must stand there.
READ = (
    "capstone", "docs", "handbook", "labs", "proposals", "pyproject.toml", "records", "src", "tests/browser",
)  # fmt: skip
FACTS = ("pages.json", "tests.json")
KEPT, DRAWN, UNKNOWN, ALWAYS = "kept", "drawn", "not known", "always run"
# The site's own source, with tests.json in it: what of it decides is read above.
SOURCE = "percent-of-peak.tar.gz"
# The ledger says when a page was executed that measures nothing, which each build does.
EXECUTED = re.compile(rb'"date": "[^"]*"')


def chromium() -> str:
    """The version of the browser the tests will start; nothing where it does not say."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        return ""
    said = subprocess.run([executable, "--version", "--no-sandbox"], capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else ""


def files_in(place: Path) -> Iterator[Path]:
    """A file, or all files of a folder, without what Python, an editor and these two plugins leave there."""
    if place.is_file():
        yield place
        return
    for path in sorted(place.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if not (path.parent == HERE and path.name in FACTS):
            yield from files_in(path)


def key_of(root: Path, site: Path, versions: list[str]) -> str:
    """The key of a site with the code and the texts it was made from."""
    told = hashlib.sha256(json.dumps(versions).encode())
    for base, places in ((site, [site]), (root, [root / name for name in READ])):
        for path in (file for place in places for file in files_in(place)):
            data = b"" if path.name == SOURCE else path.read_bytes()
            if path.name == "ledger.json":
                data = EXECUTED.sub(b"", data)
            told.update(f"{path.relative_to(base)} {hashlib.sha256(data).hexdigest()}\n".encode())
    return told.hexdigest()[:24]


def read(file: Path) -> tuple[str, frozenset[str]]:
    """The key that tests.json holds, and the names of the tests that have passed with it."""
    if not file.exists():
        return "", frozenset()
    found = json.loads(file.read_text(encoding="utf-8"))
    return found["key"], frozenset(found["passed"])


def written(key: str, passed: frozenset[str]) -> str:
    """The text of tests.json, a line for each test."""
    lines = ",\n".join(json.dumps(name) for name in sorted(passed))
    return f'{{"key": {json.dumps(key)},\n"passed": [\n{lines}\n]}}\n'


def is_drawn(name: str, commit: str) -> bool:
    """Whether a test is run although it has passed: one in 16, others with each commit."""
    return hashlib.sha256(f"{commit} {name}".encode()).hexdigest()[0] == "0"


def name_of(item: pytest.Item) -> str:
    """A test's name: file, function and parameters."""
    return f"{item.path.name}::{item.name}"


STATE = pytest.StashKey[str]()


class Plugin:
    """Passes what is kept, in the process that runs a test; counts in the one that hears of all.

    Args:
        site: the folder of the built site.
        file: tests.json.
    """

    def __init__(self, config: pytest.Config, site: Path, file: Path = FILE) -> None:
        self.config, self.site, self.file = config, site, file
        self.anew, self.keep = config.getoption("--anew"), config.getoption("--keep")
        self.is_controller = not hasattr(config, "workerinput")
        known, self.passed_before = read(file)
        version = chromium()
        self.key = self.key_now(version) if version else ""
        self.is_known = bool(self.key) and known == self.key
        said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True)
        self.commit = said.stdout.strip()
        self.count: Counter[str] = Counter()
        self.said: dict[str, bool] = {}

    def key_now(self, version: str) -> str:
        """The key of the site as it lies there."""
        return key_of(ROOT, self.site, kept_pages.made_with(version)) if self.site.is_dir() else ""

    def state_of(self, item: pytest.Item) -> str:
        """What is to be done with a test; nothing is said of one that is looked at page by page."""
        if item.get_closest_marker("by_page"):
            return ""
        if item.get_closest_marker("always"):
            return ALWAYS
        if not self.is_known or name_of(item) not in self.passed_before:
            return UNKNOWN
        return DRAWN if self.anew or is_drawn(name_of(item), self.commit) else KEPT

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report a test as passed if it is kept."""
        state = item.stash[STATE] = self.state_of(item)
        if state != KEPT:
            return None
        report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "call")
        report.kept_test = name_of(item), state
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        item.session._setupstate.teardown_exact(nextitem)  # what the test before it held for this one
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Tell the process that counts what was run."""
        report = yield
        if item.stash.get(STATE, ""):
            report.kept_test = name_of(item), item.stash[STATE]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count, and remember what has passed in all its parts."""
        if not self.is_controller or not (found := getattr(report, "kept_test", None)):
            return
        name, state = found
        self.count[state] += report.when == "call"
        if state != ALWAYS and (report.when == "call" or not report.passed):
            self.said[name] = report.passed and self.said.get(name, True)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write tests.json where that is asked for; not if somebody built the site anew meanwhile."""
        if not (self.is_controller and self.keep and self.said and self.key):
            return
        if self.key_now(chromium()) != self.key:
            return
        options = self.config.option
        whole = (
            not options.keyword and not any("::" in str(each) for each in self.config.args) and exitstatus < 2
        )
        before = self.passed_before - set(self.said) if self.is_known and not whole else frozenset()
        new = self.file.with_suffix(".new")
        passed = before | {name for name, fine in self.said.items() if fine}
        new.write_text(written(self.key, frozenset(passed)), encoding="utf-8")
        new.replace(self.file)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was kept."""
        if self.count:
            said = ", ".join(f"{self.count[state]} {state}" for state in (KEPT, DRAWN, UNKNOWN, ALWAYS))
            terminalreporter.write_line(f"tests on the site as a whole: {said}")
