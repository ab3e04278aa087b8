"""PyTorch's product of a few rows and a large matrix: cuBLAS, which chooses among its kernels by the sizes."""

from __future__ import annotations

import torch


def cublas(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """cuBLAS, as `torch.mm` and every linear layer calls it.

    Args:
        x: (M, K) bfloat16 or float16.
        w: (N, K), the same type.
    Returns:
        (M, N), the same type.
    """
    return torch.mm(x, w.t())


def cublaslt(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """cuBLASLt, where torch would take cuBLAS: another door to NVIDIA's kernels, which may choose another one.

    Args:
        x: (M, K) bfloat16 or float16.
        w: (N, K), the same type.
    Returns:
        (M, N), the same type. The caller's choice of library is as it was before.
    """
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library("cublaslt")
    try:
        return torch.mm(x, w.t())
    finally:
        torch.backends.cuda.preferred_blas_library(before)
