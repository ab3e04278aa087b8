"""Colour to grey, kernel 1: the launcher of k01_pixels.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
BLOCK = (32, 8)  # a warp along a row of the picture, eight rows to a block
MAX_THREADS = 1024  # of one block, on every card
MAX_W = 2**30  # columns are 32-bit numbers in the kernel, and the last block counts past W
MAX_BLOCKS_Y = 65535  # of a grid, on every card; x can count to 2**31 - 1


def grey(picture: torch.Tensor, *, block: tuple[int, int] = BLOCK) -> torch.Tensor:
    """Return the picture in grey.

    Args:
        picture: (H, W, 3) float32, contiguous: red, green and blue of every pixel.
        block: threads of a block along a row, and rows of a block.
    Returns:
        (H, W) float32: 0.299 red + 0.587 green + 0.114 blue.
    Raises:
        TypeError: picture is not float32.
        ValueError: picture is no contiguous (H, W, 3) on the current GPU or wider than 2**30, or the block is no block
            or too low for H.
    """
    # region launcher
    sizes = {"C": 3}
    check_tensor("picture", picture, "HWC", sizes, dtypes=(torch.float32,))
    H, W = sizes["H"], sizes["W"]
    if W > MAX_W:
        raise ValueError(f"picture: expected at most {MAX_W} columns, got {W}")
    x, y = block
    if x < 1 or y < 1 or x * y > MAX_THREADS:
        raise ValueError(f"block: expected at least 1 and in all at most {MAX_THREADS} threads, got {block}")
    grid = (-(-W // x), -(-H // y))  # both rounded up
    if grid[1] > MAX_BLOCKS_Y:
        raise ValueError(f"picture: expected at most {MAX_BLOCKS_Y * y} rows for blocks {y} high, got {H}")

    out = torch.empty(H, W, dtype=picture.dtype, device=picture.device)
    launch(load_kernel(SOURCE, "grey"), grid, (x, y), picture, out, np.int32(H), np.int32(W))
    # endregion
    return out
