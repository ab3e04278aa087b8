"""Matrix multiply, kernel 12, a tuning bundle: the launcher of k12_persistent.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.sgemm.arguments import check_asynchronous_copies, in_vectors, product_of
from course_kernels.sgemm.tiles import tiles_here

SOURCE = Path(__file__).with_suffix(".cu")
ALPHA = np.float32(1.0)  # C = alpha * A * B, as BLAS has it


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b in fp32.

    Args:
        a: (M, K) float32, contiguous.
        b: (K, N) float32, contiguous.
    Returns:
        (M, N) float32; an element of a shared tile is a sum of a few running fp32 sums, in no fixed order.
    Raises:
        TypeError: a or b is not float32.
        ValueError: see `product_of` and `check_asynchronous_copies`.
    """
    check_asynchronous_copies()
    tiles = tiles_here()
    c, M, N, K = product_of(a, b)
    kernel = load_kernel(SOURCE, "sgemm_persistent" if in_vectors(a, b) else "sgemm_any", tiles.defines)
    blocks = places(kernel, tiles.threads)
    block_m, block_n = tiles.block
    tiles_n = -(-N // block_n)
    count = -(-M // block_m) * tiles_n
    if count % blocks:
        # The first tile that is shared out begins somewhere in this row of tiles; its pieces are added to zeros.
        c[count // blocks * blocks // tiles_n * block_m :].zero_()
    launch(kernel, blocks, tiles.threads, a, b, c, np.int32(M), np.int32(N), np.int32(K), ALPHA)
    return c


def places(kernel: Any, threads: int) -> int:
    """Return how many blocks of `threads` the current GPU holds at once."""
    return _places(kernel, threads, torch.cuda.current_device())


@functools.cache
def _places(kernel: Any, threads: int, device_number: int) -> int:
    of_multiprocessor = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, 0)
    return of_multiprocessor * torch.cuda.get_device_properties(device_number).multi_processor_count
