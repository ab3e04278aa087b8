"""Grouped multiplies of others with these scales: cuBLASLt, a call for each group; and DeepGEMM, where it is installed.

torch's own `_scaled_grouped_mm` is none of them: it has one scale for a whole row, which is another definition.
cuBLASLt knows blocks of 1 x 128 and 128 x 128 from CUDA 12.9 on, on Hopper alone.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import torch

from course_kernels.grouped_gemm.arguments import BLOCK, PLACES, output, sizes_of
from course_kernels.problem import Workload

SIXTEEN = 16  # what cuBLASLt wants N to be a multiple of
FOUR = 4  # blocks of K in 16 bytes: of such a multiple a row of scale_b has to be


def supports(w: Workload) -> bool:
    """Return whether `cublaslt` answers a workload: groups of equal size without padding, and lengths it takes."""
    whole = PLACES if w.dims.get("masked", False) else BLOCK
    equal = (w.G == 1 or bool(w.dims.get("even", False))) and w.M % (w.G * whole) == 0
    return equal and w.N % SIXTEEN == 0 and w.K // BLOCK % FOUR == 0


def cublaslt(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    groups: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """cuBLASLt, as torch calls it, once for each group, for groups of equal size.

    It does not look at `groups`, since the host would have to wait for them: in the contiguous form group g has rows
    g * M / G on, in the masked form all places are taken. Of the contiguous form the scales of A are laid out anew in
    every call, as cuBLASLt wants those of a group in one piece; this copy is 4 bytes for 128 of A.

    Args:
        a: (M, K) float8_e4m3fn, M a multiple of 128 * G; or (G, M, K), M a multiple of 4. K is a multiple of 512.
        b: (G, N, K) float8_e4m3fn, N a multiple of 16.
        scale_a, scale_b, groups: as in problem.py.
        out: (M, N) or (G, M, N) bfloat16, for C.
    Returns:
        (M, N) or (G, M, N) bfloat16.
    Raises:
        ValueError: M is no such multiple; and as `sizes_of`.
    """
    sizes = sizes_of(a, b, scale_a, scale_b, groups)
    if not sizes.masked and sizes.M % (BLOCK * sizes.G):
        raise ValueError(f"a: expected M a multiple of 128 * G = {BLOCK * sizes.G}, got M={sizes.M}")
    c = output(sizes, out, a.device)
    rows, products = a.view(sizes.G, -1, sizes.K), c.view(sizes.G, -1, sizes.N)
    if not sizes.masked:
        scale_a = scale_a.unflatten(1, (sizes.G, -1)).transpose(0, 1).contiguous()  # [G, K / 128, M / G]
    for g in range(sizes.G):
        torch._scaled_mm(
            rows[g], b[g].t(), scale_a=scale_a[g].t(), scale_b=scale_b[g].t(), out_dtype=torch.bfloat16,
            out=products[g],
        )  # fmt: skip
    return c


@cache
def deep_gemm_version() -> str:
    """Return the DeepGEMM that is installed here, such as "2.5.0", or "" where there is none; nothing is imported."""
    for name in ("deep_gemm", "deep-gemm"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def deep_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    groups: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """DeepGEMM's grouped multiply of the form that is asked for. The first call of a shape compiles, with nvcc.

    All tensors go over as they lie. Its answer for a row of padding is whatever A has there.

    Args:
        a, b, scale_a, scale_b, groups, out: as in problem.py; M of the contiguous form a multiple of 128.
    Returns:
        (M, N) or (G, M, N) bfloat16.
    Raises:
        RuntimeError: DeepGEMM is not installed.
        TypeError, ValueError: as `sizes_of`.
    """
    if not deep_gemm_version():
        raise RuntimeError(
            "deep_gemm: not installed here; it is built from deepseek-ai/DeepGEMM, and needs nvcc"
        )
    library = import_module("deep_gemm")
    sizes = sizes_of(a, b, scale_a, scale_b, groups)
    c = output(sizes, out, a.device)
    left, right = (a, scale_a.mT), (b, scale_b)
    if sizes.masked:
        library.m_grouped_fp8_gemm_nt_masked(left, right, c, groups, sizes.M)
    else:
        library.m_grouped_fp8_gemm_nt_contiguous(left, right, c, groups)
    return c
