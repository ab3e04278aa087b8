"""The arrows between the parts: problem <- measure <- page -> site. Nothing points back."""

import subprocess
import sys

import grimp
import pytest

GRAPH = grimp.build_graph("course_kernels", "course_site", cache_dir=None)
PROBLEMS = sorted(
    m.removesuffix(".problem") for m in GRAPH.modules if m.count(".") == 2 and m.endswith(".problem")
)
SHARED = {"course_kernels", "course_kernels.problem", "course_kernels.arguments", "course_kernels.cuda"}
# What the site may know of the kernels: derived numbers, never a kernel.
DERIVED = {
    "course_kernels",
    "course_kernels.measure",
    "course_kernels.measure.machine",
    "course_kernels.measure.measurement",
    "course_kernels.measure.roofline",
    "course_kernels.measure.provenance",
}


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
    foreign = {m for m in imports_of(problem) if m not in SHARED and not m.startswith("course_kernels.cuda.")}
    assert foreign == set()


def test_measuring_knows_no_problem_and_no_site():
    imported = imports_of("course_kernels.measure")
    assert not {m for m in imported if m.startswith("course_site")}
    assert not {m for m in imported for problem in PROBLEMS if m == problem or m.startswith(problem + ".")}


def test_kernels_know_nothing_of_the_site():
    assert not {m for m in imports_of("course_kernels") if m.startswith("course_site")}


def test_the_site_knows_no_kernel():
    assert {m for m in imports_of("course_site") if m.startswith("course_kernels")} <= DERIVED


@pytest.mark.parametrize("module", ["course_site.hook", "course_site.render", "course_site.docs"])
def test_rendering_imports_no_torch(module):
    code = f"import sys, {module}; sys.exit(bool({{'torch', 'triton', 'cuda'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_module_is_named_for_nothing():
    assert not {m for m in GRAPH.modules if m.rsplit(".", 1)[-1] in ("utils", "common", "helpers", "misc")}
