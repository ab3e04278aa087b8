"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.attention_fp8.problem import BLOCK

HEAD_SIZES = (64, 128)  # a row of D numbers lies in registers
MAX_HEADS = 65535  # the grid's second dimension
MAX_N = 2**30  # positions are 32-bit numbers in the kernels


def sizes_of(
    q: torch.Tensor,
    k: torch.Tensor,
    v_t: torch.Tensor,
    scale_q: torch.Tensor,
    scale_k: torch.Tensor,
    scale_v: torch.Tensor,
) -> tuple[int, int, int, int]:
    """Return the sizes of 8-bit queries, keys and transposed values with their scales.

    Args:
        q, k: (B, H, N, D) float8_e4m3fn, contiguous, D = 64 or 128, B * H <= 65535, N <= 2**30.
        v_t: (B, H, D, N) float8_e4m3fn, contiguous.
        scale_q, scale_k, scale_v: (B, H, ceil(N / 64)) float32, contiguous.
    Returns:
        B, H, N, D.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit each other, a size out of range, not contiguous, not on the current GPU, or
            one that has no 8-bit numbers.
    """
    sizes: dict[str, int] = {}
    check_tensor("q", q, "BHND", sizes, dtypes=(torch.float8_e4m3fn,))
    check_tensor("k", k, "BHND", sizes, dtypes=(torch.float8_e4m3fn,), device=q.device)
    check_tensor("v_t", v_t, "BHDN", sizes, dtypes=(torch.float8_e4m3fn,), device=q.device)
    B, H, N, D = (sizes[letter] for letter in "BHND")
    of_scales = {"B": B, "H": H, "S": -(-N // BLOCK)}
    for name, scale in (("scale_q", scale_q), ("scale_k", scale_k), ("scale_v", scale_v)):
        check_tensor(name, scale, "BHS", of_scales, dtypes=(torch.float32,), device=q.device)
    if D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64 or 128, got D={D}")
    check_size("q", "B * H", B * H, MAX_HEADS)
    check_size("q", "N", N, MAX_N)
    refuse_older_cards("q", q.device)
    return B, H, N, D


def refuse_older_cards(name: str, device: torch.device) -> None:
    """Refuse a GPU that has no 8-bit floating-point numbers.

    Raises:
        ValueError: compute capability below 8.9.
    """
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
        capability = ".".join(map(str, torch.cuda.get_device_capability(device)))
        raise ValueError(
            f"{name}: expected a GPU of compute capability 8.9 or above for 8-bit numbers, got {capability}"
        )
