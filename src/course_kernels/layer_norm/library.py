"""Peers for LayerNorm: torch, its compiler, and the kernels of a record of May 2025, where their source is at hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.published import GOOD_KERNELS, Published
from course_kernels.layer_norm.arguments import sizes_of
from course_kernels.layer_norm.problem import EPSILON
from course_kernels.problem import Workload

CRFM = Published(
    folder=GOOD_KERNELS,
    file="LayerNorm/src.py",
    sha256="2a014ef18dcb2f110933fa1308ab259842c44eb4e8bc022e1af715f362f2d24f",
    first="__global__ __launch_bounds__(256, 4)",
    behind="torch::Tensor layernorm_forward_cuda",
)
# As the published launcher has them.
CRFM_THREADS, CRFM_PARTS = 256, 32


def torch_eager(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`torch.nn.functional.layer_norm` of rows.

    Args:
        x: (M, N), any floating-point type.
        g, b: (N,), the same type.
    Returns:
        (M, N) of that type.
    """
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), g, b, EPSILON)


def torch_compile(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`torch_eager`, made anew by torch.compile for the shape at hand; shapes and errors are its own."""
    answer: torch.Tensor = _compiled()(x, g, b)
    return answer


@functools.cache
def _compiled() -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(torch_eager, fullgraph=True, dynamic=False)


def supports(w: Workload) -> bool:
    """Return whether `crfm` answers a workload: rows of whole vectors, near 0, and 32-bit addresses."""
    return w.N % 4 == 0 and w.M * w.N < 2**31 and not w.dims.get("offset", False)


def crfm(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Run the three LayerNorm kernels that a machine wrote, and CRFM published in May 2025.

    Thirty-two blocks for each row leave a sum and a sum of squares, one thread adds those of a row, and thirty-two
    write. The variance is the mean of the squares less the square of the mean. The kernels are compiled for this card,
    and launched as the published host code does it, on the current stream.

    Args:
        x: (M, N) float32, contiguous, N a multiple of 4, M * N < 2**31.
        g, b: (N,) float32, contiguous.
    Returns:
        (M, N) float32.
    Raises:
        RuntimeError: the published source is not at hand.
        ValueError: a size that it has not; and as `sizes_of`.
    """
    source = CRFM.source()
    M, N = sizes_of(x, g, b)
    if N % 4 or M * N >= 2**31:
        raise ValueError(f"x: expected N a multiple of 4 and M * N < 2**31, got M={M}, N={N}")
    parts = max(1, min(CRFM_PARTS, -(-N // CRFM_THREADS)))
    y = torch.empty_like(x)
    partial = torch.empty(M, parts, 2, dtype=torch.float32, device=x.device)
    mean, scale = torch.empty(2, M, dtype=torch.float32, device=x.device).unbind()
    columns, blocks, epsilon = np.int32(N), np.int32(parts), np.float32(EPSILON)
    sums, finish, write = (
        load_kernel(source, f"layernorm_{name}_kernel") for name in ("partial_sum", "finalize", "apply")
    )
    launch(sums, M * parts, CRFM_THREADS, x, partial, columns, blocks)
    launch(finish, M, 1, partial, mean, scale, columns, blocks, epsilon)
    launch(write, M * parts, CRFM_THREADS, x, g, b, mean, scale, y, columns, blocks)
    return y
