"""The libraries' matrix multiplies of 8-bit numbers."""

from __future__ import annotations

import torch

from course_kernels.problem import Workload


def supports(w: Workload) -> bool:
    """Return whether cuBLASLt takes a workload: N and K divisible by 16."""
    return w.N % 16 == 0 and w.K % 16 == 0


def cublaslt(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
    """cuBLASLt, as torch calls it, with fast accumulation: all sums over K in the tensor cores.

    Args:
        a: (M, K) float8_e4m3fn, K divisible by 16.
        b: (N, K) float8_e4m3fn, N divisible by 16.
        scale_a, scale_b: (1,) float32.
    Returns:
        (M, N) bfloat16.
    """
    return torch._scaled_mm(
        a, b.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def cublaslt_exact_sums(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
) -> torch.Tensor:
    """Return the same without fast accumulation.

    Partial sums leave the tensor cores now and then, and are added in fp32.
    """
    return torch._scaled_mm(
        a, b.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=False
    )
