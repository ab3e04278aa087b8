"""The records of the GPU tests: which groups there are, what each depends on, and what makes one stale."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_kernels.cuda import includes
from course_site.records import gpu_test_records
from course_site.records.edition import load_edition
from course_site.records.record import seal
from course_site.records.waiting import Waiting
from course_site.site import card_tests
from course_site.site.course import Course

ROOT = Path(__file__).resolve().parents[2]
KERNELS = "src/course_kernels"
CARD = {"gpu": "NVIDIA H200", "cuda": "13.0", "torch": "2.11.0", "triton": "3.6.0", "dirty": False}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of all that GPU tests depend on."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("labs", "src", "tests/gpu", "tests/judge", "tests/profile"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(includes, "SHARED", root / KERNELS / "cuda")  # as if it ran from the copy
        yield root


@pytest.fixture
def edit(tree):
    """Change, add or take away files of the copy for one test."""
    before = {}

    def change(name, old="", new=None):
        path = tree / name
        before.setdefault(path, path.read_text() if path.exists() else None)
        if new is None:
            path.unlink()
            return
        path.parent.mkdir(exist_ok=True)
        text = path.read_text() if path.exists() else ""
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new, 1) if old else text + new)

    yield change
    for path, text in before.items():
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)


def coverages(root):
    project = gpu_test_records.Project(root)
    return {group: project.coverage(group) for group in project.groups}


@pytest.fixture(scope="module")
def fresh(tree):
    return coverages(tree)


def stale(tree, fresh):
    """Groups whose files are not what they were."""
    now = coverages(tree)
    return {group for group in now | fresh if now.get(group) != fresh.get(group)}


LABS = {f"lab:{name}" for name in gpu_test_records.Project(ROOT).labs}
PROBLEMS = set(gpu_test_records.Project(ROOT).problems)


# Subjects that are timed, beside the labs.
TIMED = {"bottleneck", "capstone", "hopper_operators", "judge", "measure", "models", "profile", "speculative"}

# --- which groups there are -------------------------------------------------------------------------------


def test_there_is_a_group_for_every_problem_every_lab_on_the_card_and_every_other_subject(fresh):
    assert {"attention", "gemm", "sgemm", "vector_add"} <= PROBLEMS
    assert {"lab:first_kernel", "lab:flash_attention"} <= LABS
    assert "lab:roofline" not in LABS  # done by hand
    assert "lab:bottleneck" not in LABS  # it has a test file of its own
    assert set(fresh) == PROBLEMS | LABS | {
        "all_reduce",
        "blackwell",
        "bottleneck",
        "capstone",
        "cuda",
        "expert_parallel",
        "gpt2",
        "hopper_operators",
        "judge",
        "languages",
        "measure",
        "microbenchmarks",
        "error_demos",
        "models",
        "profile",
        "serving",
        "speculative",
        "tried",
        "two_card_training",
    }


def test_every_group_has_tests_and_every_kernel_a_group(fresh):
    project = gpu_test_records.Project(ROOT)
    assert [group for group in project.groups if not project.files_of(group)] == []
    every = (ROOT / KERNELS).glob("*/k[0-9][0-9]_*.*")
    # Those in WGSL run in a browser, and tests/browser/test_your_gpu.py calls each.
    kernels = {p.relative_to(ROOT).as_posix() for p in every if p.suffix != ".wgsl"}
    assert kernels - {file for covered in fresh.values() for file in covered} == set()


def test_a_test_file_without_groups_is_refused(tree, edit):
    edit("tests/gpu/test_more.py", new="def test_it(): pass\n")

    with pytest.raises(
        gpu_test_records.GroupsUnknown, match=r"^tests/gpu/test_more\.py: does not say whose tests it"
    ):
        _ = gpu_test_records.Project(tree).groups


@pytest.mark.parametrize(
    ("text", "said"),
    [("def test_it(:\n", "is not Python: line 1: "), ("GROUPS = {[]: 1}\n", "does not say whose tests it")],
)
def test_a_test_file_that_cannot_be_read_is_one_line(tree, edit, text, said):
    edit("tests/gpu/test_more.py", new=text)

    with pytest.raises(gpu_test_records.GroupsUnknown, match=rf"^tests/gpu/test_more\.py: {said}"):
        _ = gpu_test_records.Project(tree).groups


def test_a_problem_without_tests_of_its_own_has_a_group_all_the_same(tree, edit, fresh):
    edit(f"{KERNELS}/scan/problem.py", new="PROBLEM = 1\n")
    edit(f"{KERNELS}/scan/k01_serial.py", new="X = 1\n")

    assert stale(tree, fresh) == {"scan"}
    assert f"{KERNELS}/scan/k01_serial.py" in coverages(tree)["scan"]


# --- what each depends on ---------------------------------------------------------------------------------

STEP = {"decode_linear", "hopper_operators"}  # whose tests take the model's steps by our kernels
EDITS = {
    "a kernel": (f"{KERNELS}/attention/k03_flash.py", "stages=3", "stages=2", {"attention"}),
    "a kernel beside a lab's": (
        f"{KERNELS}/attention/k02_teaching.cu",
        "0.0f",
        "0.5f",
        {"attention", "lab:flash_attention"},
    ),
    "a kernel that a tool looks at": (f"{KERNELS}/gemm/k03_mma_sync.cu", "0.0f", "0.5f", {"gemm"}),
    "a new kernel": (f"{KERNELS}/softmax/k09_new.py", "", "X = 1\n", {"softmax"}),
    "a kernel that is gone": (f"{KERNELS}/softmax/k01_online.cu", "", None, {"softmax"}),
    "a new header before another": (
        f"{KERNELS}/sgemm/asynchronous_copy.cuh",
        "",
        "int other;\n",
        {"sgemm"},
    ),
    "a shared header": (
        f"{KERNELS}/cuda/asynchronous_copy.cuh",
        "",
        "int other;\n",
        {
            "cuda",
            "speculative",
            "sgemm",
            "gemm",
            "gemv_fp4",
            "skinny_gemm_fp4",
            "skinny_gemm_w4",
            *STEP,
            "models",
            "decode_attention",
        },
    ),
    "a problem": (
        f"{KERNELS}/transpose/problem.py",
        "",
        "X = 1\n",
        {"transpose", "lab:transpose"},
    ),
    "the check": (
        f"{KERNELS}/measure/check.py",
        "",
        "X = 1\n",
        PROBLEMS | LABS | {*TIMED, "blackwell", "languages", "tried"},
    ),
    "the clock": (
        f"{KERNELS}/measure/clock.py",
        "",
        "X = 1\n",
        LABS | TIMED,
    ),
    "the counters": (
        f"{KERNELS}/measure/counters.py",
        "",
        "X = 1\n",
        {"capstone", "layer_norm", "measure", "profile", "sparse_attention"},
    ),
    "a data sheet": (f"{KERNELS}/measure/derive.py", "", "X = 1\n", {"capstone", "measure", "profile"}),
    "what the check says": (f"{KERNELS}/measure/messages.py", "", "X = 1\n", set()),
    "the judge's limits": (
        "src/course_judge/protocol/limits.py",
        "",
        "X = 1\n",
        LABS | {"bottleneck", "capstone", "judge", "profile"},
    ),
    "a rule of the profiler": (
        "src/course_profile/stall_rules.py",
        "",
        "X = 1\n",
        {"bottleneck", "capstone", "profile"},
    ),
    "what the profiler runs a file by": (
        "src/course_profile/competitor.py",
        "",
        "X = 1\n",
        {"bottleneck", "capstone", "profile"},
    ),
    "what the profiler asks a card": ("src/course_profile/run.py", "", "X = 1\n", {"capstone", "profile"}),
    "what refuses an entry": ("src/course_capstone/entry.py", "", "X = 1\n", {"capstone"}),
    "a planted kernel": ("tests/profile/spills.cu", "", "int x;\n", {"profile"}),
    "one of the lab's": ("tests/profile/lab/slowest_warp.cu", "", "int x;\n", {"profile"}),
    "how it is launched": ("tests/profile/profile.toml", "264", "528", {"profile"}),
    "what the cheats are given": (f"{KERNELS}/refusals/problem.py", "", "X = 1\n", {"judge", "measure"}),
    "a cheat": ("tests/judge/cheats/zeros.py", "", "X = 1\n", {"judge"}),
    "the grader": ("src/course_labs/grade.py", "", "X = 1\n", LABS | {"bottleneck"}),
    "the grader of the six kernels": ("src/course_labs/diagnosis.py", "", "X = 1\n", {"bottleneck"}),
    "where their questions are answered": (
        "src/course_labs/worker/suspects.py",
        "",
        "X = 1\n",
        {"bottleneck"},
    ),
    "one of the six": ("labs/bottleneck/given/add.cu", "", "int x;\n", {"bottleneck"}),
    "what they wait for": ("labs/bottleneck/truth.py", "", "X = 1\n", {"bottleneck"}),
    "their answer": (
        "labs/bottleneck/python/alone.py",
        "",
        "X = 1\n",
        {"bottleneck"},
    ),
    "a wrong one of a card's": (
        "labs/bottleneck/wrong.toml",
        "    for _ in range(tl.cdiv(N, STEP)):",
        "    for _ in range(1, tl.cdiv(N, STEP)):",
        {"bottleneck"},
    ),
    "a wrong one of anybody's": (
        "labs/bottleneck/wrong.toml",
        '("atomics", "smsp',
        '("spills", "smsp',
        set(),
    ),
    "what a lab's kernel is started by": (
        "labs/first_kernel/launch.py",
        "",
        "X = 1\n",
        {"lab:first_kernel"},
    ),
    "a lab's answer": (
        "labs/first_kernel/cuda/stage4.cu",
        "",
        "int x;\n",
        {"lab:first_kernel"},
    ),
    "an answer that no card grades": ("labs/flash_attention/numpy/stage1.py", "", "X = 1\n", set()),
    "the truth of a lab by hand": ("labs/roofline/truth.py", "", "X = 1\n", set()),
    "the truth of the doors that no card grades": (
        "labs/first_kernel/truth.py",
        "",
        "X = 1\n",
        set(),
    ),
    "a lab's last task": ("labs/first_kernel/alone.py", "", "X = 1\n", {"lab:first_kernel"}),
    "its solution": ("labs/first_kernel/cuda/alone.cu", "", "int x;\n", {"lab:first_kernel"}),
    "a wrong one": (
        "labs/first_kernel/wrong.toml",
        "'  z[i] = x[2 * i] + x[2 * i + 1];'],",
        "'  z[i] = x[2 * i] + x[i];'],",
        {"lab:first_kernel"},
    ),
    "a wrong answer": ("labs/first_kernel/wrong/wrong_subtracts.cu", "", "int x;\n", {"lab:first_kernel"}),
    "a wrong one behind a door without a card": ("labs/wmma/wrong/wrong_einsum.py", "", "X = 1\n", set()),
    "a new wrong answer": (
        "labs/grey/wrong/wrong_new.cu",
        "",
        "// refused for: wrong\nint x;\n",
        {"lab:grey"},
    ),
    "why one is refused": (
        "labs/first_kernel/wrong.toml",
        'refused_for = "out of bounds"\nof = "cuda',
        'refused_for = "wrong"\nof = "cuda',
        set(),
    ),
    "a lab's words": ("labs/first_kernel/lab.toml", 'title = "', 'title = "Once more: ', set()),
    "what a lab tries": ("labs/first_kernel/lab.toml", "N=1", "N=2", {"lab:first_kernel"}),
    "the tests of kernels": ("tests/gpu/test_kernels.py", "", "X = 1\n", PROBLEMS),
    "tests of two problems": ("tests/gpu/test_gemm_triton.py", "", "X = 1\n", {"gemm", "gemm_fp8"}),
    "tests of one subject": ("tests/gpu/test_error_demos.py", "", "X = 1\n", {"error_demos"}),
    "a mishap": (f"{KERNELS}/error_demos/lost_updates.cu", "", "int x;\n", {"error_demos"}),
    "an operator of the model": (
        "src/course_models/operators.py",
        "",
        "X = 1\n",
        {"hopper_operators", "models", "serving", "speculative", "two_card_training"},
    ),
    "a kernel that the model takes": (
        f"{KERNELS}/attention/k04_specialised.py",
        "",
        "X = 1\n",
        {"attention", "hopper_operators", "models", "serving", "speculative", "two_card_training"},
    ),
    "a microbenchmark": (f"{KERNELS}/microbenchmarks/latency.cu", "", "int x;\n", {"microbenchmarks"}),
    "a comment": (f"{KERNELS}/gemm/k03_mma_sync.cu", "", "// a word\n", set()),
    "the site": ("src/course_site/charts/plots.py", "", "X = 1\n", set()),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_makes_the_groups_stale_that_it_touches_and_no_other(tree, edit, fresh, name):
    path, old, new, expected = EDITS[name]
    edit(path, old, new)

    assert stale(tree, fresh) == expected


@pytest.mark.parametrize("name", ["notes.md", ".draft.py", "k01_naive.pyc", "k09_new.wgsl"])
def test_what_is_only_written_about_a_folder_makes_nothing_stale(tree, edit, fresh, name):
    edit(f"{KERNELS}/transpose/{name}", new="x = 1\n")

    assert stale(tree, fresh) == set()


def test_what_measures_is_in_the_clock_s_chain_and_no_problem_imports_it(fresh):
    """The judge, the labs, the model and what is profiled are timed; a problem's tests only check."""
    clock = f"{KERNELS}/measure/clock.py"
    assert {group for group, files in fresh.items() if clock in files} == LABS | TIMED


