"""Keep which tests have passed, by all that decides it: the same again passes again, and is not run.

A test says that it may be kept, and which files it reads besides those that it imports:

    @pytest.mark.kept("docs/softmax.py", of=lambda name, **_: [LABS[name].folder], but=["labs/*"])

`of` gets the test's parameters; `but` is what the test file reads when it is imported, for tests of other files;
`together=True` is for tests that share what takes long: all of a file are drawn, or none.
Its key is the text of the test file, of everything that this imports, and of what the mark names (of judge, labs,
profiler and harness without comments and without docstrings of functions), the meaning of what every test goes through,
and the versions of Python, torch, Triton, NumPy and the compilers. A key that verdicts.json has is a test that has
passed. One in 64 of those is drawn by the commit and run all the same, and one in 256 of those that took long. What
cannot be known by files is not marked: clocks, limits, processes, whoever looks at the machine or asks another library.
While a marked test runs, it fails if it opens a file of the project that its key does not know.
Options: --anew runs all of them; --keep runs nothing else, and writes verdicts.json.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from course_site.records.digest import code_digest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FILE = Path(__file__).with_name("verdicts.json")
MADE_WITH, SLOW, VERDICTS = "made with", "slow", "verdicts"
SLOW_S = 4.0  # a test that took longer is drawn more rarely: a handful of them would be a quarter of a run
DRAWN = "COURSE_TESTS_DRAWN"  # what is run all the same, for the processes of one run
# Part of each key: what every test of this folder goes through. No test reads their words, so their meaning decides.
EVERYWHERE = ("conftest.py", "once.py")
# What decides no verdict: the facts themselves.
FACTS = ("compiled.json", "verdicts.json")
# Each of these is known as a whole, course_kernels folder by folder: who reads one file may read, include or run any.
WHOLE = ("course_kernels", "course_models", "course_judge", "course_labs", "course_profile", "course_harness")
# A kernel of this kind runs in a browser, and decides nothing here: who reads one names it.
IN_A_BROWSER = ".wgsl"
# Of these a comment or a function's docstring decides nothing. A kernel's do: pages and checks of form read them.
TOLD_APART = ("course_judge", "course_labs", "course_profile", "course_harness")

_IMPORTED = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+([\w.]+)(?:[ \t]+import[ \t]+(\([^)]*\)|[^\n(]*))?", re.M
)
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
_NAMED = re.compile(r"[\"'](course_\w+(?:\.\w+)*)[\"'.]")
_BESIDE = re.compile(r"[\"']([\w/-]+\.(?:py|cu|cuh|cpp|h|json|toml|txt))[\"']")


def files_in(folder: Path) -> Iterator[Path]:
    """All files under a folder, without what Python or an editor leaves there, and what runs in a browser."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix in (".pyc", IN_A_BROWSER):
            continue
        if path.is_dir():
            yield from files_in(path)
        else:
            yield path


@functools.cache
def digest(file: Path) -> str:
    """The hash of a file as it was when it was first asked for."""
    if file.parent == HERE and file.name in EVERYWHERE:
        return code_digest(file.read_text(encoding="utf-8"))
    data = file.read_bytes()
    if file.suffix == ".py" and file.is_relative_to(ROOT / "src") and _package(file) in TOLD_APART:
        data = without_their_docstrings(data.decode()).encode()
    return hashlib.sha256(data).hexdigest()


def _package(file: Path) -> str:
    return file.relative_to(ROOT / "src").parts[0]


