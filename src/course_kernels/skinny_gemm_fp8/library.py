"""The libraries' products of a few rows and a matrix of 8-bit floats with a scale for every row."""

from __future__ import annotations

import torch

from course_kernels.problem import Workload


def supports(w: Workload) -> bool:
    """Return whether torch's multiply takes a workload: N and K divisible by 16."""
    return w.N % 16 == 0 and w.K % 16 == 0


def scaled_mm(x: torch.Tensor, w: torch.Tensor, scale_x: torch.Tensor, scale_w: torch.Tensor) -> torch.Tensor:
    """`torch._scaled_mm`, which takes cuBLASLt or CUTLASS; with fast accumulation: all sums in the tensor cores.

    Args:
        x: (M, K) float8_e4m3fn, K divisible by 16.
        w: (N, K) float8_e4m3fn, N divisible by 16.
        scale_x, scale_w: (M,) and (N,) float32.
    Returns:
        (M, N) bfloat16.
    """
    return torch._scaled_mm(
        x,
        w.t(),
        scale_a=scale_x[:, None],
        scale_b=scale_w[None],
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )
