"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor

MAX_K = 1024  # a program holds all positions of a draft at once
MAX_V = 2**23  # and a sum for each block of a row


class Sizes(NamedTuple):
    """B sequences, K drafted tokens for each, V tokens to choose from."""

    B: int
    K: int
    V: int


def sizes_of(
    target: torch.Tensor,
    draft: torch.Tensor,
    drafted: torch.Tensor,
    temperature: torch.Tensor,
    uniforms: torch.Tensor,
) -> Sizes:
    """Return the sizes of a call.

    Args:
        target: (B, K + 1, V) float32, contiguous; K <= 1024, V <= 2**23. What is in it and in the following is not
            looked at: that would be a wait for the GPU.
        draft: (B, K, V) float32, contiguous.
        drafted: (B, K) int32.
        temperature: (B,) float32.
        uniforms: (B, K + 1) float32.
    Raises:
        TypeError: another type.
        ValueError: another shape, a size out of range, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor(
        "target", target, "BRV", sizes, dtypes=(torch.float32,)
    )  # R rows: one behind the K drafted tokens
    on = target.device
    check_tensor("draft", draft, "BKV", sizes, dtypes=(torch.float32,), device=on)
    if sizes["R"] != sizes["K"] + 1:
        shape = tuple(target.shape)
        raise ValueError(f"target: expected (B, K + 1, V) with K={sizes['K']}, got {shape}")
    check_size("draft", "K", sizes["K"], MAX_K)
    check_size("draft", "V", sizes["V"], MAX_V)
    check_tensor("drafted", drafted, "BK", sizes, dtypes=(torch.int32,), device=on)
    check_tensor("temperature", temperature, "B", sizes, dtypes=(torch.float32,), device=on)
    check_tensor("uniforms", uniforms, "BR", sizes, dtypes=(torch.float32,), device=on)
    return Sizes(sizes["B"], sizes["K"], sizes["V"])
