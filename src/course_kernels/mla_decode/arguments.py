"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.mla_decode.problem import PAGE, ROW

DTYPES = (torch.bfloat16, torch.float16)
MOST_HEADS = 128  # two blocks of 64
MOST_SEQUENCES = 8192  # their lengths lie in shared memory where the work is shared out
MOST_PLACES = 2**30  # of the table: the pages of all sequences are counted with 32 bits
MOST_PAGES = 2**24  # of a row of the table, and of the pool: a token's number then has 31 bits


class Sizes(NamedTuple):
    """B sequences, H heads of the query, room for MOST pages of 64 tokens."""

    B: int
    H: int
    MOST: int


def sizes_of(q: torch.Tensor, cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor) -> Sizes:
    """Return the sizes of a call.

    Args:
        q: (B, H, 576) bfloat16 or float16, contiguous, at an address divisible by 16. B <= 8192, H <= 128.
        cache: (PAGES, 64, 576), the same type, contiguous, at such an address.
        block_table: (B, MOST) int32. What is in it is not looked at: that would be a wait for the GPU.
        lengths: (B,) int32, and neither is what is in this.
    Raises:
        TypeError: another type, or two different ones.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or
            an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    of_q: Any = ("B", "H", "D")
    of_cache: Any = (
        "PAGES",
        "PAGE",
        "D",
    )  # names of several letters: a string would give a dimension to each
    of_table: Any = ("B", "MOST")
    check_tensor("q", q, of_q, sizes, dtypes=DTYPES)
    if sizes["D"] != ROW:
        raise ValueError(f"q: expected D={ROW}, got D={sizes['D']}")
    check_tensor("cache", cache, of_cache, sizes, dtypes=(q.dtype,), device=q.device)
    if sizes["PAGE"] != PAGE:
        raise ValueError(f"cache: expected PAGE={PAGE}, got PAGE={sizes['PAGE']}")
    check_tensor("block_table", block_table, of_table, sizes, dtypes=(torch.int32,), device=q.device)
    check_tensor("lengths", lengths, "B", sizes, dtypes=(torch.int32,), device=q.device)
    check_size("q", "B", sizes["B"], MOST_SEQUENCES)
    check_size("q", "H", sizes["H"], MOST_HEADS)
    check_size("cache", "PAGES", sizes["PAGES"], MOST_PAGES)
    check_size("block_table", "MOST", sizes["MOST"], MOST_PAGES)
    check_size("block_table", "B * MOST", sizes["B"] * sizes["MOST"], MOST_PLACES)
    for name, tensor in (("q", q), ("cache", cache)):
        check_address(name, tensor)
    return Sizes(sizes["B"], sizes["H"], sizes["MOST"])
