"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

import torch

from course_kernels.arguments import check_size, check_tensor

# Rows are programs, and columns are counted past their end, both with 32 bits.
MAX_SIZE = 2**30


def sizes_of(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> tuple[int, int]:
    """Return M and N of a call.

    Args:
        x: (M, N) float32, contiguous, M and N <= 2**30.
        g, b: (N,) float32, contiguous.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=(torch.float32,))
    for name, tensor in (("g", g), ("b", b)):
        check_tensor(name, tensor, "N", sizes, dtypes=(torch.float32,), device=x.device)
    for letter, size in sizes.items():
        check_size("x", letter, size, MAX_SIZE)
    return sizes["M"], sizes["N"]
