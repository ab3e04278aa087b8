"""Reduction, kernel 4: the launcher of k04_vectorised.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256
ELEMENTS = THREADS * 4 * 4  # what a block takes in one stride: four vectors of four elements a thread
BLOCKS_PER_MULTIPROCESSOR = 32  # four times what is resident: one that is done early takes more


def reduction(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of x, by 16-byte loads.

    Args:
        x: (N,) float32, contiguous, at an address divisible by 16 (as torch allocates).
    Returns:
        (1,) float32; the same bits every time on the same card.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU, or starts between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    check_address("x", x)
    N = sizes["N"]

    kernel = load_kernel(SOURCE, "reduction_vectorised")
    blocks = min(-(-N // ELEMENTS), BLOCKS_PER_MULTIPROCESSOR * multiprocessors(x.device))
    sums = torch.empty(blocks, dtype=x.dtype, device=x.device)
    launch(kernel, blocks, THREADS, x, sums, np.int64(N))
    if blocks == 1:
        return sums
    y = torch.empty(1, dtype=x.dtype, device=x.device)
    launch(kernel, 1, THREADS, sums, y, np.int64(blocks))
    return y


def multiprocessors(device: torch.device) -> int:
    """Return how many streaming multiprocessors the GPU has."""
    return torch.cuda.get_device_properties(device).multi_processor_count
