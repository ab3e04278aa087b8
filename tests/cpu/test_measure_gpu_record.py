"""What tests/gpu/conftest.py does, tried on a made-up card: skips fail, and every group that ran whole is recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import course_site.records.execute
import course_site.records.gpu_test_records  # both are imported once: the runs below forget what they import
from course_kernels.measure import provenance
from course_site.records.record import is_sealed

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
CARD = {
    "gpu": "NVIDIA H200",
    "slug": "nvidia-h200",
    "cuda": "13.0",
    "torch": "2.11.0+cu130",
    "triton": "3.6.0",
}
ONE = 'GROUPS = ("one",)\n'
PASSING = ONE + "def test_a(): pass\ndef test_b(): pass\n"
# Tests of two problems in one file: by a parameter, and by a marker.
PROBLEMS = """
import pytest
GROUPS = ("every problem",)
@pytest.mark.parametrize("p", [pytest.param(p, marks=pytest.mark.group(p)) for p in ("alpha", "beta")])
def test_kernel(p): pass
@pytest.mark.group("beta")
def test_more(): pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run test files beside a copy of the conftest, on a made-up card: (result, the records by group)."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(provenance, "provenance", lambda: dict(CARD))
    folder = pytester.path / "tests" / "gpu"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "gpu" / "conftest.py", folder)
    for problem in ("alpha", "beta"):
        own = pytester.path / "src" / "course_kernels" / problem
        own.mkdir(parents=True)
        for name in ("problem", "k01_first"):
            (own / f"{name}.py").write_text("X = 1\n")

    def go(*arguments, **sources):
        for old in folder.glob("test_*.py"):
            old.unlink()
        shutil.rmtree(pytester.path / "records", ignore_errors=True)
        for name, source in sources.items():
            (folder / f"test_{name}.py").write_text(source)
        words = [word for word in arguments if word.startswith("tests/")] or ["tests/gpu"]
        words += [word for word in arguments if word not in words]
        found = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", *words)
        records = (pytester.path / "records" / "nvidia-h200" / "tests").glob("*.json")
        return found, {path.stem: json.loads(path.read_text()) for path in records}

    return go


def test_a_whole_run_leaves_a_sealed_record_of_every_group(run):
    done, records = run(it=PASSING, problems=PROBLEMS)

    assert done.ret == 0
    assert sorted(records) == ["alpha", "beta", "one"]
    assert all(is_sealed(record) for record in records.values())
    record = records["one"]
    assert (record["kind"], record["group"], record["passed"], record["failed"]) == ("tests", "one", 2, 0)
    assert [(t["id"], t["outcome"]) for t in record["tests"]] == [
        ("tests/gpu/test_it.py::test_a", "passed"),
        ("tests/gpu/test_it.py::test_b", "passed"),
    ]
    assert record["edition"]["torch"] == "2.11"
    assert {"commit", "dirty"} <= set(record["provenance"])
    assert [test["id"].split("::")[1] for test in records["beta"]["tests"]] == [
        "test_kernel[beta]",
        "test_more",
    ]


def test_a_record_covers_what_the_build_will_look_at(run, pytester):
    _, records = run(it=PASSING, problems=PROBLEMS)

    project = course_site.records.gpu_test_records.Project(pytester.path)
    assert records["alpha"]["coverage"] == project.coverage("alpha")
    assert list(records["alpha"]["coverage"]) == [
        "src/course_kernels/alpha/k01_first.py",
        "src/course_kernels/alpha/problem.py",
        "tests/gpu/conftest.py",
        "tests/gpu/test_problems.py",
    ]
    assert list(records["one"]["coverage"]) == ["tests/gpu/conftest.py", "tests/gpu/test_it.py"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def test_a(): pass\n", "tests/gpu/test_it.py: does not say whose tests it holds"),
        (
            'GROUPS = ("one", "two")\ndef test_a(): pass\n',
            "tests/gpu/test_it.py::test_a: its file's GROUPS are one, two; name its own: @pytest.mark.group",
        ),
        (
            'import pytest\nGROUPS = ("one", "two")\n@pytest.mark.group("three")\ndef test_a(): pass\n',
            "tests/gpu/test_it.py::test_a: its file's GROUPS are one, two; three is none of them",
        ),
    ],
)
def test_a_test_that_belongs_to_no_group_stops_the_run(run, source, said):
    done, records = run(it=source)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr.str() + done.stdout.str()
    assert records == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\ndef test_a(): pytest.skip('no such card')",
        "import pytest\n@pytest.mark.skip(reason='no such card')\ndef test_a(): pass",
        "import pytest\n@pytest.fixture\ndef f(): pytest.skip('no such card')\ndef test_a(f): pass",
    ],
)
def test_a_skip_is_a_failure(run, source):
    done, records = run(it=ONE + source)

    assert done.ret == 1
    assert "was skipped, which is a failure here: " in done.stdout.str()
    assert "no such card" in done.stdout.str()
    assert (records["one"]["passed"], records["one"]["failed"]) == (0, 1)


