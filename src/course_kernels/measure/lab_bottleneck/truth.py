"""What the six kernels wait for, and which counters prove it. Their twins with the answer in the head are in tests/."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from course_labs.suspects import READ, WRITE, Suspect
from course_profile import reading as r
from course_profile.rules import RULES

if TYPE_CHECKING:  # it brings torch, and the table is handed out without
    from course_kernels.measure.competitor import Competitor

# By the profiler's names: when its rule speaks.
THRESHOLDS = {rule.name: rule.threshold for rule in RULES}
COUNTERS = (READ, WRITE, *r.METRICS)

SUSPECTS = (
    Suspect(
        "softmax",
        "softmax.py",
        "too_many_bytes.py",
        "softmax",
        "too many bytes",
        (READ, WRITE),
        ("dtype=float32,M=1,N=1", "dtype=float32,M=3,N=31", "dtype=float32,M=2,N=700"),
    ),
    Suspect(
        "bias_gelu",
        "bias_gelu.cu",
        "arithmetic.cu",
        "bias_gelu",
        "arithmetic",
        # Double precision has a unit of its own, and its warps wait for it.
        (r.STALL.format("math_pipe_throttle"), r.SM_BUSY),
        ("dtype=float32,M=1,N=8", "dtype=float32,M=3,N=1000"),
    ),
    Suspect(
        "sum",
        "sum.cu",
        "barriers.cu",
        "reduction",
        "barriers",
        (r.STALL.format("barrier"),),
        ("dtype=float32,N=1", "dtype=float32,N=1025", "dtype=float32,N=4000"),
    ),
    Suspect(
        "multiply_add",
        "multiply_add.cu",
        "one_chain.cu",
        "fused_multiply_add",
        "one chain",
        (r.STALL.format("wait"),),
        ("dtype=float32,N=1,C=1,K=2", "dtype=float32,N=129,C=3,K=6"),
    ),
    Suspect(
        "windows",
        "windows.cu",
        "cache_traffic.cu",
        "bank_conflicts",
        "cache traffic",
        (r.MEMORY_BUSY,),
        ("dtype=float32,N=1,S=1", "dtype=float32,N=1025,S=7", "dtype=float32,N=3000,S=33"),
    ),
    Suspect(
        "add",
        "add.cu",
        "few_warps.cu",
        "vector_add",
        "bytes in flight",
        # Not the wait for memory: at its roof a kernel waits for memory too.
        (r.DRAM_BUSY,),
        ("dtype=float32,N=1", "dtype=float32,N=1000", "dtype=float32,N=4000"),
    ),
)


def competitor(given: Path) -> Competitor:
    """A kernel as it was given, ready to be timed on a card."""
    from course_profile.load import competitor_of, problem_of, workload_of
    from course_profile.take import take

    subject = take(str(given))
    problem = problem_of(subject)
    return competitor_of(subject, problem, workload_of(subject, problem))
