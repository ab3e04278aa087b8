"""FP4 matrix times vector, kernel 11: the launcher of k11_resident.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch

from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.gemv_fp4.arguments import sizes_of
from course_kernels.gemv_fp4.by_shares import Cut, check_cut, cut_of

SOURCE = Path(__file__).with_suffix(".cu")


def gemv_fp4(
    a: torch.Tensor,
    scales_a: torch.Tensor,
    b: torch.Tensor,
    scales_b: torch.Tensor,
    *,
    cut: Cut | None = None,
) -> torch.Tensor:
    """Return the batched product, with b in registers.

    Args:
        a: (L, M, K/2) uint8, contiguous, K a multiple of 32 and at most 65536.
        scales_a: (L, M, K/16) float8_e4m3fn, contiguous.
        b: (L, K/2) uint8, contiguous.
        scales_b: (L, K/16) float8_e4m3fn, contiguous.
        cut: how to share out the work; without it, what suits the card and the sizes.
    Returns:
        (L, M) float16; sums of a block of sixteen exact, then float32, rounded once. The same bits every time.
    Raises:
        TypeError, ValueError: see `sizes_of` and `check_cut`.
    """
    L, M, K = sizes_of(a, scales_a, b, scales_b)
    cut = cut or _cut(L, M, K, a.get_device())
    check_cut(cut, M)
    c = torch.empty((L, M), dtype=torch.float16, device=a.device)
    _prepared(a.get_device(), cut)((cut.blocks, L, 1), a, scales_a, b, scales_b, c, M, K)
    return c


@functools.cache
def _cut(L: int, M: int, K: int, device: int) -> Cut:
    return cut_of(L, M, K, torch.cuda.get_device_properties(device).multi_processor_count)


@functools.cache
def _prepared(device: int, cut: Cut) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "gemv_resident",
        block=cut.threads,
        defines=cut.defines,
    )
