"""Colour to grey as an operator of torch, with a gradient, and ready for torch.compile.

Contract  problem.py
Idea      four answers make a kernel an operator: how on a GPU, how on the CPU, which shape, and which gradient
Against   a plain call of k01_pixels, which autograd and torch.compile cannot see through
Source    PyTorch documentation, torch.library and the custom operators manual
"""

from __future__ import annotations

from typing import Any

import torch

from course_kernels.grey import k01_pixels
from course_kernels.grey.library import torch_grey
from course_kernels.grey.problem import WEIGHTS


@torch.library.custom_op("course::grey", mutates_args=(), device_types="cuda")
def grey(picture: torch.Tensor) -> torch.Tensor:
    """Return the picture in grey, on the GPU by the kernel of k01_pixels.cu.

    Args:
        picture: (H, W, 3) float32, contiguous.
    Returns:
        (H, W) float32; autograd knows its gradient.
    Raises:
        TypeError, ValueError: on the GPU, as `k01_pixels.grey`.
    """
    return k01_pixels.grey(picture)


@grey.register_kernel("cpu")
def _on_the_cpu(picture: torch.Tensor) -> torch.Tensor:
    return torch_grey(picture)


@grey.register_fake
def _shape(picture: torch.Tensor) -> torch.Tensor:
    """Return what comes out, without computing it: all that torch.compile needs to plan."""
    return picture.new_empty(picture.shape[:2])


def _gradient(ctx: Any, upstream: torch.Tensor) -> torch.Tensor:
    """Return how much every colour moves the loss: (H, W) from above in, (H, W, 3) out.

    A weighted sum has the same gradient everywhere, so there was nothing to remember from the way there.
    """
    return torch.stack([weight * upstream for weight in WEIGHTS], dim=-1)


grey.register_autograd(_gradient)
