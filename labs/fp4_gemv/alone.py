"""The last task of the lab: a layer of a model, its weights in NVFP4 as compressed-tensors keeps them.

    y[m] = sum over k of w[m, k] * scales[m, k / 16] * x[k] / second

Shapes    w (M, K) as bytes (M, K/2), scales (M, K/16), second (1,), x (K,); y (M,). K a multiple of 16
Types     w E2M1, two in a byte, the first in the low four bits; scales E4M3; second, x and y float32, and so are sums
Cost      2*M*K operations; read every code and scale once
"""

from __future__ import annotations

from math import sqrt

import torch

from course_kernels.gemv_fp4.formats import BLOCK, values_of
from course_kernels.problem import INF, NAN, Problem, Workload


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Any codes: packed (M, K/2), scales (M, K/16), a second scale (1,) and normal numbers (K,)."""

    def drawn(below: int, *size: int) -> torch.Tensor:
        return torch.randint(below, size, generator=generator, device=device, dtype=torch.uint8)

    packed, scales = drawn(256, w.M, w.K // 2), drawn(127, w.M, w.K // BLOCK)
    second = 6 * 448 / (0.5 + torch.rand(1, generator=generator, dtype=w.torch_dtype, device=device))
    x = torch.randn(w.K, generator=generator, dtype=w.torch_dtype, device=device)
    scales = scales.view(torch.float8_e4m3fn)
    if w.M == 1:  # a single sum that nearly cancels has nothing beside it by which its rounding is small
        x = torch.copysign(x, values_of(packed, scales)[0].to(x.dtype))
    return packed, scales, second, x


def reference(
    packed: torch.Tensor, scales: torch.Tensor, second: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    """The product in float64: (M,)."""
    return values_of(packed, scales) @ x.double() / second.double()


PROBLEM = Problem(
    name="layer",
    formula="y[m] = sum over k of w[m, k] * scales[m, k // 16] * x[k] / second",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.M * (w.K // 2 + w.K // BLOCK) + 4 * w.K + 4,
    writes_bytes=lambda w: 4 * w.M,
    flops=lambda w: 2 * w.M * w.K,
    math=lambda w: "fp32",
    # As in the problem sgemm, where K products are added.
    max_error=lambda w: 8 * 2.0**-24 * sqrt(w.K),
    # All sixteen codes of E2M1 are usual ones; of E4M3 one is NaN.
    hard=lambda w: ({1: (0.0, NAN)}, {3: (0.0, NAN)}, {3: (INF,)}),
    check_on=(
        Workload.of("float32", M=1, K=16),
        Workload.of("float32", M=33, K=48),
        Workload.of("float32", M=130, K=1040),
        Workload.of("float32", M=1001, K=7184),
        Workload.of("float32", M=5, K=16400),
    ),
    time_on=(Workload.of("float32", M=28672, K=16384),),
)
