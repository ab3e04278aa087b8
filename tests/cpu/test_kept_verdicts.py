"""What is kept of a test that has passed: whatever decides it makes it run again, and a lie does not last."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import kept_verdicts
import pytest

from course_site import records

HERE = Path(__file__).parent
FILES = {
    "tests/cpu/conftest.py": """
import os
import kept_verdicts
kept_verdicts.drawn_by = lambda commit, facts: os.environ["DRAWN"]
kept_verdicts.SLOW_S = float(os.environ.get("SLOW_S", "60"))
def pytest_addoption(parser):
    kept_verdicts.add_options(parser)
def pytest_configure(config):
    config.addinivalue_line("markers", "kept: it may be kept")
    config.pluginmanager.register(kept_verdicts.Plugin(config))
""",
    "tests/cpu/once.py": "FOLDER = 1",
    "tests/cpu/beside.py": 'TILE = "tile.cu"',
    "tests/cpu/tile.cu": '#include "../../shared/tile.cuh"',
    "shared/tile.cuh": "// a header",
    "tests/cpu/test_it.py": """
import os
import beside
import pytest
from pathlib import Path
from course_labs import grade
ROOT = Path(__file__).parents[2]
BY_THE_LAB = pytest.mark.kept("src/course_kernels/gemm", of=lambda name: [ROOT / "labs" / name], but=["labs/*"])
NAMES = [path.parent.name for path in sorted(ROOT.glob("labs/*/lab.toml")) if path.read_text()]
def ran(name):
    with open(os.environ["RAN"], "a") as file:
        file.write(f"{name} ")
@pytest.fixture(scope="module")
def costly():
    ran("costly")
@BY_THE_LAB
@pytest.mark.parametrize("name", NAMES)
def test_of_a_lab(name, costly):
    ran(name)
    for each in os.environ.get("ALSO", "").split():
        (ROOT / each).read_text()
    assert "wrong" not in (ROOT / "labs" / name / "lab.toml").read_text()
    assert "BROKEN" not in os.environ
@pytest.mark.kept(but=["labs/*"])
def test_alone():
    ran("alone")
def test_always():
    ran("always")
@pytest.mark.kept(but=["labs/*"])
def test_not_here():
    ran("not_here")
    pytest.skip("no compiler")
""",
    "src/course_labs/__init__.py": "",
    "src/course_labs/grade.py": "from course_labs import verdict",
    "src/course_labs/verdict.py": "",
    "src/course_labs/found_by_its_name.py": "",
    "src/course_labs/worker/file.py": "",
    "src/course_kernels/__init__.py": "",
    "src/course_kernels/gemm/__init__.py": "",
    "src/course_kernels/gemm/problem.py": "from course_kernels.cuda import compile",
    "src/course_kernels/gemm/shapes.cuh": "// a header",
    "src/course_kernels/cuda/__init__.py": "",
    "src/course_kernels/cuda/compile.py": "",
    "src/course_kernels/cuda/hopper/wgmma.cuh": "// a header",
    "src/course_site/__init__.py": "",
    "labs/first/lab.toml": "right",
    "labs/first/wrong.toml": "edits",
    "labs/second/lab.toml": "right",
    "docs/page.md": "a page",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small project with tests of its own."""
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copy(kept_verdicts.__file__, root / "tests/cpu")
    for name in ("__init__", "digest", "renames"):
        (root / "src/course_site/records").mkdir(exist_ok=True)
        shutil.copy(Path(records.__file__).with_name(f"{name}.py"), root / "src/course_site/records")
    monkeypatch.setattr(kept_verdicts, "ROOT", root)
    monkeypatch.setattr(kept_verdicts, "HERE", root / "tests/cpu")
    return root


