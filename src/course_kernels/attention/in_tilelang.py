"""Attention forward, in TileLang: the ladder's rung of tiles that are placed by hand and moved by the compiler.

Contract  problem.py
Idea      online softmax in tiles of registers, K and V in a pipeline of shared memory; the compiler gives one
          warpgroup the copies and two the products, 64 query rows each: while one multiplies, the other exponentiates
Against   k04_specialised, which writes roles and barriers out, and overlaps the products of one warpgroup with its
          own softmax as well
Cost      Q and O cross memory once; K and V once for every block of rows, mostly from L2
Limits    D = 64 or 128; a warpgroup waits for each of its products. Told not to wait (`T.wgmma_gemm`), TileLang 0.1.15
          gives a tile of K back to the copies before its product has read it
Tuning    by hand: five settings, timed at 4096 and 16384. The number of heads and N are arguments, so one compile
          serves all sizes of a type, a D and a mask
Source    Dao 2023, arXiv:2307.08691, algorithm 1; Wang et al. 2025, arXiv:2504.17577
"""

# No `from __future__ import annotations` here: TileLang reads the types of a kernel's arguments as they are.
import functools
from dataclasses import dataclass
from math import e, log2, sqrt
from typing import Any

# mypy: allow-untyped-defs, disable-error-code="valid-type"
import torch

from course_kernels.attention.arguments import HEAD_SIZES, heads_of
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled
from course_kernels.tilelang_compiler import compiled as compiled_by_tilelang
from course_kernels.tilelang_compiler import ready, tilelang

TYPE = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
OPTIONS = {
    "tl.enable_fast_math": True
}  # exp2 as the one instruction of the card, without its care for the tiniest


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m: query rows of a block, 64 for each warpgroup.
        block_n: keys of one step of the loop.
        stages: tiles of K, and of V, in shared memory at once; the copies run that far ahead.
        threads: threads that multiply; the compiler adds 128 for the copies.
    """

    block_m: int
    block_n: int
    stages: int
    threads: int = 256


# Two warpgroups of 64 rows: sums and scores of 128 keys are 128 registers of a thread, and the weights 32.
TILES = {
    "128 keys": Tile(128, 128, stages=2),
    "64 keys": Tile(128, 64, stages=4),
    "96 keys": Tile(128, 96, stages=3),
    "160 keys": Tile(128, 160, stages=2),
    "176 keys": Tile(128, 176, stages=2),
}
BEST = TILES["176 keys"]


# --- on the device -----------------------------------------------------------


# region kernel
def attention_kernel(tile: Tile, D: int, causal: bool, dtype: str) -> Any:
    """One block answers BM query rows of one head, for any number of heads and any N: a `T.prim_func`."""
    T = tilelang().language
    H, N = T.dynamic("H, N")
    BM, BN = tile.block_m, tile.block_n
    scale = log2(e) / sqrt(D)  # scores count in powers of two
    rows = T.GemmWarpPolicy.FullRow  # a row of scores belongs to one warpgroup
    minus_infinity = -T.infinity("float32")

    @T.prim_func
    def attention(
        Q: T.Tensor((H, N, D), dtype),
        K: T.Tensor((H, N, D), dtype),
        V: T.Tensor((H, N, D), dtype),
        O: T.Tensor((H, N, D), dtype),
    ):
        with T.Kernel(T.ceildiv(N, BM), H, threads=tile.threads) as (x, head):
            q = T.alloc_shared((BM, D), dtype)  # O takes its place at the end
            k, v = T.alloc_shared((BN, D), dtype), T.alloc_shared((BN, D), dtype)
            s, p = T.alloc_fragment((BM, BN), "float32"), T.alloc_fragment((BM, BN), dtype)
            acc = T.alloc_fragment((BM, D), "float32")
            m, m_before = T.alloc_fragment((BM,), "float32"), T.alloc_fragment((BM,), "float32")
            l, l_tile = T.alloc_fragment((BM,), "float32"), T.alloc_fragment((BM,), "float32")
            repair = T.alloc_fragment((BM,), "float32")

            # Causal: the longest rows first, so that short ones fill the end.
            first_row = (T.ceildiv(N, BM) - 1 - x if causal else x) * BM
            T.copy(Q[head, first_row : first_row + BM, :], q)
            T.clear(acc)
            T.clear(l)
            T.fill(m, minus_infinity)

            tiles = T.ceildiv(T.min(first_row + BM, N) if causal else N, BN)
            for j in T.Pipelined(tiles, num_stages=tile.stages):
                T.copy(K[head, j * BN : (j + 1) * BN, :], k)  # zeros past the head's end
                T.gemm(q, k, s, transpose_B=True, policy=rows, clear_accum=True)
                # Most tiles need no mask. Causal needs no test against N: keys past the end are seen by rows past it.
                if causal:
                    if (j + 1) * BN > first_row:
                        for row, col in T.Parallel(BM, BN):
                            seen = j * BN + col <= first_row + row
                            s[row, col] = T.if_then_else(seen, s[row, col], minus_infinity)
                else:
                    if (j + 1) * BN > N:
                        for row, col in T.Parallel(BM, BN):
                            s[row, col] = T.if_then_else(j * BN + col < N, s[row, col], minus_infinity)

                # Every row sees key 0, which comes first: m is never -inf afterwards, and no exponent is NaN.
                T.copy(m, m_before)
                T.reduce_max(s, m, dim=1, clear=False)
                for row in T.Parallel(BM):
                    repair[row] = T.exp2(m_before[row] * scale - m[row] * scale)
                for row, col in T.Parallel(BM, BN):
                    s[row, col] = T.exp2(s[row, col] * scale - m[row] * scale)
                T.reduce_sum(s, l_tile, dim=1)
                for row in T.Parallel(BM):
                    l[row] = l[row] * repair[row] + l_tile[row]
                for row, col in T.Parallel(BM, D):
                    acc[row, col] *= repair[row]

                T.copy(s, p)  # the weights, as the tensor cores take them
                T.copy(V[head, j * BN : (j + 1) * BN, :], v)
                T.gemm(p, v, acc, policy=rows)

            for row, col in T.Parallel(BM, D):
                acc[row, col] /= l[row]
            T.copy(acc, q)
            T.copy(q, O[head, first_row : first_row + BM, :])  # rows past the head's end are cut off

    return attention


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16 or float16, D = 64 or 128."""
    return w.torch_dtype in TYPE and w.D in HEAD_SIZES


