"""The launch that most kernels of this folder share: some rows a block, and a batch for each row of the grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.shared_memory import allow_shared_memory
from course_kernels.gemv_fp4.arguments import sizes_of


def gemv_by_rows(
    source: Path,
    name: str,
    a: torch.Tensor,
    scales_a: torch.Tensor,
    b: torch.Tensor,
    scales_b: torch.Tensor,
    *,
    rows: int,
    threads: int,
    shared_bytes_per_vector: int = 0,
) -> torch.Tensor:
    """Return the batched product, by a kernel that takes (a, scales_a, b, scales_b, c, M, K).

    Args:
        source, name: the file, and the kernel in it.
        a, scales_a, b, scales_b: see `sizes_of`.
        rows: of a that a block takes.
        threads: of a block.
        shared_bytes_per_vector: dynamic shared memory for each 32 numbers of b.
    Returns:
        (L, M) float16; sums in float32, rounded once.
    Raises:
        TypeError, ValueError: see `sizes_of`; or b is longer than the card's shared memory.
    """
    L, M, K = sizes_of(a, scales_a, b, scales_b)
    c = torch.empty((L, M), dtype=torch.float16, device=a.device)
    kernel = load_kernel(source, name)
    shared_bytes = K // 32 * shared_bytes_per_vector
    allow_shared_memory(kernel, shared_bytes)
    grid = (-(-M // rows), L)
    arguments = a, scales_a, b, scales_b, c, np.int32(M), np.int32(K)
    launch(kernel, grid, threads, *arguments, shared_bytes=shared_bytes)
    return c
