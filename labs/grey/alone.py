"""The last task of the lab: one picture laid over another, as far as a mask says.

    out[h, w, c] = mask[h, w] over[h, w, c] + (1 - mask[h, w]) under[h, w, c]

Shapes    over and under (H, W, 3), mask (H, W), out (H, W, 3), row-major
Types     float32, from 0 to 1
Cost      read 7*H*W, write 3*H*W elements, ten operations a pixel: the floor is bytes, not arithmetic
"""

from __future__ import annotations

import torch

from course_kernels.problem import HARD, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Two pictures (H, W, 3) and a mask (H, W), every number between 0 and 1."""
    shapes = ((w.H, w.W, 3), (w.H, w.W, 3), (w.H, w.W))
    return tuple(torch.rand(s, generator=generator, dtype=w.torch_dtype, device=device) for s in shapes)


def reference(over: torch.Tensor, under: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The picture in float64: (H, W, 3)."""
    shows = mask.double().unsqueeze(-1)
    return shows * over.double() + (1 - shows) * under.double()


PROBLEM = Problem(
    name="blend",
    formula="out[h, w, c] = mask[h, w] over[h, w, c] + (1 - mask[h, w]) under[h, w, c]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 7 * w.H * w.W * w.element_bytes,
    writes_bytes=lambda w: 3 * w.H * w.W * w.element_bytes,
    flops=lambda w: 10 * w.H * w.W,  # 1 - mask once; two multiplications and an addition for each colour
    math=lambda w: "fp32",
    # Nothing is larger than 1, and four or five roundings of half a unit stand against a root mean square near 0.5.
    max_error=lambda w: 2.0**-21,
    hard=lambda w: ({0: HARD},),
    check_on=(
        Workload.of("float32", H=1, W=1),
        Workload.of("float32", H=7, W=1000),  # wide: no block fits
        Workload.of("float32", H=1001, W=3),  # tall
        Workload.of("float32", H=1023, W=1025),  # odd both ways; rows and columns must not be swapped
    ),
    time_on=(Workload.of("float32", H=8192, W=8192),),
)
