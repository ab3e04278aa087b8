"""PyTorch's softmax of rows."""

from __future__ import annotations

import torch


def torch_softmax(x: torch.Tensor) -> torch.Tensor:
    """`torch.softmax` over the last axis.

    Args:
        x: (M, N) float32.
    Returns:
        (M, N) float32; every row sums to 1.
    """
    return torch.softmax(x, dim=-1)
