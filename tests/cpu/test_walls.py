"""The wall between whoever judges and the process that runs a stranger's file: neither side imports the other.

A worker is started by its name. What both sides need is in `protocol/`, which imports neither. An import counts
wherever it stands, in a function and for types too, and through any number of modules between.
"""

import copy

import grimp
import pytest

GRAPH = grimp.build_graph("course_kernels", "course_judge", cache_dir=None)
SHARED = {
    "course_judge": "course_judge.protocol",
}


def side_of(module, package):
    """worker, shared or judge; None for a module of another package."""
    if module.split(".")[0] != package:
        return None
    if module == package:
        return "shared"
    for side, root in (("worker", f"{package}.worker"), ("shared", SHARED[package])):
        if module == root or module.startswith(f"{root}."):
            return side
    return "judge"


MAY_REACH = {"judge": {"judge", "shared"}, "worker": {"worker", "shared"}, "shared": {"shared"}}


def crossings(graph, package):
    """Imports through the wall of a package: (importer, what it reaches)."""
    return sorted(
        (module, reached)
        for module in graph.modules
        if (side := side_of(module, package))
        for reached in graph.find_upstream_modules(module)
        if (other := side_of(reached, package)) and other not in MAY_REACH[side]
    )


@pytest.mark.parametrize("package", SHARED)
def test_no_import_goes_through_the_wall(package):
    sides = {side_of(module, package) for module in GRAPH.modules} - {None}
    assert sides == {"judge", "worker", "shared"}
    assert crossings(GRAPH, package) == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("course_judge.host", "course_judge.worker.process"),
        ("course_judge.worker.load", "course_judge.host"),
        ("course_judge.protocol.messages", "course_judge.worker.connection"),
        ("course_judge.protocol.verdict", "course_judge.judge"),
        ("course_kernels.problem", "course_judge.worker.load"),  # which the judge's side imports
    ],
)
def test_an_import_through_the_wall_is_seen(importer, imported):
    graph = copy.deepcopy(GRAPH)
    graph.add_import(importer=importer, imported=imported)
    assert crossings(graph, "course_judge")
