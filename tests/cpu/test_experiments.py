"""The change that a student predicts: what is read, what a card says of it, and what is said where none is."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map

from course_kernels.gemm import by_tma, k12_stored, launch_cache
from course_kernels.gemm.problem import PROBLEM
from course_kernels.measure import bursts
from course_kernels.measure.check import WrongResult
from course_kernels.problem import Workload, worst_error
from course_labs import experiments
from course_labs.__main__ import grading_needs
from course_labs.interactive_cases import grade
from course_labs.lab import find_lab, load_file
from course_labs.verdict import NOT_BEGUN, RIGHT, Verdict

ROOT = Path(__file__).parents[2]
RING = find_lab(ROOT, "ring")
CARD = load_file(RING.folder / experiments.FILE, "lab_on_a_card")
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
REASON = "a trip that takes longer than two steps is waited for by everybody"
GOOD = {"change": {"STAGES": 3}, "expect": "slower", "by": (0.05, 0.2), "because": REASON}
SLOWER = experiments.Tried("STAGES", 3, "slower", 0.05, 0.2)


def file_of(tmp_path, table, stage=4):
    """A right file of the lab with a table behind it."""
    file = tmp_path / "ring.py"
    source = RING.snapshot("python", stage) if stage else RING.solution("python")
    file.write_text(source.read_text() + (f"\n\nTRIED = {table!r}\n" if table else ""))
    return file


# --- on paper ----------------------------------------------------------------------------------------


def test_a_prediction_is_read():
    assert experiments.read(GOOD, CARD.CONSTANTS) == SLOWER
    same = {**GOOD, "change": {"GROUP": 64}, "expect": "the same"}
    del same["by"]
    assert experiments.read(same, CARD.CONSTANTS) == experiments.Tried(
        "GROUP", 64, "the same", 0.0, experiments.SAME
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"by": (0.05, 0.30)}, None),
        ({"by": (0.05, 0.31)}, "no prediction"),
        ({"by": (0.02, 0.1)}, None),
        ({"by": (0.01, 0.1)}, "no prediction"),
        ({"by": (0.2, 0.1)}, "no prediction"),
        ({"by": (True, 0.1)}, "no prediction"),
        ({"by": (float("nan"), 0.1)}, "no prediction"),
        ({"change": {"STAGES": True}}, "no such change"),
        ({"change": {"STAGES": 1}}, "no such change"),
        ({"change": {"STAGES": 2}}, None),
        ({"change": {"GROUP": 64}}, None),
        ({"change": {"GROUP": 65}}, "no such change"),
        ({"change": {8: 8}}, "no such change"),
        ({"change": "STAGES"}, "no such change"),
        ({"because": "one two three four five six seven"}, "no reason"),
        ({"because": "one two three four five six seven eight"}, None),
        ({"more": 1}, "not filled in"),
    ],
)
def test_what_a_table_may_say(change, found):
    read = experiments.read({**GOOD, **change}, CARD.CONSTANTS)
    assert getattr(read, "found", None) == found
    assert found is None or found in experiments.NEXT


def test_without_a_gpu_it_is_said_what_is_graded_and_what_is_not(tmp_path):
    (verdict,) = grade(RING, [file_of(tmp_path, GOOD)], environment=NO_GPU)
    assert verdict.code == 0
    assert verdict.lines == (
        "TRIED: STAGES=3 instead of 4 in k12_stored, slower, by 5 to 20 in a hundred: the form is right. "
        "Neither the change nor the prediction is graded: this machine has no GPU",
    )


def test_who_is_done_is_told_of_it_and_nobody_else(tmp_path):
    (early,) = grade(RING, [file_of(tmp_path, None)], environment=NO_GPU)
    assert early.alone.found == NOT_BEGUN
    assert early.lines == ()
    (done,) = grade(RING, [file_of(tmp_path, None, stage=0)], environment=NO_GPU)
    assert done.alone.found == RIGHT
    assert done.lines == ("next, on a GPU: predict what a change does, in a table TRIED in your file",)


def test_a_wrong_file_and_a_lab_without_a_kernel_to_try_are_left_alone(tmp_path):
    wrong = Verdict("wrong", "so")
    assert experiments.also(RING, file_of(tmp_path, {"nothing": 1}), wrong) is wrong
    right = Verdict(RIGHT, "so")
    assert experiments.also(find_lab(ROOT, "roofline"), file_of(tmp_path, {"nothing": 1}), right) is right


# --- on a card ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "by", "ratio", "holds"),
    [
        ("slower", (0.05, 0.2), 0.9, True),
        ("slower", (0.05, 0.2), 0.96, False),
        ("slower", (0.05, 0.2), 0.79, False),
        ("slower", (0.05, 0.2), 1.1, False),
        ("faster", (0.05, 0.2), 1.1, True),
        ("faster", (0.05, 0.2), 0.9, False),
        ("the same", (0.0, 0.02), 1.015, True),
        ("the same", (0.0, 0.02), 0.985, True),
        ("the same", (0.0, 0.02), 0.97, False),
    ],
)
def test_a_prediction_holds_between_its_shares_and_in_its_direction(expect, by, ratio, holds):
    one = dataclasses.replace(SLOWER, expect=expect, low=by[0], high=by[1])
    found = experiments.judged(one, "what", 700.0, 700.0 * ratio)
    assert found.found == (RIGHT if holds else "missed")
    assert (
        f"700 TFLOP/s as it was, {700 * ratio:.0f} changed, in bursts: {ratio:.3f} of the speed" in found.why
    )
    assert f"you said {one.said}" in found.why.replace("You", "you")


class Race:
    """A race with made-up rates."""

    rates = (700.0, 630.0)

    def __init__(self, field, problem, workload):
        assert problem is PROBLEM
        assert workload == Workload.of("bfloat16", M=4096, N=4096, K=4096)
        self.names = list(field)
        if not all(self.rates):
            raise WrongResult("changed on M4096: all NaN\nand more")

    def burst(self, *, rounds):
        assert rounds == experiments.ROUNDS
        return {n: SimpleNamespace(quantiles={"0.5": r}) for n, r in zip(self.names, self.rates, strict=True)}


@pytest.mark.parametrize(
    ("rates", "code", "said"),
    [
        ((700.0, 630.0), 0, "TRIED: STAGES=3 instead of 4 in k12_stored: 700 TFLOP/s as it was, 630 changed"),
        ((630.0, 700.0), 1, "refused on TRIED: missed: STAGES=3 instead of 4 in k12_stored: you said slower"),
        ((700.0, 0.0), 1, "refused on TRIED: wrong answer: STAGES=3 instead of 4 in k12_stored: changed on M4096: all"),
    ],
)  # fmt: skip
def test_on_a_card_the_change_is_checked_timed_and_held_against_the_prediction(
    tmp_path, monkeypatch, rates, code, said
):
    monkeypatch.setattr(bursts, "Race", type("Made", (Race,), {"rates": rates}))
    monkeypatch.setattr(experiments, "_missing", lambda environment: "")
    verdict = experiments.also(RING, file_of(tmp_path, GOOD), Verdict(RIGHT, "so"))
    assert verdict.code == code
    assert said in verdict.text
    assert code == 0 or verdict.text.splitlines()[-1].startswith("next: ")
    assert "and more" not in verdict.text


def test_a_card_that_cannot_is_said_so(monkeypatch):
    assert experiments._missing(NO_GPU) == "this machine has no GPU"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    assert experiments._missing({}) == "the kernel wants a Hopper card"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    assert experiments._missing({}) == ""
    monkeypatch.setitem(sys.modules, "torch", None)
    assert experiments._missing({}) == "torch is not installed here"


def test_torch_is_asked_for_where_a_card_is_and_something_is_to_be_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments.ctypes, "CDLL", lambda name: name)
    assert grading_needs(["ring", str(file_of(tmp_path, GOOD))]) == "torch"
    assert grading_needs(["ring", str(file_of(tmp_path, None))]) == ""

    def none(name):
        raise OSError(name)

    monkeypatch.setattr(experiments.ctypes, "CDLL", none)
    assert grading_needs(["ring", str(file_of(tmp_path, GOOD))]) == ""


def test_the_constants_are_those_of_the_source():
    source = k12_stored.SOURCE.read_text(encoding="utf-8")
    for name, (now, least, most) in CARD.CONSTANTS.items():
        assert re.search(rf"#define {name} (\d+)", source)[1] == str(now)
        assert least < now <= most
    most = dataclasses.replace(k12_stored.SHAPE, stages=CARD.CONSTANTS["STAGES"][2])
    assert most.shared_bytes <= 227 * 1024 < dataclasses.replace(most, stages=most.stages + 1).shared_bytes


@pytest.mark.kept(of=lambda **_: [RING.folder], but=["labs/*"])
def test_the_shortest_ring_is_right(tmp_path, monkeypatch):
    asked = []

    def prepare(path, kernel, **how):
        asked.append((how["defines"], how["shared_bytes"]))
        return prepare_in(tmp_path)(path, kernel, **how)

    for kept in (by_tma._prepared, by_tma.multiprocessors):
        kept.cache_clear()
    launch_cache.forget()
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
    monkeypatch.setattr(by_tma, "prepare", prepare)
    monkeypatch.setattr(by_tma, "tensor_map", tensor_map)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=4)
    )
    w = Workload.of("bfloat16", M=136, N=264, K=328)
    a, b = PROBLEM.make_inputs(w, torch.Generator().manual_seed(1), "cpu")
    c = CARD.competitors("STAGES", 2)["changed"](a, b)
    assert worst_error(c, PROBLEM.reference(a, b)) <= PROBLEM.max_error(w)
    ((defines, shared_bytes),) = asked
    assert defines["STAGES"] == 2
    assert shared_bytes < k12_stored.SHAPE.shared_bytes
    for kept in (by_tma._prepared, by_tma.multiprocessors):
        kept.cache_clear()
    launch_cache.forget()
