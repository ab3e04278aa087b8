"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
HEAD_SIZES = (64, 96, 128, 256)
MAX_GRID = 65535  # the grid's second and third dimension
MAX_TOKENS = 2**30  # positions are 32-bit numbers in the kernels


class Sizes(NamedTuple):
    """B sequences, T queries and S keys in all, H heads of the query, KV of the keys, D numbers in a row."""

    B: int
    T: int
    S: int
    H: int
    KV: int
    D: int


def sizes_of(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    longest: int,
    window: int | None,
) -> Sizes:
    """Return the sizes of a call.

    Args:
        q: (T, H, D) bfloat16, float16 or float32, contiguous, D = 64, 96, 128 or 256, at an address divisible by 16.
        k, v: (S, KV, D), the same type, contiguous, at such addresses. H is a multiple of KV.
        starts_q, starts_k: (B + 1,) int32. What is in them is not looked at: that would be a wait for the GPU.
        longest: at least 1.
        window: at least 0, or None.
    Raises:
        TypeError: another type, or three different ones.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or
            an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    of_keys: Any = ("S", "KV", "D")  # a name of two letters: a string would give it two dimensions
    check_tensor("q", q, "THD", sizes, dtypes=DTYPES)
    for name, tensor in (("k", k), ("v", v)):
        check_tensor(name, tensor, of_keys, sizes, dtypes=(q.dtype,), device=q.device)
    bounds: dict[str, int] = {}
    for name, tensor in (("starts_q", starts_q), ("starts_k", starts_k)):
        check_tensor(name, tensor, "E", bounds, dtypes=(torch.int32,), device=q.device)
    found = Sizes(B=bounds["E"] - 1, **sizes)
    if found.D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64, 96, 128 or 256, got D={found.D}")
    if found.H % found.KV:
        raise ValueError(f"q: expected H a multiple of KV={found.KV}, got H={found.H}")
    if found.B < 1:
        raise ValueError("starts_q: expected at least 2, the start of a sequence and its end, got 1")
    check_size("q", "H", found.H, MAX_GRID)
    check_size("starts_q", "B", found.B, MAX_GRID)
    check_size("q", "T", found.T, MAX_TOKENS)
    check_size("k", "S", found.S, MAX_TOKENS)
    if longest < 1:
        raise ValueError(f"longest: expected at least 1, got {longest}")
    if window is not None and not 0 <= window <= MAX_TOKENS:
        raise ValueError(f"window: expected 0 to {MAX_TOKENS}, or None, got {window}")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_address(name, tensor)
    return found
