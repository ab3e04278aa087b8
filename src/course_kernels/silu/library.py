"""Peers for SiLU: two operators of torch, its own one, and what its compiler makes of the two."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def two_operators(x: torch.Tensor) -> torch.Tensor:
    """Return a sigmoid, rounded to the type and written to memory, and a product with x.

    Args:
        x: (N,), any floating-point type.
    Returns:
        (N,), the same type.
    """
    return x * torch.sigmoid(x)


def one_operator(x: torch.Tensor) -> torch.Tensor:
    """`torch.nn.functional.silu`: shapes as `two_operators`."""
    return torch.nn.functional.silu(x)


def compiled(x: torch.Tensor) -> torch.Tensor:
    """`two_operators`, fused by torch.compile; shapes and errors are its own."""
    answer: torch.Tensor = _compiled()(x)
    return answer


@functools.cache
def _compiled() -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(two_operators, fullgraph=True, dynamic=False)