@pytest.mark.parametrize("group", ["attention", "lab:wmma", "measure", "error_demos"])
def test_nothing_of_the_site_and_nothing_that_only_speaks_is_in_it(fresh, group):
    assert not [file for file in fresh[group] if file.startswith("src/course_site/")]
    assert f"{KERNELS}/measure/messages.py" not in fresh[group]
    assert f"{KERNELS}/measure/__init__.py" not in fresh[group]


def test_a_module_that_is_run_by_name_counts_with_its_main(fresh):
    assert f"{KERNELS}/measure/__main__.py" in fresh["measure"]
    assert f"{KERNELS}/error_demos/cases.py" in fresh["error_demos"]
    assert "src/course_labs/worker/arrays.py" in fresh["lab:first_kernel"]  # the child imports it


NAMES = """
import torch, course_kernels.measure.clock
import course_site.pages, course_labs as labs
from course_labs.child import a, b
from course_kernels import *
from . import course_kernels
from .course_kernels import near
from other.course_kernels import far
if typing.TYPE_CHECKING:
    import course_kernels.never
else:
    import course_kernels.always
if DEBUG:
    import course_kernels.sometimes
files = f("k.cu", "sub/h.cuh", "k.py", "two\\nlines.cu")
names = {"course_kernels.gemm": 1, "course_kernels.not a name": 2, "other.name": 3, "course_site.x": 4}
run(["python", "-m", "course_labs", "--fast", "course_kernels"], ("-m", word), "-m", "alone")
import course_kernels.measure.clock
"""


