"""The walls between whoever judges and the process that runs a stranger's file: neither side imports the other.

A worker is started by its name. What both sides need is in `protocol/`, which imports neither. An import counts
wherever it stands, in a function and for types too, and through any number of modules between.
"""

import copy

import grimp
import pytest

GRAPH = grimp.build_graph("course_kernels", "course_judge", "course_labs", "course_profile", cache_dir=None)
# By package: what its two sides share. A lab itself is known to both.
SHARED = {
    "course_judge": ("course_judge.protocol",),
    "course_labs": ("course_labs.protocol", "course_labs.lab"),
}


def side_of(module, package):
    """worker, shared or judge; None for a module of another package."""
    if module.split(".")[0] != package:
        return None
    if module == package or is_in(module, *SHARED[package]):
        return "shared"
    return "worker" if is_in(module, f"{package}.worker") else "judge"


def is_in(module, *packages):
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def may_reach(side, other):
    return other in (side, "shared")


def crossings(graph):
    """Imports through a wall: (importer, what it reaches). A grader is on the judge's side, and its worker is not."""
    return sorted(
        (module, reached)
        for module in graph.modules
        for reached in graph.find_upstream_modules(module)
        for package in SHARED
        if (other := side_of(reached, package))
        and (side := side_in_all(module))
        and not may_reach(side, other)
    )


def side_in_all(module):
    """The side of a module in its own package."""
    return next((side for package in SHARED if (side := side_of(module, package))), None)


@pytest.mark.parametrize("package", SHARED)
def test_each_package_has_two_sides(package):
    assert {side_of(module, package) for module in GRAPH.modules} - {None} == {"judge", "worker", "shared"}


def test_no_import_goes_through_a_wall():
    assert crossings(GRAPH) == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("course_judge.host", "course_judge.worker.process"),
        ("course_judge.worker.load", "course_judge.host"),
        ("course_judge.protocol.messages", "course_judge.worker.connection"),
        ("course_judge.protocol.verdict", "course_judge.judge"),
        ("course_kernels.problem", "course_judge.worker.load"),  # which the judge's side imports
        ("course_labs.grade", "course_labs.worker.file"),
        ("course_labs.grade", "course_judge.worker.load"),
        ("course_labs.worker.file", "course_labs.grade"),
        ("course_labs.worker.file", "course_judge.host"),
        ("course_labs.lab", "course_labs.worker.lists"),
        ("course_labs.lab", "course_labs.hints"),
    ],
)
def test_an_import_through_a_wall_is_seen(importer, imported):
    graph = copy.deepcopy(GRAPH)
    graph.add_import(importer=importer, imported=imported)
    assert crossings(graph)


# --- the profiler, whose worker runs the file of whoever profiles it -----------------------------------

OF_THE_WORKER = (
    "course_profile.worker",
    "course_profile.code_worker",
    "course_profile.launched",
    "course_profile.competitor",
    "course_judge.worker",
    "course_labs.worker",
)


def reached_by_the_profiler(graph):
    """What the command of the profiler imports, on any way, and only its worker may."""
    return sorted(
        (module, reached)
        for module in graph.modules
        if is_in(module, "course_profile") and not is_in(module, *OF_THE_WORKER)
        for reached in graph.find_upstream_modules(module)
        if is_in(reached, *OF_THE_WORKER)
    )


def test_the_profiler_runs_a_file_in_its_worker_alone():
    assert len([module for module in GRAPH.modules if is_in(module, *OF_THE_WORKER)]) > 15
    assert reached_by_the_profiler(GRAPH) == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("course_profile.run", "course_profile.worker"),
        ("course_profile.code", "course_profile.code_worker"),
        ("course_profile.subject", "course_profile.competitor"),
        ("course_profile.profile", "course_judge.worker.load"),
    ],
)
def test_what_would_run_a_file_in_the_profiler_itself_is_seen(importer, imported):
    graph = copy.deepcopy(GRAPH)
    graph.add_import(importer=importer, imported=imported)
    assert (importer, imported) in reached_by_the_profiler(graph)
