"""PyTorch's bias and GELU: two operators in a row, or its own compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def eager(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`gelu(x + b)` as two operators: the sum is rounded to the type of x, and goes through memory.

    Args:
        x: (M, N), any floating-point type.
        b: (N,), the same type.
    Returns:
        (M, N), the same type.
    """
    return torch.nn.functional.gelu(x + b)


def compiled(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the same two operators under `torch.compile`: its back end makes one Triton kernel of them.

    Args:
        x: (M, N), any floating-point type.
        b: (N,), the same type.
    Returns:
        (M, N), the same type; the sum is kept in float32.
    """
    return _compiled()(x, b)


@functools.cache
def _compiled() -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    # One kernel for each shape: it may then take the shape for granted.
    return torch.compile(eager, fullgraph=True, dynamic=False)
