"""Tests that need a card: a skip is a failure, and every group of tests leaves a record that the strict build reads.

A test belongs to the groups that its marker `group` names, or to the one of its file's GROUPS;
course_site.records.gpu_test_records says which groups there are, what each depends on. A group that ran whole leaves
records/<gpu>/tests/<group>.json; COURSE_RECORDS names another folder for records. `--group NAME` runs these groups
only. A run of some of a group's tests (-k, -m, one of its files, --last-failed, ended early) leaves no record of it.

A file may begin processes that run behind the tests of others: `begin_behind(items)`. One with ALONE = True looks at
time, so its tests come last, when nothing runs behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from course_kernels.measure import provenance as provenance_module
from course_site.records import gpu_test_records
from course_site.records.execute import revision
from course_site.records.record import edition_of, seal, write_atomically

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROJECT = gpu_test_records.Project(ROOT)

_groups: dict[str, frozenset[str]] = {}  # of every item that was collected
_left_out: set[str] = set()  # groups of which something was not run
_results: dict[str, dict[str, Any]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--group", action="append", default=[], metavar="NAME", help="run this group only (repeatable)"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not torch.cuda.is_available():
        raise pytest.UsageError(
            "tests/gpu: torch finds no usable GPU here; run tests/cpu, or run this on a card"
        )
    try:
        known = PROJECT.groups
    except gpu_test_records.GroupsUnknown as error:
        raise pytest.UsageError(str(error)) from None
    for name in config.getoption("--group"):
        if name not in known:
            raise pytest.UsageError(f"--group {name}: there is no such group; there are {', '.join(known)}")


# --- whose a test is ------------------------------------------------------------------------------


def groups_of(item: pytest.Item) -> frozenset[str]:
    """The groups of a test.

    Raises:
        pytest.UsageError: none is named, or one that its file's GROUPS do not have.
    """
    of_file = PROJECT.test_files[item.path.resolve()]
    named = {str(name) for marker in item.iter_markers("group") for name in marker.args}
    named |= set(of_file) if len(of_file) == 1 else set()
    where = f"{item.nodeid}: its file's GROUPS are {', '.join(of_file)}"
    if not named:
        raise pytest.UsageError(f"{where}; name its own: @pytest.mark.group(…), or marks= at its parameter")
    if not named <= set(of_file):
        raise pytest.UsageError(f"{where}; {', '.join(sorted(named - set(of_file)))} is none of them")
    return frozenset(named)


@pytest.hookimpl(tryfirst=True)  # before -k and -m leave anything out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.path.is_relative_to(HERE)]
    _groups.update((item.nodeid, groups_of(item)) for item in mine)
    wanted = set(config.getoption("--group"))
    if wanted:
        others = [item for item in mine if not _groups[item.nodeid] & wanted]
        items[:] = [item for item in items if item not in set(others)]
        config.hook.pytest_deselected(items=others)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    module = getattr(item, "module", None)
    return 2 if getattr(module, "ALONE", False) else 1 if hasattr(module, "begin_behind") else 0


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    behind: dict[Any, list[pytest.Item]] = {}
    for item in session.items:
        if _turn(item) == 1:
            behind.setdefault(item.module, []).append(item)  # type: ignore[attr-defined]
    for module, items in behind.items():
        module.begin_behind(items)


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


# --- the records --------------------------------------------------------------------------------


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        _left_out.update(_groups.get(item.nodeid, ()))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.nodeid not in _groups:
        return
    result = _results.setdefault(report.nodeid, {"id": report.nodeid, "outcome": "passed", "seconds": 0.0})
    result["seconds"] = round(result["seconds"] + report.duration, 3)
    if report.failed:
        result["outcome"] = "failed"
    if report.user_properties:  # what a test said of itself with record_property
        result["properties"] = dict(report.user_properties)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    option = session.config.option
    if option.collectonly or session.shouldstop or session.shouldfail or getattr(option, "lf", False):
        return
    single = {Path(argument.split("::")[0]).resolve() for argument in session.config.args if "::" in argument}
    seen = {item.path.resolve() for item in session.items} - single
    whole = [
        group
        for group in PROJECT.groups
        if group not in _left_out and PROJECT.files_of(group) and seen.issuperset(PROJECT.files_of(group))
    ]
    paths = write_records(whole, _results.values())
    if paths:
        print(f"\nwrote {len(paths)} records in {paths[0].parent}")


def write_records(groups: list[str], results: Iterable[dict[str, Any]]) -> list[Path]:
    """Seal the outcome of every group that ran whole, with where it was found and what ran; the files written."""
    results = sorted(results, key=lambda test: test["id"])
    provenance = provenance_module.provenance()
    folder = Path(os.environ.get("COURSE_RECORDS") or ROOT / "records")
    paths = []
    for group in groups:
        tests = [test for test in results if group in _groups[test["id"]]]
        if not tests:
            continue
        coverage = PROJECT.coverage(group)
        data = {
            "kind": "tests",
            "group": group,
            "passed": sum(test["outcome"] == "passed" for test in tests),
            "failed": sum(test["outcome"] == "failed" for test in tests),
            "tests": tests,
            "provenance": provenance | revision(ROOT, list(coverage)),
            "edition": edition_of(provenance),
            "coverage": coverage,
        }
        path = folder / gpu_test_records.record_path(ROOT, provenance["slug"], group).relative_to(
            ROOT / "records"
        )
        write_atomically(path, json.dumps(seal(data), indent=1, ensure_ascii=False) + "\n")
        paths.append(path)
    return paths
