"""Add and norm, the contract: two matrices are added, and every row of the sum gets a mean of 0 and a spread of 1.

    s[m, n] = x[m, n] + r[m, n]
    y[m, n] = g[n] * (s[m, n] - mean[m]) / sqrt(variance[m] + EPSILON)

It stands between two layers of a transformer: x is what a layer made, r what goes past it, g a weight for each column.
Mean and variance are those of a row of s, over its N numbers. This is layer normalisation without a bias.

Shapes    x (M, N), r (M, N), g (N,), y (M, N), row-major, N <= 16384
Types     float32
Cost      read x, r and g, write y: the floor is bytes, not arithmetic
Source    Ba, Kiros and Hinton, Layer Normalization, 2016
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload

EPSILON = 1e-6
MAX_N = 16384


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x and r (M, N), normal; g (N,), near 1, as in a model that was trained."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=w.torch_dtype, device=device)

    return normal(w.M, w.N), normal(w.M, w.N), 1 + normal(w.N) / 8


def reference(x: torch.Tensor, r: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Return the rows in float64: (M, N)."""
    s = x.double() + r.double()
    s = s - s.mean(dim=-1, keepdim=True)
    return g.double() * s / (s.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt()


PROBLEM = Problem(
    name="add_norm",
    formula="y[m, n] = g[n] * (s[m, n] - mean[m]) / sqrt(variance[m] + 1e-6), s = x + r",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * (2 * w.M * w.N + w.N),
    writes_bytes=lambda w: 4 * w.M * w.N,
    flops=lambda w: 7 * w.M * w.N,  # add; add; subtract; multiply and add; two multiplies
    math=lambda w: "fp32",
    # Running sums of N numbers: their roundings mostly cancel and grow like sqrt(N).
    max_error=lambda w: 2.0**-24 * (8 + sqrt(w.N)),
    check_on=(
        Workload.of("float32", M=1, N=1),
        Workload.of("float32", M=3, N=31),  # less than a warp
        Workload.of("float32", M=37, N=1000),  # nothing divides anything
        Workload.of("float32", M=257, N=4097),
        Workload.of("float32", M=5, N=16384),  # as long as a row may be
    ),
    time_on=(Workload.of("float32", M=8192, N=16384),),  # 0.5 GB each, far past any cache
    # Nothing large: the square of 1e30 is past the end of fp32, and the truth is not.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)},),
)
