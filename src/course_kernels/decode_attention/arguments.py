"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
HEAD_SIZES = (64, 128)  # a row of D numbers lies in registers
MOST_SHARE = 64  # query heads of a head of the cache: their sums lie in registers together
MAX_GRID = 65535  # the grid's second and third dimension
MAX_N = 2**23  # the N * D numbers of a head are counted with 32 bits, and past the end


class Sizes(NamedTuple):
    """B sequences, H heads of the query, KV of the cache, room for N tokens, D numbers in a row."""

    B: int
    H: int
    KV: int
    N: int
    D: int


def sizes_of(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor) -> Sizes:
    """Return the sizes of a call.

    Args:
        q: (B, H, D) bfloat16, float16 or float32, contiguous, D = 64 or 128, at an address divisible by 16.
        k_cache, v_cache: (B, KV, N, D), the same type, contiguous, at such addresses. H is a multiple of KV, at
            most 64 times it; B and KV <= 65535, N <= 2**23.
        lengths: (B,) int32. What is in it is not looked at: that would be a wait for the GPU.
    Raises:
        TypeError: another type, or three different ones.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or
            an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("q", q, "BHD", sizes, dtypes=DTYPES)
    of_cache: Any = ("B", "KV", "N", "D")  # a name of two letters: a string would give it two dimensions
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        check_tensor(name, cache, of_cache, sizes, dtypes=(q.dtype,), device=q.device)
    check_tensor("lengths", lengths, "B", sizes, dtypes=(torch.int32,), device=q.device)
    B, H, KV, N, D = (sizes[name] for name in Sizes._fields)
    if D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64 or 128, got D={D}")
    if H % KV or H > MOST_SHARE * KV:
        raise ValueError(f"q: expected H a multiple of KV={KV}, at most {MOST_SHARE} times it, got H={H}")
    check_size("k_cache", "B", B, MAX_GRID)
    check_size("k_cache", "KV", KV, MAX_GRID)
    check_size("k_cache", "N", N, MAX_N)
    for name, tensor in (("q", q), ("k_cache", k_cache), ("v_cache", v_cache)):
        check_address(name, tensor)
    return Sizes(B, H, KV, N, D)
