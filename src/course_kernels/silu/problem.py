"""SiLU, the contract: every number times its own sigmoid.

    y[n] = x[n] * sigmoid(x[n]) = x[n] / (1 + exp(-x[n]))

Shapes    x, y (N,), whatever they were before
Types     bfloat16, float16 or float32, in and out; float32 inside
Cost      read N, write N numbers: the floor is bytes, not arithmetic
Source    Elfwing, Uchibe & Doya 2017, arXiv:1702.03118
"""

from __future__ import annotations

import torch

from course_kernels.problem import INF, LARGE, NAN, Problem, Workload

# Half precision: two operators in a row round the sigmoid and the product, each by half a unit: 2**-9 of itself in
# bfloat16, 2**-12 in float16; a fused kernel rounds once. float32: the argument of exp is rounded, at 5 to some 5
# units of 2**-24; exp and a quotient are good to two units each.
ALLOWED = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-19}


def make_inputs(w: Workload, generator: torch.Generator, device: torch.device | str) -> tuple[torch.Tensor]:
    """x (N,), normal."""
    x = torch.randn((w.N,), generator=generator, dtype=torch.float32, device=device)
    return (x.to(w.torch_dtype),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the answer in float64: (N,)."""
    a = x.double()
    return a / (1 + (-a).exp())


def _hard(w: Workload) -> tuple[dict[int, tuple[float, ...]], ...]:
    """No negative infinity: it times the nought that opens its gate is NaN or nought, as one writes it."""
    return ({0: (0.0, -0.0, NAN, INF, LARGE, -LARGE)},)


PROBLEM = Problem(
    name="silu",
    formula="y[n] = x[n] / (1 + exp(-x[n]))",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.N * w.element_bytes,
    writes_bytes=lambda w: w.N * w.element_bytes,
    flops=lambda w: 4 * w.N,  # turn the sign, exp, add, divide
    math=lambda w: "fp32",  # whatever the type in memory
    max_error=lambda w: ALLOWED[w.dtype],
    hard=_hard,
    check_on=tuple(
        Workload.of(t, N=N)
        for t in ("bfloat16", "float16", "float32")
        # Less than a warp, less than a block, a whole one, more than one, many.
        for N in (1, 31, 1000, 2048, 3001, 1_000_003)
    ),
    time_on=(Workload.of("bfloat16", N=2**27),),
)
