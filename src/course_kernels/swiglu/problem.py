"""SwiGLU, the contract: what one projection made opens and shuts a gate for what another one made.

    y[m, f] = silu(gate[m, f]) * up[m, f]        silu(a) = a / (1 + exp(-a))

It stands within the feed-forward block of a Llama, between the projections that widen a row and the one that narrows
it. Where gate and up come out of one multiply with merged weights they are the two halves of each of its rows, the
gate first: `merged`, one input (M, 2 F).

Shapes    gate, up, y (M, F), row-major; or gate (M, 2 F) and no up
Types     bfloat16, float16 or float32, the same for all; float32 inside
Cost      read 2*M*F, write M*F numbers: the floor is bytes, not arithmetic
Source    Shazeer 2020, arXiv:2002.05202
"""

from __future__ import annotations

import torch

from course_kernels.problem import INF, LARGE, NAN, Problem, Workload

# Half precision: two operators in a row round silu and the product, each by half a unit: 2**-9 of itself in bfloat16,
# 2**-12 in float16; a fused kernel rounds once. float32: the argument of exp is rounded, at 5 to some 5 units of
# 2**-24; exp and a quotient are good to two units each.
ALLOWED = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-19}


def is_merged(w: Workload) -> bool:
    """Return whether gate and up are the halves of one matrix."""
    return bool(w.dims.get("merged", False))


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """gate and up (M, F), normal; or one (M, 2 F) of them."""
    shapes = ((w.M, 2 * w.F),) if is_merged(w) else ((w.M, w.F), (w.M, w.F))
    normal = (torch.randn(shape, generator=generator, dtype=torch.float32, device=device) for shape in shapes)
    return tuple(x.to(w.torch_dtype) for x in normal)


def reference(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """Return the answer in float64: (M, F)."""
    a, b = gate.double().chunk(2, dim=-1) if up is None else (gate.double(), up.double())
    return a / (1 + (-a).exp()) * b


def _hard(w: Workload) -> tuple[dict[int, tuple[float, ...]], ...]:
    """No negative infinity: it times the nought that opens its gate is NaN or nought, as one writes it.

    A large number times up must still be one of the type: some 1e4 in float16.
    """
    most = 1e4 if w.dtype == "float16" else LARGE
    return ({0: (0.0, -0.0, NAN, INF, most, -most)}, {} if is_merged(w) else {1: (0.0, NAN, INF, -INF)})


def _check_on() -> tuple[Workload, ...]:
    sizes = (
        (1, 1),
        (3, 31),  # less than a warp
        (37, 1000),  # nothing divides anything
        (70_000, 8),  # more rows than some grids have
        (2, 14336),  # of an 8B model
        (5, 70_001),  # a row longer than many blocks; merged, up begins between two vectors
    )
    found = [Workload.of(t, M=M, F=F) for t in ("bfloat16", "float16", "float32") for M, F in sizes]
    return (*found, *(Workload.of(w.dtype, **w.dims, merged=True) for w in found))


PROBLEM = Problem(
    name="swiglu",
    formula="y[m, f] = gate[m, f] / (1 + exp(-gate[m, f])) * up[m, f]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: 2 * w.M * w.F * w.element_bytes,
    writes_bytes=lambda w: w.M * w.F * w.element_bytes,
    flops=lambda w: 5 * w.M * w.F,  # turn the sign, exp, add, divide, multiply
    math=lambda w: "fp32",  # whatever the type in memory
    max_error=lambda w: ALLOWED[w.dtype],
    hard=_hard,
    check_on=_check_on(),
    # The feed-forward block of an 8B model of the Llama 3 family: a prefill, and steps of decoding.
    time_on=tuple(
        Workload.of("bfloat16", M=M, F=14336, merged=merged)
        for M in (16384, 32, 1)
        for merged in (False, True)
    ),
)
