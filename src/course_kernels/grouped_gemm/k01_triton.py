"""Grouped matrix multiply of 8-bit numbers, kernel 1: a program for every tile, by way of Triton.

Contract  problem.py
Idea      a tile of 128 rows is of one group, so all that differs from one multiply is which matrix a program reads; and
          the sums of every 128 of K leave the tensor cores for a multiply-add in float32, with the scales of that block
Against   a multiply for each group: there a small group leaves most of the card idle, and the host must know its size
Cost      a program reads 128 rows of A and of B to make 128 x 128 of C; copies for one tile end with its last product
Limits    8-bit numbers want compute capability 8.9; tiles come by pointers; of a masked group with few rows the tensor
          cores multiply 64
Next      k02_promoted walks over many tiles, fetches A for three times as many columns, and copies tiles by TMA
Source    Triton tutorials 03 and 08; DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2
"""

from __future__ import annotations

from dataclasses import dataclass

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.grouped_gemm.arguments import BLOCK, output, sizes_of


@dataclass(frozen=True)
class Tile:
    """Tile shape; its 128 columns share the scales of B, and its step is a block of K.

    Attributes:
        block_m: rows.
        warps: warps of a program; a thread holds two numbers for each sum.
        stages: pairs of tiles in shared memory at once.
        group_m: rows of tiles that are walked together, column by column.
    """

    block_m: int
    warps: int
    stages: int
    group_m: int


CONTIGUOUS = Tile(128, warps=8, stages=4, group_m=8)
MASKED = Tile(64, warps=4, stages=5, group_m=8)  # few rows: what counts is how far the copies of B run ahead


# --- on the device -----------------------------------------------------------


@triton.jit
def grouped_gemm_kernel(
    A, B, C, scale_a_ptr, scale_b_ptr, groups_ptr, M, N, K,
    MASKED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """C, a tile [BLOCK_M, BLOCK] of it. Grid: tiles of a matrix A, and the matrices A: G of them, or one."""
    tiles_m, tiles_n, steps = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK), K // BLOCK
    # Down a column of GROUP_M tiles, then the next column: what runs together reads few rows and few columns.
    tile, of_a = tl.program_id(0), tl.program_id(1)
    first = tile // (GROUP_M * tiles_n) * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)  # the last group may be lower
    m = (first + tile % (GROUP_M * tiles_n) % height) * BLOCK_M
    n = tile % (GROUP_M * tiles_n) // height
    row, col, k = m + tl.arange(0, BLOCK_M), n * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    if MASKED:
        group = of_a
        rows = tl.load(groups_ptr + group)
        there = row < rows
        steps = tl.where(m < rows, steps, 0)
    else:
        group = tl.load(groups_ptr + m)
        there = tl.load(groups_ptr + row) >= 0
        steps = tl.where(group >= 0, steps, 0)
        group = tl.maximum(group, 0)

    a_at = A + (of_a.to(tl.int64) * M + row)[:, None] * K + k[None, :]
    b_at = B + (group.to(tl.int64) * N + col)[:, None] * K + k[None, :]
    scale_a_at = scale_a_ptr + of_a.to(tl.int64) * (K // BLOCK) * M + row
    scale_b_at = scale_b_ptr + (group.to(tl.int64) * tiles_n + n) * (K // BLOCK)
    acc = tl.zeros((BLOCK_M, BLOCK), tl.float32)
    for step in tl.range(0, steps):
        a = tl.load(a_at + step * BLOCK, mask=there[:, None], other=0.0)  # [BLOCK_M, BLOCK]
        b = tl.load(b_at + step * BLOCK, mask=(col < N)[:, None], other=0.0)  # [BLOCK, BLOCK]
        scale = tl.load(scale_a_at, mask=there, other=0.0) * tl.load(scale_b_at + step)
        acc += tl.dot(a, b.T) * scale[:, None]
        scale_a_at += M
    keep = (col < N)[None, :]
    if MASKED:
        keep = keep & there[:, None]
    # A row of padding is answered by zeros, also where B has NaN.
    c = tl.where(there[:, None], acc, 0.0).to(tl.bfloat16)
    tl.store(C + (of_a.to(tl.int64) * M + row)[:, None] * N + col[None, :], c, mask=keep)


# --- on the host -------------------------------------------------------------


def grouped_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    groups: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the product of every row with its group's matrix, scaled in blocks of 128.

    Args:
        a: (M, K) float8_e4m3fn, M a multiple of 128; or (G, M, K), M a multiple of 4. K is a multiple of 128.
        b: (G, N, K) float8_e4m3fn; M, N and K <= 1073741824, G <= 65535.
        scale_a: (K / 128, M) or (G, K / 128, M) float32.
        scale_b: (G, ceil(N / 128), K / 128) float32.
        groups: (M,) or (G,) int32: of each row its group, or -1; or of each group its rows. Not looked at here.
        out: (M, N) or (G, M, N) bfloat16, for C; rows behind those of a masked group stay as they are. Without it new
            memory, and zeros there. All contiguous.
    Returns:
        (M, N) or (G, M, N) bfloat16, rounded once; every 128 of K are added in float32.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit each other, a size out of range or no such multiple, not contiguous, not on
            the current GPU, or one that has no 8-bit numbers.
    """
    sizes = sizes_of(a, b, scale_a, scale_b, groups)
    masked, G, M, N, K = sizes
    if a.is_cuda and torch.cuda.get_device_capability(a.device) < (8, 9):
        capability = ".".join(map(str, torch.cuda.get_device_capability(a.device)))
        raise ValueError(
            f"a: expected a GPU of compute capability 8.9 or above for 8-bit numbers, got {capability}"
        )
    c = output(sizes, out, a.device)
    tile = MASKED if masked else CONTIGUOUS
    grid = (triton.cdiv(M, tile.block_m) * triton.cdiv(N, BLOCK), G if masked else 1)
    grouped_gemm_kernel[grid](
        a, b, c, scale_a, scale_b, groups, M, N, K,
        MASKED=masked, BLOCK_M=tile.block_m, BLOCK=BLOCK, GROUP_M=tile.group_m,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return c
