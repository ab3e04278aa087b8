"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.skinny_gemm.problem import MOST_ROWS

DTYPES = (torch.bfloat16, torch.float16)
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels


class Sizes(NamedTuple):
    """M rows of x, N of the weights, K numbers in each."""

    M: int
    N: int
    K: int


def sizes_of(x: torch.Tensor, w: torch.Tensor) -> Sizes:
    """Return the sizes of a call.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 128.
        w: (N, K), the same type, contiguous; N and K <= 2**30.
    Raises:
        TypeError: another type, or two different ones.
        ValueError: shapes that do not fit each other, a size out of range, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=DTYPES)
    check_tensor("w", w, "NK", sizes, dtypes=(x.dtype,), device=x.device)
    check_size("x", "M", sizes["M"], MOST_ROWS)
    check_size("x", "K", sizes["K"], MAX_SIZE)
    check_size("w", "N", sizes["N"], MAX_SIZE)
    return Sizes(sizes["M"], sizes["N"], sizes["K"])
