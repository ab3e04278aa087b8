"""Matrix multiply in cuTile: a program says which tile it loads, multiplies and stores; threads do not occur.

Contract  problem.py
Idea      a tile is a value: load two, multiply, add, store one. The compiler finds the instruction (wgmma), the
          swizzle, the ring in shared memory, and the roles: warps that load, warpgroups that multiply, warps that store
Against   k05_triton, which is as long, and whose program says how many warps and stages it has
Cost      as k05_triton: 128 rows of A and 256 columns of B are read for 128 x 256 of C, and the order of tiles lets
          most of that come from L2
Limits    the compiler's own guess for this tile is one warpgroup, whose sums do not fit into its registers; a hint
          says two. The depth of the ring can only be hinted at, by the latency of a load. An array whose rows are no
          multiple of 16 bytes comes element by element, by the same program
Source    NVIDIA, cuTile Python 1.7: the reference of load, mma and kernel
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

# mypy: allow-untyped-defs
import torch

from course_kernels.cutile_compiler import array_like, compile_for, language, launch
from course_kernels.gemm.arguments import in_vectors, product_of
from course_kernels.gemm.arguments import supports as supports
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled

if TYPE_CHECKING:
    import cuda.tile as ct


@dataclass(frozen=True)
class Tile:
    """Tile shape, and the hints that go with it.

    Attributes:
        block_m, block_n, block_k: a tile of A is block_m x block_k, a tile of B block_k x block_n; powers of two.
        warps: that multiply; the compiler adds others that load and store.
        ctas: blocks of a cluster that make one tile together; what both need comes once, by multicast.
        group_m: rows of tiles that are walked together, column by column.
        persistent: as many clusters as there are multiprocessors for, each walking over many tiles; else one a tile.
    """

    block_m: int
    block_n: int
    block_k: int
    warps: int = 8
    ctas: int = 1
    group_m: int = 8
    persistent: bool = True


# 128 x 256 sums in float32 are 128 registers of each of 256 threads; with a warpgroup less they would be 256, and
# spill.
TILES = {
    "wide": Tile(128, 256, 64),
    "tall": Tile(256, 128, 64),
    "shallow": Tile(128, 256, 32),
    "once": Tile(128, 256, 64, persistent=False),
    "pair": Tile(256, 256, 64, ctas=2),
    "turns": Tile(128, 128, 64),  # the two warpgroups become two roles that take turns
    "one": Tile(128, 128, 64, warps=4),
    "rows_16": Tile(128, 256, 64, group_m=16),
}
BEST = TILES["pair"]

# For rows that do not begin at multiples of 16 bytes: no TMA, and each element has an address and a mask of its own.
# This tile has few enough of them to stay in registers where all three arrays are like that.
PLAIN = Tile(128, 128, 32, persistent=False)


# --- on the device -----------------------------------------------------------


# region kernel
def gemm_kernel(
    A, B, C,
    BLOCK_M: ct.Constant[int], BLOCK_N: ct.Constant[int], BLOCK_K: ct.Constant[int], GROUP_M: ct.Constant[int],
):  # fmt: skip
    """C = A @ B, tile by tile. An index counts tiles, not elements."""
    tiles_m = ct.num_tiles(C, 0, (BLOCK_M, BLOCK_N))
    tiles_n = ct.num_tiles(C, 1, (BLOCK_M, BLOCK_N))
    steps = ct.num_tiles(A, 1, (BLOCK_M, BLOCK_K))
    for tile in range(ct.bid(0), tiles_m * tiles_n, ct.num_blocks(0)):
        # Down a column of GROUP_M tiles, then the next column: what runs together reads few rows and few columns.
        group = tile // (GROUP_M * tiles_n)
        height = min(tiles_m - group * GROUP_M, GROUP_M)  # the last group may be lower
        m = group * GROUP_M + tile % (GROUP_M * tiles_n) % height
        n = tile % (GROUP_M * tiles_n) // height

        acc = ct.zeros((BLOCK_M, BLOCK_N), ct.float32)
        for k in range(steps):
            # Past the edges are zeros: a sum over K needs them on both sides, for NaN times zero is NaN.
            a = ct.load(A, (m, k), (BLOCK_M, BLOCK_K), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(B, (k, n), (BLOCK_K, BLOCK_N), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(a, b, acc)
        ct.store(C, (m, n), acc.astype(C.dtype))  # what lies past the edges is dropped


# endregion


@cache
def _kernel(tile: Tile) -> Any:
    """Return the kernel with the hints of a tile; the language is loaded now, not before."""
    globals()["ct"] = language()
    return ct.kernel(gemm_kernel, num_worker_warps=tile.warps, num_ctas=tile.ctas)


# --- on the host -------------------------------------------------------------


def gemm(a: torch.Tensor, b: torch.Tensor, *, tile: Tile | None = None) -> torch.Tensor:
    """Return the product a @ b on the tensor cores. The first call of a pattern of sizes compiles, for seconds.

    `TILES` are eight ways to cut, chosen by reading what the compiler makes of them; `BEST` is the one that is taken.

    Args:
        a: (M, K) bfloat16 or float16, contiguous.
        b: (K, N), the same type, contiguous; M, N and K <= 1073741824.
        tile: how to cut the work; without it, `BEST`, or `PLAIN` where rows are no multiple of 16 bytes.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError, ValueError: see `product_of`.
        NotInstalled: the language or its compiler is not installed.
    """
    c, M, N, _ = product_of(a, b)
    tile = tile or (BEST if in_vectors(a, b) else PLAIN)
    blocks = -(-M // tile.block_m) * -(-N // tile.block_n)
    if tile.persistent:
        processors = torch.cuda.get_device_properties(a.device).multi_processor_count
        blocks = min(blocks, processors // tile.ctas)
    launch(torch.cuda.current_stream(), (blocks,), _kernel(tile), (a, b, c, *_constants(tile)))
    return c


def compiled(w: Workload, arch: str = "sm_90a", *, tile: Tile | None = None) -> Compiled:
    """Compile what `gemm` launches for a workload, for a card that need not be here.

    Raises:
        NotInstalled: the language or its compiler is not installed.
        ValueError: no such arch.
    """
    tile = tile or (BEST if w.K % 8 == 0 and w.N % 8 == 0 else PLAIN)
    arrays = (array_like(w.dtype, shape) for shape in ((w.M, w.K), (w.K, w.N), (w.M, w.N)))
    return compile_for(arch, _kernel(tile), (*arrays, *_constants(tile)))


def _constants(tile: Tile) -> tuple[int, ...]:
    return tile.block_m, tile.block_n, tile.block_k, tile.group_m
