"""Matrix multiply, in TileLang: the ladder's rung of tiles that are placed by hand and moved by the compiler.

Contract  problem.py
Idea      say which tiles lie in shared memory and which in registers, and that the loop over K is a pipeline; the
          compiler gives one warpgroup the copies, two the products, and writes the barriers between them
Against   k05_triton, where a tile has no place until the compiler finds one
Cost      a block reads 128 rows of A and 256 columns of B to make 128 x 256 of C; blocks that run together are
          neighbours in both directions, so most of that comes from L2
Limits    the copy engine wants rows of a multiple of 16 bytes: at other sizes the same text is compiled with copies
          by threads, one element at a time. A warpgroup waits for its products at the end of every step of K
Tuning    by hand: eight settings, timed at 4096 and 8192. M, N and K are arguments, so one compile serves all sizes
Source    Wang et al. 2025, arXiv:2504.17577; https://github.com/tile-ai/tilelang
"""

# No `from __future__ import annotations` here: TileLang reads the types of a kernel's arguments as they are.
import functools
from dataclasses import dataclass
from typing import Any

# mypy: allow-untyped-defs, disable-error-code="valid-type"
import torch

from course_kernels.arguments import check_size
from course_kernels.gemm.arguments import in_vectors, product_of
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled
from course_kernels.tilelang_compiler import compiled as compiled_by_tilelang
from course_kernels.tilelang_compiler import ready, tilelang

TYPE = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
GRID = 65535  # blocks in the second dimension of a grid
MULTIPROCESSORS = 132  # of an H100 SXM and of an H200: for who compiles without a card


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m, block_n, block_k: a tile of A is block_m x block_k, a tile of B block_k x block_n.
        stages: pairs of tiles in shared memory at once; the copies run that far ahead.
        threads: threads that multiply; the compiler adds 128 for the copies.
        rows: whether a warpgroup has whole rows of the tile of C, else the compiler shares it out as a square.
        group_n: columns of tiles that are walked together, row by row.
        persistent: as many blocks as multiprocessors, each walking over many tiles; else one block a tile.
    """

    block_m: int
    block_n: int
    block_k: int
    stages: int
    threads: int = 256
    rows: bool = True
    group_n: int = 8
    persistent: bool = False


# 128 x 256 sums are 128 registers of 256 threads. Four stages of A and B fill the shared memory, and the tile of C
# takes their place when they are done with; a persistent block already fetches for the next tile then, and has room
# for three. Eight columns of tiles and the rows that run beside them are about as wide as high.
TILES = {
    "4 stages": Tile(128, 256, 64, stages=4),
    "3 stages": Tile(128, 256, 64, stages=3),
    "squares": Tile(128, 256, 64, stages=4, rows=False),
    "tall": Tile(256, 128, 64, stages=4, group_n=16),
    "groups of 4": Tile(128, 256, 64, stages=4, group_n=4),
    "persistent": Tile(128, 256, 64, stages=3, persistent=True),
    "persistent squares": Tile(128, 256, 64, stages=3, rows=False, persistent=True),
    "long steps": Tile(128, 256, 128, stages=2),
}
BEST = TILES["4 stages"]

# Where threads copy, the same threads multiply.
BY_THREADS = Tile(128, 128, 32, stages=2)

MAX_N = GRID * BY_THREADS.block_n  # of the narrowest tile


# --- on the device -----------------------------------------------------------


# region kernel
def gemm_kernel(tile: Tile, dtype: str, tma: bool, multiprocessors: int) -> Any:
    """C = A @ B, tile by tile, for any M, N and K: a `T.prim_func`."""
    T = tilelang().language
    M, N, K = T.dynamic("M, N, K")
    BM, BN, BK = tile.block_m, tile.block_n, tile.block_k
    by_rows = T.GemmWarpPolicy.FullRow if tile.rows else T.GemmWarpPolicy.Square
    by_threads = not tma

    @T.macro
    def multiply(A, B, C, a, b, c, acc, m, n):
        """C[m * BM, n * BN], a tile: what lies past the edges is read as zero and not written."""
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, BK), num_stages=tile.stages):
            T.copy(A[m * BM, k * BK], a, disable_tma=by_threads)
            T.copy(B[k * BK, n * BN], b, disable_tma=by_threads)
            T.gemm(a, b, acc, policy=by_rows)
        T.copy(acc, c)  # rounded once
        T.copy(c, C[m * BM, n * BN], disable_tma=by_threads)

    @T.prim_func
    def one_tile(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN), threads=tile.threads) as (m, n):
            T.use_swizzle(tile.group_n)
            a, b = T.alloc_shared((BM, BK), dtype), T.alloc_shared((BK, BN), dtype)
            acc, c = T.alloc_fragment((BM, BN), "float32"), T.alloc_shared((BM, BN), dtype)
            multiply(A, B, C, a, b, c, acc, m, n)

    @T.prim_func
    def many_tiles(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(multiprocessors, threads=tile.threads) as block:
            a, b = T.alloc_shared((BM, BK), dtype), T.alloc_shared((BK, BN), dtype)
            acc, c = T.alloc_fragment((BM, BN), "float32"), T.alloc_shared((BM, BN), dtype)
            tiles = [T.ceildiv(M, BM), T.ceildiv(N, BN)]
            for m, n in T.Persistent(tiles, multiprocessors, block, tile.group_n):
                multiply(A, B, C, a, b, c, acc, m, n)

    return many_tiles if tile.persistent else one_tile


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16 or float16, N <= 8388480."""
    return w.torch_dtype in TYPE and w.N <= MAX_N


