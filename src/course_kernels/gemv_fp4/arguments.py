"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.gemv_fp4.formats import BLOCK
from course_kernels.gemv_fp4.problem import MOST_K, STEP

MOST_ROWS = 2**30
MOST_BATCHES = 2**16 - 1  # blocks of a grid along its second dimension


class Sizes(NamedTuple):
    """L products of M rows with K numbers in each."""

    L: int
    M: int
    K: int


def sizes_of(a: torch.Tensor, scales_a: torch.Tensor, b: torch.Tensor, scales_b: torch.Tensor) -> Sizes:
    """Return the sizes of a call.

    Args:
        a: (L, M, K/2) uint8, contiguous, L <= 65535, M <= 2**30, K <= 65536 and a multiple of 32.
        scales_a: (L, M, K/16) float8_e4m3fn, contiguous.
        b: (L, K/2) uint8, contiguous.
        scales_b: (L, K/16) float8_e4m3fn, contiguous. All four at addresses divisible by 16.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or
            an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    for_a: Any = ("L", "M", "K/2")  # names of several letters: a string would take them apart
    check_tensor("a", a, for_a, sizes, dtypes=(torch.uint8,))
    K = 2 * sizes["K/2"]
    if K % STEP:
        raise ValueError(f"a: expected (L, M, K/2) with K a multiple of {STEP}, got K={K}")
    sizes["K/16"] = K // BLOCK
    for name, tensor, letters, dtype in (
        ("scales_a", scales_a, ("L", "M", "K/16"), torch.float8_e4m3fn),
        ("b", b, ("L", "K/2"), torch.uint8),
        ("scales_b", scales_b, ("L", "K/16"), torch.float8_e4m3fn),
    ):
        several: Any = letters
        check_tensor(name, tensor, several, sizes, dtypes=(dtype,), device=a.device)
    check_size("a", "L", sizes["L"], MOST_BATCHES)
    check_size("a", "M", sizes["M"], MOST_ROWS)
    check_size("a", "K", K, MOST_K)
    for name, tensor in (("a", a), ("scales_a", scales_a), ("b", b), ("scales_b", scales_b)):
        check_address(name, tensor)
    return Sizes(sizes["L"], sizes["M"], K)
