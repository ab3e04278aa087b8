"""Matrix multiply of 8-bit numbers, kernel 1: the tensor cores by way of Triton.

Contract  problem.py
Idea      half the bytes of bfloat16, twice the numbers in an instruction: the loop of gemm/k05_triton on 8-bit tiles,
          and one multiplication by both scales at the end
Cost      a program reads 128 rows of A and 256 rows of B to make 128 x 256 of C
Limits    sums stay in the tensor cores, which on Hopper keep some 14 bits of them; B must come transposed; the copy
          engine wants rows of a multiple of 16 bytes, other sizes and other cards load by pointers. 8-bit numbers
          want compute capability 8.9
Source    Triton tutorials 03 and 09
"""

from __future__ import annotations

from dataclasses import dataclass

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course_kernels.arguments import check_size, check_tensor

MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m, block_n, block_k: a tile of A is block_m x block_k, a tile of B block_n x block_k.
        warps: warps of a program.
        stages: pairs of tiles in shared memory at once; the copies run that far ahead.
        group_m: rows of tiles that are walked together, column by column.
        persistent: as many programs as multiprocessors, each walking over many tiles; else one program a tile.
    """

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    group_m: int
    persistent: bool


HOPPER = Tile(128, 256, 128, warps=8, stages=3, group_m=8, persistent=True)

# Everything else, and sizes the copy engine does not take.
GENERIC = Tile(128, 128, 64, warps=8, stages=3, group_m=8, persistent=False)


# --- on the device -----------------------------------------------------------


@triton.jit
def _load(X, row, col, ROWS, COLS, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr, TMA: tl.constexpr):
    """Return a tile of X (ROWS, COLS) from (row, col) on, zeros past the edges: [BLOCK_R, BLOCK_C]."""
    if TMA:
        tile = X.load([row, col])
    else:
        r, c = row + tl.arange(0, BLOCK_R)[:, None], col + tl.arange(0, BLOCK_C)[None, :]
        tile = tl.load(X + r.to(tl.int64) * COLS + c, mask=(r < ROWS) & (c < COLS), other=0.0)
    return tile


@triton.jit
def gemm_fp8_kernel(
    A, B, C, scale_a_ptr, scale_b_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TMA: tl.constexpr,
):  # fmt: skip
    """C = scale_a * scale_b * A @ B.T, tile by tile. A, B, C: descriptors if TMA, else pointers."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    scale = tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        # Down a column of GROUP_M tiles, then the next column: what runs together reads few rows and few columns.
        group = tile // (GROUP_M * tiles_n)
        height = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)  # the last group may be lower
        m = (group * GROUP_M + tile % (GROUP_M * tiles_n) % height) * BLOCK_M
        n = tile % (GROUP_M * tiles_n) // height * BLOCK_N

        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in tl.range(0, K, BLOCK_K):
            a = _load(A, m, k, M, K, BLOCK_M, BLOCK_K, TMA)
            b = _load(B, n, k, N, K, BLOCK_N, BLOCK_K, TMA)
            acc = tl.dot(a, b.T, acc)
        c = (acc * scale).to(tl.bfloat16)
        if TMA:
            C.store([m, n], c)
        else:
            row, col = m + tl.arange(0, BLOCK_M)[:, None], n + tl.arange(0, BLOCK_N)[None, :]
            tl.store(C + row.to(tl.int64) * N + col, c, mask=(row < M) & (col < N))


# --- on the host -------------------------------------------------------------


def gemm_fp8(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    *,
    tile: Tile | None = None,
) -> torch.Tensor:
    """Return the product scale_a * a @ (scale_b * b).T on the tensor cores.

    Args:
        a: (M, K) float8_e4m3fn, contiguous.
        b: (N, K) float8_e4m3fn, contiguous; M, N and K <= 1073741824.
        scale_a, scale_b: (1,) float32.
        tile: how to cut the work, by the copy engine; without it, what suits the card and the size.
    Returns:
        (M, N) bfloat16; sums over K in the tensor cores, rounded once.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit each other, a size out of range, not contiguous, not on the current GPU, or
            one that has no 8-bit numbers.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=(torch.float8_e4m3fn,))
    check_tensor("b", b, "NK", sizes, dtypes=(torch.float8_e4m3fn,), device=a.device)
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        check_tensor(name, scale, "S", {"S": 1}, dtypes=(torch.float32,), device=a.device)
    M, N, K = sizes["M"], sizes["N"], sizes["K"]
    for name, letter in (("a", "M"), ("a", "K"), ("b", "N")):
        check_size(name, letter, sizes[letter], MAX_SIZE)
    if a.is_cuda and torch.cuda.get_device_capability(a.device) < (8, 9):
        capability = ".".join(map(str, torch.cuda.get_device_capability(a.device)))
        raise ValueError(
            f"a: expected a GPU of compute capability 8.9 or above for 8-bit numbers, got {capability}"
        )
    c = torch.empty((M, N), dtype=torch.bfloat16, device=a.device)

    tma = tile is not None
    if tile is None:
        tma = by_copy_engine(a, b, c)
        tile = HOPPER if tma else GENERIC
    A, B, C = a, b, c
    if tma:
        A = TensorDescriptor.from_tensor(a, [tile.block_m, tile.block_k])
        B = TensorDescriptor.from_tensor(b, [tile.block_n, tile.block_k])
        C = TensorDescriptor.from_tensor(c, [tile.block_m, tile.block_n])
    programs = triton.cdiv(M, tile.block_m) * triton.cdiv(N, tile.block_n)
    if tile.persistent:
        programs = min(programs, multiprocessors(a.device))
    gemm_fp8_kernel[(programs,)](
        A, B, C, scale_a, scale_b, M, N, K,
        BLOCK_M=tile.block_m, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, GROUP_M=tile.group_m,
        TMA=tma, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return c


def by_copy_engine(*tensors: torch.Tensor) -> bool:
    """Return whether tiles can come and go by TMA: a Hopper, and every row at a multiple of 16 bytes."""
    aligned = all(t.data_ptr() % 16 == 0 and t.shape[1] * t.element_size() % 16 == 0 for t in tensors)
    device = tensors[0].device
    return aligned and device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)


def multiprocessors(device: torch.device) -> int:
    """Return how many programs run at once; the interpreter runs one after the other."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
