"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address

HEAD_SIZES = (64, 128)  # what our own kernels are made for: a row of D numbers lies in registers
MAX_HEADS = 65535  # the grid's second dimension
MAX_N = 2**30  # positions are 32-bit numbers in the kernels


def sizes_of(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dtypes: tuple[torch.dtype, ...]
) -> tuple[int, int, int, int]:
    """Return the sizes of q, k and v, which must be the same for all three.

    Args:
        q, k, v: (B, H, N, D) of one of `dtypes`, contiguous.
        dtypes: the element types a kernel takes.
    Returns:
        B, H, N, D.
    Raises:
        TypeError: another type, or three different ones.
        ValueError: shapes that differ, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("q", q, "BHND", sizes, dtypes=dtypes)
    check_tensor("k", k, "BHND", sizes, dtypes=(q.dtype,), device=q.device)
    check_tensor("v", v, "BHND", sizes, dtypes=(q.dtype,), device=q.device)
    return sizes["B"], sizes["H"], sizes["N"], sizes["D"]


def heads_of(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dtypes: tuple[torch.dtype, ...],
    *,
    most_n: int = MAX_N,
    in_vectors: bool = False,
) -> tuple[int, int, int]:
    """Return the sizes of q, k and v for a kernel that has a grid of blocks of rows by heads.

    Args:
        q, k, v: (B, H, N, D) of one of `dtypes`, contiguous, D = 64 or 128, B * H <= 65535.
        dtypes: the element types the kernel takes.
        most_n: the largest N it takes.
        in_vectors: whether it moves 16 bytes at a time, and needs an address divisible by 16.
    Returns:
        B * H, N, D.
    Raises:
        TypeError: another type, or three different ones.
        ValueError: shapes that differ, a size out of range, not contiguous, not on the current GPU, or an address
            between two 16-byte vectors.
    """
    B, H, N, D = sizes_of(q, k, v, dtypes)
    if D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64 or 128, got D={D}")
    check_size("q", "B * H", B * H, MAX_HEADS)
    check_size("q", "N", N, most_n)
    if in_vectors:
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            check_address(name, tensor)
    return B * H, N, D
