"""Bias and GELU, the contract: what follows the first multiply of a transformer's feed-forward layer.

    y[m, n] = GELU(x[m, n] + b[n])        GELU(s) = s * (1 + erf(s / sqrt 2)) / 2

Shapes    x (M, N), b (N,), y (M, N), row-major; N a multiple of 8, so that every row begins at a 16-byte boundary
Types     float32 or bfloat16, the same for all three
Cost      read M*N + N, write M*N elements: the floor is bytes, not arithmetic
"""

from __future__ import annotations

import torch

from course_kernels.problem import LARGE, NAN, Problem, Workload

# The worst rounding that is allowed, by type. float32: the argument of erf is rounded, erf itself is good to a few
# units of 2**-24; 2**-18 is some 60 units, and the popular tanh formula is off by more than a hundred times that.
# bfloat16: a rounding is off by up to 2**-8, and two operators in a row round twice, the sum and the answer.
ALLOWED = {"float32": 2.0**-18, "bfloat16": 2.0**-7}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """x (M, N) and b (N,), both normal random numbers."""
    shapes = ((w.M, w.N), (w.N,))
    x, b = (torch.randn(s, generator=generator, dtype=w.torch_dtype, device=device) for s in shapes)
    return x, b


def reference(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the exact GELU of x + b in float64: (M, N)."""
    return torch.nn.functional.gelu(x.double() + b.double())


PROBLEM = Problem(
    name="bias_gelu",
    formula="y[m, n] = s * (1 + erf(s / sqrt 2)) / 2 with s = x[m, n] + b[n]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: (w.M * w.N + w.N) * w.element_bytes,
    writes_bytes=lambda w: w.M * w.N * w.element_bytes,
    flops=lambda w: 6 * w.M * w.N,  # add the bias, scale, erf, add 1, two multiplies
    math=lambda w: "fp32",  # whatever the type in memory
    max_error=lambda w: ALLOWED[w.dtype],
    # No infinity: GELU is s times a weight or s less a tail, and either makes inf * 0 of one of the two.
    hard=lambda w: ({0: (0.0, -0.0, NAN, LARGE, -LARGE), 1: (NAN,)},),
    check_on=(
        Workload.of("float32", M=1, N=8),
        Workload.of("bfloat16", M=3, N=8),  # one vector, fewer rows than a thread takes
        Workload.of("float32", M=1023, N=1000),  # nothing fills a block
        Workload.of("bfloat16", M=1023, N=1000),
        Workload.of("bfloat16", M=6, N=70_000),  # a row longer than many blocks
    ),
    time_on=(Workload.of("bfloat16", M=32768, N=16384),),  # 1 GB each way, far past any cache
)