def without_their_docstrings(source: str) -> str:
    """Source as Python takes it, without the docstrings of functions and classes, which no test reads there.

    A module's own stays: a command prints it as its help. So does every other text: a complaint decides a verdict.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # somebody is in the middle of it
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(
            node
        ):
            node.body[0] = ast.Pass()
    return ast.dump(tree)


@functools.cache
def closure(file: Path) -> frozenset[Path]:
    """A file and all that it imports, names or lies beside, and these in turn."""
    found, left = set(), [file]
    while left:
        file = left.pop()
        if file in found:
            continue
        found.add(file)
        left += needs(file)
    return frozenset(found)


@functools.cache
def needs(file: Path) -> tuple[Path, ...]:
    """What one file needs of the project."""
    found = [] if file.is_relative_to(HERE) else list(_whole_folder(file))
    if file.suffix == ".py":
        found += _of_python(file)
    elif file.suffix in (".cu", ".cuh", ".cpp", ".h"):
        found += [file.parent / name for name in _INCLUDED.findall(file.read_text(encoding="utf-8"))]
    found += [beside for beside in file.parent.glob(f"{file.stem}.*") if beside.suffix != IN_A_BROWSER]
    there = dict.fromkeys(path.resolve() for path in found if path.is_file())
    return tuple(path for path in there if path.name not in FACTS and path.is_relative_to(ROOT))


def _whole_folder(file: Path) -> Iterator[Path]:
    parts = file.relative_to(ROOT).parts
    if parts[0] != "src" or parts[1] not in WHOLE:
        return
    if parts[1] != "course_kernels":
        folder = ROOT / "src" / parts[1]
    elif len(parts) > 3:
        folder = ROOT.joinpath(*parts[:3])
    else:
        return
    for path in files_in(folder):
        if path.suffix != ".md":
            yield path


def _of_python(file: Path) -> Iterator[Path]:
    text = file.read_text(encoding="utf-8")
    for module, names in _IMPORTED.findall(text):
        yield from _module(module, file)
        if module.startswith("course_"):
            for name in re.findall(r"\w+", re.sub(r"#[^\n]*", "", names)):
                yield from _module(f"{module}.{name}", file)
    for name in _NAMED.findall(text):
        yield from _module(name, file)
        yield from _module(f"{name}.__main__", file)
    for name in _BESIDE.findall(text):
        if (file.parent / name).is_file():
            yield file.parent / name


def _module(name: str, file: Path) -> Iterator[Path]:
    """The file of a module of ours, with the packages above it; nothing for others."""
    parts = name.split(".")
    if not parts[0].startswith("course_"):
        if file.is_relative_to(HERE) and (HERE / f"{parts[0]}.py").is_file():
            yield HERE / f"{parts[0]}.py"
        return
    for n in range(1, len(parts) + 1):
        base = ROOT.joinpath("src", *parts[:n])
        if (base / "__init__.py").is_file():
            yield base / "__init__.py"
        elif base.with_suffix(".py").is_file():
            yield base.with_suffix(".py")
            return


@functools.cache
def made_with() -> tuple[str, ...]:
    """The versions of all that decides verdicts and is none of the project's files."""
    named = {each.metadata["Name"].lower(): each.version for each in metadata.distributions()}
    ours = [n for n in named if n.startswith(("nvidia-cuda", "cuda-")) or n in ("torch", "triton", "numpy")]
    compiler = shutil.which("g++")
    said = [compiler, "-dumpversion"]
    gxx = subprocess.run(said, capture_output=True, text=True).stdout.strip() if compiler else "none"
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]} {platform.machine()}"
    versions = [f"{name} {named[name].partition('+')[0]}" for name in sorted(ours)]
    return (python, f"g++ {gxx.partition('.')[0]}", *versions)


@functools.cache
def expanded(named: str | Path) -> tuple[Path, ...]:
    """The files of a path or pattern under the project's root; of a folder all that is in it.

    Raises:
        AssertionError: there is no such file.
    """
    paths = sorted(ROOT.glob(named)) if isinstance(named, str) else [named]
    found = [f for path in paths for f in (files_in(path) if path.is_dir() else [path])]
    assert found, f"a mark `kept` names {named}, which is not there"
    return tuple(found)


def files_of(item: pytest.Item) -> frozenset[Path]:
    """Every file that decides a marked test's verdict."""
    named: list[str | Path] = []
    for mark in item.iter_markers("kept"):
        named += mark.args
        if "of" in mark.kwargs:
            named += mark.kwargs["of"](**(item.callspec.params if hasattr(item, "callspec") else {}))
    files = set(closure(item.path.resolve())).union(*(closure(HERE / name) for name in EVERYWHERE[1:]))
    files.add(HERE / EVERYWHERE[0])  # what its fixtures import is imported by those who ask for them
    for each in named:
        for file in expanded(each):
            files |= closure(file) if file.is_relative_to(ROOT / "src") else {file}
    return frozenset(files)