def test_what_a_file_names_is_what_it_imports_runs_or_compiles():
    assert gpu_test_records._names_in(NAMES) == (
        ("module", "course_kernels.measure.clock"),
        ("module", "course_labs"),
        ("module", "course_labs.child.a"),
        ("module", "course_labs.child.b"),
        ("module", "course_kernels.*"),
        ("module", "course_kernels.always"),
        ("module", "course_kernels.sometimes"),
        ("file", "k.cu"),
        ("file", "sub/h.cuh"),
        ("module", "course_kernels.gemm"),
        ("module", "course_labs.__main__"),
        ("module", "course_kernels"),
    )
    assert gpu_test_records._names_in("import course_labs\n(") == ()


@pytest.mark.parametrize(("length", "found"), [(4, True), (99, True), (100, False), (101, False)])
def test_a_long_text_is_no_file(length, found):
    assert bool(gpu_test_records._names_in(f"x = '{'k' * (length - 3)}.cu'")) is found


def test_a_module_is_found_with_the_packages_above_it(tmp_path):
    source = tmp_path / "src"
    for name, text in {
        "course_kernels/__init__.py": '_HOME = {"early": "clock"}\n',
        "course_kernels/clock.py": "",
        "course_kernels/gemm/__init__.py": 'import os\nX = 1\n_HOME = {"late": "k02"}\n',
        "course_kernels/gemm/k01.py": "",
        "course_kernels/plain/__init__.py": "",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)

    def found(name):
        files = gpu_test_records.Project(tmp_path)._module(name)
        return [file.relative_to(source / "course_kernels").as_posix() for file in files]

    top, gemm, plain = "__init__.py", "gemm/__init__.py", "plain/__init__.py"
    assert found("course_kernels") == [top]
    assert found("course_kernels.clock") == found("course_kernels.clock.time") == [top, "clock.py"]
    assert found("course_kernels.early") == found("course_kernels.early.more") == [top, "clock.py"]
    assert found("course_kernels.gemm") == [top, gemm]
    assert (
        found("course_kernels.gemm.k01") == found("course_kernels.gemm.k01.f.g") == [top, gemm, "gemm/k01.py"]
    )
    assert found("course_kernels.gemm.late") == [top, gemm, "gemm/k02.py"]
    assert found("course_kernels.gemm.early") == [top, gemm]
    assert found("course_kernels.plain.late") == [top, plain]
    assert found("course_kernels.nothing") == [top]
    assert found("nothing") == found("nothing.at_all") == []


def test_the_files_of_a_folder_are_its_sources_and_those_below_it(tmp_path):
    for name in (
        "k01.py", "k01.cu", "README.md", ".hidden", "k01.pyc", "__pycache__/k.py", ".git/k.py", "below/a.txt",
        "below/b.md", "data", "k01.wgsl",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    found = [file.relative_to(tmp_path).as_posix() for file in gpu_test_records._files_in(tmp_path)]
    assert found == ["below/a.txt", "data", "k01.cu", "k01.py"]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ('GROUPS = ("one",)\n', ("one",)),
        ('X = 1\nMORE = GROUPS = ("one", "two")\n', ("one", "two")),
        ("GROUPS = ()\n", None),
        ('GROUPS = "one"\n', None),
        ('GROUPS = ["one"]\n', None),
        ('GROUPS = ("one", 2)\n', None),
        ("GROUPS = named()\n", None),
        ('def f():\n    GROUPS = ("one",)\n', None),
    ],
)
def test_groups_are_a_tuple_of_words_at_the_top_of_a_file(tmp_path, text, groups):
    file = tmp_path / "test_it.py"
    file.write_text(text)
    if groups:
        assert gpu_test_records.declared_groups(file) == groups
        return
    with pytest.raises(gpu_test_records.GroupsUnknown) as refused:
        gpu_test_records.declared_groups(file)
    assert str(refused.value) == (
        'tests/gpu/test_it.py: does not say whose tests it holds: write GROUPS = ("gemm",) at its top, '
        'or ("every problem",), ("every problem that shares memory",), or ("every lab",)'
    )


