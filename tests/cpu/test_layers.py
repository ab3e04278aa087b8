"""The arrows: problem <- measure <- page -> site, measure <- judge <- labs <- site, and what stands on the profiler.

The models stand beside the judge, and only pages call them. A lab of `labs/` stands on the labs and the profiler, and
is loaded by its path alone. None points back.

In `course_site` every room calls only those on a lower floor. An import counts wherever it stands, in a function and
for types too.
"""

import ast
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import course_labs

GRAPH = grimp.build_graph(
    "course_kernels",
    "course_models",
    "course_judge",
    "course_labs",
    "course_profile",
    "course_harness",
    "course_capstone",
    "course_classroom",
    "course_chips",
    "course_site",
    cache_dir=None,
)
ROOT = Path(__file__).parents[2]
PROBLEMS = sorted(
    m.removesuffix(".problem") for m in GRAPH.modules if m.count(".") == 2 and m.endswith(".problem")
)
SHARED = {
    "course_kernels",
    "course_kernels.problem",
    "course_kernels.arguments",
    "course_kernels.dependent_launch",
    "course_kernels.rungs",
    "course_kernels.tilelang_compiler",
    "course_kernels.cutile_compiler",
    "course_kernels.nvcc",
    "course_kernels.nvfp4",
    "course_kernels.cuda",
}
BELOW = ("course_kernels.cuda.", "course_kernels.nvfp4.")
# What the site may know of the kernels: derived numbers, never a kernel.
DERIVED = {
    "course_kernels",
    "course_kernels.measure",
    "course_kernels.measure.machine",
    "course_kernels.measure.derive",
    "course_kernels.measure.gate",
    "course_kernels.measure.record_types",
    "course_kernels.measure.roofline",
    "course_kernels.measure.provenance",
}

# The rooms of the site, from the top: each calls only those below it. Charts and records know nothing of each other.
FLOORS = (
    {"__main__"},
    {"publishing"},
    {"docs", "printing"},
    {"site"},
    {"sessions"},
    {"charts", "records"},
    {"lint"},
    {"values"},
    {"pages"},
)


def imports_of(package):
    """Project modules that a package's modules import, outside of the package itself."""
    inside = {m for m in GRAPH.modules if m == package or m.startswith(package + ".")}
    return {target for m in inside for target in GRAPH.find_modules_directly_imported_by(m)} - inside


def test_the_problems_were_found():
    assert {"course_kernels.attention", "course_kernels.softmax", "course_kernels.vector_add"} <= set(
        PROBLEMS
    )


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_imports_no_other_and_nothing_that_measures(problem):
    foreign = {m for m in imports_of(problem) if m not in SHARED and not m.startswith(BELOW)}
    assert foreign == set()


def test_measuring_knows_no_problem_and_no_site():
    imported = imports_of("course_kernels.measure")
    assert not {m for m in imported if m.startswith("course_site")}
    assert not {m for m in imported for problem in PROBLEMS if m == problem or m.startswith(problem + ".")}


def test_kernels_know_nothing_of_the_site_nor_of_the_labs():
    assert not {
        m
        for m in imports_of("course_kernels")
        if m.startswith(("course_site", "course_labs", "course_judge", "course_models"))
    }


def test_the_models_know_kernels_and_measuring_alone():
    imported = imports_of("course_models")
    assert {
        "course_kernels.attention.k04_specialised",
        "course_kernels.decode_attention.k02_split",
    } <= imported
    assert {m.split(".")[0] for m in imported} == {"course_kernels"}


def test_models_are_for_pages_and_nothing_else():
    importers = {m for m in GRAPH.modules for target in GRAPH.find_modules_directly_imported_by(m)
                 if target.split(".")[0] == "course_models"}  # fmt: skip
    assert {m.split(".")[0] for m in importers} <= {"course_models"}


def test_the_judge_knows_no_problem_no_lab_and_no_site():
    # A problem is named on the command line, and loaded by that name.
    imported = imports_of("course_judge")
    assert not {m for m in imported if m.startswith(("course_site", "course_labs"))}
    assert not {m for m in imported for problem in PROBLEMS if m == problem or m.startswith(problem + ".")}


def test_the_labs_know_no_problem_and_no_site():
    # A lab's problem is named in its lab.toml, and loaded by that name.
    imported = imports_of("course_labs")
    assert not {m for m in imported if m.startswith("course_site")}
    assert not {m for m in imported for problem in PROBLEMS if m == problem or m.startswith(problem + ".")}


def test_the_profiler_knows_no_problem_and_no_site_and_only_harness_and_capstone_know_it():
    # A problem is named beside the file, and loaded by that name.
    imported = imports_of("course_profile")
    assert {m.split(".")[0] for m in imported} == {"course_kernels", "course_judge", "course_labs"}
    assert not {m for m in imported for problem in PROBLEMS if m == problem or m.startswith(problem + ".")}
    importers = {m for m in GRAPH.modules for target in GRAPH.find_modules_directly_imported_by(m)
                 if target.split(".")[0] == "course_profile"}  # fmt: skip
    assert {m.split(".")[0] for m in importers} == {"course_profile", "course_harness", "course_capstone"}


def test_the_harness_stands_on_judge_and_profiler_and_is_for_pages_and_nothing_else():
    # A problem is named in tasks.toml, and loaded by that name.
    imported = imports_of("course_harness")
    assert {m.split(".")[0] for m in imported} == {
        "course_kernels",
        "course_judge",
        "course_labs",
        "course_profile",
    }
    assert {m for m in imported if m.startswith("course_labs")} == {"course_labs.lab"}  # the profiler's error
    assert not {m for m in imported for problem in PROBLEMS if m == problem or m.startswith(problem + ".")}
    importers = {m for m in GRAPH.modules for target in GRAPH.find_modules_directly_imported_by(m)
                 if target.split(".")[0] == "course_harness"}  # fmt: skip
    assert {m.split(".")[0] for m in importers} == {"course_harness", "course_capstone", "course_site"}
    # The site renders what came of the attacks on the judge, and knows no more of it.
    assert {m for m in importers if m.startswith("course_site")} == {"course_site.site.render.attacks"}


