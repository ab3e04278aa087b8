"""Matrix multiply, kernel 14's other body: the launcher of one_wave.cu, for sizes with a multiprocessor for every tile.

Contract  problem.py
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch

from course_kernels.cuda.prepared import Prepared, Written, prepare, tensor_map
from course_kernels.gemm.by_tma import BK, ROW_BYTES, multiprocessors
from course_kernels.gemm.launch_cache import Ready, multiply
from course_kernels.gemm.plans import ALONE, Plan, Shape, sizes_and_layout

SOURCE = Path(__file__).with_suffix(".cu")
ROWS = 16  # as in the source: of C, that a warp carries


def shared_bytes(shape: Shape) -> int:
    """Dynamic shared memory of a block: the stages, and two barriers each. C goes out through places of A."""
    return shape.STAGES * ((shape.BM + shape.BN) * ROW_BYTES + 16)


def suits(plan: Plan, M: int, N: int) -> bool:
    """Return whether a product of this size is this body's: tiles of 128 x 256, whole ones, and a block for each."""
    tiles = -(-M // plan.shape.BM) * -(-N // plan.shape.BN)
    return plan.shape == ALONE and plan.splits == 1 and not plan.ahead and tiles <= plan.grid


def gemm(a: torch.Tensor, b: torch.Tensor, *, plan: Plan) -> torch.Tensor:
    """Return the product a @ b on Hopper, a tile for each block.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, or the transpose of a contiguous (N, K); N a multiple of 8, N <= 2**30.
        plan: its shape and its switches; the grid is as many blocks as tiles, whole clusters, walked down first.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once, the same bit for bit in every call.
    Raises:
        TypeError, ValueError: as `gemm_by_plan`; or a plan with parts of K, or with steps ahead.
    """
    return multiply(("gemm_one_tile", plan), a, b, functools.partial(ready, plan))


def ready(plan: Plan, a: torch.Tensor, b: torch.Tensor) -> Ready:
    """Return what multiplies tensors that lie like a and b; arguments and errors are those of `gemm`."""
    M, N, K, transposed = sizes_and_layout(a, b)
    if plan.splits != 1 or plan.ahead:
        raise ValueError(f"plan: expected whole tiles, got {plan.splits} parts, {plan.ahead} steps ahead")
    device, shape = a.get_device(), plan.shape
    multiprocessors(device)
    down, along = -(-M // (shape.BM * shape.CLUSTER_M)), -(-N // (shape.BN * shape.CLUSTER_N))
    grid = (down * shape.cluster, along, 1)
    kernel = _prepared(device, shape, transposed, a.dtype is torch.float16, plan.switches)

    def write(
        a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, parts: torch.Tensor | None
    ) -> tuple[Written, ...]:
        from_a = tensor_map(a, (shape.BM // shape.CLUSTER_N, BK))
        from_b = (
            tensor_map(b.t(), (shape.BN // shape.CLUSTER_M, BK)) if transposed else tensor_map(b, (BK, 64))
        )
        to_c = tensor_map(c, (ROWS, 64))
        return (kernel.written(grid, from_a, from_b, to_c, K),)

    return Ready(a, M, N, kernel.current, write)


@functools.cache
def _prepared(
    device: int, shape: Shape, transposed: bool, float16: bool, switches: tuple[tuple[str, int], ...]
) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "gemm_one_tile",
        block=shape.threads,
        shared_bytes=shared_bytes(shape),
        cluster=shape.cluster,
        defines={
            **shape.defines,
            "TRANSPOSED": int(transposed),
            "SPLIT": 0,
            "FLOAT16": int(float16),
            **dict(switches),
        },
        before_the_last_grid_ended=True,
    )
