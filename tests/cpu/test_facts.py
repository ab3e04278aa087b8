"""The facts that spare a run its compilers: who asks for them is found, and a file that has lost some is noticed."""

import json
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


PASSES = """
from compiled import known
def test_it():
    assert known("of a test that passes", lambda: 1) == 1
"""
FAILS = """
from compiled import known
def test_it():
    assert known("of a test that fails", lambda: 2) == 3
    known("of what comes after", lambda: 4)
"""


@pytest.fixture
def writing(tmp_path, monkeypatch):
    """writing(*texts) -> (code, facts) of writing the file by tests of these texts; `old` was in it."""
    file = tmp_path / "compiled.json"
    file.write_text(json.dumps({compiled.MADE_BY: compiled.compilers(), "old": 0}))
    monkeypatch.setattr(compiled, "FILE", file)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")

    def writing(*texts):
        tests = [tmp_path / f"test_{n}.py" for n in range(len(texts))]
        for test, text in zip(tests, texts, strict=True):
            test.write_text(text)
        monkeypatch.setattr(compiled, "tests_that_ask", lambda: tests)
        (tmp_path / "conftest.py").write_text(
            "def pytest_addoption(parser):\n    parser.addoption('--anew', action='store_true')\n"
        )
        code = compiled.write(anew=False)
        assert {path.name for path in tmp_path.glob("compiled.*")} == {"compiled.json"}
        facts = json.loads(file.read_text())
        assert facts.pop(compiled.MADE_BY) == compiled.compilers()
        return code, facts

    return writing


def test_a_test_that_fails_costs_no_fact_that_was_made(writing, capfd):
    code, facts = writing(PASSES, FAILS)
    assert code == 1
    assert sorted(facts.values()) == [0, 1, 2]
    assert "FAILED" in (said := capfd.readouterr().out)
    assert "test_1.py::test_it" in said

    code, facts = writing(PASSES)
    assert (code, list(facts.values())) == (0, [1])


def test_facts_of_other_compilers_go_even_where_a_test_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "FILE", tmp_path / "compiled.json")
    compiled.FILE.write_text(json.dumps({compiled.MADE_BY: ["triton 0.0"], "old": 0}))
    compiled.keep('["new", 2]\n', whole=False)
    assert json.loads(compiled.FILE.read_text()) == {compiled.MADE_BY: compiled.compilers(), "new": 2}


def test_the_facts_are_made_with_what_is_pinned():
    """Another version has other facts: who moves one writes the file anew."""
    made_by = dict(line.split() for line in compiled.kept()[0][compiled.MADE_BY])

    assert set(made_by) <= set(PINNED)
    assert {name: PINNED[name] for name in made_by} == made_by