@functools.cache
def _ready(tile: Tile, D: int, causal: bool, dtype: str) -> Any:
    """Return the kernel, compiled; once for all numbers of heads and all N."""
    return ready(attention_kernel(tile, D, causal, dtype), OPTIONS)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, tile: Tile | None = None
) -> torch.Tensor:
    """Return attention on Hopper. The first call of a type, a D and a mask compiles.

    Args:
        q, k, v: (B, H, N, D) bfloat16 or float16, contiguous, D = 64 or 128, B * H <= 65535, N <= 1073741824, at
            addresses divisible by 16 (as torch allocates).
        causal: row m sees keys 0 to m only.
        tile: how to cut the work; without it, `BEST`.
    Returns:
        (B, H, N, D) of the same type: every row a weighted mean of rows of v.
    Raises:
        NotInstalled: TileLang is not there.
        TypeError, ValueError: see `heads_of`; or a GPU of another compute capability than 9.0.
    """
    tilelang()
    heads, N, D = heads_of(q, k, v, tuple(TYPE), in_vectors=True)
    capability = torch.cuda.get_device_capability(q.device)
    if capability != (9, 0):
        found = ".".join(map(str, capability))
        raise ValueError(f"q: expected a GPU of compute capability 9.0 (Hopper), got {found}")
    o = torch.empty_like(q)
    kernel = _ready(tile or BEST, D, causal, TYPE[q.dtype])
    kernel(*(x.view(heads, N, D) for x in (q, k, v, o)))
    return o


def compiled(w: Workload, arch: str = "sm_90a", *, tile: Tile | None = None) -> Compiled:
    """Return what TileLang and nvcc make of the kernel for a workload, without a card.

    Raises:
        NotInstalled: TileLang is not there.
        CudaMissingError: nvcc is not there.
        ValueError: a workload that the kernel does not take.
    """
    if not supports(w):
        raise ValueError(f"w: expected bfloat16 or float16 and D = 64 or 128, got {w.label}")
    causal = bool(w.dims.get("causal", False))
    return compiled_by_tilelang(attention_kernel(tile or BEST, w.D, causal, w.dtype), OPTIONS, arch)