def test_a_group_looks_at_time_where_one_of_its_files_says_so(tmp_path):
    for name, text in {
        "a": '("one", "two")',
        "b": '("two",)\nALONE = True',
        "c": '("three",)\nALONE = 1',
    }.items():
        (tmp_path / "tests" / "gpu").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"tests/gpu/test_{name}.py").write_text(f"GROUPS = {text}\n")

    project = gpu_test_records.Project(tmp_path)
    assert project.groups == ["one", "three", "two"]
    assert [group for group in project.groups if project.looks_at_time(group)] == ["two"]
    assert [file.name for file in project.files_of("two")] == ["test_a.py", "test_b.py"]


def test_a_group_needs_the_packages_that_its_files_name(tmp_path):
    folder = tmp_path / "tests" / "gpu"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text('GROUPS = ("one", "two")\n')
    (folder / "test_b.py").write_text('GROUPS = ("two",)\nPACKAGES = "ladder"\n__test__ = False\n')

    project = gpu_test_records.Project(tmp_path)
    assert {group: project.packages_of(group) for group in project.groups} == {
        "one": set(),
        "two": {"ladder"},
    }


def test_a_group_needs_the_card_that_one_of_its_files_names(tmp_path):
    folder = tmp_path / "tests" / "gpu"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text('GROUPS = ("one", "two")\n')
    (folder / "test_b.py").write_text('GROUPS = ("two",)\nCAPABILITY = "10.0"\n__test__ = False\n')

    project = gpu_test_records.Project(tmp_path)
    assert {group: project.capability_of(group) for group in project.groups} == {
        "one": "",
        "two": "capability 10.0",
    }


def test_a_group_has_as_many_devices_as_one_of_its_files_names(tmp_path):
    folder = tmp_path / "tests" / "gpu"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text('GROUPS = ("one", "two")\n')
    (folder / "test_b.py").write_text('GROUPS = ("two",)\nGPUS = 2\n__test__ = False\n')

    found = gpu_test_records.verdicts(tmp_path, "nvidia-h200", clean=True)
    assert {verdict.group: (verdict.gpus, verdict.awaits_its_card) for verdict in found} == {
        "one": (1, False),
        "two": (2, False),  # a card of this kind can run them: its record is missed
    }


