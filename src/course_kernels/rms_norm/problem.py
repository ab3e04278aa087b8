"""RMSNorm, the contract: a block's answer is added to the residual, and every row of the sum gets a size of 1.

    s[m, n] = x[m, n] + r[m, n]
    y[m, n] = g[n] * s[m, n] / sqrt(mean over n of s[m, n]**2 + EPSILON)

It stands before every block of a Llama: x is what the block before made, r the residual that goes past it, g a weight
for each column. s is the residual of the next block, so both y and s are answers. Without r, `plain`, s is x and y the
only answer. No mean is subtracted: that is what sets it apart from layer normalisation.

Shapes    x, r, s, y (M, N), g (N,), row-major, N <= 16384
Types     bfloat16, float16 or float32, the same for all; squares and their sum in float32 at least
Cost      read x, r and g, write y and s: the floor is bytes, not arithmetic
Source    Zhang & Sennrich 2019, arXiv:1910.07467; the fused addition as vLLM and FlashInfer have it
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload

EPSILON = 1e-5  # as Llama 3 has it
MAX_N = 16384

SMALL = 2.0**-9  # of a usual row; its square is less than EPSILON

# Half precision: an answer may be rounded three times, the sum, the normalised row and its product with g, each by
# half a unit: 2**-9 of itself in bfloat16, 2**-12 in float16. A kernel that keeps the row in float32 rounds once.
# float32: the roundings of N squares mostly cancel, and the sum grows like sqrt(N) of them; a few more are the root's.
ROUNDED = {"bfloat16": 2.0**-7, "float16": 2.0**-10}


def max_error(w: Workload) -> float:
    """Return the largest error of a right answer, held against the row's own size."""
    return ROUNDED.get(w.dtype, 2.0**-24 * (8 + sqrt(w.N)))


def is_plain(w: Workload) -> bool:
    """Return whether there is no residual to add."""
    return bool(w.dims.get("plain", False))


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """x (M, N), normal; g (N,), near 1, as in a model that was trained; unless plain r (M, N), larger than x.

    A residual is the sum of all blocks so far. A few of its numbers are far larger than the others: that is so in
    trained models too, and a square in float16 ends at 65504. The first row is so small that EPSILON counts.
    """

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32, device=device)

    size = torch.ones(w.M, 1, device=device)
    size[0] = SMALL
    x, g = size * normal(w.M, w.N), 1 + normal(w.N) / 8
    if is_plain(w):
        return x.to(w.torch_dtype), g.to(w.torch_dtype)
    r = 4 * size * normal(w.M, w.N)
    r[:, w.N // 3] *= 100
    return x.to(w.torch_dtype), g.to(w.torch_dtype), r.to(w.torch_dtype)


def reference(
    x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None = None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """y (M, N) in float64, and with r also s (M, N)."""
    s = x.double() if r is None else x.double() + r.double()
    y = g.double() * s / (s.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt()
    return y if r is None else (y, s)


def _check_on() -> tuple[Workload, ...]:
    sizes = (
        (1, 1),
        (3, 31),  # less than a warp
        (37, 1000),  # nothing divides anything
        (257, 4097),  # a number more than a power of two
        (5, 16384),  # as long as a row may be
        (70_000, 8),  # more rows than some grids have
    )
    found = [Workload.of(t, M=M, N=N) for t in ("bfloat16", "float16", "float32") for M, N in sizes]
    found += [Workload.of("bfloat16", M=32, N=4096), Workload.of("bfloat16", M=1823, N=5120)]
    return (*found, *(Workload.of(w.dtype, **w.dims, plain=True) for w in found[1::2]))


PROBLEM = Problem(
    name="rms_norm",
    formula="y[m, n] = g[n] * s[m, n] / sqrt(mean over n of s[m, n]**2 + 1e-5), s = x + r",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.element_bytes * ((1 if is_plain(w) else 2) * w.M * w.N + w.N),
    writes_bytes=lambda w: w.element_bytes * (1 if is_plain(w) else 2) * w.M * w.N,
    flops=lambda w: (4 if is_plain(w) else 5) * w.M * w.N,  # add; multiply and add; two multiplies
    math=lambda w: "fp32",  # whatever the type in memory
    max_error=max_error,
    rows_apart=True,  # a residual may be a hundred times another's, and y is the same size
    # In a set of their own what only float16 cannot square: 30000. Nothing larger: the square of 1e30 is past the end
    # of float32, and the truth is not.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)}, {0: (30000.0, -30000.0)}),
    check_on=_check_on(),
    time_on=(
        *(Workload.of("bfloat16", M=M, N=N) for M, N in ((16384, 4096), (4096, 8192), (32768, 1024))),
        *(Workload.of("bfloat16", M=M, N=4096) for M in (1, 32)),  # a step of decoding of an 8B model
        Workload.of("bfloat16", M=16384, N=4096, plain=True),
    ),
)
