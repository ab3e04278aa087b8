"""What tests/gpu/conftest.py does, tried on a made-up card: skips fail, and a whole run leaves a sealed record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import course_site.execute  # noqa: F401  imported once: the runs below forget what they import
from course_kernels.measure import provenance
from course_site.digest import file_digest
from course_site.record import is_sealed

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
CARD = {
    "gpu": "NVIDIA H200",
    "slug": "nvidia-h200",
    "cuda": "13.0",
    "torch": "2.11.0+cu130",
    "triton": "3.6.0",
}

PASSING = """
import course_kernels.refusals.problem
def test_a(): pass
def test_b(): open(course_kernels.refusals.problem.__file__.replace("problem.py", "cheats.py")).close()
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run `source` beside a copy of the conftest, on a made-up card: (result, the record or None)."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(provenance, "provenance", lambda: dict(CARD))
    monkeypatch.setenv("COURSE_RECORDS", str(pytester.path / "records"))
    folder = pytester.mkdir("gpu")
    shutil.copy(ROOT / "tests" / "gpu" / "conftest.py", folder)

    def go(source, *arguments):
        (folder / "test_it.py").write_text(source)
        found = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", *(arguments or ["gpu"]))
        record = pytester.path / "records" / "nvidia-h200" / "tests.json"
        return found, json.loads(record.read_text()) if record.exists() else None

    return go


def test_a_whole_run_leaves_a_sealed_record(run):
    done, record = run(PASSING)

    assert done.ret == 0
    assert is_sealed(record)
    assert (record["kind"], record["passed"], record["failed"]) == ("tests", 2, 0)
    assert [(t["id"], t["outcome"]) for t in record["tests"]] == [
        ("gpu/test_it.py::test_a", "passed"),
        ("gpu/test_it.py::test_b", "passed"),
    ]
    assert record["edition"]["torch"] == "2.11"
    assert {"commit", "dirty"} <= set(record["provenance"])
    manifest = record["manifest"]
    for file in ("problem.py", "cheats.py"):  # one imported, one opened
        name = f"src/course_kernels/refusals/{file}"
        assert manifest[name] == file_digest(ROOT / name)
    assert not any(name.startswith("src/course_site/") for name in manifest)
    assert "src/course_kernels/measure/provenance.py" not in manifest


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\ndef test_a(): pytest.skip('no such card')",
        "import pytest\n@pytest.mark.skip(reason='no such card')\ndef test_a(): pass",
        "import pytest\n@pytest.fixture\ndef f(): pytest.skip('no such card')\ndef test_a(f): pass",
    ],
)
def test_a_skip_is_a_failure(run, source):
    done, record = run(source)

    assert done.ret == 1
    assert "was skipped, which is a failure here: " in done.stdout.str()
    assert "no such card" in done.stdout.str()
    assert (record["passed"], record["failed"]) == (0, 1)


def test_what_a_test_says_of_itself_stands_in_the_record(run):
    _, record = run("def test_a(record_property): record_property('explained', 'why')\ndef test_b(): pass")

    assert [t.get("properties") for t in record["tests"]] == [{"explained": "why"}, None]


def test_a_skipped_file_is_a_failure_and_leaves_no_record(run):
    done, record = run("import pytest\npytest.importorskip('no_such_module')\ndef test_a(): pass")

    assert done.ret != 0
    assert "was skipped, which is a failure here: " in done.stdout.str()
    assert record is None


def test_a_failure_is_recorded(run):
    done, record = run(PASSING + "\ndef test_c(): assert False\n")

    assert done.ret == 1
    assert (record["passed"], record["failed"]) == (2, 1)


def test_a_part_of_the_tests_leaves_no_record(run):
    _, chosen = run(PASSING, "gpu", "-k", "test_b")
    _, one_file = run(PASSING, "gpu/test_it.py")
    _, stopped = run("def test_a(): assert False\ndef test_b(): pass", "gpu", "-x")
    _, listed = run(PASSING, "gpu", "--collect-only")

    assert (chosen, one_file, stopped, listed) == (None, None, None, None)


def test_no_card_is_one_line(run, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    done, record = run(PASSING)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "tests/gpu: torch finds no usable GPU here" in done.stderr.str()
    assert record is None