def test_a_language_of_the_ladder_is_no_matter_of_its_problem(tmp_path):
    folder = tmp_path / gpu_test_records.KERNELS / "gemm"
    folder.mkdir(parents=True)
    (tmp_path / "tests" / "gpu").mkdir(parents=True)
    for name in ("problem", "k01_first", "in_tongues"):
        (folder / f"{name}.py").write_text("X = 1\n")
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (tmp_path / "tests/gpu/test_a.py").write_text('GROUPS = ("gemm",)\n')
    (tmp_path / "tests/gpu/test_b.py").write_text(
        'from course_kernels.gemm import in_tongues\nGROUPS = ("languages",)\n'
    )

    project = gpu_test_records.Project(tmp_path)
    names = {group: {Path(file).stem for file in project.coverage(group)} for group in ("gemm", "languages")}
    assert names["gemm"] == {"__init__", "problem", "k01_first", "test_a"}
    assert names["languages"] == {"__init__", "in_tongues", "test_b"}


# --- what a record says -----------------------------------------------------------------------------------


def write(tree, whose, **changes):
    data = {
        "kind": "tests",
        "group": whose,
        "passed": 1,
        "failed": 0,
        "tests": [{"id": "tests/gpu/test_it.py::test_a", "outcome": "passed", "seconds": 1.5}],
        "provenance": CARD,
        "coverage": gpu_test_records.Project(tree).coverage(whose),
    }
    path = gpu_test_records.record_path(tree, "nvidia-h200", whose)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(seal(data | changes)))
    return path


@pytest.fixture
def recorded(tree):
    yield lambda whose, **changes: write(tree, whose, **changes)
    shutil.rmtree(tree / "records", ignore_errors=True)


def why(tree, group, clean=True):
    verdicts = gpu_test_records.verdicts(tree, "nvidia-h200", clean=clean)
    return next(verdict for verdict in verdicts if verdict.group == group)


def test_who_shares_memory_is_found_and_no_list_must_grow(tree, edit):
    def looked_at():
        project = gpu_test_records.Project(tree)
        return project.test_files[project.root / "tests/gpu/test_sanitizer.py"]

    assert {"sgemm", "gemm_fp8", "microbenchmarks"} <= set(looked_at())
    assert "vector_add" not in looked_at()
    before = gpu_test_records.Project(tree).coverage("sgemm")
    edit(f"{KERNELS}/vector_add/k09_new.cu", new="// __shared__ is a word\n")
    assert "vector_add" not in looked_at()
    edit(f"{KERNELS}/vector_add/k09_new.cu", new="__shared__ float x;\n")
    assert "vector_add" in looked_at()
    assert gpu_test_records.Project(tree).coverage("sgemm") == before


def test_a_record_of_these_files_holds_and_says_its_seconds(tree, recorded):
    path = recorded("lab:first_kernel")

    assert path.name == "lab_first_kernel.json"
    found = why(tree, "lab:first_kernel")
    assert (found.why, found.seconds) == ("", 1.5)
    assert found.edition["torch"] == "2.11"


def test_what_became_of_its_files_is_one_line(tree, recorded, edit):
    recorded("softmax")
    edit(f"{KERNELS}/softmax/merge.cuh", "fmaxf", "fminf")
    edit(f"{KERNELS}/softmax/k09_new.py", new="X = 1\n")
    edit(f"{KERNELS}/softmax/library.py")

    assert why(tree, "softmax").why == (
        f"is stale: {KERNELS}/softmax/k09_new.py is new, {KERNELS}/softmax/library.py is gone, "
        f"{KERNELS}/softmax/merge.cuh changed since the GPU tests ran"
    )


def small(root):
    """A tree with one group, of one file."""
    (root / "tests" / "gpu").mkdir(parents=True)
    (root / "tests/gpu/test_one.py").write_text('GROUPS = ("one",)\n')
    return root


