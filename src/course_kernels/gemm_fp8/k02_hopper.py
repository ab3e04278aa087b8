"""Matrix multiply of 8-bit numbers, kernel 2: the launcher of k02_hopper.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
BM, BK, STAGES, CLUSTER, THREADS = 128, 128, 4, 2, 384  # as in the source
BN, C_PANELS = {True: 192, False: 256}, {True: 3, False: 2}  # with and without EXACT
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel


def supports(w: Workload) -> bool:
    """Return whether the copy engine takes a workload: rows of A and B, and of C, of a multiple of 16 bytes."""
    return w.K % 16 == 0 and w.N % 8 == 0


def gemm_fp8(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, *, exact: bool = True
) -> torch.Tensor:
    """Return the product scale_a * a @ (scale_b * b).T on Hopper.

    Args:
        a: (M, K) float8_e4m3fn, contiguous, K a multiple of 16.
        b: (N, K) float8_e4m3fn, contiguous, N a multiple of 8; M, N and K <= 1073741824.
        scale_a, scale_b: (1,) float32.
        exact: add up in float32 what the tensor cores make of every 128 of k; else sums stay there over all of K.
    Returns:
        (M, N) bfloat16, rounded once.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit each other, a size out of range, K or N no such multiple, not contiguous, an
            address that is no multiple of 16 bytes, not on the current GPU, or one of another compute capability than
            9.0.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=(torch.float8_e4m3fn,))
    check_tensor("b", b, "NK", sizes, dtypes=(torch.float8_e4m3fn,), device=a.device)
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        check_tensor(name, scale, "S", {"S": 1}, dtypes=(torch.float32,), device=a.device)
    M, N, K = sizes["M"], sizes["N"], sizes["K"]
    for name, letter in (("a", "M"), ("a", "K"), ("b", "N")):
        check_size(name, letter, sizes[letter], MAX_SIZE)
    for letter, size, multiple in (("K", K, 16), ("N", N, 8)):
        if size % multiple:
            raise ValueError(f"{letter}: expected a multiple of {multiple}, for the copy engine, got {size}")
    check_address("a", a)
    check_address("b", b)
    device = a.get_device()
    clusters = _multiprocessors(device) // CLUSTER

    c = torch.empty((M, N), dtype=torch.bfloat16, device=a.device)
    grid = min(-(-M // (BM * CLUSTER)) * -(-N // BN[exact]), clusters) * CLUSTER
    maps = tensor_map(a, (BM, BK)), tensor_map(b, (BN[exact] // CLUSTER, BK)), tensor_map(c, (64, 64))
    _prepared(device, exact)(grid, *maps, scale_a, scale_b, M, N, K)
    return c


@functools.cache
def _multiprocessors(device: int) -> int:
    capability = torch.cuda.get_device_capability(device)
    if capability != (9, 0):
        raise ValueError(
            f"a: expected a GPU of compute capability 9.0 (Hopper, for wgmma), got {'.'.join(map(str, capability))}"
        )
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def _prepared(device: int, exact: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    of_c = 2 * C_PANELS[exact] * 64 * 128
    return prepare(
        SOURCE,
        "gemm_fp8_hopper",
        block=THREADS,
        shared_bytes=STAGES * ((BM + BN[exact]) * BK + 16) + of_c,
        cluster=CLUSTER,
        defines={"EXACT": int(exact)},
    )
