"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address

HEAD_SIZES = (64, 128)  # what our own kernels are made for: rows of D numbers lie in registers
MAX_HEADS = 65535  # the grid's second dimension
MAX_N = 2**30  # positions are 32-bit numbers in the kernels


def sizes_of(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    dtypes: tuple[torch.dtype, ...],
) -> tuple[int, int, int, int]:
    """Return the sizes of a call.

    Args:
        q, k, v, o, do: (B, H, N, D) of one of `dtypes`, the same for all, contiguous.
        lse: (B, H, N) float32, contiguous.
        dtypes: the element types a kernel takes.
    Returns:
        B, H, N, D.
    Raises:
        TypeError: another type, or different ones.
        ValueError: shapes that do not fit together, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("q", q, "BHND", sizes, dtypes=dtypes)
    for name, tensor in (("k", k), ("v", v), ("o", o), ("do", do)):
        check_tensor(name, tensor, "BHND", sizes, dtypes=(q.dtype,), device=q.device)
    check_tensor("lse", lse, "BHN", sizes, dtypes=(torch.float32,), device=q.device)
    return sizes["B"], sizes["H"], sizes["N"], sizes["D"]


def heads_of(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    dtypes: tuple[torch.dtype, ...],
) -> tuple[int, int, int]:
    """Return the sizes of a call for a kernel that has a grid of blocks by heads, and moves 16 bytes at a time.

    Args:
        q, k, v, o, do: (B, H, N, D) of one of `dtypes`, contiguous, D = 64 or 128, B * H <= 65535, at addresses
            divisible by 16.
        lse: (B, H, N) float32, contiguous.
        dtypes: the element types the kernel takes.
    Returns:
        B * H, N, D.
    Raises:
        TypeError: another type, or different ones.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, not on the current GPU, or
            an address between two 16-byte vectors.
    """
    B, H, N, D = sizes_of(q, k, v, o, lse, do, dtypes)
    if D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64 or 128, got D={D}")
    check_size("q", "B * H", B * H, MAX_HEADS)
    check_size("q", "N", N, MAX_N)
    for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o), ("do", do)):
        check_address(name, tensor)
    return B * H, N, D
