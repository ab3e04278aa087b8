"""Strided read, the contract: a walk over all of x with stride S, lap after lap.

    y[i] = x[(i % (N / S)) * S + i / (N / S)]

Shapes    x (N,), y (N,); S divides N
Types     float32; the answer is exact
Cost      read N, write N elements. Memory comes in sectors of 32 bytes: at stride 8 and more each holds one element
          that is wanted, and is fetched again for the next lap
Counters  l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum over l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum:
          sectors for one request of a warp, from 4 to 32
"""

from __future__ import annotations

import torch

from course_kernels.problem import Problem, Workload


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one vector (N,) of normal random numbers."""
    return (torch.randn(w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor, *, stride: int) -> torch.Tensor:
    """Return the same numbers in the order of the walk, in float64: (N,)."""
    return x.view(-1, stride).t().double().reshape(-1)


PROBLEM = Problem(
    name="strided_read",
    formula="y[i] = x[(i % (N / S)) * S + i / (N / S)]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * w.N,
    writes_bytes=lambda w: 4 * w.N,
    flops=lambda w: 0,
    math=lambda w: "fp32",
    max_error=lambda w: 0.0,  # a copy in another order has no excuse
    check_on=(
        Workload.of("float32", N=1, S=1),
        Workload.of("float32", N=1000, S=8),  # laps shorter than a block
        Workload.of("float32", N=3 * 1001, S=3),
        Workload.of("float32", N=1 << 20, S=32),
        Workload.of("float32", N=4096, S=4096),  # laps of one element
    ),
    # 512 MB each way: a lap is long gone from every cache when the next one comes by.
    time_on=tuple(Workload.of("float32", N=1 << 27, S=S) for S in (1, 2, 4, 8, 16, 32)),
    options=lambda w: {"stride": w.S},
)
