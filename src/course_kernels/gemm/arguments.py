"""Checks shared by the launchers of this folder: refuse what no kernel takes, and make room for the product."""

from __future__ import annotations

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.problem import Workload

MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels
SIXTEEN_BITS = (torch.bfloat16, torch.float16)


def supports(w: Workload) -> bool:
    """Return whether the kernels in CUDA C++ take a workload: 16-bit types only."""
    return w.torch_dtype in SIXTEEN_BITS


def product_of(
    a: torch.Tensor, b: torch.Tensor, dtypes: tuple[torch.dtype, ...] = SIXTEEN_BITS
) -> tuple[torch.Tensor, int, int, int]:
    """Room for a @ b, and its sizes.

    Args:
        a: (M, K) of one of `dtypes`, contiguous, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N <= 2**30.
        dtypes: the element types the kernel takes.
    Returns:
        c (M, N) of the same type with nothing in it yet, M, N, K.
    Raises:
        TypeError: a is of another type, or b of another than a.
        ValueError: shapes that do not fit each other or are too long, not contiguous, not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=dtypes)
    check_tensor("b", b, "KN", sizes, dtypes=(a.dtype,), device=a.device)
    for name, letter in (("a", "M"), ("a", "K"), ("b", "N")):
        check_size(name, letter, sizes[letter], MAX_SIZE)
    M, N, K = sizes["M"], sizes["N"], sizes["K"]
    return torch.empty((M, N), dtype=a.dtype, device=a.device), M, N, K


def in_vectors(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether every row of a and of b begins at a multiple of 16 bytes.

    Then every row of a fresh product does too.
    """
    return all(t.data_ptr() % 16 == 0 and t.shape[1] * t.element_size() % 16 == 0 for t in (a, b))
