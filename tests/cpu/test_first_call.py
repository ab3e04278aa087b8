"""A first call in a process of its own: each is alone, cold means empty caches, and what fails is one line."""

import sys

import pytest

from course_kernels import first_call
from course_kernels.problem import Workload

SMALL = Workload.of("bfloat16", M=8, N=8, K=8)

# Stands for a kernel: a compiler that keeps one file. Says when it was ready, began and ended, and what it found.
STAND_IN = """
import os, pathlib, sys, time
def say(word):
    with open(sys.argv[1], "a") as log:
        log.write(f"{word} {sys.argv[2]}\\n")
say("ready")
print("a language greets")
print("first_call: ready", flush=True)
sys.stdin.readline()
kept = pathlib.Path(os.environ["TRITON_CACHE_DIR"], "kernel")
found = kept.exists()
say("warm" if found else "cold")
print("first_call: seconds", 1.0 if found else 3.0 + (os.environ["PYTHONDONTWRITEBYTECODE"] != "1"), flush=True)
time.sleep(0.05)
kept.parent.mkdir(exist_ok=True)
kept.touch()  # some write what they keep when they end
say("end")
"""


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Kernels are the script above; returns what they wrote, as words and names."""
    log = tmp_path / "log"
    monkeypatch.setattr(
        first_call,
        "_command",
        lambda kernel, workload: [sys.executable, "-I", "-S", "-c", STAND_IN, str(log), kernel],
    )
    return lambda: [tuple(line.split()) for line in log.read_text().splitlines()]


def test_one_call_at_a_time_all_cold_ones_first_and_each_warm_one_finds_what_its_own_kept(stand_in):
    kernels = {"a": "gemm/a", "b": "gemm/b", "c": "gemm/c"}
    found = first_call.all_timed(kernels, SMALL)
    assert found == dict.fromkeys(kernels, first_call.FirstCall(3.0, 1.0))
    told = stand_in()
    half = len(told) // 2
    for state, part in (("cold", told[:half]), ("warm", told[half:])):
        assert sorted(part[:3]) == [
            ("ready", kernel) for kernel in kernels.values()
        ]  # none loads while one is timed
        assert part[3:] == [(word, kernel) for kernel in kernels.values() for word in (state, "end")]


def test_one_that_fails_is_one_line_and_ends_the_others(monkeypatch, stand_in):
    real = first_call._command
    started = []

    def command(kernel, workload):
        started.append(kernel)
        bad = [sys.executable, "-I", "-S", "-c", "import sys; sys.exit('no such card')"]
        return bad if kernel == "gemm/b" else real(kernel, workload)

    monkeypatch.setattr(first_call, "_command", command)
    with pytest.raises(first_call.NoFirstCall, match=r"^gemm/b: its first call failed: no such card$"):
        first_call.all_timed({"a": "gemm/a", "b": "gemm/b"}, SMALL)
    assert started == ["gemm/a", "gemm/b"]
    assert {word for word, _ in stand_in()} <= {"ready"}


def test_one_that_ends_badly_after_its_call_or_before_its_turn_is_told(monkeypatch):
    for code in ("print('first_call: seconds 1.0', flush=True); sys.exit('no')", "sys.exit('no')"):
        script = f"import sys; print('first_call: ready', flush=True); {code}"
        monkeypatch.setattr(
            first_call, "_command", lambda *_, script=script: [sys.executable, "-I", "-S", "-c", script]
        )
        with pytest.raises(first_call.NoFirstCall, match=r"^gemm/a: its first call failed: no$"):
            first_call.all_timed({"a": "gemm/a"}, SMALL)


def test_a_call_that_fails_is_one_line_with_the_kernel():
    with pytest.raises(first_call.NoFirstCall, match=r"^gemm/k05_triton: its first call failed: .+$"):
        first_call.all_timed({"triton": "gemm/k05_triton"}, SMALL)  # there is no GPU here


def test_a_call_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(first_call, "LIMIT_SECONDS", 0.05)
    with pytest.raises(
        first_call.NoFirstCall, match=r"^gemm/k05_triton: its first call took more than 0.05 s$"
    ):
        first_call.all_timed({"triton": "gemm/k05_triton"}, SMALL)


def test_words_that_are_missing_are_told(capsys):
    assert first_call.main(["gemm/k05_triton"]) == 2
    assert "expected a kernel and a workload" in capsys.readouterr().out
