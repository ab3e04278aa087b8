"""Reasons why the six kernels wait, and the counters that prove them. Twins that name the answer are in tests/."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_labs.diagnosis import READ, WRITE, Suspect
from course_labs.further_cases import Further, opposites
from course_profile import measurement as r
from course_profile.diagnosis import RULES

if TYPE_CHECKING:  # it imports torch, and the table is handed out without it
    from course_kernels.measure.competitor import Competitor

# By the profiler's names: when its rule speaks.
THRESHOLDS = {rule.name: rule.threshold for rule in RULES}

# The counters of the table, and what each says. All but the first two are those of the kernel that ran longest.
COUNTERS = {
    READ: "bytes read from device memory, over the whole call",
    WRITE: "bytes written to device memory, over the whole call",
    r.TIME: "nanoseconds by the profiler's clock",
    r.DRAM_BUSY: "device memory, percent of its maximum",
    r.MEMORY_BUSY: "the busiest of L1, shared memory, L2 and device memory, percent of its maximum",
    r.SM_BUSY: "the busiest unit of the multiprocessors, percent of its maximum",
    r.TENSOR: "the tensor cores, percent of their maximum",
    r.SMS_BUSY: "ticks in which a multiprocessor has work, percent",
    r.ISSUE: "ticks in which an instruction is issued, percent",
    r.WARPS: "places for warps that are taken, percent",
    r.INSTRUCTIONS: "instructions, one for each warp",
    r.LANES: "lanes, of 32, that take part in an instruction",
    r.LOAD_REQUESTS: "loads from global memory, one for each warp",
    r.LOAD_SECTORS: "sectors of 32 bytes that these loads touch",
    r.LOAD_USED: "bytes of such a sector that are used",
    r.STORE_REQUESTS: "stores to global memory, one for each warp",
    r.STORE_SECTORS: "sectors of 32 bytes that these stores touch",
    r.STORE_USED: "bytes of such a sector that are written",
    r.FROM_L2: "sectors that L1 fetches from L2",
    r.TO_L2: "sectors that L1 passes on to L2",
    r.TURNS: "turns of shared memory for loads",
    r.CONFLICTS: "how many of these turns are due to bank conflicts",
    r.STORE_TURNS: "turns of shared memory for stores",
    r.STORE_CONFLICTS: "how many of these turns are due to bank conflicts",
    r.LOCAL_LOADS: "sectors of local memory, loaded",
    r.LOCAL_STORES: "sectors of local memory, stored",
    r.REDUCED: "additions to memory whose result is not read back",
    r.REDUCED_IN_ONE: "how many of them are in the busiest slice of L2",
    r.ATOMICS: "additions to memory whose result is read back",
    r.ATOMICS_IN_ONE: "how many of them are in the busiest slice of L2",
    r.GRID: "blocks",
    r.BLOCK: "threads of a block",
    r.REGISTERS: "registers of a thread",
    r.SHARED: "bytes of shared memory of a block",
    r.WAVES: "how often the blocks fill the card",
    **{metric: f"blocks that {name} let onto a multiprocessor" for name, metric in r.LIMITS.items()},
    **{r.STALL.format(reason): f"warps that wait: {reason}" for reason in r.REASONS},
}


def far_rows(x: Any) -> None:
    """Move each row of a softmax far away from 0, to either side."""
    for row, by in zip(x, (-200.0, 200.0, -5000.0), strict=True):
        row += by


def whole(x: Any) -> None:
    """Make the numbers of a sum whole, most of them below 0."""
    x[...] = (9 * x).round() - 7


def any_factor(draw: random.Random) -> list[Further]:
    """Draw chains whose factor is 1, 0, 2 or negative, and chains beside 1, where a formula loses its digits."""

    def change(x: Any, a: Any) -> None:
        x[...] = (8 * x).round() - 14
        for n in range(len(a)):
            a[n] = (1.0, 0.0, -1.0, 2.0, -2.0)[n % 5]

    def beside(x: Any, a: Any) -> None:
        for n in range(len(a)):
            a[n] = 1 + (2.0**-12, -(2.0**-12), 2.0**-10)[n % 3]

    def step_by_step(x: Any, a: Any, *, chains: int, steps: int) -> Any:
        x, a = x.double(), a.double()
        for _ in range(steps):
            x = a * x + 1
        return x

    odd = f"dtype=float32,N=5,C=2,K={2 * draw.randint(3, 4) + 1}"
    even = f"dtype=float32,N=3,C=2,K={2 * draw.randint(4, 5)}"
    return [
        Further(odd, "factors 1, 0, -1, 2, -2", change=change, exact=True, reference=step_by_step),
        Further(even, "factors beside 1", change=beside, reference=step_by_step),
    ]


SUSPECTS = (
    Suspect(
        "softmax",
        "softmax.py",
        "too_many_bytes.py",
        "softmax",
        "too many bytes",
        (READ, WRITE),
        ("dtype=float32,M=1,N=1", "dtype=float32,M=3,N=31", "dtype=float32,M=2,N=700"),
        further=lambda draw: (
            f"dtype=float32,M={draw.randint(129, 140)},N={draw.randint(5, 9)}",
            f"dtype=float32,M=2,N={draw.randint(1025, 2047)}",
            f"dtype=float32,M=3,N={draw.randint(8193, 12000)}",
            f"dtype=float32,M={draw.randint(1025, 1100)},N=2",
            # How far a row lies from 0 is rounded as often as its numbers are scaled before they are subtracted.
            Further(
                f"dtype=float32,M=3,N={draw.choice((5, 6, 7, 9))}",
                "rows far from 0",
                change=far_rows,
                slack=64,
            ),
        ),
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
        further=lambda draw: (
            f"dtype=float32,M={draw.randint(35, 60)},N={8 * draw.randint(2, 5)}",
            f"dtype=float32,M=2,N={8 * draw.randint(1025, 1500)}",
            *(
                f"dtype=float32,M={M},N={8 * draw.randint(1, 3)}"
                for M in (draw.randint(65, 100), draw.randint(129, 200), draw.randint(257, 300))
            ),
        ),
    ),
    Suspect(
        "sum",
        "sum.cu",
        "slowest_warp.cu",
        "reduction",
        "barriers",
        (r.STALL.format("barrier"),),
        ("dtype=float32,N=1", "dtype=float32,N=1025", "dtype=float32,N=4000"),
        # The last is longer than a full card with 2048 numbers for each program: some of them have a second turn.
        further=lambda draw: (
            f"dtype=float32,N={draw.randint(5121, 9000)}",
            f"dtype=float32,N={2048 * draw.randint(17, 19) + 1}",
            f"dtype=float32,N={draw.randint(2_170_000, 2_200_000)}",
            Further(
                f"dtype=float32,N={draw.randint(30, 60)}", "whole numbers below 0", change=whole, exact=True
            ),
        ),
    ),
    Suspect(
        "multiply_add",
        "multiply_add.cu",
        "one_chain.cu",
        "fused_multiply_add",
        "one chain",
        (r.STALL.format("wait"),),
        ("dtype=float32,N=1,C=1,K=2", "dtype=float32,N=129,C=3,K=6"),
        further=lambda draw: (
            f"dtype=float32,N={draw.randint(9, 40)},C={draw.randint(5, 8)},K={2 * draw.randint(9, 20)}",
            f"dtype=float32,N={draw.randint(1025, 1500)},C={draw.randint(17, 33)},K={2 * draw.randint(2, 5)}",
            *any_factor(draw),
        ),
    ),
    Suspect(
        "windows",
        "windows.cu",
        "cache_traffic.cu",
        "bank_conflicts",
        "cache traffic",
        (r.MEMORY_BUSY,),
        ("dtype=float32,N=1,S=1", "dtype=float32,N=1025,S=7", "dtype=float32,N=3000,S=33"),
        shorter=True,  # running sums
        further=lambda draw: (
            f"dtype=float32,N={draw.randint(1025, 2047)},S={draw.randint(101, 400)}",
            f"dtype=float32,N={draw.randint(5121, 9000)},S={draw.randint(1025, 3000)}",
        ),
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
        further=lambda draw: (
            f"dtype=float32,N={draw.randint(5121, 9000)}",
            f"dtype=float32,N={1024 * draw.randint(65, 78) + 1}",
            f"dtype=float32,N={1024 * draw.randint(1060, 1090) + 1}",
            opposites(f"dtype=float32,N={draw.randint(30, 60)}"),
        ),
    ),
)


def competitor(given: Path) -> Competitor:
    """A kernel as it was given, ready to be timed on a card."""
    from course_profile.competitor import competitor_of, problem_of, workload_of
    from course_profile.subject import take

    subject = take(str(given))
    problem = problem_of(subject)
    return competitor_of(subject, problem, workload_of(subject, problem))
