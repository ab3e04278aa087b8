"""PyTorch's sum of two vectors."""

from __future__ import annotations

import torch


def torch_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`x + y`.

    Args:
        x, y: (N,) float32.
    Returns:
        (N,) float32.
    """
    return x + y
