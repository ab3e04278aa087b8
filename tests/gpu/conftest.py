"""Tests that need a card: a skip is a failure, and a whole run leaves a record that the strict build reads.

The record is records/<gpu>/tests.json; COURSE_RECORDS names another folder for records. A run of some of the
tests (-k, -m, single files, --last-failed) leaves no record.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch

import course_kernels
from course_kernels.measure import provenance as provenance_module
from course_site.digest import file_digest
from course_site.execute import DERIVED_FILES, DERIVED_FOLDER, revision
from course_site.record import edition_of, seal, write_atomically

HERE = Path(__file__).resolve().parent
ROOT = Path(course_kernels.__file__).resolve().parents[2]

_opened: set[str] = set()
_results: dict[str, dict[str, Any]] = {}
_partial: list[str] = []
_root: list[Path] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        _opened.add(os.path.abspath(arguments[0]))


def pytest_configure(config: pytest.Config) -> None:
    if not torch.cuda.is_available():
        raise pytest.UsageError(
            "tests/gpu: torch finds no usable GPU here; run tests/cpu, or run this on a card"
        )
    _root.append(config.rootpath)
    sys.addaudithook(_watch)


# --- a skip is a failure ------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    return _no_skip(report, item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    return _no_skip(report, collector.nodeid)


def _no_skip(report: Any, name: str) -> Any:
    if report.skipped:
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{name}: was skipped, which is a failure here: {reason}"
    return report


# --- the record ---------------------------------------------------------------------------------


def pytest_deselected(items: list[pytest.Item]) -> None:
    _partial.append(f"{len(items)} tests were deselected")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not (_root[0] / report.nodeid.split("::")[0]).is_relative_to(HERE):
        return
    result = _results.setdefault(report.nodeid, {"id": report.nodeid, "outcome": "passed", "seconds": 0.0})
    result["seconds"] = round(result["seconds"] + report.duration, 3)
    if report.failed:
        result["outcome"] = "failed"
    if report.user_properties:  # what a test said of itself with record_property
        result["properties"] = dict(report.user_properties)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    whole = all(Path(argument).is_dir() for argument in session.config.args)
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or _partial or not whole:
        return
    if session.config.option.collectonly or session.shouldstop or session.shouldfail:
        return
    path = write_record(list(_results.values()), {item.path for item in session.items})
    print(f"\nwrote {path}")


def write_record(tests: list[dict[str, Any]], test_files: set[Path]) -> Path:
    """Seal the outcome of all tests with where it was found and what ran; the file written."""
    provenance = provenance_module.provenance()
    files = _manifest({Path(__file__), *test_files})
    provenance |= revision(ROOT, files)
    data = {
        "kind": "tests",
        "passed": sum(test["outcome"] == "passed" for test in tests),
        "failed": sum(test["outcome"] == "failed" for test in tests),
        "tests": sorted(tests, key=lambda test: test["id"]),
        "provenance": provenance,
        "edition": edition_of(provenance),
        "manifest": {file: file_digest(ROOT / file) for file in files},
    }
    folder = Path(os.environ.get("COURSE_RECORDS") or ROOT / "records")
    path = folder / provenance["slug"] / "tests.json"
    write_atomically(path, json.dumps(seal(data), indent=1, ensure_ascii=False) + "\n")
    return path


def _manifest(test_files: set[Path]) -> list[str]:
    """Every project file that took part, as the records of pages list them."""
    counters = sys.modules.get("course_kernels.measure.counters")
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    paths = {Path(file).resolve() for file in [*_opened, *loaded] if isinstance(file, str)}
    paths |= counters.child_files() if counters is not None else set()
    names = {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.is_relative_to(ROOT / "src") and path.is_file() and "__pycache__" not in path.parts
    }
    names = {name for name in names if not name.startswith(DERIVED_FOLDER) and name not in DERIVED_FILES}
    return sorted(
        names
        | {path.resolve().relative_to(ROOT).as_posix() for path in test_files if path.is_relative_to(ROOT)}
    )
