"""FP4 matrix times vector, kernel 9: the launcher of k09_in_flight.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.gemv_fp4.by_rows import gemv_by_rows

SOURCE = Path(__file__).with_suffix(".cu")
WARPS, ROWS = 4, 4  # as in the .cu: a warp takes so many rows
SHARED_BYTES = 72  # for 32 numbers of b and their scales


def gemv_fp4(
    a: torch.Tensor, scales_a: torch.Tensor, b: torch.Tensor, scales_b: torch.Tensor
) -> torch.Tensor:
    """Return the batched product, eight vectors under way for each lane: (L, M). See `gemv_by_rows`."""
    inputs = a, scales_a, b, scales_b
    return gemv_by_rows(
        SOURCE,
        "gemv_in_flight",
        *inputs,
        rows=WARPS * ROWS,
        threads=32 * WARPS,
        shared_bytes_per_vector=SHARED_BYTES,
    )
