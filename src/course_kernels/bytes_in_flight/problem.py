"""Bytes in flight, the contract: a copy that is told how much it may ask for at once.

    y[n] = x[n]

Shapes    x (N,), y (N,)
Types     float32; the copy is exact
Options   vectors: V 16-byte vectors under way in each thread; resident: at most R blocks on a multiprocessor
Cost      read N, write N elements, whatever V and R are
"""

from __future__ import annotations

import torch

from course_kernels.problem import Problem, Workload

VECTORS = (1, 2, 4, 8)
RESIDENT = range(1, 9)
THREADS = (
    256  # of one block, part of the contract: eight blocks fill a multiprocessor that holds 2048 threads
)


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one vector (N,) of normal random numbers."""
    return (torch.randn(w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor, *, vectors: int, resident: int) -> torch.Tensor:
    """Return the same numbers in float64: (N,)."""
    return x.double()


def bytes_per_multiprocessor(w: Workload) -> int:
    """Return what R blocks of THREADS threads with V vectors each have under way when all of them wait.

    R * 256 * V * 16.
    """
    return w.R * THREADS * w.V * 16


PROBLEM = Problem(
    name="bytes_in_flight",
    formula="y[n] = x[n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.N * w.element_bytes,
    writes_bytes=lambda w: w.N * w.element_bytes,
    flops=lambda w: 0,
    math=lambda w: "fp32",
    max_error=lambda w: 0.0,  # a copy has no excuse
    options=lambda w: {"vectors": w.V, "resident": w.R},
    check_on=(
        Workload.of("float32", N=1, V=1, R=1),
        Workload.of("float32", N=1000, V=8, R=1),  # less than one block takes
        Workload.of("float32", N=1_000_003, V=1, R=8),  # no block size divides it
        Workload.of("float32", N=1_000_003, V=2, R=3),
        Workload.of("float32", N=1 << 22, V=4, R=2),  # every block goes round more than once
        Workload.of("float32", N=(1 << 22) + 5, V=8, R=8),  # more registers than eight blocks can have
    ),
    time_on=tuple(Workload.of("float32", N=1 << 28, V=v, R=r) for v in VECTORS for r in (1, 2, 4, 8)),
)
