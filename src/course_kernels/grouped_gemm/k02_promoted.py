"""Grouped matrix multiply of 8-bit numbers, kernel 2: the launcher of k02_promoted.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch

from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.grouped_gemm.arguments import output, sizes_of
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
BM, BK, CLUSTER, THREADS = 128, 128, 2, 384  # as in the source
BN, STAGES = {False: 192, True: 128}, {False: 4, True: 5}  # of contiguous and of masked groups
EIGHT = 8  # columns of C in the 16 bytes that the copy engine counts in


def supports(w: Workload) -> bool:
    """Return whether the copy engine takes a workload: rows of C of a multiple of 16 bytes."""
    return w.N % EIGHT == 0


def grouped_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    groups: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the product of every row with its group's matrix, scaled in blocks of 128, on Hopper.

    Args:
        a: (M, K) float8_e4m3fn, M a multiple of 128; or (G, M, K), M a multiple of 4. K is a multiple of 128.
        b: (G, N, K) float8_e4m3fn, N a multiple of 8. M, N and K <= 1073741824, G <= 65535.
        scale_a: (K / 128, M) or (G, K / 128, M) float32.
        scale_b: (G, ceil(N / 128), K / 128) float32.
        groups: (M,) or (G,) int32: of each row its group, or -1; or of each group its rows. Not looked at here.
        out: (M, N) or (G, M, N) bfloat16, for C; rows behind those of a masked group stay as they are. Without it new
            memory, and zeros there. All contiguous.
    Returns:
        (M, N) or (G, M, N) bfloat16, rounded once; every 128 of K are added in float32.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit each other, a size out of range or no such multiple, not contiguous, an
            address that is no multiple of 16 bytes, not on the current GPU, or one of another compute capability than
            9.0.
    """
    sizes = sizes_of(a, b, scale_a, scale_b, groups)
    masked, G, M, N, K = sizes
    if N % EIGHT:
        raise ValueError(f"b: expected N a multiple of {EIGHT}, for the copy engine, got N={N}")
    c = output(sizes, out, a.device)
    for name, tensor in (("a", a), ("b", b), ("scale_a", scale_a), ("out", c)):
        check_address(name, tensor)
    device = a.get_device()
    clusters = _multiprocessors(device) // CLUSTER

    most = (
        (G if masked else 1) * -(-M // BM) * -(-N // (BN[masked] * CLUSTER))
    )  # pairs of tiles, were all places taken
    matrices = a if masked else a[None], b, c if masked else c[None]
    boxes = (1, BM // CLUSTER, BK), (1, BN[masked], BK), (1, 64, 64)
    maps = map(tensor_map, matrices, boxes)
    _prepared(device, masked)(min(most, clusters) * CLUSTER, *maps, scale_a, scale_b, groups, c, G, M, N, K)
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
def _prepared(device: int, masked: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    of_c = 2 * BN[masked] // 64 * 64 * 128  # a panel for every 64 columns, of both consumers
    return prepare(
        SOURCE,
        "grouped_gemm_promoted",
        block=THREADS,
        shared_bytes=STAGES[masked] * ((BM + BN[masked]) * BK + BM * 4 + 16) + of_c,
        cluster=CLUSTER,
        defines={"MASKED": int(masked)},
    )
