"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.sparse_attention.problem import INDEX_WIDTH, WIDTH

DTYPES = (torch.bfloat16, torch.float16)
MOST_INDEX_HEADS = 64  # a program has the scores of all of them in registers
MAX_GRID = 65535  # the grid's second and third dimension
MAX_N = 2**20  # the N * 576 numbers of a sequence are counted with 32 bits, and past the end


class Sizes(NamedTuple):
    """B sequences of N tokens, H heads of the query, H_I of the index; K tokens are chosen, TOP or all."""

    B: int
    H: int
    H_I: int
    N: int
    K: int


def sizes_of(
    index_q: torch.Tensor,
    index_weight: torch.Tensor,
    index_k: torch.Tensor,
    q: torch.Tensor,
    latent: torch.Tensor,
    top: int,
) -> Sizes:
    """Return the sizes of a call.

    Args:
        index_q: (B, H_I, 128) bfloat16 or float16, contiguous, H_I at most 64.
        index_weight: (B, H_I) float32, contiguous.
        index_k: (B, N, 128), the type of index_q, contiguous, N at most 2**20.
        q: (B, H, 576), the same type, contiguous.
        latent: (B, N, 576), the same type, contiguous. All at addresses divisible by 16; B at most 65535.
        top: how many tokens are chosen, at least 1; more than N count as N.
    Raises:
        TypeError: another type, or types that do not fit together; a top that is no whole number.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or
            an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    given = (
        ("index_q", index_q, ("B", "H_I", "D_I"), DTYPES),
        ("index_weight", index_weight, ("B", "H_I"), (torch.float32,)),
        ("index_k", index_k, ("B", "N", "D_I"), (index_q.dtype,)),
        ("q", q, ("B", "H", "D"), (index_q.dtype,)),
        ("latent", latent, ("B", "N", "D"), (index_q.dtype,)),
    )
    for name, tensor, letters, dtypes in given:
        named: Any = letters  # names of several letters: a string would give a dimension to each
        check_tensor(name, tensor, named, sizes, dtypes=dtypes, device=index_q.device if sizes else None)
    if isinstance(top, bool) or not isinstance(top, int):
        raise TypeError(f"top: expected a whole number, got {type(top).__name__}")
    if top < 1:
        raise ValueError(f"top: expected at least 1, got {top}")
    if sizes["D_I"] != INDEX_WIDTH:
        raise ValueError(f"index_q: expected D_I = {INDEX_WIDTH}, got D_I={sizes['D_I']}")
    if sizes["D"] != WIDTH:
        raise ValueError(f"q: expected D = {WIDTH}, got D={sizes['D']}")
    check_size("index_q", "B", sizes["B"], MAX_GRID)
    check_size("index_q", "H_I", sizes["H_I"], MOST_INDEX_HEADS)
    check_size("index_k", "N", sizes["N"], MAX_N)
    for name, tensor, _, _ in given:
        check_address(name, tensor)
    return Sizes(sizes["B"], sizes["H"], sizes["H_I"], sizes["N"], min(top, sizes["N"]))
