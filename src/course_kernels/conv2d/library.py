"""Peers for the convolution: cuDNN as torch calls it, and the kernel of a record of May 2025, where it is at hand.

Every function takes `tf32` and keeps to it: torch's own default lets cuDNN take TF32 for convolutions of float32, and
does not let cuBLAS take it for multiplies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from course_kernels.conv2d.arguments import sizes_of
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.published import GOOD_KERNELS, Published
from course_kernels.problem import Workload

CRFM = Published(
    folder=GOOD_KERNELS,
    file="Conv2D/src.py",
    sha256="fefab3894707faf393e952c5bb02e341beabe74f7f9b17ce7402c89e9443a699",
    first="#include <mma.h>",
    behind="torch::Tensor conv2d_implicit_gemm_cuda",
)
# As the published launcher has them: eight warps make a tile of 128 filters and 128 places.
CRFM_THREADS, CRFM_TILE = 256, 128


@contextmanager
def _cudnn_set(tf32: bool, searched: bool) -> Iterator[None]:
    with torch.backends.cudnn.flags(enabled=True, benchmark=searched, allow_tf32=tf32):
        yield


def torch_eager(
    x: torch.Tensor,
    f: torch.Tensor,
    bias: torch.Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    tf32: bool = False,
) -> torch.Tensor:
    """`torch.nn.functional.conv2d` as it is when nobody sets anything but TF32: cuDNN guesses its algorithm.

    Args:
        x: (B, C, H, W) float32.
        f: (K, C, R, S) float32.
        bias: (K,) float32.
        stride, padding: of both directions.
        tf32: whether cuDNN may round inputs to TF32.
    Returns:
        (B, K, P, Q) float32.
    """
    with _cudnn_set(tf32, searched=False):
        return torch.nn.functional.conv2d(x, f, bias, stride, padding)


def cudnn(
    x: torch.Tensor,
    f: torch.Tensor,
    bias: torch.Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    tf32: bool = False,
) -> torch.Tensor:
    """cuDNN's best: the first call of a shape times its algorithms, and later ones take the one that won.

    Arguments and answer as `torch_eager`.
    """
    with _cudnn_set(tf32, searched=True):
        return torch.nn.functional.conv2d(x, f, bias, stride, padding)


def cudnn_channels_last(
    x: torch.Tensor,
    f: torch.Tensor,
    bias: torch.Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    tf32: bool = False,
) -> torch.Tensor:
    """`cudnn` with the channels of a place side by side in memory, as its kernels for tensor cores want them.

    x and f are laid out anew in every call, which is part of its time; the answer stays in that order. A network that
    keeps it from layer to layer does this once.

    Arguments as `torch_eager`.

    Returns:
        (B, K, P, Q) float32, channels last.
    """
    order = torch.channels_last
    with _cudnn_set(tf32, searched=True):
        return torch.nn.functional.conv2d(
            x.contiguous(memory_format=order), f.contiguous(memory_format=order), bias, stride, padding
        )


def torch_compile(
    x: torch.Tensor,
    f: torch.Tensor,
    bias: torch.Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    tf32: bool = False,
) -> torch.Tensor:
    """`torch_eager` through torch.compile, which may choose another layout; arguments and answer as there."""
    with _cudnn_set(tf32, searched=False):
        answer: torch.Tensor = _compiled(tf32)(x, f, bias, stride, padding)
        return answer


@functools.cache  # one for each setting: what was compiled under one is not asked under the other
def _compiled(tf32: bool) -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(_convolved, fullgraph=True, dynamic=False)


def _convolved(
    x: torch.Tensor, f: torch.Tensor, bias: torch.Tensor, stride: int, padding: int
) -> torch.Tensor:
    return torch.nn.functional.conv2d(x, f, bias, stride, padding)


def supports(w: Workload) -> bool:
    """Return whether `crfm` answers a workload: it multiplies in float16, so none whose products are float32."""
    return bool(w.dims.get("tf32", False)) and w.B * max(w.C * w.H * w.W, w.K * w.H * w.W) < 2**31


def crfm(
    x: torch.Tensor,
    f: torch.Tensor,
    bias: torch.Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    tf32: bool = False,
) -> torch.Tensor:
    """Run the convolution that a machine wrote, and CRFM published in May 2025: an implicit multiply in float16.

    It rounds every number to float16 on its way to shared memory, and multiplies on tensor cores. The kernel is
    compiled for this card, without the published build's fast mathematics, which has nothing to act on here, and
    launched as the published host code does it, into an answer that was filled with zeros before.

    Args:
        x, f, bias, stride, padding: as `torch_eager`; contiguous, all of x and y below 2**31 numbers.
        tf32: must be true.
    Returns:
        (B, K, P, Q) float32.
    Raises:
        RuntimeError: the published source is not at hand.
        ValueError: products are to be float32, or the tensors are too large; and as `sizes_of`.
    """
    source = CRFM.source()
    to = sizes_of(x, f, bias, stride, padding)
    if not tf32:
        raise ValueError("tf32: expected True, since the published kernel multiplies in float16, got False")
    places, products = to.B * to.P * to.Q, to.C * to.R * to.S
    if max(x.numel(), places * to.K) >= 2**31:
        raise ValueError(f"x: expected x and y of fewer than 2**31 numbers, got {tuple(x.shape)}")
    y = torch.zeros(to.B, to.K, to.P, to.Q, dtype=torch.float32, device=x.device)
    numbers = (
        to.B, to.C, to.H, to.W, to.K, to.R, to.S, stride, stride, padding, padding, to.P, to.Q, to.K, places, products
    )  # fmt: skip
    grid = -(-places // CRFM_TILE), -(-to.K // CRFM_TILE)
    kernel = load_kernel(source, "conv2d_implicit_gemm_wmma_kernel")
    launch(kernel, grid, CRFM_THREADS, x, f, bias, y, *map(np.int32, numbers))
    return y
