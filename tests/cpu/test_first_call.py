"""A first call in a process of its own: what fails is one line."""

import pytest

from course_kernels import first_call
from course_kernels.problem import Workload

SMALL = Workload.of("bfloat16", M=8, N=8, K=8)


def test_a_call_that_fails_is_one_line_with_the_kernel():
    with pytest.raises(first_call.NoFirstCall, match=r"^gemm/k05_triton: its first call failed: .+$"):
        first_call.timed("gemm/k05_triton", SMALL)  # there is no GPU here


def test_a_call_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(first_call, "LIMIT_SECONDS", 0.05)
    with pytest.raises(
        first_call.NoFirstCall, match=r"^gemm/k05_triton: its first call took more than 0.05 s$"
    ):
        first_call.timed("gemm/k05_triton", SMALL)


def test_seconds_of_both_processes_are_kept_apart_by_name(monkeypatch):
    seconds = iter((3.0, 1.0, 5.0, 2.0))
    monkeypatch.setattr(first_call, "_in_a_process", lambda *_: next(seconds))
    found = first_call.all_timed({"a": "gemm/a", "b": "gemm/b"}, SMALL, at_once=1)
    assert found == {"a": first_call.FirstCall(3.0, 1.0), "b": first_call.FirstCall(5.0, 2.0)}


def test_words_that_are_missing_are_told(capsys):
    assert first_call.main(["gemm/k05_triton"]) == 2
    assert "expected a kernel and a workload" in capsys.readouterr().out
