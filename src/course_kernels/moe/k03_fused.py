"""A mixture of experts, kernel 3: what stood between the two multiplies is done where the numbers are already.

Contract  problem.py
Idea      the first multiply fetches the rows of x where they lie, by the sorted choices, and has gate and up of the
          same columns in its registers at the end, so it writes their product; the second one weighs its rows and puts
          each where its token's sum looks for it
Against   k02_sorted, which has the same sort and the same multiplies, and copies the rows, writes gate and up, and
          reads them again
Cost      five kernels. Each choice is written and read twice: F numbers of h, and D of its answer
Limits    rows that lie scattered come by single copies of 16 bytes, which threads ask for; the copy engine brings the
          weights alone. The answers are not added where they are made: that takes atomics, in an order that no two runs
          share, on memory that must be zero before. TOP_K rows and one sum over them give the same bits every time
Next      a model's layer: norm, attention and this in one graph
Source    vLLM's fused_moe, https://github.com/vllm-project/vllm (gather in the load of a grouped multiply); Tan et al.
          2024, arXiv:2403.08245 (ScatterMoE: gather and scatter within the multiplies)
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course_kernels.moe.arguments import sizes_of
from course_kernels.moe.k02_sorted import BLOCK, rows_tile, weights_tile
from course_kernels.moe.route import padded, route, tile_of
from course_kernels.moe.tiles import Tile, by_copy_engine, most_tiles, tile_for

# --- on the device -----------------------------------------------------------


# region first
@triton.jit
def gate_up_kernel(
    X, W, H, order_ptr, starts_ptr, E, F, D, TOP_K: tl.constexpr,
    E_PAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_F: tl.constexpr, BLOCK_K: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Compute a tile of H (choices, F) = silu(gate) * up, of rows of x as the choices of one expert name them."""
    expert, begin, end, f = tile_of(tl.program_id(0), starts_ptr, E, tl.cdiv(F, BLOCK_F), E_PAD, BLOCK_M)
    if expert < E:
        rows, f = begin + tl.arange(0, BLOCK_M), f * BLOCK_F
        token = tl.load(order_ptr + rows, mask=rows < end, other=0) // TOP_K
        gate = tl.zeros([BLOCK_M, BLOCK_F], tl.float32)
        up = tl.zeros([BLOCK_M, BLOCK_F], tl.float32)
        for k in tl.range(0, D, BLOCK_K):
            x = rows_tile(X, 0, token, rows < end, k, D, BLOCK_K, False)
            # Of 2 F rows up begins at F; the columns that gate has too many belong to up, and are not stored.
            g = weights_tile(W, expert, f, k, 2 * F, D, BLOCK_F, BLOCK_K, TMA)
            u = weights_tile(W, expert, F + f, k, 2 * F, D, BLOCK_F, BLOCK_K, TMA)
            gate = tl.dot(x, g.T, gate)
            up = tl.dot(x, u.T, up)
        h = gate / (1.0 + tl.exp(-gate)) * up
        col = f + tl.arange(0, BLOCK_F)
        to = H + rows[:, None].to(tl.int64) * F + col[None, :]
        tl.store(to, h.to(H.dtype.element_ty), mask=(rows < end)[:, None] & (col < F)[None, :])


# endregion


# region second
@triton.jit
def down_kernel(
    H, W, P, weights_ptr, order_ptr, starts_ptr, E, D, F,
    E_PAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Compute a tile of the weighted answers, and put each of its rows to its choice: P (T * TOP_K, D)."""
    expert, begin, end, n = tile_of(tl.program_id(0), starts_ptr, E, tl.cdiv(D, BLOCK_N), E_PAD, BLOCK_M)
    if expert < E:
        rows, n = begin + tl.arange(0, BLOCK_M), n * BLOCK_N
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for k in tl.range(0, F, BLOCK_K):
            h = rows_tile(H, begin, rows, rows < end, k, F, BLOCK_K, TMA)
            w = weights_tile(W, expert, n, k, D, F, BLOCK_N, BLOCK_K, TMA)
            acc = tl.dot(h, w.T, acc)
        choice = tl.load(order_ptr + rows, mask=rows < end, other=0)
        acc *= tl.load(weights_ptr + choice, mask=rows < end, other=0.0)[:, None]
        col = n + tl.arange(0, BLOCK_N)
        to = P + choice[:, None].to(tl.int64) * D + col[None, :]
        tl.store(to, acc.to(P.dtype.element_ty), mask=(rows < end)[:, None] & (col < D)[None, :])


# endregion


@triton.jit
def sum_kernel(P, Y, D, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    """One token's weighted answers, which lie one below the other, added in their order: a run of columns."""
    across = tl.cdiv(D, BLOCK)
    t = (tl.program_id(0) // across).to(tl.int64)
    d = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    y = tl.zeros([BLOCK], tl.float32)
    for j in tl.static_range(TOP_K):
        y += tl.load(P + (t * TOP_K + j) * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(Y + t * D + d, y.to(Y.dtype.element_ty), mask=d < D)


# --- on the host -------------------------------------------------------------


def moe(
    x: torch.Tensor, router: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, *,
    top_k: int, tile: Tile | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return for each token the weighted sum of its experts' answers; the host waits for nothing.

    Args:
        x: (T, D) bfloat16 or float16, contiguous.
        router: (E, D), the same type, contiguous.
        gate_up: (E, 2 F, D), the same type, contiguous, the rows of gate first.
        down: (E, D, F), the same type, contiguous.
        top_k: experts of a token.
        tile: how to cut the multiplies, by the copy engine; without it, what suits the card and the sizes.
    Returns:
        (T, D), the same type; the same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    T, D, F, E, TOP_K = sizes_of(x, router, gate_up, down, top_k)
    tma = tile is not None or by_copy_engine(x, gate_up, down)
    tile = tile or tile_for(T * TOP_K, E, tma)
    to = route(x, router, TOP_K)
    h = torch.empty((T * TOP_K, F), dtype=x.dtype, device=x.device)
    parts = torch.empty((T * TOP_K, D), dtype=x.dtype, device=x.device)
    y = torch.empty_like(x)
    half, H, W, V = tile.block_n // 2, h, gate_up, down
    if tma:
        H = TensorDescriptor.from_tensor(h, [tile.block_m, tile.block_k])
        W = TensorDescriptor.from_tensor(gate_up.view(E * 2 * F, D), [half, tile.block_k])
        V = TensorDescriptor.from_tensor(down.view(E * D, F), [tile.block_n, tile.block_k])
    cut = {"E_PAD": padded(E), "BLOCK_M": tile.block_m, "BLOCK_K": tile.block_k, "TMA": tma}
    cut |= {"num_warps": tile.warps, "num_stages": tile.stages}
    high = most_tiles(T * TOP_K, E, tile.block_m)
    gate_up_kernel[(high * triton.cdiv(F, half),)](
        x, W, h, to.order, to.starts, E, F, D, TOP_K=TOP_K, BLOCK_F=half, **cut
    )
    down_kernel[(high * triton.cdiv(D, tile.block_n),)](
        H, V, parts, to.weights, to.order, to.starts, E, D, F, BLOCK_N=tile.block_n, **cut
    )
    sum_kernel[(T * triton.cdiv(D, BLOCK),)](parts, y, D, TOP_K=TOP_K, BLOCK=BLOCK)
    return y