def test_a_tree_that_is_reached_by_a_link_has_the_same_files(tmp_path):
    root, link = small(tmp_path / "tree"), tmp_path / "link"
    (root / "src/course_kernels").mkdir(parents=True)
    for name in ("__init__", "one"):
        (root / f"src/course_kernels/{name}.py").write_text("")
    (root / "tests/gpu/test_one.py").write_text('GROUPS = ("one",)\nimport course_kernels.one\n')
    link.symlink_to(root)

    files = ["src/course_kernels/__init__.py", "src/course_kernels/one.py", "tests/gpu/test_one.py"]
    assert list(gpu_test_records.Project(root).coverage("one")) == files
    assert list(gpu_test_records.Project(link).coverage("one")) == files


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (0, ""),
        (1, "is stale: a0 is gone since the GPU tests ran"),
        (2, "is stale: a0 is gone, a1 is gone since the GPU tests ran"),
        (3, "is stale: a0 is gone, a1 is gone, a2 is gone since the GPU tests ran"),
        (4, "is stale: a0 is gone, a1 is gone, a2 is gone and 1 more since the GPU tests ran"),
        (6, "is stale: a0 is gone, a1 is gone, a2 is gone and 3 more since the GPU tests ran"),
    ],
)
def test_three_reasons_are_told_and_further_ones_are_counted(tmp_path, gone, said):
    now = gpu_test_records.Project(small(tmp_path)).coverage("one")
    assert list(now) == ["tests/gpu/test_one.py"]
    write(tmp_path, "one", coverage=now | {f"a{number}": "" for number in range(gone)})

    assert why(tmp_path, "one").why == said


@pytest.mark.parametrize(
    ("outcomes", "failed", "passed", "said"),
    [
        ("p", 0, 1, ""),
        ("pf", 1, 1, "1 GPU tests failed (t1), 1 passed; mend them"),
        ("fpf", 2, 1, "2 GPU tests failed (t0, …), 1 passed; mend them"),
        ("fff", 3, 0, "3 GPU tests failed (t0, …), 0 passed; mend them"),
        ("", 1, 1, "says that 1 tests failed and 1 passed, and its list has 0 and 0: restore it with git"),
        ("pf", 0, 2, "says that 0 tests failed and 2 passed, and its list has 1 and 1: restore it with git"),
        ("", 0, 0, "0 GPU tests failed, 0 passed; mend them"),
    ],
)
def test_the_first_test_that_failed_is_named(tmp_path, outcomes, failed, passed, said):
    words = {"p": "passed", "f": "failed"}
    tests = [{"id": f"t{n}", "outcome": words[o], "seconds": 0.5} for n, o in enumerate(outcomes)]
    write(small(tmp_path), "one", tests=tests, failed=failed, passed=passed)

    found = why(tmp_path, "one")
    assert (found.why, found.seconds) == (said, 0.5 * len(outcomes))
    assert found.failed == ("failed (" in said)
    assert found.edition["slug"] == "nvidia-h200"


def test_what_is_no_record_at_all_says_no_seconds_and_no_edition(tmp_path):
    path = write(small(tmp_path), "one")
    for text, said in (
        ("[]", "was changed by hand (its checksum does not match)"),
        ("{}", "was changed by hand (its checksum does not match)"),
        (json.dumps(seal({"group": "one"})), "is not a record that this version reads"),
        ("{", "is cut short or not JSON"),
    ):
        path.write_text(text)
        assert why(tmp_path, "one") == gpu_test_records.Verdict("one", said, None, None)


def test_failures_dirt_and_hands_are_told(tree, recorded):
    bad = [{"id": "tests/gpu/test_it.py::test_a", "outcome": "failed", "seconds": 1.0}]
    recorded("copy", failed=1, passed=0, tests=bad)
    assert why(tree, "copy").why == ("1 GPU tests failed (tests/gpu/test_it.py::test_a), 0 passed; mend them")
    recorded("copy", provenance={**CARD, "dirty": True})
    assert why(tree, "copy").why == "was made from files that differ from their commit; commit those files"
    assert why(tree, "copy", clean=False).why == ""
    recorded("copy", group="gemm")
    assert why(tree, "copy").why == "is the record of gemm"
    recorded("copy", tests=None)
    assert why(tree, "copy").why == "is not a record that this version reads"
    path = recorded("copy")
    path.write_text(path.read_text().replace('"failed": 0', '"failed": 1'))
    assert why(tree, "copy").why == "was changed by hand (its checksum does not match)"
    path.write_text(path.read_text()[:50])
    assert why(tree, "copy").why == "is cut short or not JSON"
    path.unlink()
    assert why(tree, "copy").why == "is missing"