@functools.cache
def _of_files(files: frozenset[Path]) -> str:
    lines = [f"{file.relative_to(ROOT)} {digest(file)}" for file in sorted(files)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def key_of(name: str, files: frozenset[Path]) -> str:
    """The key of a test by its name and the files that decide it."""
    return hashlib.sha256(json.dumps([name, made_with(), _of_files(files)]).encode()).hexdigest()[:24]


def name_of(item: pytest.Item) -> str:
    """A test's name: file, function and parameters."""
    return item.nodeid.rpartition("/")[2] if "[" not in item.nodeid else _short(item.nodeid)


def _short(name: str) -> str:
    file, _, rest = name.partition("::")
    return f"{file.rpartition('/')[2]}::{rest}"


def read(file: Path = FILE) -> dict[str, Any]:
    """What verdicts.json holds; nothing where there is none."""
    if not file.exists():
        return {MADE_WITH: [], SLOW: [], VERDICTS: {}}
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {SLOW: []} | found


def written(verdicts: dict[str, str], slow: Iterable[str] = ()) -> str:
    """The text of verdicts.json, a line for each."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(key)}" for name, key in sorted(verdicts.items()))
    names = ",\n".join(json.dumps(name) for name in sorted(slow))
    return f'{{"{MADE_WITH}": {json.dumps(made_with())},\n"{SLOW}": [\n{names}\n],\n"{VERDICTS}": {{\n{lines}\n}}}}\n'


def drawn_by(commit: str, facts: str) -> str:
    """What is run all the same, see `is_drawn`."""
    return hashlib.sha256(f"{commit} {facts}".encode()).hexdigest()[:2]


def is_drawn(key: str, drawn: str, rarely: bool) -> bool:
    """Whether a test of this key is run all the same: its first digit is drawn, and its second or one close to it.

    Args:
        drawn: two digits of 16.
        rarely: the second digit itself must be the one that is drawn.
    """
    if rarely or key[:1] != drawn[:1]:
        return key.startswith(drawn)
    return int(key[1], 16) // 4 == int(drawn[1], 16) // 4


def _commit() -> str:
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return said.stdout.strip()


def merged(was: dict[str, str], now: dict[str, str | None], whole: Iterable[str]) -> dict[str, str]:
    """The verdicts after a run.

    Args:
        was: those before it.
        now: name to key of each marked test of the run, None of one that has not passed.
        whole: the files whose every test was asked; what they do not have any more goes.
    """
    whole = set(whole)
    kept = {
        name: key
        for name, key in was.items()
        if name in now or ((file := name.partition("::")[0]) not in whole and (HERE / file).exists())
    }
    return {name: key for name, key in (kept | now).items() if key}


def cold(count: Counter[str]) -> str:
    """What is wrong with verdicts.json, in one line: it does not know more than a sixteenth of what was asked."""
    if count["not known"] * 16 <= count.total():
        return ""
    return (
        f"{FILE.name} does not know {count['not known']} of the {count.total()} verdicts that may be kept, so they "
        "were worked out anew; keep them: nox -s tests -- --keep"
    )


def _matches(path: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path.relative_to(ROOT).as_posix(), pattern) for pattern in patterns)


class Opened:
    """The files of the project that this process reads, while it is asked to look."""

    def __init__(self) -> None:
        self.files: set[str] | None = None
        self._hooked = False

    def begin(self) -> None:
        """Look from now on."""
        self.files = set()
        if not self._hooked:
            self._hooked = True
            sys.addaudithook(self._hook)

    def end(self) -> list[Path]:
        """What was read since."""
        files, self.files = self.files or set(), None
        return sorted(path for path in map(Path, files) if path.is_file())

    def _hook(self, event: str, arguments: Any) -> None:
        if self.files is None or event != "open":
            return
        path, mode, flags = arguments
        if not isinstance(path, str) or (
            set(mode) & set("wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR)
        ):
            return
        if path.endswith(".pyc"):
            try:
                path = importlib.util.source_from_cache(path)
            except ValueError:
                return
        path = os.path.abspath(path)
        inside = path[len(str(ROOT)) + 1 :] if path.startswith(f"{ROOT}{os.sep}") else "."
        if not inside.startswith(".") and not inside.startswith("site/"):
            self.files.add(path)


READ_BY_MODULE = pytest.StashKey[list[Path]]()
STATE = pytest.StashKey[tuple[str, str, frozenset[Path]]]()


class Plugin:
    """What pytest is told of marked tests.

    Args:
        also: what else is wrong with a whole run, in one line.
    """

    def __init__(self, config: pytest.Config, also: Callable[[], str] = str) -> None:
        self.config, self.also = config, also
        self.began = time.time()
        self.anew, self.keep = config.getoption("--anew"), config.getoption("--keep")
        self.is_controller = not hasattr(config, "workerinput")
        facts = read()
        self.verdicts: dict[str, str] = facts[VERDICTS] if is_ours() else {}
        self.slow = frozenset(facts[SLOW])
        self.same_versions = facts[MADE_WITH] == list(made_with())
        if self.is_controller:
            os.environ[DRAWN] = drawn_by(_commit(), FILE.read_text() if FILE.exists() else "")
        self.drawn = os.environ[DRAWN]
        self.opened = Opened()
        self.count: Counter[str] = Counter()
        self.now: dict[str, str | None] = {}
        self.took: dict[str, float] = {}
        self.complaints: list[str] = []

    # --- in the process that runs a test

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Remember what a test file reads when it is imported."""
        if not isinstance(collector, pytest.Module):
            return (yield)
        self.opened.begin()
        try:
            return (yield)
        finally:
            collector.stash[READ_BY_MODULE] = self.opened.end()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is not to be kept, where verdicts are all that is asked for."""
        if self.keep:
            items[:] = [item for item in items if item.get_closest_marker("kept")]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report a test as passed if its key is kept, or begin to look at what it opens."""
        if item.get_closest_marker("kept") is None:
            return None
        files = files_of(item)
        key = key_of(name_of(item), files)
        known = self.verdicts.get(name_of(item)) == key
        together = any(mark.kwargs.get("together") for mark in item.iter_markers("kept"))
        lot = key_of(item.path.name, files) if together else key
        rarely = together or name_of(item) in self.slow
        if known and not self.anew and not is_drawn(lot, self.drawn, rarely):
            self._passed(item, nextitem, key)
            return True
        item.stash[STATE] = ("drawn" if known else "not known"), key, files
        self.opened.begin()
        return None

    def _passed(self, item: pytest.Item, nextitem: pytest.Item | None, key: str) -> None:
        report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "call")
        report.kept = "kept", key
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        item.session._setupstate.teardown_exact(
            nextitem
        )  # the test before kept what this one might have asked for

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Fail a test that reads what its key does not know."""
        result = yield
        if STATE in item.stash:
            _, _, files = item.stash[STATE]
            module = item.getparent(pytest.Module)
            of_others = tuple(
                each for mark in item.iter_markers("kept") for each in mark.kwargs.get("but", ())
            )
            of_module = module.stash.get(READ_BY_MODULE, []) if module else []
            read = {*self.opened.end(), *(path for path in of_module if not _matches(path, of_others))}
            unknown = sorted(
                str(path.relative_to(ROOT))
                for path in read
                if path.resolve() not in files and path.name not in FACTS
            )
            assert not unknown, f"reads what its key does not know: name it in its mark `kept`: {unknown}"
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Hand the key to the process that counts."""
        report = yield
        if STATE in item.stash and (report.when == "call" or not report.passed):
            self.opened.files = None
            state, key, files = item.stash[STATE]
            changed = any(file.stat().st_mtime > self.began for file in files if file.exists())
            report.kept = state, "" if changed else key  # who knows which text it was that passed
        return report

    # --- in the process that counts

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count, and remember the key of what has passed."""
        if self.is_controller and (found := getattr(report, "kept", None)):
            state, key = found
            if report.when == "call" and not report.skipped:
                self.count[state] += 1
            name = _short(report.nodeid)
            if report.when == "call" and state != "kept":
                self.took[name] = report.duration
            failed_before = name in self.now and self.now[name] is None
            self.now[name] = (key or None) if report.passed and not failed_before else None

    def is_whole(self) -> bool:
        """Whether every test of the files that were named was asked."""
        options = self.config.option
        chosen = options.keyword or options.markexpr or getattr(options, "lf", False) or options.deselect
        return not chosen and not any("::" in str(each) for each in self.config.args)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write verdicts.json where that is asked for; fail a whole run that had to do too much anew."""
        if not self.is_controller:
            return
        stopped = bool(session.shouldstop or session.shouldfail or exitstatus > 1)
        if self.keep:
            whole = set()
            if self.is_whole() and not stopped:
                whole = {name.partition("::")[0] for name in self.now}
            facts = read()  # again: two runs of other files may have been under way
            was = facts[VERDICTS] if facts[MADE_WITH] == list(made_with()) else {}
            verdicts = merged(was, self.now, whole)
            slow = {name for name, seconds in self.took.items() if seconds > SLOW_S}
            slow |= set(facts[SLOW]) - set(self.took)
            new = FILE.with_suffix(".new")
            new.write_text(written(verdicts, slow & set(verdicts)), encoding="utf-8")
            new.replace(FILE)
        elif self.is_everything() and not self.anew and not stopped:
            said = [
                cold(self.count) if self.same_versions else "",
                self.also(),
            ]
            self.complaints = list(filter(None, said))
            if self.complaints:
                session.exitstatus = session.exitstatus or 1

    def is_everything(self) -> bool:
        """Whether the whole folder was asked for."""
        return self.is_whole() and [Path(each).resolve() for each in self.config.args] == [HERE]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was kept."""
        if self.count:
            kept, drawn, cold = (self.count[state] for state in ("kept", "drawn", "not known"))
            how = "all anew" if self.anew else f"drawn by {self.drawn}"
            terminalreporter.write_line(
                f"verdicts: {kept} kept, {drawn} run of those that are ({how}), {cold} not known and run"
            )
        for complaint in self.complaints:
            terminalreporter.write_line(complaint, red=True)


def add_options(parser: pytest.Parser) -> None:
    """The options of a run."""
    parser.addoption("--anew", action="store_true", help="run every test, also where its verdict is kept")
    parser.addoption(
        "--keep", action="store_true", help="run what may be kept and is not, and write verdicts.json"
    )


def is_ours() -> bool:
    """Whether what is imported is what lies here, and not another copy of the project."""
    found = importlib.util.find_spec("course_labs")
    return bool(found and found.origin) and Path(found.origin).resolve().is_relative_to(ROOT)
