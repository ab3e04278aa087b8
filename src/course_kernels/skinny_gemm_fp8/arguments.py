"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.skinny_gemm_fp8.problem import MOST_ROWS

MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels


class Sizes(NamedTuple):
    """M rows of x, N of the weights, K numbers in each."""

    M: int
    N: int
    K: int


def sizes_of(x: torch.Tensor, w: torch.Tensor, scale_x: torch.Tensor, scale_w: torch.Tensor) -> Sizes:
    """Return the sizes of a call.

    Args:
        x: (M, K) float8_e4m3fn, contiguous, M <= 128.
        w: (N, K) float8_e4m3fn, contiguous; N and K <= 2**30.
        scale_x, scale_w: (M,) and (N,) float32, contiguous.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit each other, a size out of range, not contiguous, not on the current GPU, or
            one that has no 8-bit numbers.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=(torch.float8_e4m3fn,))
    check_tensor("w", w, "NK", sizes, dtypes=(torch.float8_e4m3fn,), device=x.device)
    check_tensor("scale_x", scale_x, "M", sizes, dtypes=(torch.float32,), device=x.device)
    check_tensor("scale_w", scale_w, "N", sizes, dtypes=(torch.float32,), device=x.device)
    check_size("x", "M", sizes["M"], MOST_ROWS)
    check_size("x", "K", sizes["K"], MAX_SIZE)
    check_size("w", "N", sizes["N"], MAX_SIZE)
    refuse_older_cards("x", x.device)
    return Sizes(sizes["M"], sizes["N"], sizes["K"])


def refuse_older_cards(name: str, device: torch.device) -> None:
    """Refuse a GPU that has no 8-bit numbers.

    Raises:
        ValueError: its compute capability is below 8.9.
    """
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
        capability = ".".join(map(str, torch.cuda.get_device_capability(device)))
        raise ValueError(
            f"{name}: expected a GPU of compute capability 8.9 or above for 8-bit numbers, got {capability}"
        )