def test_the_harness_runs_no_text_that_was_proposed():
    """Only the workers do, which it starts through judge and profiler."""
    assert not {m for m in imports_of("course_harness") if "worker" in m}
    for file in (ROOT / "src" / "course_harness").glob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
        attributes = {
            node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)
        }
        assert not names & {"exec", "eval", "compile", "__import__", "runpy"}, file
        assert not attributes & {"run_path", "spec_from_file_location", "exec_module", "Popen"}, file


def test_the_capstone_stands_on_judge_and_profiler_and_nobody_knows_it():
    # A task's problem is named in the harness's tasks.toml, and loaded by that name.
    imported = imports_of("course_capstone")
    assert {m.split(".")[0] for m in imported} == {
        "course_kernels",
        "course_judge",
        "course_labs",
        "course_profile",
        "course_harness",
    }
    assert not {m for m in imported for problem in PROBLEMS if m == problem or m.startswith(problem + ".")}
    known = {m for m in imported if m.startswith("course_harness")}
    assert known == {
        "course_harness.tasks",
        "course_harness.recorded",
    }  # one list of tasks, and what a model proposed
    importers = {m for m in GRAPH.modules for target in GRAPH.find_modules_directly_imported_by(m)
                 if target.split(".")[0] == "course_capstone"}  # fmt: skip
    assert {m.split(".")[0] for m in importers} == {"course_capstone"}


def test_the_classroom_stands_on_judge_and_labs_and_nobody_knows_it():
    """What a class hands in is graded by the labs' grader alone; a change here asks no verdict of a page anew."""
    assert {m.split(".")[0] for m in imports_of("course_classroom")} == {
        "course_kernels",
        "course_judge",
        "course_labs",
    }
    assert not {m for m in imports_of("course_classroom") if "worker" in m}
    importers = {m for m in GRAPH.modules for target in GRAPH.find_modules_directly_imported_by(m)
                 if target.split(".")[0] == "course_classroom"}  # fmt: skip
    assert {m.split(".")[0] for m in importers} == {"course_classroom"}


def names_imported(file):
    """The packages that a file imports, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: line {node.lineno}: import by the absolute name"
            found.add(node.module.partition(".")[0])
    return found


def test_no_file_of_the_source_is_outside_of_the_graph():
    files = [file.relative_to(ROOT / "src").with_suffix("").parts for file in (ROOT / "src").rglob("*.py")]
    assert {".".join(parts).removesuffix(".__init__") for parts in files} - set(GRAPH.modules) == set()


def test_a_lab_stands_on_the_parts_below_it_and_none_imports_it():
    labs = {file: names_imported(file) for file in (ROOT / "labs").glob("*/*.py")}
    ours = {name for found in labs.values() for name in found if name.startswith("course_")}
    assert ours == {"course_kernels", "course_judge", "course_labs", "course_profile"}
    assert len(labs) > 30
    above = {"labs", *(folder.name for folder in (ROOT / "labs").iterdir())}
    assert not {file for file in (ROOT / "src").rglob("*.py") if names_imported(file) & above}


def test_the_site_knows_of_the_labs_only_what_they_are():
    assert {m for m in imports_of("course_site") if m.startswith("course_labs")} <= {
        "course_labs",
        "course_labs.lab",
        "course_labs.wrong_answers",
    }


def test_the_site_is_made_of_its_rooms():
    assert {m.split(".")[1] for m in GRAPH.modules if m.startswith("course_site.")} == set().union(*FLOORS)


def test_every_room_calls_only_those_below_it(capsys):
    arrows, wrong = [], []
    for i, floor in enumerate(FLOORS):
        below = set().union(*FLOORS[i + 1 :])
        for room in sorted(floor):
            targets = {m for m in imports_of(f"course_site.{room}") if m.startswith("course_site.")}
            called = {m.split(".")[1] for m in targets}
            arrows.append(f"  {room} -> {', '.join(r for f in FLOORS for r in sorted(f & called))}")
            wrong += [f"{room} calls {target}" for target in targets if target.split(".")[1] not in below]
    with capsys.disabled():
        print("\ncourse_site:", *arrows, sep="\n")
    assert wrong == []


def test_there_is_no_circle():
    left = set(GRAPH.modules)
    # What imports nothing that is left is in no circle, nor is what nothing that is left imports.
    for neighbours in (GRAPH.find_modules_directly_imported_by, GRAPH.find_modules_that_directly_import):
        while free := {m for m in left if not neighbours(m) & left}:
            left -= free
    assert left == set()


@pytest.mark.parametrize(
    "module",
    [
        "course_labs.lab",
        "course_labs.starter_files",
        "course_labs.grade",
        "course_labs.wrong_answers",
        "course_labs.lab_order",
        "course_labs.diagnosis",
        "course_labs.interactive_cases",
        "course_labs.worker.plays",
    ],
)
def test_writing_a_lab_needs_the_standard_library_only(module):
    code = f"import sys, {module}; print(*{{m.split('.')[0] for m in sys.modules}} - set(sys.stdlib_module_names))"
    src = str(Path(course_labs.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": src},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"__main__", "course_kernels", "course_judge", "course_labs"}


def test_no_module_is_named_for_nothing():
    assert not {m for m in GRAPH.modules if m.rsplit(".", 1)[-1] in ("utils", "common", "helpers", "misc")}