def keys(root):
    """The keys of the project's tests, worked out anew."""
    for name in ("digest", "closure", "needs", "expanded", "_of_files"):
        getattr(kept_verdicts, name).cache_clear()
    found = {}
    for name in ("first", "second"):
        mark = pytest.mark.kept("src/course_kernels/gemm", of=lambda name: [root / "labs" / name])
        item = SimpleNamespace(
            path=root / "tests/cpu/test_it.py",
            iter_markers=lambda kind, mark=mark: [mark.mark],
            callspec=SimpleNamespace(params={"name": name}),
        )
        found[name] = kept_verdicts.key_of(name, kept_verdicts.files_of(item))
    return found


@pytest.mark.parametrize(
    ("file", "changed"),
    {
        "tests/cpu/test_it.py": {"first", "second"},
        "tests/cpu/beside.py": {"first", "second"},
        "tests/cpu/tile.cu": {"first", "second"},
        "shared/tile.cuh": {"first", "second"},
        "src/course_labs/verdict.py": {"first", "second"},
        "src/course_labs/worker/file.py": {"first", "second"},
        "src/course_labs/found_by_its_name.py": {"first", "second"},
        "src/course_kernels/gemm/shapes.cuh": {"first", "second"},
        "src/course_kernels/cuda/hopper/wgmma.cuh": {"first", "second"},
        "labs/first/wrong.toml": {"first"},
        "labs/first/new.py": {"first"},
        "src/course_site/__init__.py": set(),
        "docs/page.md": set(),
    }.items(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_decides_a_test_is_in_its_key(project, file, changed):
    before = keys(project)
    with open(project / file, "a") as text:
        text.write("\nN = 1\n")
    after = keys(project)

    assert {name for name in before if before[name] != after[name]} == changed


@pytest.mark.parametrize("file", ["tests/cpu/conftest.py", "tests/cpu/once.py"])
def test_what_every_test_goes_through_decides_by_its_meaning(project, file):
    text = (project / file).read_text()
    before = keys(project)
    (project / file).write_text(f'"""What it is for."""\n# and why\n{text}')
    assert keys(project) == before

    (project / file).write_text(f"{text}\nPLANTED = 1\n")
    assert set(before.values()).isdisjoint(keys(project).values())


DESCRIBED = 'def f():\n    """What it does."""\n    raise ValueError("two of them")\n'


@pytest.mark.parametrize(
    ("old", "new", "decides"),
    [
        ("What it does", "What it says", False),
        ("def f", "# why\ndef f", False),
        ("two of them", "three of them", True),
        ("f()", "g()", True),
        ("def f", '"""What the module is for."""\ndef f', True),
    ],
)
def test_what_a_function_of_judge_or_labs_says_of_itself_decides_nothing(project, old, new, decides):
    """Its complaints do, and so does what a module says of itself, which is a command's help."""
    file = project / "src/course_labs/verdict.py"
    file.write_text(DESCRIBED)
    before = keys(project)
    file.write_text(DESCRIBED.replace(old, new))
    assert (keys(project) != before) == decides


def test_what_a_kernel_says_of_itself_decides(project):
    file = project / "src/course_kernels/gemm/problem.py"
    file.write_text(DESCRIBED)
    before = keys(project)
    file.write_text(DESCRIBED.replace("What it does", "What it says"))
    assert set(before.values()).isdisjoint(keys(project).values())


def test_a_version_is_in_each_key(project, monkeypatch):
    before = keys(project)
    monkeypatch.setattr(kept_verdicts, "made_with", lambda: ("Python 3.99", "torch 9"))
    assert set(before.values()).isdisjoint(keys(project).values())


def test_what_a_mark_names_must_be_there(project):
    with pytest.raises(AssertionError, match="names labs/third, which is not there"):
        kept_verdicts.expanded("labs/third")


def run(root, *options, **environment):
    """(code, what ran, what was said) of the project's tests; none is drawn unless two digits are named."""
    (root.parent / "ran").write_text("")
    environment = {"DRAWN": "none", **environment}
    environment |= {"RAN": str(root.parent / "ran"), "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "tests/cpu"]
    done = subprocess.run(command, cwd=root, env=os.environ | environment, capture_output=True, text=True)
    return done.returncode, (root.parent / "ran").read_text().split(), done.stdout + done.stderr


def verdicts(root):
    return json.loads((root / "tests/cpu/verdicts.json").read_text())["verdicts"]


EVERYTHING = ["costly", "first", "second", "alone", "always", "not_here"]
FIRST, SECOND = "test_it.py::test_of_a_lab[first]", "test_it.py::test_of_a_lab[second]"


def test_what_has_passed_is_not_run_again_until_something_changes(project):
    code, ran, said = run(project, "--keep")
    assert (code, ran) == (0, [name for name in EVERYTHING if name != "always"]), said
    assert set(verdicts(project)) == {FIRST, SECOND, "test_it.py::test_alone"}

    # All pass, what was skipped is asked again, and a costly fixture is not made for nobody.
    code, ran, said = run(project)
    assert (code, ran) == (0, ["always", "not_here"]), said
    assert "4 passed, 1 skipped" in said
    assert "verdicts: 3 kept, 0 run of those that are (drawn by none), 0 not known and run" in said

    (project / "labs/first/lab.toml").write_text("right still")
    assert run(project)[1] == ["costly", "first", "always", "not_here"]

    # What fails is not kept; what was not asked for is not lost, and what is not there any more goes.
    (project / "labs/first/lab.toml").write_text("wrong")
    code, _, said = run(project, "--keep", "-k", "first")
    assert code == 1, said
    assert set(verdicts(project)) == {SECOND, "test_it.py::test_alone"}
    (project / "labs/second/lab.toml").unlink()
    assert run(project, "--keep")[0] == 1
    assert set(verdicts(project)) == {"test_it.py::test_alone"}


def test_what_is_true_no_more_is_seen_when_it_is_drawn_and_when_all_is_run(project):
    """A test may pass or fail by what no key knows."""
    run(project, "--keep")
    assert run(project, BROKEN="1")[0] == 0

    code, ran, said = run(project, DRAWN=verdicts(project)[FIRST][:2], BROKEN="1")
    assert code == 1
    assert "first" in ran
    assert "FAILED tests/cpu/test_it.py::test_of_a_lab[first]" in said
    code, ran, _ = run(project, "--anew", BROKEN="1")
    assert (code, ran) == (1, EVERYTHING)


def test_what_took_long_is_drawn_by_two_digits_and_what_has_become_quick_by_those_close_to_it(project):
    run(project, "--keep", SLOW_S="0")
    slow = json.loads((project / "tests/cpu/verdicts.json").read_text())["slow"]
    assert slow == sorted(verdicts(project)) == ["test_it.py::test_alone", FIRST, SECOND]
    key = verdicts(project)[FIRST]
    close, far = (f"{key[0]}{int(key[1], 16) ^ other:x}" for other in (1, 4))
    assert "first" not in run(project, DRAWN=close)[1]
    assert "first" in run(project, DRAWN=key[:2])[1]

    run(project, "--keep", "--anew", "-k", "first")
    assert json.loads((project / "tests/cpu/verdicts.json").read_text())["slow"] == [
        name for name in slow if name != FIRST
    ]
    assert "first" in run(project, DRAWN=close)[1]
    assert "first" not in run(project, DRAWN=far)[1]


def test_of_all_keys_one_in_64_is_drawn_and_of_those_that_took_long_one_in_256():
    keys = [f"{n:02x}" for n in range(256)]
    for rarely, most in ((False, 4), (True, 1)):
        drawn = {by: [key for key in keys if kept_verdicts.is_drawn(key, by, rarely)] for by in keys}
        assert {len(found) for found in drawn.values()} == {most}
        assert all(by in found for by, found in drawn.items())


def test_those_that_share_what_takes_long_are_drawn_together(project):
    test = project / "tests/cpu/test_it.py"
    of_each = 'kept("src/course_kernels/gemm", of=lambda name: [ROOT / "labs" / name], but=["labs/*"])'
    assert of_each in test.read_text()
    test.write_text(test.read_text().replace(of_each, 'kept("labs", together=True)'))
    run(project, "--keep")
    assert run(project)[1] == ["always", "not_here"]

    mark = pytest.mark.kept("labs", together=True).mark
    files = kept_verdicts.files_of(SimpleNamespace(path=test, iter_markers=lambda kind: [mark]))
    lot = kept_verdicts.key_of("test_it.py", files)
    ran = run(project, DRAWN=lot[:2])[1]
    assert {"costly", "first", "second"} <= set(ran)
    assert {"first", "second"}.isdisjoint(run(project, DRAWN=f"{lot[0]}{int(lot[1], 16) ^ 1:x}")[1])


def test_a_file_that_the_key_does_not_know_fails_the_test_that_reads_it(project):
    for name in ("docs/page.md", "labs/second/lab.toml"):
        code, _, said = run(project, "-k", "first", "--keep", ALSO=name)
        assert code == 1
        assert f"reads what its key does not know: name it in its mark `kept`: ['{name}']" in said
        assert verdicts(project) == {}
    assert run(project, "-k", "first", ALSO="src/course_kernels/gemm/shapes.cuh")[0] == 0

    test = project / "tests/cpu/test_it.py"
    test.write_text(test.read_text().replace(', but=["labs/*"]', ""))
    assert "labs/second/lab.toml" in run(project, "-k", "first")[2]


def test_a_whole_run_that_knows_too_little_fails_and_says_what_to_do(project):
    code, _, said = run(project)
    assert code == 0, said  # made with other versions, as here where there is no file, nothing can be known

    run(project, "--keep")
    with open(project / "src/course_labs/grade.py", "a") as text:
        text.write("\nN = 1\n")
    code, _, said = run(project)
    assert code == 1
    assert "does not know 3 of the 3 verdicts" in said
    assert "nox -s tests -- --keep" in said
    assert run(project, "-k", "alone")[0] == 0
    assert run(project, "--anew")[0] == 0


def test_a_run_changes_what_it_has_seen_and_nothing_else():
    was = {"test_a.py::one": "1", "test_a.py::two": "2", "test_facts.py::three": "3"}
    now = {"test_a.py::one": "1b", "test_a.py::four": None}

    assert kept_verdicts.merged(was, now, []) == {"test_a.py::one": "1b", "test_facts.py::three": "3"}
    was["test_about.py::five"] = "5"
    assert kept_verdicts.merged(was, now, ["test_about.py"]) == {
        "test_a.py::one": "1b",
        "test_facts.py::three": "3",
    }


def test_each_commit_draws_others():
    drawn = {kept_verdicts.drawn_by(f"{n:040x}", "facts") for n in range(300)}
    assert {first for first, _ in drawn} == {second for _, second in drawn} == set("0123456789abcdef")
    assert kept_verdicts.drawn_by("a", "facts") == kept_verdicts.drawn_by("a", "facts")


def test_the_verdicts_are_made_with_what_is_pinned():
    """Another version has other keys: who moves one keeps all of them anew."""
    facts = kept_verdicts.read()
    pinned = (HERE.parents[1] / "noxfile.py").read_text()

    assert facts["verdicts"]
    for each in facts["made with"]:
        name, version = each.split(maxsplit=1)
        assert name in ("Python", "g++") or f'"{name}=={version}"' in pinned, each


def test_who_begins_first_is_there():
    """A file that was renamed would begin last, and nobody would notice."""
    listed = (HERE / "longest_first.txt").read_text(encoding="utf-8").splitlines()
    names = [line for line in listed if not line.startswith("#")]
    assert names
    assert [name for name in names if not (HERE / name).is_file()] == []
