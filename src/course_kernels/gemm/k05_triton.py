"""Matrix multiply, kernel 5: the tensor cores by way of Triton.

Contract  problem.py
Idea      say what a tile is and in what order tiles come; the compiler finds the instruction (wgmma on Hopper), the
          swizzle, the ring of tiles in shared memory, and lets the copy engine (TMA) fill it
Against   k04_wgmma, where each of these is written out, and where every warp copies
Cost      a program reads 128 rows of A and 256 columns of B to make 128 x 256 of C; tiles that run together are
          neighbours in both directions, so most of that comes from L2
Limits    the copy engine wants rows of a multiple of 16 bytes; other sizes, and other cards, load by pointers.
          float32 on Hopper: B is turned first, by a kernel of its own
Next      W2 and W3: what the compiler leaves on the table
Source    Triton tutorials 03 and 09
"""

from __future__ import annotations

from dataclasses import dataclass

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course_kernels.gemm.arguments import in_vectors, product_of

TRITON_TYPE = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m, block_n, block_k: a tile of A is block_m x block_k, a tile of B block_k x block_n.
        warps: warps of a program.
        stages: pairs of tiles in shared memory at once; the copies run that far ahead.
        strips: a tile of C is written in so many strips of columns; only one of them waits in shared memory.
        group_m: rows of tiles that are walked together, column by column.
        persistent: as many programs as multiprocessors, each walking over many tiles; else one program a tile.
    """

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    strips: int
    group_m: int
    persistent: bool


# By bytes of an element. 128 x 256 sums are half of the registers of 256 threads, and two warpgroups take a tile of B
# from shared memory 64 rows of A at a time. What the rings leave of 227 KB takes the strip of C.
HOPPER = {
    2: Tile(128, 256, 64, warps=8, stages=4, strips=2, group_m=8, persistent=True),
    4: Tile(128, 256, 32, warps=8, stages=3, strips=4, group_m=8, persistent=True),
}

# Everything else, and sizes the copy engine does not take: sized for the 99 KB of shared memory that the smallest
# of these cards has (sm_86, 89, 120).
GENERIC = {
    2: Tile(128, 128, 32, warps=8, stages=3, strips=1, group_m=8, persistent=False),
    4: Tile(64, 128, 32, warps=4, stages=3, strips=1, group_m=8, persistent=False),
}

TURN = 64  # rows and columns of a tile that is turned


# --- on the device -----------------------------------------------------------


# region tiles
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
def _store(X, row, col, tile, ROWS, COLS, STRIPS: tl.constexpr, TMA: tl.constexpr):
    """Store a tile, one strip of columns after the other: what lies past the edges is dropped."""
    HALF: tl.constexpr = tile.shape[1] // 2
    if STRIPS > 1:
        left, right = tile.reshape(tile.shape[0], 2, HALF).permute(0, 2, 1).split()
        _store(X, row, col, left, ROWS, COLS, STRIPS // 2, TMA)
        _store(X, row, col + HALF, right, ROWS, COLS, STRIPS // 2, TMA)
    elif TMA:
        X.store([row, col], tile)
    else:
        r, c = row + tl.arange(0, tile.shape[0])[:, None], col + tl.arange(0, tile.shape[1])[None, :]
        tl.store(X + r.to(tl.int64) * COLS + c, tile, mask=(r < ROWS) & (c < COLS))


# endregion


@triton.jit
def turn_kernel(X, T, ROWS, COLS, BLOCK: tl.constexpr):
    """T (COLS, ROWS) = X (ROWS, COLS) turned, a square of it."""
    across = tl.cdiv(
        COLS, BLOCK
    )  # squares side by side; a grid's second dimension would end at 65535 of them
    row, col = tl.program_id(0) // across * BLOCK, tl.program_id(0) % across * BLOCK
    tile = _load(X, row, col, ROWS, COLS, BLOCK, BLOCK, False)
    _store(T, col, row, tile.T, COLS, ROWS, 1, False)


# region kernel
@triton.jit
def gemm_kernel(
    A, B, C, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    STRIPS: tl.constexpr, DTYPE: tl.constexpr, TURNED: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """C = A @ B, tile by tile. A, B, C: descriptors if TMA, else pointers. TURNED: B lies as (N, K)."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        # Down a column of GROUP_M tiles, then the next column: what runs together reads few rows and few columns.
        group = tile // (GROUP_M * tiles_n)
        height = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)  # the last group may be lower
        m = (group * GROUP_M + tile % (GROUP_M * tiles_n) % height) * BLOCK_M
        n = tile % (GROUP_M * tiles_n) // height * BLOCK_N

        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in tl.range(0, K, BLOCK_K):
            a = _load(A, m, k, M, K, BLOCK_M, BLOCK_K, TMA)
            b = (
                _load(B, n, k, N, K, BLOCK_N, BLOCK_K, TMA).T
                if TURNED
                else _load(B, k, n, K, N, BLOCK_K, BLOCK_N, TMA)
            )
            acc = tl.dot(a, b, acc, input_precision="tf32")  # counts for float32 only
        _store(C, m, n, acc.to(DTYPE), M, N, STRIPS, TMA)


# endregion


# --- on the host -------------------------------------------------------------


def gemm(a: torch.Tensor, b: torch.Tensor, *, tile: Tile | None = None) -> torch.Tensor:
    """Return the product a @ b on the tensor cores.

    Args:
        a: (M, K) bfloat16, float16 or float32, contiguous.
        b: (K, N), the same type, contiguous; M, N and K <= 1073741824.
        tile: how to cut the work, by the copy engine; without it, what suits the card, the type and the size.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once. float32 is multiplied as TF32.
    Raises:
        TypeError, ValueError: see `product_of`.
    """
    c, M, N, K = product_of(a, b, tuple(TRITON_TYPE))

    tma = tile is not None
    if tile is None:
        tma = by_copy_engine(a, b)
        tile = (HOPPER if tma else GENERIC)[a.element_size()]
    # wgmma takes 16-bit operands either way round, wider ones only with K along their rows.
    turn = tma and a.dtype == torch.float32
    A, B, C = a, b, c
    if turn:
        B = torch.empty((N, K), dtype=b.dtype, device=b.device)
        turn_kernel[(triton.cdiv(K, TURN) * triton.cdiv(N, TURN),)](b, B, K, N, BLOCK=TURN)
    if tma:
        b_tile = [tile.block_n, tile.block_k] if turn else [tile.block_k, tile.block_n]
        A = TensorDescriptor.from_tensor(a, [tile.block_m, tile.block_k])
        B = TensorDescriptor.from_tensor(B, b_tile)
        C = TensorDescriptor.from_tensor(c, [tile.block_m, tile.block_n // tile.strips])
    programs = triton.cdiv(M, tile.block_m) * triton.cdiv(N, tile.block_n)
    if tile.persistent:
        programs = min(programs, multiprocessors(a.device))
    gemm_kernel[(programs,)](
        A, B, C, M, N, K,
        BLOCK_M=tile.block_m, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, GROUP_M=tile.group_m,
        STRIPS=tile.strips, DTYPE=TRITON_TYPE[a.dtype], TURNED=turn, TMA=tma,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return c


def by_copy_engine(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether tiles can come by TMA: a Hopper, and every row at a multiple of 16 bytes."""
    return in_vectors(a, b) and a.is_cuda and torch.cuda.get_device_capability(a.device) == (9, 0)


def multiprocessors(device: torch.device) -> int:
    """Return how many programs run at once; the interpreter runs one after the other."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
