"""The libraries' matrix multiplies in fp32."""

from __future__ import annotations

import torch


def cublas(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """cuBLAS, as `torch.mm` calls it, with TF32 off.

    Args:
        a: (M, K) float32.
        b: (K, N) float32.
    Returns:
        (M, N) float32, multiplied and added in fp32 whatever the caller's own TF32 setting is.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        return torch.mm(a, b)
    finally:
        torch.set_float32_matmul_precision(before)