def test_a_record_of_no_group_is_left_over(tree, recorded):
    path = recorded("copy")
    old = path.rename(path.with_name("scan.json"))
    recorded("copy")

    assert gpu_test_records.left_over(tree, "nvidia-h200", gpu_test_records.Project(tree).groups) == [old]


# --- what the build says ----------------------------------------------------------------------------------


def shown(root, **options):
    """A course without pages in its reference edition."""
    edition = load_edition(root, "nvidia-h200", [])
    return Course(root=root, reference="nvidia-h200", edition=edition, **options)


@pytest.fixture
def problems(tmp_path):
    """What the build says of a tree with the groups one and two, of which two has a record."""
    (tmp_path / "tests" / "gpu").mkdir(parents=True)
    for group in ("one", "two"):
        (tmp_path / f"tests/gpu/test_{group}.py").write_text(f'GROUPS = ("{group}",)\n')
    write(tmp_path, "two")

    def said(*waiting, draft=False, **changes):
        if changes:
            write(tmp_path, "two", **changes)
        course = shown(tmp_path, draft=draft)
        course.waiting = {path: Waiting(path, "2026-12-01", "planted") for path in waiting}
        card_tests.check(course)
        return [str(problem) for problem in course.problems]

    said.root = tmp_path
    return said


ONE_IS_MISSING = (
    "records/nvidia-h200/tests/one.json: is missing; "
    "run them on the card: nox -s tests -- tests/gpu --group one"
)


def test_the_build_says_which_group_why_and_what_to_do(problems):
    assert problems() == [ONE_IS_MISSING]
    assert problems(draft=True) == []


def test_the_reference_edition_has_no_record_of_uncommitted_files(problems):
    assert problems("tests/gpu/one", provenance={**CARD, "dirty": True}) == [
        "records/nvidia-h200/tests/two.json: was made from files that differ from their commit; commit those files; "
        "run them on the card: nox -s tests -- tests/gpu --group two"
    ]


def test_groups_may_wait_and_an_entry_that_waits_for_nothing_is_refused(problems):
    where, off = "records/waiting.toml: ", " does not wait any more: take it off the list"
    assert problems("tests/gpu") == []
    assert problems("tests/gpu/one") == []
    assert problems("tests/gpu/one", "tests/gpu/two") == [f"{where}tests/gpu/two{off}"]
    assert problems("tests/gpu/one", "tests/gpu/none") == [
        f"{where}tests/gpu/none is not a group of GPU tests"
    ]
    write(problems.root, "one")
    assert problems("tests/gpu") == [f"{where}tests/gpu{off}"]
    assert problems("tests/gpu", draft=True) == [f"{where}tests/gpu{off}"]
    shutil.rmtree(problems.root / "tests")
    assert f"{where}tests/gpu{off}" in problems("tests/gpu")


def test_tests_for_a_card_that_no_edition_is_of_hold_nobody_up_until_such_a_card_has_run_them(problems):
    file = problems.root / "tests/gpu/test_one.py"
    file.write_text(f'{file.read_text()}CAPABILITY = "10.0"\n')
    assert problems() == []
    assert problems("tests/gpu/one") == [
        "records/waiting.toml: tests/gpu/one does not wait any more: take it off the list"
    ]
    (problems.root / "records/nvidia-h200/tests/one.json").write_text("{")
    assert problems() == [ONE_IS_MISSING.replace("is missing", "is cut short or not JSON")]


def test_a_record_of_a_group_that_is_gone_is_refused(problems):
    (problems.root / "tests/gpu/test_two.py").unlink()
    assert problems("tests/gpu") == [
        "records/nvidia-h200/tests/two.json: there is no such group of GPU tests: delete this record"
    ]


def test_tests_and_pages_of_the_reference_are_of_one_edition(problems):
    course = shown(problems.root)
    page = SimpleNamespace(measured=True, meta={"page": "docs/a.py"})
    page.edition = gpu_test_records.edition_of(CARD | {"torch": "2.13.0"})
    course.records, course.states = {"a": page}, {"a": "fresh"}
    card_tests.check(course)

    assert "two.json: is of another edition than docs/a.py; run" in str(course.problems[1])


def test_a_test_file_of_no_group_stops_the_build(problems):
    (problems.root / "tests/gpu/test_three.py").write_text("def test_it(): pass\n")
    (line,) = problems("tests/gpu")
    assert line.startswith("tests/gpu/test_three.py: does not say whose tests it holds: write GROUPS = ")
