"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address

DTYPES = (torch.bfloat16, torch.float16)
EIGHT_BITS = torch.float8_e4m3fn
HEAD_SIZES = (64, 128)  # a row of D numbers lies in registers
PAGE_SIZES = (
    8,
    16,
    32,
    64,
    128,
    256,
)  # powers of two: the page of a token is a shift, its place there a mask
MOST_SHARE = 64  # query heads of a head of the cache: their sums lie in registers together
MAX_GRID = 65535  # the grid's second and third dimension
MAX_N = 2**30  # tokens of a sequence are counted with 32 bits, and past the end


class Sizes(NamedTuple):
    """B sequences, H heads of the query, KV of the cache, room for MOST pages of PAGE tokens, D numbers in a row."""

    B: int
    H: int
    KV: int
    MOST: int
    PAGE: int
    D: int


def sizes_of(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
    *,
    letters: str = "BHD",
) -> Sizes:
    """Return the sizes of a call.

    Args:
        q: (B, H, D) bfloat16 or float16, contiguous, D = 64 or 128, at an address divisible by 16.
        k_pages, v_pages: (PAGES, KV, PAGE, D), the same type or float8_e4m3fn, contiguous, at such addresses; PAGE a
            power of two from 8 to 256. H is a multiple of KV, at most 64 times it; B and KV <= 65535.
        block_table: (B, MOST) int32, MOST * PAGE <= 2**30. What is in it is not looked at: that would be a wait for
            the GPU.
        lengths: (B,) int32, and neither is what is in this.
        k_scale, v_scale: (KV,) float32, where the pages have 8 bits, and only there.
        letters: the dimensions of q, where it has others.
    Raises:
        TypeError: another type, or types that do not fit together; a scale that is missing, or one too many.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or
            an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("q", q, letters, sizes, dtypes=DTYPES)
    of_pages: Any = (
        "PAGES",
        "KV",
        "PAGE",
        "D",
    )  # names of several letters: a string would give a dimension to each
    check_tensor("k_pages", k_pages, of_pages, sizes, dtypes=(q.dtype, EIGHT_BITS), device=q.device)
    check_tensor("v_pages", v_pages, of_pages, sizes, dtypes=(k_pages.dtype,), device=q.device)
    of_table: Any = ("B", "MOST")
    check_tensor("block_table", block_table, of_table, sizes, dtypes=(torch.int32,), device=q.device)
    check_tensor("lengths", lengths, "B", sizes, dtypes=(torch.int32,), device=q.device)
    of_scale: Any = ("KV",)
    for name, scale in (("k_scale", k_scale), ("v_scale", v_scale)):
        if k_pages.dtype == EIGHT_BITS:
            check_tensor(name, scale, of_scale, sizes, dtypes=(torch.float32,), device=q.device)  # type: ignore[arg-type]
        elif scale is not None:
            raise TypeError(
                f"{name}: expected none with pages of {str(q.dtype).removeprefix('torch.')}, got one"
            )
    found = Sizes(*(sizes[name] for name in Sizes._fields))
    if found.D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64 or 128, got D={found.D}")
    if found.PAGE not in PAGE_SIZES:
        raise ValueError(f"k_pages: expected PAGE = 8, 16, 32, 64, 128 or 256, got PAGE={found.PAGE}")
    if found.H % found.KV or found.H > MOST_SHARE * found.KV:
        raise ValueError(
            f"q: expected H a multiple of KV={found.KV}, at most {MOST_SHARE} times it, got H={found.H}"
        )
    check_size("q", "B", found.B, MAX_GRID)
    check_size("k_pages", "KV", found.KV, MAX_GRID)
    check_size("block_table", "MOST * PAGE", found.MOST * found.PAGE, MAX_N)
    for name, tensor in (("q", q), ("k_pages", k_pages), ("v_pages", v_pages)):
        check_address(name, tensor)
    return found
