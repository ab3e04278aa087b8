"""The faults that `nox -s mutants` plants in our own code: enough of them, sound, and every kept result still true."""

import ast
import dataclasses
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

import faults  # noqa: E402
import plant  # noqa: E402

COUNT = 60
SEEDS = sorted(int(file.stem.removeprefix("seed-")) for file in plant.HERE.glob("seed-*.toml"))


@cache
def mutants():
    return faults.generate()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sixty_are_drawn_the_same_for_a_seed_and_from_every_area(seed):
    drawn = faults.draw(mutants(), seed, COUNT)
    areas = Counter(mutant.area for mutant in drawn)

    assert len(set(drawn)) == COUNT
    assert drawn == faults.draw(mutants(), seed, COUNT)
    assert set(areas) == set(faults.AREAS)
    assert all(areas[name] >= area.share for name, area in faults.AREAS.items())
    assert {mutant.kind for mutant in drawn} >= {"operator", "constant", "removed", "negated"}


def test_another_seed_draws_others():
    assert faults.draw(mutants(), 1, COUNT) != faults.draw(mutants(), 2, COUNT)


def test_there_are_enough_in_every_area():
    areas = Counter(mutant.area for mutant in mutants())

    assert len(mutants()) >= 300
    assert all(areas[name] >= 3 * area.share for name, area in faults.AREAS.items())


def test_every_file_has_tests_that_exist():
    named = {test for mutant in mutants() for test in faults.tests_of(mutant)}

    assert [test for test in sorted(named) if not (ROOT / test).exists()] == []


def test_a_fault_in_python_is_python_and_another_program():
    for mutant in (m for seed in (1, 2) for m in faults.draw(mutants(), seed, COUNT)):
        if mutant.file.endswith(".py"):
            lines = (ROOT / mutant.file).read_text(encoding="utf-8").split("\n")
            right = ast.dump(ast.parse("\n".join(lines)))
            lines[mutant.line - 1] = mutant.after
            assert ast.dump(ast.parse("\n".join(lines))) != right


PYTHON = '''"""A page of 1 < 2."""
CONSTANT = 3
HOLDS = (
    4,  # what only costs time, on any line
)


@functools.cache(maxsize=4)
def f(x: Literal[5] = 6) -> Literal[7]:
    """8 and 9."""
    if x < 10 and x:  # 11
        raise ValueError(f"{x + 12} is not {13}")
    say(x)
    say(zip(x, x, strict=True))
    return f"{x + 14}"
'''


def test_python_is_spoilt_where_it_runs_and_nowhere_else():
    found = {(m.line, m.kind, m.after.strip()) for m in faults.mutants_of("", "f.py", PYTHON)}

    assert found == {
        (2, "constant", "CONSTANT = 4"),
        (9, "constant", "def f(x: Literal[5] = 7) -> Literal[7]:"),
        (11, "operator", "if x <= 10 and x:  # 11"),
        (11, "operator", "if x < 10 or x:  # 11"),
        (11, "constant", "if x < 11 and x:  # 11"),
        (11, "negated", "if not (x < 10 and x):  # 11"),
        (13, "removed", "pass"),
        (14, "removed", "pass"),
    }


CUDA = """// a < b, 1 + 2
#define SIZE (3 + 4)
#pragma unroll 5
template <int N> __global__ void f(float *x, const char *s = "6 + 7") {
  __shared__ float tile[8];  /* 9 */
  for (int i = 0; i < N; i++) tile[i] = g<10>(x);
  __syncthreads();
  if (a && b) x += 11;
}
"""


def test_cuda_is_spoilt_outside_of_comments_strings_and_directives():
    found = {(m.line, m.kind, m.after.strip()) for m in faults.mutants_of("", "f.cu", CUDA)}

    assert found == {
        (6, "constant", "for (int i = 1; i < N; i++) tile[i] = g<10>(x);"),
        (6, "operator", "for (int i = 0; i <= N; i++) tile[i] = g<10>(x);"),
        (6, "removed", "for (int i = 0; i < N; i++) ;"),
        (7, "removed", ";"),
        (8, "operator", "if (a || b) x += 11;"),
        (8, "negated", "if (!(a && b)) x += 11;"),
        (8, "operator", "if (a && b) x -= 11;"),
        (8, "constant", "if (a && b) x += 12;"),
        (8, "removed", "if (a && b) ;"),
    }


JAVASCRIPT = r"""/* 1 < 2 */
const words = "3 + 4" + `5 < ${6}`, two = /7 < [/"] 8/.test(x);
if (x === 9) put("a", true);
"""


def test_javascript_is_spoilt_outside_of_comments_strings_and_patterns():
    found = {(m.line, m.kind, m.after.strip()) for m in faults.mutants_of("", "f.js", JAVASCRIPT)}

    assert found == {
        (3, "operator", 'if (x !== 9) put("a", true);'),
        (3, "constant", 'if (x === 10) put("a", true);'),
        (3, "constant", 'if (x === 9) put("a", false);'),
        (3, "negated", 'if (!(x === 9)) put("a", true);'),
        (3, "removed", "if (x === 9) ;"),
    }


# --- what was kept -------------------------------------------------------------------------------------


