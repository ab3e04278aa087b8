"""A test is kept for one site and the code it was made from, and for nothing else."""

import json
from pathlib import Path
from types import SimpleNamespace

import kept_tests
import pytest
from kept_tests import ALWAYS, DRAWN, KEPT, UNKNOWN, Plugin

VERSIONS = ["Chromium 156"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a site."""
    for name in (
        "site/index.html",
        "site/ledger.json",
        "src/course_site/a.py",
        "docs/a.py",
        "records/a.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f'of {name}, "date": "2026"')
    monkeypatch.setattr(kept_tests, "ROOT", tmp_path)
    monkeypatch.setattr(kept_tests, "READ", ("docs", "records", "src"))
    monkeypatch.setattr(kept_tests.kept_pages, "made_with", lambda chromium: [f"Chromium {chromium}"])
    monkeypatch.setattr(kept_tests, "chromium", lambda: "156")
    return tmp_path


def key(root: Path) -> str:
    return kept_tests.key_of(root, root / "site", VERSIONS)


@pytest.mark.parametrize(
    "name", ["site/index.html", "site/new.js", "src/course_site/a.py", "docs/b.py", "records/a.json"]
)
def test_every_file_of_the_site_and_of_its_code_decides(root: Path, name: str) -> None:
    before = key(root)
    (root / name).write_text("another")
    assert key(root) != before


def test_versions_decide_and_a_date_of_the_ledger_does_not(root: Path) -> None:
    before = key(root)
    assert kept_tests.key_of(root, root / "site", ["Chromium 157"]) != before
    (root / "site/ledger.json").write_text('of site/ledger.json, "date": "2027"')
    (root / "site/percent-of-peak.tar.gz").write_text("with what was kept")
    with_source = key(root)
    (root / "site/percent-of-peak.tar.gz").write_text("with what is kept")
    assert key(root) == with_source != before, "that it is there decides, what is in it does not"
    (root / "site/percent-of-peak.tar.gz").unlink()
    (root / "src/course_site/__pycache__").mkdir()
    (root / "src/course_site/__pycache__/a.pyc").write_text("compiled")
    assert key(root) == before
    (root / "site/ledger.json").write_text('of another, "date": "2026"')
    assert key(root) != before


def plugin(root: Path, *options: str, names: tuple[str, ...] = ("tests/browser",)) -> Plugin:
    config = SimpleNamespace(
        getoption=lambda name: name in options, args=names, option=SimpleNamespace(keyword="")
    )
    return Plugin(config, root / "site", root / "tests.json")


def item(name: str, *marks: str) -> SimpleNamespace:
    return SimpleNamespace(
        path=Path("tests/browser/test_a.py"), name=name, get_closest_marker=lambda mark: mark in marks or None
    )


def run(root: Path, *reports: tuple[str, str, str], names: tuple[str, ...] = ("tests/browser",)) -> None:
    """A run with --keep of tests by their names, each with a part of it and how that ended."""
    plug = plugin(root, "--keep", names=names)
    for name, when, outcome in reports:
        plug.pytest_runtest_logreport(
            SimpleNamespace(kept_test=(name, UNKNOWN), when=when, passed=outcome == "passed")
        )
    plug.pytest_sessionfinish(SimpleNamespace(), 0)


def kept(root: Path) -> list[str]:
    return json.loads((root / "tests.json").read_text())["passed"] if (root / "tests.json").exists() else []


def test_what_has_passed_in_all_its_parts_is_kept(root: Path) -> None:
    run(
        root,
        ("a", "setup", "passed"), ("a", "call", "passed"), ("a", "teardown", "passed"),
        ("b", "call", "failed"), ("c", "setup", "failed"), ("d", "call", "passed"), ("d", "teardown", "failed"),
        ("e", "setup", "skipped"),
    )  # fmt: skip
    assert kept(root) == ["a"]


def test_a_part_of_a_run_leaves_the_rest_of_the_same_site(root: Path) -> None:
    run(root, ("a", "call", "passed"), ("b", "call", "passed"))
    run(root, ("b", "call", "failed"), ("c", "call", "passed"), names=("tests/browser/test_a.py::c",))
    assert kept(root) == ["a", "c"]
    (root / "docs/a.py").write_text("another")
    run(root, ("c", "call", "passed"), names=("tests/browser/test_a.py::c",))
    assert kept(root) == ["c"]


def test_a_site_that_is_built_anew_meanwhile_keeps_nothing(root: Path) -> None:
    plug = plugin(root, "--keep")
    plug.pytest_runtest_logreport(SimpleNamespace(kept_test=("a", UNKNOWN), when="call", passed=True))
    (root / "site/index.html").write_text("another")
    plug.pytest_sessionfinish(SimpleNamespace(), 0)
    assert kept(root) == []


def test_a_test_is_run_where_anything_changed_it_is_drawn_or_says_so(root: Path, monkeypatch) -> None:
    name = kept_tests.name_of(item("test_it[1]"))
    assert name == "test_a.py::test_it[1]"
    run(root, (name, "call", "passed"))
    monkeypatch.setattr(kept_tests, "is_drawn", lambda name, commit: False)
    assert plugin(root).state_of(item("test_it[1]")) == KEPT
    assert plugin(root).state_of(item("test_it[2]")) == UNKNOWN
    assert plugin(root).state_of(item("test_it[1]", "always")) == ALWAYS
    assert plugin(root).state_of(item("test_it[1]", "by_page")) == ""
    assert plugin(root, "--anew").state_of(item("test_it[1]")) == DRAWN
    monkeypatch.setattr(kept_tests, "is_drawn", lambda name, commit: True)
    assert plugin(root).state_of(item("test_it[1]")) == DRAWN
    (root / "site/index.html").write_text("another")
    assert plugin(root).state_of(item("test_it[1]")) == UNKNOWN
    monkeypatch.setattr(kept_tests, "chromium", lambda: "")
    assert plugin(root).state_of(item("test_it[1]")) == UNKNOWN


def test_one_in_sixteen_is_drawn_and_others_by_another_commit() -> None:
    names = [f"test_a.py::test_{n}" for n in range(1600)]
    drawn = [{name for name in names if kept_tests.is_drawn(name, commit)} for commit in ("a", "b")]
    assert all(60 < len(each) < 140 for each in drawn)
    assert len(drawn[0] & drawn[1]) < 30
