"""A predicted change on a card: the changed kernel is right, and what was predicted is held against what was timed."""

from __future__ import annotations

from pathlib import Path

import pytest

import course_kernels.gemm.k12_stored
import course_kernels.gemm.problem  # noqa: F401  (loaded by its name, and part of what is tested)
from course_labs import experiments
from course_labs.lab import find_lab, load_file
from course_labs.verdict import RIGHT

GROUPS = ("tried",)
ALONE = True  # it looks at time

RING = find_lab(Path(__file__).parents[2], "ring")
KERNEL = load_file(RING.folder / experiments.FILE, "lab_on_a_card")


@pytest.mark.parametrize(("name", "value"), [("STAGES", 2), ("STAGES", 3), ("GROUP", 1), ("GROUP", 64)])
def test_a_change_is_checked_and_timed(name, value, record_property):
    all_of_it = experiments.Tried(name, value, "slower", -1.0, 1.0)  # whatever it is
    verdict = experiments.measured(KERNEL, all_of_it, {})
    record_property("said", verdict.why)

    assert verdict.found == RIGHT, verdict.why
    assert "of the speed" in verdict.why


def test_half_of_the_ring_is_not_twice_as_fast(record_property):
    verdict = experiments.measured(KERNEL, experiments.Tried("STAGES", 2, "faster", 0.9, 1.0), {})
    record_property("said", verdict.why)

    assert verdict.found == "missed"