@functools.cache
def _ready(tile: Tile, dtype: str, tma: bool, multiprocessors: int) -> Any:
    """Return the kernel, compiled; once for all sizes."""
    return ready(gemm_kernel(tile, dtype, tma, multiprocessors), {})


@functools.cache
def _multiprocessors(device: int) -> int:
    """Return how many blocks run at once on a Hopper; asked once.

    Raises:
        ValueError: a GPU of another compute capability than 9.0.
    """
    capability = torch.cuda.get_device_capability(device)
    if capability != (9, 0):
        raise ValueError(
            f"a: expected a GPU of compute capability 9.0 (Hopper), got {'.'.join(map(str, capability))}"
        )
    return torch.cuda.get_device_properties(device).multi_processor_count


def gemm(a: torch.Tensor, b: torch.Tensor, *, tile: Tile | None = None) -> torch.Tensor:
    """Return the product a @ b on Hopper. The first call of a type compiles.

    Args:
        a: (M, K) bfloat16 or float16, contiguous.
        b: (K, N), the same type, contiguous; M and K <= 1073741824, N <= 8388480 (at most 65535 tiles side by side).
        tile: how to cut the work where the copy engine brings it, K and N divisible by 8; without it, `BEST`.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        NotInstalled: TileLang is not there.
        TypeError, ValueError: see `product_of`; or a GPU of another compute capability than 9.0.
    """
    tilelang()
    c, _, N, _ = product_of(a, b, tuple(TYPE))
    tma = in_vectors(a, b)
    cut = (tile or BEST) if tma else BY_THREADS
    check_size("b", "N", N, MAX_N)
    _ready(cut, TYPE[a.dtype], tma, _multiprocessors(a.get_device()))(a, b, c)
    return c


def compiled(w: Workload, arch: str = "sm_90a", *, tile: Tile | None = None) -> Compiled:
    """Return what TileLang and nvcc make of the kernel for a workload, without a card.

    Raises:
        NotInstalled: TileLang is not there.
        CudaMissingError: nvcc is not there.
        ValueError: a workload that the kernel does not take.
    """
    if not supports(w):
        raise ValueError(f"w: expected bfloat16 or float16 and N <= {MAX_N}, got {w.label}")
    tma = w.K % 8 == 0 and w.N % 8 == 0
    cut = (tile or BEST) if tma else BY_THREADS
    return compiled_by_tilelang(gemm_kernel(cut, w.dtype, tma, MULTIPROCESSORS), {}, arch)
