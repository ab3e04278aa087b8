"""Convolution in two dimensions, the contract: every filter is laid over every place of an image.

    y[b, k, p, q] = bias[k] + sum over c, r, s of f[k, c, r, s] * x[b, c, p * STRIDE + r - PAD, q * STRIDE + s - PAD]

Outside of the image x is 0. A dimension STRIDE that a workload leaves out is 1, a PAD that it leaves out is 0.

Two kinds of work have the same formula. Without a flag products and sums are float32. With `tf32` every input may first
be rounded to 11 significant bits, as TF32 and float16 have them, and tensor cores multiply: a kernel that does so is
off by a thousandth, and there are several times as many operations in a second. Whoever races the one against the
other has compared two different things. NaN, infinities, and for the second kind what is past the end of float16, are
no part of this contract.

Shapes    x (B, C, H, W), f (K, C, R, S), bias (K,), y (B, K, P, Q), row-major, with
          P = (H + 2 * PAD - R) // STRIDE + 1 >= 1, and Q from W and S
Types     float32 in and out, sums in float32
Cost      2*B*K*P*Q*C*R*S operations; read x, f and bias, write y
Source    Dumoulin & Visin 2016, arXiv:1603.07285, chapters 1 and 2
"""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import torch

from course_kernels.problem import Problem, Workload

# Rounding to 11 bits is off by 2**-11 to the nearest, and by up to 2**-10 where bits are cut off, in both factors. The
# errors of a sum partly cancel; the worst of many millions is a few times as large as a usual one. bfloat16, of 8
# bits, is off by eight times as much.
ROUGH = 2.0**-8


def is_rough(w: Workload) -> bool:
    """Return whether inputs may be rounded to 11 bits."""
    return bool(w.dims.get("tf32", False))


def strided(w: Workload) -> tuple[int, int]:
    """Return stride and padding."""
    dims = w.dims
    return int(dims.get("STRIDE", 1)), int(dims.get("PAD", 0))


def answer_size(w: Workload) -> tuple[int, int]:
    """Return P and Q, the rows and columns of an answer."""
    dims, (stride, padding) = w.dims, strided(w)
    P, Q = (
        (int(dims[of]) + 2 * padding - int(dims[by])) // stride + 1 for of, by in (("H", "R"), ("W", "S"))
    )
    return P, Q


def max_error(w: Workload) -> float:
    """Return the largest error of a right answer.

    In float32 a sum of C*R*S products grows away from the truth like their square root. A library may transform small
    filters and their tiles first, which saves products and costs many more roundings. TF32 is ten times past this.
    """
    return ROUGH if is_rough(w) else 2.0**-24 * (64 + 32 * sqrt(w.C * w.R * w.S))


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (B, C, H, W), normal; f (K, C, R, S), so that a sum has variance 1; bias (K,), near 0."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32, device=device)

    x, f = normal(w.B, w.C, w.H, w.W), normal(w.K, w.C, w.R, w.S)
    return x, f / sqrt(w.C * w.R * w.S), normal(w.K) / 8


def options(w: Workload) -> dict[str, Any]:
    """Return stride, padding, and whether inputs may be rounded."""
    stride, padding = strided(w)
    return {"stride": stride, "padding": padding, "tf32": is_rough(w)}


def reference(
    x: torch.Tensor,
    f: torch.Tensor,
    bias: torch.Tensor,
    *,
    stride: int = 1,
    padding: int = 0,
    tf32: bool = False,
) -> torch.Tensor:
    """y (B, K, P, Q) in float64, image by image, as a multiply by a matrix that is written down."""
    K, _, R, S = f.shape
    P, Q = ((side + 2 * padding - of) // stride + 1 for side, of in ((x.shape[2], R), (x.shape[3], S)))
    y = torch.empty(len(x), K, P * Q, dtype=torch.float64, device=x.device)
    filters = f.double().flatten(1)
    for image, answer in zip(x, y, strict=True):
        columns = torch.nn.functional.unfold(image[None].double(), (R, S), padding=padding, stride=stride)[0]
        torch.addmm(bias.double()[:, None], filters, columns, out=answer)
    return y.view(len(x), K, P, Q)


# The size of a record of May 2025, the first layer of a network of 2012.
SIZE = {"B": 100, "C": 3, "H": 224, "W": 224, "K": 96, "R": 11, "S": 11, "STRIDE": 4, "PAD": 2}
PUBLISHED = {
    rough: Workload.of("float32", **SIZE, **({"tf32": True} if rough else {})) for rough in (False, True)
}


def _check_on() -> tuple[Workload, ...]:
    sizes: tuple[dict[str, int | bool], ...] = (
        {"B": 1, "C": 1, "H": 8, "W": 8, "K": 1, "R": 7, "S": 7, "STRIDE": 8, "PAD": 2},  # one number
        {"B": 2, "C": 3, "H": 37, "W": 23, "K": 19, "R": 7, "S": 5, "STRIDE": 4, "PAD": 2},
        {"B": 3, "C": 5, "H": 19, "W": 33, "K": 17, "R": 3, "S": 3, "PAD": 1},
        {"B": 2, "C": 33, "H": 17, "W": 19, "K": 65, "R": 1, "S": 1},  # a multiply, no more
    )
    found = [Workload.of("float32", **size) for size in sizes]
    return (*found, *(Workload.of(w.dtype, **w.dims, tf32=True) for w in found[1:3]))


def _ordinary(rough: bool) -> tuple[Workload, ...]:
    """Return two layers of a residual network: large images and few channels, small ones and many."""
    flag = {"tf32": True} if rough else {}
    return tuple(
        Workload.of("float32", B=64, C=C, H=side, W=side, K=C, R=3, S=3, PAD=1, **flag)
        for C, side in ((64, 56), (256, 14))
    )


PROBLEM = Problem(
    name="conv2d",
    formula="y[b, k, p, q] = bias[k] + sum of f[k, c, r, s] * x[b, c, p * STRIDE + r - PAD, q * STRIDE + s - PAD]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * (w.B * w.C * w.H * w.W + w.K * w.C * w.R * w.S + w.K),
    writes_bytes=lambda w: 4 * w.B * w.K * prod(answer_size(w)),
    flops=lambda w: 2 * w.B * w.K * prod(answer_size(w)) * w.C * w.R * w.S,
    math=lambda w: "tf32" if is_rough(w) else "fp32",
    max_error=max_error,
    options=options,
    # A library may transform an image first: what is not finite or far larger then reaches a whole tile.
    hard=lambda w: ({0: (0.0, -0.0)},),
    check_on=_check_on(),
    time_on=(*PUBLISHED.values(), *_ordinary(False), *_ordinary(True)),
    layouts=((0, 2, 3, 1),),
)
