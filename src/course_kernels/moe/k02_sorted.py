"""A mixture of experts, kernel 2: tokens sorted by expert, and all experts in one multiply.

Contract  problem.py
Idea      once the rows lie sorted by expert, the blocks of all experts are one grouped multiply: a program works out
          from the counts, which stay on the device, whose tile it has. Every step is a kernel of its own, from memory
          to memory
Against   k01_expert_by_expert, where the host waits for the counts and launches each expert by itself
Cost      eight kernels, whatever E. Besides what must move, each choice is written and read four times: D numbers of x,
          2 F of gate and up, F of their product, D of its answer
Limits    the grid is for the most tiles that the choices could make; programs past the last one end at once. Rows of an
          expert are made up to whole tiles: with one token each, fifteen rows in sixteen are multiplied for nothing,
          which costs no bytes
Next      k03_fused: the same sort, and three of the four trips gone
Source    Gale et al. 2022, arXiv:2211.15841 (MegaBlocks): experts as one multiply, without dropping or padding tokens
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course_kernels.moe.arguments import sizes_of
from course_kernels.moe.route import padded, route, tile_of
from course_kernels.moe.tiles import Tile, by_copy_engine, most_tiles, tile_for

BLOCK = 1024  # numbers of a row that a program copies: 16 bytes for each of 128 threads

# --- on the device -----------------------------------------------------------


@triton.jit
def gather_kernel(X, order_ptr, sorted_ptr, D, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    """Copy the row of x that stands at a place of the sorted choices: a run of its columns."""
    across = tl.cdiv(D, BLOCK)
    place = (tl.program_id(0) // across).to(tl.int64)
    d = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    token = (tl.load(order_ptr + place) // TOP_K).to(tl.int64)
    tl.store(sorted_ptr + place * D + d, tl.load(X + token * D + d, mask=d < D), mask=d < D)


# region multiply
@triton.jit
def weights_tile(W, expert, n, k, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TMA: tl.constexpr):
    """Return rows n and on of an expert's matrix, (N, K), in columns k and on: [BLOCK_N, BLOCK_K]."""
    if TMA:
        tile = W.load([expert * N + n, k])  # past N lies the next expert, whose products are not stored
    else:
        row, col = n + tl.arange(0, BLOCK_N)[:, None], k + tl.arange(0, BLOCK_K)[None, :]
        at = (expert * N + row).to(tl.int64) * K + col
        tile = tl.load(W + at, mask=(row < N) & (col < K), other=0.0)
    return tile


@triton.jit
def rows_tile(A, begin, rows, there, k, K, BLOCK_K: tl.constexpr, TMA: tl.constexpr):
    """Return rows of A in columns k and on, by the copy engine those from `begin` on: [BLOCK_M, BLOCK_K]."""
    if TMA:
        tile = A.load([begin, k])  # those that are not there are another expert's, and are not stored
    else:
        col = k + tl.arange(0, BLOCK_K)[None, :]
        tile = tl.load(A + rows[:, None].to(tl.int64) * K + col, mask=there[:, None] & (col < K), other=0.0)
    return tile


@triton.jit
def grouped_kernel(
    A, W, C, starts_ptr, E, N, K,
    E_PAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Compute a tile of C (choices, N): rows of one expert times the transpose of its matrix of W (E, N, K)."""
    expert, begin, end, n = tile_of(tl.program_id(0), starts_ptr, E, tl.cdiv(N, BLOCK_N), E_PAD, BLOCK_M)
    if expert < E:
        rows, n = begin + tl.arange(0, BLOCK_M), n * BLOCK_N
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for k in tl.range(0, K, BLOCK_K):
            a = rows_tile(A, begin, rows, rows < end, k, K, BLOCK_K, TMA)
            w = weights_tile(W, expert, n, k, N, K, BLOCK_N, BLOCK_K, TMA)
            acc = tl.dot(a, w.T, acc)
        col = n + tl.arange(0, BLOCK_N)
        to = C + rows[:, None].to(tl.int64) * N + col[None, :]
        tl.store(to, acc.to(C.dtype.element_ty), mask=(rows < end)[:, None] & (col < N)[None, :])


# endregion


@triton.jit
def swiglu_kernel(gate_up_ptr, H, F, BLOCK: tl.constexpr):
    """H (choices, F) = silu(gate) * up, the halves of each row of gate_up (choices, 2 F): a run of columns."""
    across = tl.cdiv(F, BLOCK)
    row = (tl.program_id(0) // across).to(tl.int64)
    f = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_up_ptr + row * 2 * F + f, mask=f < F, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + row * 2 * F + F + f, mask=f < F, other=0.0).to(tl.float32)
    tl.store(H + row * F + f, (gate / (1.0 + tl.exp(-gate)) * up).to(H.dtype.element_ty), mask=f < F)


@triton.jit
def combine_kernel(answers_ptr, weights_ptr, place_ptr, Y, D, TOP_K: tl.constexpr, BLOCK: tl.constexpr):
    """One token's answers, from where the sort has put them, weighted and added in their order: a run of columns."""
    across = tl.cdiv(D, BLOCK)
    t = (tl.program_id(0) // across).to(tl.int64)
    d = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    y = tl.zeros([BLOCK], tl.float32)
    for j in tl.static_range(TOP_K):
        place = tl.load(place_ptr + t * TOP_K + j).to(tl.int64)
        answer = tl.load(answers_ptr + place * D + d, mask=d < D, other=0.0).to(tl.float32)
        y += tl.load(weights_ptr + t * TOP_K + j) * answer
    tl.store(Y + t * D + d, y.to(Y.dtype.element_ty), mask=d < D)


# --- on the host -------------------------------------------------------------


def grouped(a: torch.Tensor, w: torch.Tensor, starts: torch.Tensor, tile: Tile, tma: bool) -> torch.Tensor:
    """Return rows a (choices, K), sorted by expert, each times its expert's matrix of w (E, N, K): (choices, N)."""
    (choices, K), (E, N, _) = a.shape, w.shape
    c = torch.empty((choices, N), dtype=a.dtype, device=a.device)
    A, W = a, w
    if tma:
        A = TensorDescriptor.from_tensor(a, [tile.block_m, tile.block_k])
        W = TensorDescriptor.from_tensor(w.view(E * N, K), [tile.block_n, tile.block_k])
    programs = most_tiles(choices, E, tile.block_m) * triton.cdiv(N, tile.block_n)
    grouped_kernel[(programs,)](
        A, W, c, starts, E, N, K,
        E_PAD=padded(E), BLOCK_M=tile.block_m, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, TMA=tma,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return c


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
    rows = torch.empty((T * TOP_K, D), dtype=x.dtype, device=x.device)
    gather_kernel[(T * TOP_K * triton.cdiv(D, BLOCK),)](x, to.order, rows, D, TOP_K=TOP_K, BLOCK=BLOCK)
    halves = grouped(rows, gate_up, to.starts, tile, tma)
    h = torch.empty((T * TOP_K, F), dtype=x.dtype, device=x.device)
    swiglu_kernel[(T * TOP_K * triton.cdiv(F, BLOCK),)](halves, h, F, BLOCK=BLOCK)
    answers = grouped(h, down, to.starts, tile, tma)
    y = torch.empty_like(x)
    combine_kernel[(T * triton.cdiv(D, BLOCK),)](
        answers, to.weights, to.place, y, D, TOP_K=TOP_K, BLOCK=BLOCK
    )
    return y
