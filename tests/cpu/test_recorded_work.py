"""Operations and bytes of every recorded measurement, worked out again by the formulas of its problem.

A rate is what was done over the time it took. The time stands in the history of runs; the work is worked out here.
"""

import functools
import importlib
from collections import defaultdict
from pathlib import Path

import pytest

from course_kernels.problem import Workload
from course_site.records import renames
from course_site.records.record import Record
from course_site.values.values import walk_leaves

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "records").glob("*/**/*.ipynb"))
WORK = ("flops", "reads_bytes", "writes_bytes", "math")


@functools.cache
def problem(kernel):
    """Return the problem of a kernel by its recorded name; None for a competitor that a page made itself."""
    name, slash, _ = kernel.partition("/")
    return importlib.import_module(f"course_kernels.{name}.problem").PROBLEM if slash else None


def wrong_work(names):
    """Yield what a record says of the work of a measurement, and its problem does not."""
    stated = defaultdict(set)  # by group and workload
    measured = [(name, leaf) for name, leaf in walk_leaves(names) if leaf["kind"] == "measurement"]
    for name, leaf in measured:
        if of := problem(leaf["kernel"]):
            w = Workload.of(leaf["workload"]["dtype"], **leaf["workload"]["dims"])
            found = of.flops(w), of.reads_bytes(w), of.writes_bytes(w), of.math(w)
            said = tuple(leaf[key] for key in WORK)
            stated[leaf["group"], str(leaf["workload"])].add(found)
            if found != said:
                yield f"{name}: {leaf['kernel']} does {found}, and its record says {said}"
    # What a page made itself does the same work as what it races with.
    for name, leaf in measured:
        beside = stated[leaf["group"], str(leaf["workload"])]
        if problem(leaf["kernel"]) is None and beside and tuple(leaf[key] for key in WORK) not in beside:
            yield f"{name}: {leaf['kernel']} does other work than what it races with, {beside}"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.relative_to(ROOT / "records").as_posix())
def test_a_record_states_the_work_of_its_problem(path):
    assert list(wrong_work(Record.load(path, renames.load(ROOT)).names)) == []


@pytest.mark.parametrize(("key", "factor"), [("flops", 5), ("reads_bytes", 3), ("writes_bytes", 2)])
def test_other_work_than_the_problem_s_is_seen(key, factor):
    path = next(path for path in RECORDS if path.stem == "l6_tensor_cores")
    names = Record.load(path, renames.load(ROOT)).names
    leaf = names["climb"]["mma_sync"]
    leaf[key] = leaf[key] * factor // (factor - 1)
    assert len(list(wrong_work(names))) == 1
