"""Add and norm by PyTorch: as one would write it, and the same through torch.compile."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from course_kernels.add_norm.problem import EPSILON


def eager(x: torch.Tensor, r: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Return the formula in two calls of PyTorch: (M, N), (M, N), (N,) float32 to (M, N) float32."""
    return torch.nn.functional.layer_norm(x + r, (x.shape[-1],), g, None, EPSILON)


def compiled(x: torch.Tensor, r: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """`eager`, fused by torch.compile; shapes and errors are its own."""
    return _compiled()(x, r, g)


@functools.cache
def _compiled() -> Callable[..., torch.Tensor]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(eager, fullgraph=True, dynamic=False)
