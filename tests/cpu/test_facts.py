"""The facts that spare a run its compilers: who asks for them is found, and a file that has lost some is noticed."""

import re
from pathlib import Path

import compiled
import pytest

ROOT = Path(__file__).parents[2]
PINNED = dict(re.findall(r'"([\w-]+)==([\d.]+)"', (ROOT / "noxfile.py").read_text(encoding="utf-8")))


def test_who_asks_through_another_file_or_another_process_is_found():
    asking = {file.name for file in compiled.tests_that_ask()}

    assert {"test_compile_cuda.py", "test_compile_triton.py", "test_kernels_sgemm.py"} <= asking
    assert "test_facts.py" in asking
    assert "test_labs.py" not in asking


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(known, unknown) -> what is said of a run that asked for so many facts."""
    facts = {compiled.MADE_BY: compiled.compilers()}
    monkeypatch.setattr(compiled, "kept", lambda: (facts, "0"))

    def run(known, unknown):
        lines = [f"known a{n}" for n in range(known)] + [f"unknown b{n}" for n in range(unknown)]
        (tmp_path / compiled.ASKED_FOR).write_text("\n".join(lines * 2))
        return compiled.cold(tmp_path)

    run.facts = facts
    return run


def test_a_file_that_has_lost_more_than_a_sixteenth_fails_the_run(run):
    assert run(956, 0) == run(15, 1) == run(0, 0) == ""
    assert "has lost 102 of the 1058 facts" in run(956, 102)
    assert "tests/cpu/compiled.py" in run(0, 1)


def test_with_other_compilers_nothing_is_lost(run):
    run.facts[compiled.MADE_BY] = [*compiled.compilers()[1:], "triton 0.0"]
    assert run(0, 100) == ""


def test_each_fact_that_is_asked_for_is_noted_once_it_is_known_or_not(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_TESTS_MADE", str(tmp_path))
    monkeypatch.delenv(compiled.ANEW, raising=False)
    monkeypatch.setattr(compiled, "kept", lambda: ({}, "0"))

    assert compiled.known("a planted one", lambda: 3) == 3
    assert re.fullmatch(r"unknown [0-9a-f]{24}\n", (tmp_path / compiled.ASKED_FOR).read_text())


def test_the_facts_are_made_with_what_is_pinned():
    """Another version has other facts: who moves one writes the file anew."""
    made_by = dict(line.split() for line in compiled.kept()[0][compiled.MADE_BY])

    assert set(made_by) <= set(PINNED)
    assert {name: PINNED[name] for name in made_by} == made_by
