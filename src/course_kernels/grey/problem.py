"""Colour to grey, the contract.

    grey[h, w] = 0.299 red + 0.587 green + 0.114 blue      of picture[h, w]

Shapes    picture (H, W, 3), grey (H, W), row-major; the three colours of a pixel lie side by side
Types     float32, from 0 (dark) to 1 (bright)
Cost      read 3*H*W, write H*W elements, five operations a pixel: the floor is bytes, not arithmetic

A workload may also fix the block a kernel is launched with: X threads wide and Y high. The answer does not
depend on it; the time does.
"""

from __future__ import annotations

from typing import Any

import torch

from course_kernels.problem import Problem, Workload

# How bright the eye finds red, green and blue, as television has weighed them since its first colours.
WEIGHTS = (0.299, 0.587, 0.114)


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """Return one picture (H, W, 3), every colour between 0 and 1."""
    return (torch.rand(w.H, w.W, 3, generator=generator, dtype=w.torch_dtype, device=device),)


def options(w: Workload) -> dict[str, Any]:
    """Return the block to launch with, where the workload fixes one: {"block": (X, Y)}."""
    return {"block": (w.X, w.Y)} if "X" in w.dims else {}


def reference(picture: torch.Tensor, *, block: tuple[int, int] | None = None) -> torch.Tensor:
    """Return the weighted sum in float64: (H, W)."""
    red, green, blue = picture.double().unbind(dim=-1)
    return WEIGHTS[0] * red + WEIGHTS[1] * green + WEIGHTS[2] * blue


PROBLEM = Problem(
    name="grey",
    formula="grey[h, w] = 0.299 red + 0.587 green + 0.114 blue",
    make_inputs=make_inputs,
    options=options,
    reference=reference,
    reads_bytes=lambda w: 3 * w.H * w.W * w.element_bytes,
    writes_bytes=lambda w: w.H * w.W * w.element_bytes,
    flops=lambda w: 5 * w.H * w.W,  # three multiplications, two additions
    math=lambda w: "fp32",
    # Nothing cancels: three rounded weights, three products and two sums, half a unit each.
    max_error=lambda w: 2.0**-21,
    check_on=(
        Workload.of("float32", H=1, W=1),
        Workload.of("float32", H=7, W=1000),  # wide: no block fits
        Workload.of("float32", H=1001, W=3),  # tall
        Workload.of("float32", H=1023, W=1025),  # odd both ways; rows and columns must not be swapped
        Workload.of("float32", H=33, W=65, X=8, Y=4),
    ),
    time_on=(Workload.of("float32", H=8192, W=8192),),  # 1 GB in all, far past any cache
)
