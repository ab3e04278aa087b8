"""PyTorch's picture in grey: written out colour by colour, or as one product with three weights."""

from __future__ import annotations

import functools

import torch

from course_kernels.grey.problem import WEIGHTS


def torch_grey(picture: torch.Tensor) -> torch.Tensor:
    """Return three slices, three products, two sums, as most people write it: several kernels, each through memory.

    Args:
        picture: (H, W, 3) float32.
    Returns:
        (H, W) float32.
    """
    red, green, blue = picture.unbind(dim=-1)
    return WEIGHTS[0] * red + WEIGHTS[1] * green + WEIGHTS[2] * blue


def torch_product(picture: torch.Tensor) -> torch.Tensor:
    """`picture @ weights`: every pixel is a row of three, so the library's matrix-vector product does it in one go.

    Args:
        picture: (H, W, 3) float32.
    Returns:
        (H, W) float32.
    """
    return picture @ _weights(picture.device)


@functools.cache
def _weights(device: torch.device) -> torch.Tensor:
    return torch.tensor(WEIGHTS, device=device)
