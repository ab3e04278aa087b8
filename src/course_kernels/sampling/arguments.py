"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MAX_GRID = 65535  # the grid's second dimension
MAX_V = 2**23  # tokens are counted in float32, which is exact up to twice that


class Sizes(NamedTuple):
    """B rows of V logits."""

    B: int
    V: int


def sizes_of(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    steps: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
) -> Sizes:
    """Return the sizes of a call.

    Args:
        logits: (B, V) float32, bfloat16 or float16, contiguous; B <= 65535, V <= 2**23.
        temperature: (B,) float32. What is in it and in the following is not looked at: that would be a wait for the
            GPU.
        seeds: (B,) int64.
        steps: (B,) int32.
        top_k: (B,) int32, or None.
        top_p: (B,) float32, or None.
    Raises:
        TypeError: another type.
        ValueError: another shape, a size out of range, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("logits", logits, "BV", sizes, dtypes=DTYPES)
    for name, tensor, dtype in (
        ("temperature", temperature, torch.float32),
        ("seeds", seeds, torch.int64),
        ("steps", steps, torch.int32),
        ("top_k", top_k, torch.int32),
        ("top_p", top_p, torch.float32),
    ):
        if tensor is not None or name not in ("top_k", "top_p"):
            check_tensor(name, tensor, "B", sizes, dtypes=(dtype,), device=logits.device)  # type: ignore[arg-type]
    check_size("logits", "B", sizes["B"], MAX_GRID)
    check_size("logits", "V", sizes["V"], MAX_V)
    return Sizes(sizes["B"], sizes["V"])