@cache
def functions_of(file):
    """The test functions of a file, as a test's name gives them."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kept_result_names_a_test_that_exists_or_a_reason(seed):
    results = plant.kept(seed)

    assert len(results) == COUNT
    assert {found["area"] for found in results} == set(faults.AREAS)
    for found in results:
        assert len(set(plant.OUTCOMES) & set(found)) == 1, found
        assert (ROOT / found["file"]).exists(), (
            f"{found['file']} of seed-{seed}.toml is called otherwise, or gone"
        )
        for test in (found.get("caught_by"), found.get("needs_a_card", "").partition(" | ")[0]):
            if test:
                file, _, function = test.partition(" (")[0].partition("::")
                assert (ROOT / file).exists(), test
                name = function.partition("[")[0].rpartition("::")[2]
                assert not name or name in functions_of(file), test
        if "changes_nothing" in found:
            assert len(found["changes_nothing"].split()) > 5, found


def test_fewer_than_one_in_twenty_is_missed():
    for seed in SEEDS:
        assert sum("survived" in found for found in plant.kept(seed)) <= COUNT // 20


# --- the run itself ------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path):
    """A tiny tree with one function and one test of it."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "half.py").write_text("def half(x):\n    return x // 2\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_half.py").write_text(
        "from half import half\n\n\ndef test_half():\n    assert half(6) == 3\n"
    )
    return plant.Copy(tmp_path)


def planted(after):
    return faults.Mutant("tiny", "src/half.py", 2, 13, "operator", "    return x // 2", after)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(faults.AREAS, "tiny", faults.Area((), {"*": ("tests/test_half.py",)}, 1))


def test_a_fault_is_caught_and_taken_out_again(copy, tiny):
    found = plant.judge(copy, planted("    return x * 2"), {})

    assert found["caught_by"] == "tests/test_half.py::test_half"
    assert (copy.root / "src" / "half.py").read_text() == "def half(x):\n    return x // 2\n"


def test_a_fault_that_nobody_sees_survives_unless_a_reason_was_kept(copy, tiny):
    mutant = planted("    return x / 2")

    assert plant.judge(copy, mutant, {})["survived"] == "no test noticed"
    known = {mutant.key: {"changes_nothing": "half of an even number is whole"}}
    assert plant.judge(copy, mutant, known)["changes_nothing"] == "half of an even number is whole"


def test_a_test_that_fails_anyway_catches_nothing(copy, tiny):
    (copy.root / "tests" / "test_half.py").write_text("def test_never():\n    assert False\n")

    assert "fails without the fault too" in plant.judge(copy, planted("    return x * 2"), {})["survived"]


def test_what_never_ends_is_noticed(copy, tiny):
    slow = dataclasses.replace(planted("    while x: pass"))
    copy.limit_s = 3.0

    assert plant.judge(copy, slow, {})["caught_by"] == "tests/test_half.py (never ends)"


def test_what_takes_the_process_along_is_noticed(copy, tiny):
    crash = planted("    import os; os.abort()")

    assert plant.judge(copy, crash, {})["caught_by"] == "tests/test_half.py (ends the process)"


@pytest.fixture
def kept_result(copy, tiny, tmp_path, monkeypatch):
    """One kept fault of the tiny tree, and the only one that can be planted there."""
    mutant = planted("    return x * 2")
    monkeypatch.setattr(plant, "HERE", tmp_path)
    monkeypatch.setattr(plant, "generate", lambda: [mutant])
    result = {
        "area": "tiny",
        "file": mutant.file,
        "line": 9,
        "kind": "operator",
        "before": "return x // 2",
        "after": "return x * 2",
        "caught_by": "tests/test_half.py::test_half",
    }
    plant.write(7, [result])
    return result


def test_a_kept_fault_is_planted_again_and_its_line_is_todays(copy, kept_result):
    (copy.root / "tests" / "test_cheaper.py").write_text((copy.root / "tests" / "test_half.py").read_text())
    faults.AREAS["tiny"].tests["*"] = ("tests/test_cheaper.py", "tests/test_half.py")

    assert plant.again(copy, keep=True) == {"caught_by": 1}
    assert plant.kept(7) == [kept_result | {"line": 2}]


def test_where_its_test_is_gone_another_may_catch_it(copy, kept_result, capsys):
    test = copy.root / "tests" / "test_half.py"
    test.write_text(test.read_text().replace("def test_half", "def test_a_half"))

    assert plant.again(copy, keep=True) == {"caught_by": 1}
    assert plant.kept(7)[0]["caught_by"] == "tests/test_half.py::test_a_half"
    assert "another than before" in capsys.readouterr().out


def test_a_fault_that_its_test_does_not_see_any_more_survives(copy, kept_result):
    test = copy.root / "tests" / "test_half.py"
    test.write_text(test.read_text().replace("half(6) == 3", "half(0) == 0"))

    assert plant.again(copy, keep=False) == {"survived": 1}
    assert plant.kept(7) == [kept_result]


def test_where_its_line_is_gone_another_is_planted_in_its_place(copy, kept_result, monkeypatch, capsys):
    other = planted("    return x // 3")
    monkeypatch.setattr(plant, "generate", lambda: [other])

    assert plant.again(copy, keep=True) == {"caught_by": 1}
    assert [plant.key_of(found) for found in plant.kept(7)] == [other.key]
    assert "gone: src/half.py:9" in capsys.readouterr().out


def test_that_a_test_passes_without_a_fault_is_no_kept_verdict(copy, monkeypatch):
    asked = []
    monkeypatch.setattr(copy, "pytest", lambda *what: asked.append(what) or "")

    assert copy.passes("tests/cpu/test_half.py")
    assert copy.passes("tests/cpu/test_half.py")
    assert asked == [("--anew", "tests/cpu/test_half.py")]


def test_the_command_says_what_it_wants():
    said = subprocess.run(
        [sys.executable, "tests/mutants/plant.py", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "--seed" in said
    assert "--count" in said
    assert "--again" in said
