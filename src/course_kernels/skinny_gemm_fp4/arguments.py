"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.skinny_gemm_fp4.layout import GROUP, LANES, TILE_K, TILE_N, WORDS
from course_kernels.skinny_gemm_fp4.problem import MOST_ROWS

MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels


class Sizes(NamedTuple):
    """M rows of x, N of the weights, K numbers in each."""

    M: int
    N: int
    K: int


def sizes_of(
    x: torch.Tensor,
    words: torch.Tensor,
    scales: torch.Tensor,
    second: torch.Tensor,
    most_rows: int = MOST_ROWS,
) -> Sizes:
    """Return the sizes of a call.

    Args:
        x: (M, K) bfloat16, contiguous, M <= 128, K a multiple of 128 and at most 2**30.
        words: (N/16, K/64, 32, 4) int32, contiguous, as `packed` makes them; N <= 2**30.
        scales: (N/16, K/128, 32, 4) uint8, contiguous. All three at addresses divisible by 16.
        second: (1,) float32.
        most_rows: of x.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or an
            address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=(torch.bfloat16,))
    K = sizes["K"]
    if K % GROUP:
        raise ValueError(f"x: expected (M, K) with K a multiple of {GROUP}, got K={K}")
    for_words: Any = ("N/16", "K/64", "32", "4")  # names of several letters: a string would take them apart
    for_scales: Any = ("N/16", "K/128", "32", "4")
    sizes |= {"K/64": K // TILE_K, "32": LANES, "4": WORDS, "K/128": K // GROUP, "1": 1}
    check_tensor("words", words, for_words, sizes, dtypes=(torch.int32,), device=x.device)
    check_tensor("scales", scales, for_scales, sizes, dtypes=(torch.uint8,), device=x.device)
    check_tensor("second", second, "1", sizes, dtypes=(torch.float32,), device=x.device)
    check_size("x", "K", K, MAX_SIZE)
    check_size("words", "N/16", sizes["N/16"], MAX_SIZE // TILE_N)
    check_size("x", "M", sizes["M"], most_rows)
    for name, tensor in (("x", x), ("words", words), ("scales", scales)):
        check_address(name, tensor)
    return Sizes(sizes["M"], sizes["N/16"] * TILE_N, K)
