"""PyTorch's sum of a vector."""

from __future__ import annotations

import torch


def torch_sum(x: torch.Tensor) -> torch.Tensor:
    """`torch.sum`.

    Args:
        x: (N,) float32.
    Returns:
        (1,) float32.
    """
    return torch.sum(x).reshape(1)
