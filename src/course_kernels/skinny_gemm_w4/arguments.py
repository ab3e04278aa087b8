"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.four_bits import check_packed
from course_kernels.skinny_gemm_w4.problem import MOST_ROWS

DTYPES = (torch.bfloat16, torch.float16)


class Sizes(NamedTuple):
    """M rows of x, N of the weights, K numbers in each."""

    M: int
    N: int
    K: int


def sizes_of(x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor, most_rows: int = MOST_ROWS) -> Sizes:
    """Return the sizes of a call.

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
    N = check_packed(x, words, scales)
    check_size("x", "M", sizes["M"], most_rows)
    return Sizes(sizes["M"], N, sizes["K"])
