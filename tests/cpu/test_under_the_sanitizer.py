"""What compute-sanitizer looks at on a card: every kernel with shared memory or atomics, and faults that fit."""

import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import course_kernels
from course_kernels.cuda.includes import sources_of
from course_site.records.gpu_test_records import shares

ROOT = Path(course_kernels.__file__).parent
LABS = Path(__file__).parents[2] / "labs"


def of_the_card(name):
    path = Path(__file__).parents[1] / "gpu" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_of_the_card", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sanitizer():
    return of_the_card("test_sanitizer")


@pytest.fixture(scope="module")
def other_bodies():
    return of_the_card("test_other_bodies")


@pytest.fixture(scope="module")
def bare_reads():
    return of_the_card("test_bare_reads")


# Started by kernels 13 and 14 besides their own: of the headers for Hopper it takes what rounds and what waits.
ALONE_IN_ITS_TEXT = {ROOT / "gemm" / "add_parts.cu"}

# Line by line a kernel that is looked at, and what notes the time besides: test_stamps.py holds them to that.
WITH_STAMPS = {ROOT / "gemm" / "stamped_wide.cu", ROOT / "gemm" / "stamped_roles.cu"}


def test_every_kernel_with_shared_memory_or_atomics_is_looked_at(sanitizer, other_bodies, bare_reads):
    names = (*sanitizer.EVERY, *other_bodies.BODIES, *bare_reads.BODIES)
    looked_at = {sanitizer.source_of(name) for name in names}
    files = {
        source: [source] if source in ALONE_IN_ITS_TEXT else sources_of(source)
        for folder in (ROOT, LABS)
        for source in folder.rglob("*.cu")
        if source.parent.name != "wrong"
    }
    shared = {source for source, all_of_it in files.items() if shares(*all_of_it)}
    # For a card that is not here; wrong on purpose, and looked at in its own tests; stages on the way to a last one.
    left_out = WITH_STAMPS | {s for s in shared if s.parent.name in ("blackwell", "error_demos")}
    left_out |= {
        source
        for source in shared
        if source.parent.name == "cuda" and source != sorted(source.parent.glob("stage*.cu"))[-1]
    }

    assert len(shared) > 30
    assert shared - left_out - looked_at == set()
    assert [source for source in looked_at if not source.is_file()] == []


def test_everything_that_is_looked_at_runs_on_something(sanitizer):
    for name in (*sanitizer.KERNELS, *sanitizer.LABS):
        assert sanitizer.workloads_of(name), name
    assert {call.kernel for folder in sanitizer.FOLDERS for call in sanitizer.calls_of(folder)} == set(
        sanitizer.EVERY
    )


def test_the_faults_can_be_planted(sanitizer):
    for fault in sanitizer.FAULTS.values():
        assert (ROOT / f"{fault.kernel}.cu").read_text().count(fault.right) == 1
        assert fault.kernel in sanitizer.KERNELS
        assert fault.kernel == sanitizer.call_of(fault.kernel, ()).kernel
    assert set(sanitizer.MORE_SIZES) <= set(sanitizer.KERNELS)


def test_other_bodies_are_run_by_the_runner_and_have_faults_of_their_own(sanitizer, other_bodies, tmp_path):
    runner = other_bodies.runner

    assert runner is not sanitizer
    assert runner.__file__ == other_bodies.__file__
    assert not set(sanitizer.OTHERS) & set(other_bodies.BODIES)
    assert set(other_bodies.BODIES) <= set(runner.OTHERS)
    assert {fault.tool for fault in other_bodies.FAULTS.values()} == set(sanitizer.TOOLS)
    for number, fault in enumerate(other_bodies.FAULTS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        call = runner.Call(fault.kernel, "", ((fault.right, fault.wrong),))
        changed = runner.planted(runner.source_of(fault.kernel), call, folder)
        assert fault.wrong in changed.read_text()
        assert runner.places_of({fault.kernel})[changed.name] == {fault.kernel}


def test_what_is_explained_can_be_said_in_other_words(sanitizer, tmp_path):
    for (tool, kernel), explained in sanitizer.EXPLAINED.items():
        assert tool in sanitizer.TOOLS
        call = sanitizer.call_of(kernel, explained.edits)
        assert call == sanitizer.call_from(json.loads(json.dumps(asdict(call))))
        changed = sanitizer.planted(sanitizer.source_of(kernel), call, tmp_path).read_text()
        assert all(wrong in changed for _, wrong in explained.edits)