def test_what_a_test_says_of_itself_stands_in_the_record(run):
    _, records = run(
        it=ONE + "def test_a(record_property): record_property('explained', 'why')\ndef test_b(): pass"
    )

    assert [t.get("properties") for t in records["one"]["tests"]] == [{"explained": "why"}, None]


def test_a_skipped_file_is_a_failure_and_leaves_no_record(run):
    done, records = run(it=ONE + "import pytest\npytest.importorskip('no_such_module')\ndef test_a(): pass")

    assert done.ret != 0
    assert "was skipped, which is a failure here: " in done.stdout.str()
    assert records == {}


def test_a_failure_is_recorded_in_its_group_alone(run):
    done, records = run(it=PASSING + "\ndef test_c(): assert False\n", problems=PROBLEMS)

    assert done.ret == 1
    assert {group: (r["passed"], r["failed"]) for group, r in records.items()} == {
        "one": (2, 1),
        "alpha": (1, 0),
        "beta": (2, 0),
    }


FILES = {"it": PASSING, "problems": PROBLEMS}


@pytest.mark.parametrize(
    ("arguments", "recorded"),
    [
        (["--group", "beta"], {"beta"}),
        (["--group", "beta", "--group", "one"], {"beta", "one"}),
        (["-k", "test_b"], set()),
        (["-k", "alpha or test_b"], {"alpha"}),
        (["--group", "one", "-k", "test_b"], set()),
        (["tests/gpu/test_it.py"], {"one"}),
        (["tests/gpu/test_it.py::test_a"], set()),
        (["tests/gpu/test_problems.py::test_more"], set()),
        (["--deselect=tests/gpu/test_it.py::test_a"], {"alpha", "beta"}),
        (["--ignore=tests/gpu/test_it.py"], {"alpha", "beta"}),
        (["--collect-only"], set()),
    ],
    ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value),
)
def test_only_a_group_that_ran_whole_is_recorded(run, arguments, recorded):
    _, records = run(*arguments, **FILES)

    assert set(records) == recorded


def test_a_run_that_was_stopped_leaves_no_record(run):
    _, records = run("-x", it=ONE + "def test_a(): assert False\ndef test_b(): pass")

    assert records == {}


def test_a_group_in_two_files_needs_both(run):
    second = 'GROUPS = ("one",)\ndef test_z(): pass\n'
    _, both = run(it=PASSING, other=second)
    _, half = run("tests/gpu/test_it.py", it=PASSING, other=second)

    assert len(both["one"]["tests"]) == 3
    assert half == {}


def test_an_unknown_group_is_one_line(run):
    done, _ = run("--group", "gamma", **FILES)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "--group gamma: there is no such group; there are alpha, beta, one" in done.stderr.str()


BEHIND = """
GROUPS = ("behind",)
begun = []
def begin_behind(items): begun.extend(item.name for item in items)
def test_a(): assert begun == ["test_a"]
"""
LAST = 'GROUPS = ("last",)\nALONE = True\ndef test_a(): pass\n'


def test_what_runs_behind_is_begun_first_and_what_looks_at_time_comes_last(run):
    done, _ = run("-vv", aa_last=LAST, b_behind=BEHIND, c=PASSING)

    assert done.ret == 0, done.stdout.str()
    names = [line.split("::")[0] for line in done.stdout.str().splitlines() if "::" in line]
    assert names == [f"tests/gpu/test_{name}.py" for name in ("c", "c", "b_behind", "aa_last")]


def test_a_file_whose_packages_are_not_there_has_no_tests_and_leaves_no_record(run):
    of_rungs = 'GROUPS = ("rungs",)\nPACKAGES = "ladder"\n__test__ = {}\ndef test_a(): pass\n'

    done, records = run(it=PASSING, of_rungs=of_rungs.format("False"))
    assert (done.ret, sorted(records)) == (0, ["one"])
    done, records = run(it=PASSING, of_rungs=of_rungs.format("True"))
    assert (done.ret, sorted(records)) == (0, ["one", "rungs"])


def test_what_is_not_asked_for_is_not_begun(run):
    done, _ = run("--group", "one", it=PASSING, behind=BEHIND.replace("begun.extend", "1 / 0, begun.extend"))

    assert done.ret == 0, done.stdout.str()


def test_no_card_is_one_line(run, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    done, records = run(it=PASSING)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "tests/gpu: torch finds no usable GPU here" in done.stderr.str()
    assert records == {}
