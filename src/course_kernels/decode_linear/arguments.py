"""What every launcher of this folder does first: refuse what no kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.problem import Workload

DTYPES = (torch.bfloat16, torch.float16)
MOST_ROWS = 32
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels
TILE_N, PIECE = 16, 64  # rows and columns that weights are multiples of


class Sizes(NamedTuple):
    """M rows of x, N columns of y, K numbers in a row of x."""

    M: int
    N: int
    K: int


def sizes_of(x: torch.Tensor, weights: tuple[torch.Tensor, ...], most: int = MOST_ROWS) -> Sizes:
    """The sizes of a call.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, K a multiple of 64.
        weights: (N, K) each, the same type, contiguous, N a multiple of 16.
        most: rows of x.
    Raises:
        TypeError: another type, or two different ones.
        ValueError: shapes that do not fit each other, a size out of range or no such multiple, not contiguous, not on
            the current GPU, or an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=DTYPES)
    for w in weights:
        check_tensor("w", w, "NK", sizes, dtypes=(x.dtype,), device=x.device)
        check_address("w", w)
    check_address("x", x)
    check_size("x", "M", sizes["M"], most)
    for name, letter, multiple in (("w", "N", TILE_N), ("x", "K", PIECE)):
        check_size(name, letter, sizes[letter], MAX_SIZE)
        if sizes[letter] % multiple:
            raise ValueError(
                f"{name}: expected {letter} a multiple of {multiple}, got {letter}={sizes[letter]}"
            )
    return Sizes(sizes["M"], sizes["N"], sizes["K"])


def supports(w: Workload) -> bool:
    """Whether the kernels of this folder take a workload."""
    return w.dtype in ("bfloat16", "float16") and w.M <= MOST_ROWS and not (w.N % TILE_N or w.K % PIECE)
