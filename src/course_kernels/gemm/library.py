"""The libraries' matrix multiplies on tensor cores."""

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


def cublaslt(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """cuBLASLt, where torch would take cuBLAS: another door to NVIDIA's kernels, which may choose another one.

    Args:
        a: (M, K), float16, bfloat16 or float32.
        b: (K, N), the same type.
    Returns:
        (M, N), the same type; float32 inputs are multiplied as TF32. torch may still take cuBLAS for what
        cuBLASLt lacks. The caller's choice of library is as it was before.
    Raises:
        RuntimeError: this torch was built without cuBLASLt.
    """
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library("cublaslt")
    try:
        return cublas(a, b)
    finally:
        torch.backends.cuda.preferred_blas_library(before)
