"""What every launcher of this folder does first: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.skinny_gemm_w4.packed import GROUP, LANES, TILE_K, TILE_N, WORDS
from course_kernels.skinny_gemm_w4.problem import MOST_ROWS

DTYPES = (torch.bfloat16, torch.float16)
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels


class Sizes(NamedTuple):
    """M rows of x, N of the weights, K numbers in each."""

    M: int
    N: int
    K: int


def sizes_of(x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor, most_rows: int = MOST_ROWS) -> Sizes:
    """The sizes of a call.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 128, K a multiple of 128 and at most 2**30.
        words: (N/16, K/64, 32, 4) int32, contiguous, as `packed` makes them; N <= 2**30.
        scales: (N/16, K/128, 16), the type of x, contiguous. All three at addresses divisible by 16.
        most_rows: of x.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or an
            address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=DTYPES)
    M, K = sizes["M"], sizes["K"]
    if K % GROUP:
        raise ValueError(f"x: expected (M, K) with K a multiple of {GROUP}, got K={K}")
    for_words: Any = ("N/16", "K/64", "32", "4")  # names of several letters: a string would take them apart
    for_scales: Any = ("N/16", "K/128", "16")
    sizes |= {"K/64": K // TILE_K, "32": LANES, "4": WORDS, "K/128": K // GROUP, "16": TILE_N}
    check_tensor("words", words, for_words, sizes, dtypes=(torch.int32,), device=x.device)
    check_tensor("scales", scales, for_scales, sizes, dtypes=(x.dtype,), device=x.device)
    check_size("x", "M", M, most_rows)
    check_size("x", "K", K, MAX_SIZE)
    check_size("words", "N/16", sizes["N/16"], MAX_SIZE // TILE_N)
    for name, tensor in (("x", x), ("words", words), ("scales", scales)):
        check_address(name, tensor)
    return Sizes(M, sizes["N/16"] * TILE_N, K)
