"""Attention in cuTile: FlashAttention with tiles as values; the loop is written once, and the compiler splits it.

Contract  problem.py
Idea      a program keeps a tile of Q and walks over the keys. `if` asks for the mask in the last tiles only, and the
          compiler makes two loops of that; it finds wgmma, TMA, the ring, and the roles as well
Against   k03_flash, the same algorithm in Triton; k04_specialised, where the roles and their barriers are ours
Cost      as k03_flash; a program has 128 query rows
Limits    each product is waited for before what follows it: nothing in the language says that the softmax of one tile
          is to run beside the product of another. How far loads run ahead can be hinted at (`latency`), not said
Source    Dao 2023, arXiv:2307.08691; NVIDIA, cuTile Python 1.7: the reference of load, mma and kernel
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import e, inf, log2, sqrt
from typing import TYPE_CHECKING, Any

# mypy: allow-untyped-defs
import torch

from course_kernels.attention.arguments import HEAD_SIZES, heads_of
from course_kernels.cutile_compiler import array_like, compile_for, language, launch
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled

if TYPE_CHECKING:
    import cuda.tile as ct

DTYPES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Tile:
    """Tile shape, and the hints that go with it.

    Attributes:
        block_m: query rows of a program.
        block_n: keys of one step of the loop. Both are powers of two.
        warps: that multiply and take exponentials; the compiler adds others that load and store.
        ctas: blocks of a cluster that share a program's rows; keys and values come once for both, by multicast.
        per_sm: programs of a multiprocessor at once that the compiler is to make room for; None leaves it to it.
        latency_k, latency_v: how slow the loads are, from 1 to 10: the compiler sizes its rings by that.
    """

    block_m: int
    block_n: int
    warps: int = 8
    ctas: int = 1
    per_sm: int | None = None
    latency_k: int = 2
    latency_v: int = 4


TILES = {
    "narrow": Tile(128, 64),
    "square": Tile(128, 128),
    "slow": Tile(
        128, 128, latency_k=4
    ),  # a slower load gets a shallower ring here, by the compiler's own ways
    "tall": Tile(256, 64),
    "pair": Tile(256, 128, ctas=2),
    "pair_narrow": Tile(256, 64, ctas=2),
    "small": Tile(64, 128, warps=4, per_sm=2),
    "small_narrow": Tile(64, 64, warps=4, per_sm=2),
}
BEST = {64: TILES["square"], 128: TILES["square"]}  # by D


# --- on the device -----------------------------------------------------------


# region kernel
def attention_kernel(
    Q, K, V, O, scale,
    D: ct.Constant[int], CAUSAL: ct.Constant[bool], BLOCK_M: ct.Constant[int], BLOCK_N: ct.Constant[int],
    LATENCY_K: ct.Constant[int], LATENCY_V: ct.Constant[int],
):  # fmt: skip
    """One program answers BLOCK_M query rows of one head. Q, K, V, O: (heads, N, D); an index counts tiles."""
    N, head = Q.shape[1], ct.bid(1)
    # Causal: the longest rows first, so that short ones fill the end.
    block = ct.num_blocks(0) - 1 - ct.bid(0) if CAUSAL else ct.bid(0)
    first_row = block * BLOCK_M
    # Most tiles need no mask. Those that do come last: the diagonal, or the last tile where it is short.
    unmasked = first_row // BLOCK_N if CAUSAL else N // BLOCK_N
    tiles = ct.cdiv(min(first_row + BLOCK_M, N) if CAUSAL else N, BLOCK_N)
    row = first_row + ct.arange(BLOCK_M, dtype=ct.int32)[:, None]

    # Past the end of a head are zeros, also in V: there the weight is zero, and must not meet a NaN.
    q = ct.load(Q, (head, block, 0), (1, BLOCK_M, D), padding_mode=ct.PaddingMode.ZERO).reshape((BLOCK_M, D))
    m = ct.full((BLOCK_M, 1), -inf, ct.float32)
    l = ct.zeros((BLOCK_M, 1), ct.float32)
    acc = ct.zeros((BLOCK_M, D), ct.float32)
    for j in range(tiles):
        # The order turns K on its way: (D, BLOCK_N).
        k = ct.load(
            K, (head, 0, j), (1, D, BLOCK_N), order=(0, 2, 1), padding_mode=ct.PaddingMode.ZERO, latency=LATENCY_K
        ).reshape((D, BLOCK_N))  # fmt: skip
        s = ct.mma(q, k, ct.zeros((BLOCK_M, BLOCK_N), ct.float32))
        if j >= unmasked:
            col = j * BLOCK_N + ct.arange(BLOCK_N, dtype=ct.int32)[None, :]
            # Causal needs no test against N: keys past the end are seen by rows past the end only.
            s = ct.where(col <= row if CAUSAL else col < N, s, -inf)
        # Every row sees key 0: from the first tile on m is finite, and no exponent is NaN.
        m_new = max(m, ct.max(s, 1, keepdims=True) * scale)
        p = ct.exp2(s * scale - m_new, flush_to_zero=True)
        repair = ct.exp2(m - m_new, flush_to_zero=True)
        l = l * repair + ct.sum(p, 1, keepdims=True)
        m = m_new
        v = ct.load(
            V, (head, j, 0), (1, BLOCK_N, D), padding_mode=ct.PaddingMode.ZERO, latency=LATENCY_V
        ).reshape((BLOCK_N, D))  # fmt: skip
        acc = ct.mma(p.astype(V.dtype), v, acc * repair)
    o = (acc * (1.0 / l)).astype(O.dtype)
    ct.store(O, (head, block, 0), o.reshape((1, BLOCK_M, D)))  # rows past the end are dropped


# endregion


@cache
def _kernel(tile: Tile) -> Any:
    """Return the kernel with the hints of a tile; the language is loaded now, not before."""
    globals()["ct"] = language()
    return ct.kernel(attention_kernel, num_worker_warps=tile.warps, num_ctas=tile.ctas, occupancy=tile.per_sm)


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16 or float16, D = 64 or 128."""
    return w.dtype in ("bfloat16", "float16") and w.D in HEAD_SIZES


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, tile: Tile | None = None
) -> torch.Tensor:
    """Attention. The first call of a pattern of sizes compiles, for seconds.

    `TILES` are eight ways to cut, chosen by reading what the compiler makes of them; `BEST` is the one that is taken.

    Args:
        q, k, v: (B, H, N, D) bfloat16 or float16, contiguous, D = 64 or 128, B * H <= 65535, N <= 1073741824, at
            addresses divisible by 16 (as torch allocates).
        causal: row m sees keys 0 to m only.
        tile: how to cut the work; without it, the tile for this D.
    Returns:
        (B, H, N, D) of the same type: every row a weighted mean of rows of v.
    Raises:
        TypeError, ValueError: see `heads_of`.
        NotInstalled: the language or its compiler is not installed.
    """
    heads, N, D = heads_of(q, k, v, DTYPES, in_vectors=True)
    tile = tile or BEST[D]
    o = torch.empty_like(q)
    arrays = (x.view(heads, N, D) for x in (q, k, v, o))
    launch(
        torch.cuda.current_stream(),
        (-(-N // tile.block_m), heads),
        _kernel(tile),
        (*arrays, log2(e) / sqrt(D), *_constants(tile, D, causal)),
    )
    return o


def compiled(w: Workload, arch: str = "sm_90a", *, tile: Tile | None = None) -> Compiled:
    """Compile what `attention` launches for a workload, for a card that need not be here.

    Raises:
        NotInstalled: the language or its compiler is not installed.
        ValueError: no such arch.
    """
    tile = tile or BEST[w.D]
    kernel = _kernel(tile)
    arrays = [array_like(w.dtype, (w.B * w.H, w.N, w.D))] * 4
    scale = import_module("cuda.tile.compilation").ScalarConstraint(language().float32)
    causal = bool(w.dims.get("causal", False))
    return compile_for(arch, kernel, (*arrays, scale, *_constants(tile, w.D, causal)))


def _constants(tile: Tile, D: int, causal: bool) -> tuple[int, ...]:
    return D, causal, tile.block_m, tile.block_n, tile.latency_k, tile.latency_v
