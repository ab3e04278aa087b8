"""What the libraries offer for the matrix multiply on tensor cores."""

from __future__ import annotations

import torch


def cublas(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """cuBLAS, as `torch.mm` calls it.

    Args:
        a: (M, K), float16, bfloat16 or float32.
        b: (K, N), the same type.
    Returns:
        (M, N), the same type; float32 inputs are multiplied as TF32.
    """
    if a.dtype != torch.float32:
        return torch.mm(a, b)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # TF32 products; the caller's setting comes back below
    try:
        return torch.mm(a, b)
    finally:
        torch.set_float32_matmul_precision(before)
