"""Bank conflicts, the contract: sums over windows of shared memory, whose starts lie S words apart.

    y[n] = sum over r < ROUNDS of tile[(S * lane + 32 * warp + r) % 1024]

with tile the 1024 elements of x that hold element n, warp = n % 1024 // 32 and lane = n % 32. In every round the 32
lanes of a warp read 32 words, S apart: a power of two S makes S of them share a bank, an odd S none.

Shapes    x (N,), y (N,); past the end of x every element counts as zero
Types     float32
Cost      ROUNDS reads of shared memory for one read and one write of memory
Counters  l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum, the extra turns that conflicts took;
          l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum, all turns; one turn a read is the least
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import Problem, Workload

ROUNDS = 512
TILE = 1024
WARP = 32


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one vector (N,) in 0..1."""
    return (torch.rand(w.N, generator=generator, dtype=w.torch_dtype, device=device),)


def reference(x: torch.Tensor, *, stride: int) -> torch.Tensor:
    """Return the sums in float64, (N,): differences of running sums over two copies of every tile."""
    N = x.numel()
    tiles = torch.nn.functional.pad(x.double(), (0, -N % TILE)).view(-1, TILE)
    running = torch.zeros(len(tiles), 2 * TILE + 1, dtype=torch.float64, device=x.device)
    torch.cumsum(tiles.repeat(1, 2), dim=1, out=running[:, 1:])
    thread = torch.arange(TILE, device=x.device)
    start = (stride * (thread % WARP) + WARP * (thread // WARP)) % TILE
    return (running[:, start + ROUNDS] - running[:, start]).reshape(-1)[:N]


PROBLEM = Problem(
    name="bank_conflicts",
    formula="y[n] = sum over r < 512 of tile[(S * lane + 32 * warp + r) % 1024]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * w.N,
    writes_bytes=lambda w: 4 * w.N,
    flops=lambda w: ROUNDS * w.N,
    math=lambda w: "fp32",
    # One running sum of 512 numbers; its roundings mostly cancel and grow like sqrt(512). A window that starts one
    # word off differs by some hundredth part.
    max_error=lambda w: 8 * 2.0**-24 * sqrt(ROUNDS),
    check_on=(
        Workload.of("float32", N=1, S=1),
        Workload.of("float32", N=1000, S=2),  # less than a tile
        Workload.of("float32", N=1025, S=7),  # one past a tile, and a stride without conflicts
        Workload.of("float32", N=4096, S=32),
        Workload.of("float32", N=5000, S=33),
    ),
    time_on=tuple(Workload.of("float32", N=1 << 22, S=S) for S in (1, 2, 4, 8, 16, 32, 33)),
    options=lambda w: {"stride": w.S},
    # The truth is a difference of running sums: a NaN, or an infinity, would stay in them.
    hard=lambda w: (),
)
