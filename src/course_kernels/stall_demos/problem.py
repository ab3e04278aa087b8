"""Detours, the contract: a copy, by way of one thing that warps wait for.

    y[n] = x[n]

Shapes    x (N,), y (N,)
Types     float32; the copy is exact
Options   reason: which detour; a workload names it by its number in `REASONS`, from 1
Cost      read N, write N elements; all else is detour
Counters  smsp__average_warps_issue_stalled_<reason>_per_issue_active.ratio
"""

from __future__ import annotations

import torch

from course_kernels.problem import Problem, Workload

# By the names of the counters, with the instruction that is waited for, as a pattern for machine code (SASS).
REASONS = {
    "long_scoreboard": r"\bLDG\b",
    "short_scoreboard": r"\bLDS\b",
    "barrier": r"\bBAR\.SYNC\b",
    "mio_throttle": r"\bSTS\b",
    "lg_throttle": r"\bSTG\b",
    "math_pipe_throttle": r"\bDFMA\b",
    "wait": r"\bFFMA\b",
    "not_selected": r"\bFFMA\b",
    "branch_resolving": r"\bBRA\b",
    "membar": r"\bMEMBAR\b",
    "imc_miss": r"\bULDC\b.*\bc\[0x3\]",
    "no_instruction": r"\bFFMA\b",
    "sleeping": r"\bNANOSLEEP\b",
    "drain": r"\bSTG\b",
}
NAMES = tuple(REASONS)
# Threads of a block. 128 are one warp for each of the four schedulers of a multiprocessor: nobody else steps in.
THREADS = {
    **dict.fromkeys(NAMES, 128),
    "barrier": 1024,
    "mio_throttle": 1024,
    "lg_throttle": 1024,
    "math_pipe_throttle": 1024,
    "not_selected": 1024,
    "drain": 256,
}


def blocks_to_time(reason: str, multiprocessors: int = 132) -> int:
    """Return one block on each multiprocessor; where blocks come and go, a queue of them."""
    return multiprocessors * (64 if reason == "drain" else 1)


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one vector (N,) in 1..2."""
    return (1 + torch.rand(w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor, *, reason: str) -> torch.Tensor:
    """Return the copy in float64, (N,), whatever the detour."""
    return x.double()


def job(reason: str, blocks: int | None = None) -> Workload:
    """Return the workload that is counted for a reason; fewer blocks for a test."""
    N = THREADS[reason] * (blocks or blocks_to_time(reason))
    return Workload.of("float32", N=N, S=NAMES.index(reason) + 1)


PROBLEM = Problem(
    name="stall_demos",
    formula="y[n] = x[n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * w.N,
    writes_bytes=lambda w: 4 * w.N,
    flops=lambda w: 0,
    math=lambda w: "fp32",
    max_error=lambda w: 0.0,
    check_on=tuple(Workload.of("float32", N=2500 + 77 * (s % 2), S=s + 1) for s in range(len(NAMES))),
    time_on=tuple(map(job, NAMES)),
    options=lambda w: {"reason": NAMES[w.S - 1]},
    # A detour may add zeros to what it carries; only numbers come through that.
    hard=lambda w: (),
)
