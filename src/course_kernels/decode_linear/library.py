"""PyTorch's linear layers: one operator after the other, and its compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from course_kernels.decode_linear.problem import EPSILON


def eager(
    x: torch.Tensor,
    w: torch.Tensor,
    *rest: torch.Tensor,
    norm: bool = False,
    add: bool = False,
    gated: bool = False,
) -> torch.Tensor:
    """Return the norm by torch's fused operator, the product by cuBLAS, and what stands behind it by an operator each.

    Args, Returns: as the contract, any floating-point type.
    """
    if norm:
        x = functional.rms_norm(x, x.shape[-1:], rest[0], EPSILON)
    p = functional.linear(x, w)
    if gated:
        gate, up = p.chunk(2, dim=-1)
        p = functional.silu(gate) * up
    return rest[-1] + p if add else p


def compiled(x: torch.Tensor, w: torch.Tensor, *rest: torch.Tensor, **flags: bool) -> torch.Tensor:
    """`eager`, fused by torch.compile; shapes and errors are its own."""
    return _compiled()(x, w, *rest, **flags)


@functools.cache
def _compiled() -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(eager, fullgraph=True, dynamic=False)
