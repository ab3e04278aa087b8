"""LayerNorm, the contract: every row gets a mean of 0 and a variance of 1, then a weight and a bias for each column.

    y[m, n] = g[n] * (x[m, n] - mean of row m) / sqrt(variance of row m + EPSILON) + b[n]

The variance is the mean of the squared distances from the mean, divided by N and not by N - 1. It is also the mean of
the squares minus the square of the mean; but those two may be large and nearly equal, and what their rounding leaves is
then no variance. `offset` asks for that: all rows but the first lie far from 0, as pixels of 0 to 255 do.

Shapes    x, y (M, N), g, b (N,), row-major. A tensor of more dimensions is flattened: 16 images of 64 channels of
          256 x 256, each normalised as a whole, have M = 16 and N = 4194304
Types     float32 in, in between and out
Cost      read x, g and b, write y: the floor is bytes, not arithmetic
Source    Ba, Kiros & Hinton 2016, arXiv:1607.06450, section 3
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload

EPSILON = 1e-5  # as torch has it
SMALL = 2.0**-9  # the first row's size; its variance is less than EPSILON
OFFSET = 256.0

# The sum of N squares rounds N times by up to 2**-24 of itself, and mostly cancels: it grows like sqrt(N). A few more
# roundings are the root's and the weight's. Far from 0 the mean itself is rounded, by half a unit of OFFSET, and a few
# times on the way there.
ROUNDED = 2.0**-24
OTHERS = 8
MEANS = 4


def max_error(w: Workload) -> float:
    """Return the largest error of a right answer, held against the row's own size."""
    far = MEANS * OFFSET if w.dims.get("offset", False) else 0.0
    return ROUNDED * (OTHERS + sqrt(w.N) + far)


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (M, N), normal; g (N,), near 1, and b (N,), near 0, as in a model that was trained.

    The first row is so small that EPSILON counts. With `offset` the others have OFFSET added.
    """

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32, device=device)

    x, g, b = normal(w.M, w.N), 1 + normal(w.N) / 8, normal(w.N) / 8
    x[0] *= SMALL
    if w.dims.get("offset", False):
        x[1:] += OFFSET
    return x, g, b


def reference(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """y (M, N) in float64."""
    far = x.double()
    far = far - far.mean(dim=-1, keepdim=True)
    return g.double() * far / (far.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt() + b.double()


PUBLISHED = Workload.of("float32", M=16, N=64 * 256 * 256)  # the size of a record of May 2025

PROBLEM = Problem(
    name="layer_norm",
    formula="y[m, n] = g[n] * (x[m, n] - mean) / sqrt(variance + 1e-5) + b[n], mean and variance of row m",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 4 * (w.M * w.N + 2 * w.N),
    writes_bytes=lambda w: 4 * w.M * w.N,
    flops=lambda w: 8 * w.M * w.N,  # the mean's sum; subtract, square, add; subtract, two multiplies, add
    math=lambda w: "fp32",
    max_error=max_error,
    rows_apart=True,
    # Nothing larger: the square of 1e30 is past the end of float32, and the truth is not.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)}, {1: (NAN,), 2: (NAN, INF)}),
    check_on=(
        *(
            Workload.of("float32", M=M, N=N)
            for M, N in (
                (1, 1),
                (3, 31),  # less than a warp
                (37, 1000),  # nothing divides anything
                (257, 4097),  # a number more than a power of two
                (2, 300_007),  # a row for many blocks, and a ragged end
                (70_000, 8),  # more rows than some grids have
            )
        ),
        *(Workload.of("float32", M=M, N=N, offset=True) for M, N in ((5, 97), (3, 70_001))),
    ),
    time_on=(PUBLISHED, Workload.of("float32", M=16384, N=4096), Workload.of("float32", M=65536, N=1024)),
)
