"""Transpose, kernel 2: the launcher of k02_tiled.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from course_kernels.transpose.by_tiles import transpose_by_tiles

SOURCE = Path(__file__).with_suffix(".cu")


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of x, by tiles in shared memory: (M, N) float32 to (N, M). See `transpose_by_tiles`."""
    return transpose_by_tiles(SOURCE, "transpose_tiled", x)
