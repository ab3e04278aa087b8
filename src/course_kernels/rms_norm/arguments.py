"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.rms_norm.problem import MAX_N

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
MAX_M = 2**30  # rows, and those that a program steps over, are counted with 32 bits


def sizes_of(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None) -> tuple[int, int]:
    """M and N of a call.

    Args:
        x: (M, N) bfloat16, float16 or float32, contiguous, M <= 2**30, N <= 16384.
        g: (N,), the same type, contiguous.
        r: (M, N), the same type, contiguous; or None.
    Raises:
        TypeError: another type, or two different ones.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=DTYPES)
    check_tensor("g", g, "N", sizes, dtypes=(x.dtype,), device=x.device)
    if r is not None:
        check_tensor("r", r, "MN", sizes, dtypes=(x.dtype,), device=x.device)
    M, N = sizes["M"], sizes["N"]
    check_size("x", "M", M, MAX_M)
    check_size("x", "N", N, MAX_N)
    return M, N
