"""Every mishap goes wrong in the way its page tells, and its mended twin does not."""

import shutil

import pytest
import torch

from course_kernels.error_demos.run import ABSENT, SANITIZER, Run, begin, play

GROUPS = ("error_demos",)

MENDED = {
    "out_of_bounds": ["numbers of x that are not 7: 0", "numbers of its neighbour that changed: 0"],
    "illegal_address": [
        "synchronize: fine",
        "a fresh torch.zeros(1): fine",
        "not a number in y, first at: 500",
    ],
    "too_many_threads": ["launch: fine", "numbers written: 4096 of 4096"],
    "too_few_blocks": ["fresh output:    wrong numbers: 0", "poisoned output: wrong numbers: 0"],
    "lost_updates": ["right: 5 of 5"],
    "missing_barrier": ["wrong numbers: 0 of 540672"],
    "split_barrier": ["wrong numbers: 0 of 200"],
    "wrong_mask": ["wrong numbers: 0 of 32"],
    "uninitialised": ["first call: wrong numbers: 0 of 100", "second call: wrong numbers: 0 of 100"],
    "not_a_number": ["first not a number: [row, column] = there is none", "wrong by more than 1e-6: 0"],
    "endless_loop": ["numbers copied: 1000 of 1000"],
    "device_assert": ["synchronize: fine"],
}

# Left out: what a card may get right by luck (missing_barrier, split_barrier, wrong_mask).
WRONG = {
    "out_of_bounds": ["launch: fine", "synchronize: fine", "numbers of its neighbour that changed: 128"],
    "illegal_address": [
        "launch: fine",
        "synchronize: AcceleratorError: CUDA error: an illegal memory access was encountered",
        "a fresh torch.zeros(1): AcceleratorError: CUDA error: an illegal memory access was encountered",
    ],
    "too_many_threads": ["launch: CUDAError: CUDA_ERROR_INVALID_VALUE", "numbers written: 0 of 4096"],
    "too_few_blocks": [
        "fresh output:    wrong numbers: 0",
        "poisoned output: wrong numbers: 232, the first at 768",
    ],
    "lost_updates": ["right: 0 of 5"],
    "uninitialised": ["second call: wrong numbers: 100 of 100"],
    "not_a_number": [
        "first not a number: [row, column] = [5, 2]",
        "row 5, column 2: x = 100 makes the sum inf",
    ],
    "rules_of_nan": ["inf - inf          = nan", "fmaxf(nan, 0)      = 0"],
    "device_printf": ["Python is already here", "block 3, thread 232: i = 1000, past the end"],
    "device_assert": ["device_assert.cu:11: ", "thread: [244,0,0]", "device-side assert triggered"],
}

BLOCKING = Run("illegal_address", blocking=True)
ENDLESS = Run("endless_loop", limit_s=1.0)
FOUND = {
    Run("out_of_bounds", "memcheck", own_memory=True): ["Invalid __global__ write", "out_of_bounds.cu:11"],
    Run("illegal_address", "memcheck"): ["Invalid __global__ read", "thread (244,0,0) in block (1,0,0)"],
    Run("missing_barrier", "racecheck"): ["Race reported", "missing_barrier.cu:12", "missing_barrier.cu:13"],
    Run("wrong_mask", "synccheck"): ["Barrier error detected"],
    Run("uninitialised", "initcheck", own_memory=True): ["Uninitialized __global__ memory read", ".cu:12"],
}
CLEAN = {
    Run("out_of_bounds", "memcheck"): "ERROR SUMMARY: 0 errors",
    Run("out_of_bounds", "memcheck", mended=True, own_memory=True): "ERROR SUMMARY: 0 errors",
    Run("missing_barrier", "racecheck", mended=True): "RACECHECK SUMMARY: 0 hazards",
    Run("lost_updates", "racecheck"): "RACECHECK SUMMARY: 0 hazards",
    Run("wrong_mask", "synccheck", mended=True): "ERROR SUMMARY: 0 errors",
    Run("uninitialised", "initcheck", mended=True, own_memory=True): "ERROR SUMMARY: 0 errors",
}


def begin_behind(items):
    """Every run, in processes of their own, while the tests of other files run."""
    begin(*(Run(case, mended=True) for case in MENDED), *(Run(case) for case in WRONG), BLOCKING, ENDLESS)
    begin(*FOUND, *CLEAN)


def missing(lines, text):
    return [line for line in lines if line not in text]


@pytest.mark.parametrize("case", MENDED)
def test_the_mended_kernel_is_right(case):
    outcome = play(Run(case, mended=True))

    assert missing(MENDED[case], outcome.said) == [], outcome.said
    assert (outcome.status, outcome.timed_out) == (0, False)


@pytest.mark.parametrize("case", WRONG)
def test_a_mishap_shows_what_the_page_says(case):
    outcome = play(Run(case))

    assert missing(WRONG[case], outcome.said) == [], outcome.said


def test_a_blocking_launch_names_itself():
    said = play(BLOCKING).said

    assert said.startswith("launch: CUDAError: CUDA_ERROR_ILLEGAL_ADDRESS"), said


def test_an_endless_loop_is_ended_and_the_card_goes_on():
    outcome = play(ENDLESS)

    assert outcome.timed_out
    assert outcome.said == "launch: fine"
    assert torch.ones(3, device="cuda").sum().item() == 3


@pytest.mark.parametrize("run", FOUND, ids=lambda run: f"{run.tool}-{run.case}")
def test_a_tool_finds_the_line(run):
    said = play(run).tool_said

    assert missing(FOUND[run] if shutil.which(SANITIZER) else [ABSENT], said) == [], said


@pytest.mark.parametrize("run", CLEAN, ids=lambda run: f"{run.tool}-{run.case}-{run.mended}")
def test_a_tool_finds_nothing(run):
    said = play(run).tool_said

    assert (CLEAN[run] if shutil.which(SANITIZER) else ABSENT) in said, said
