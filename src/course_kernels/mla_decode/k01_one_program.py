"""MLA decode, kernel 1: one program for each sequence and block of heads; a tile is read once, as keys and as values.

Contract  problem.py
Idea      the loop of FlashAttention with heads as its rows: all 128 of them ask the same row of the cache. So a tile of
          it is the second operand of two products, as it lies for the values, and turned for the keys
Cost      a block of 64 heads reads its sequence's rows once, two blocks twice: the second finds them in L2, if both
          run at once. Its answer, 64 x 512 float32, fills half the registers of a multiprocessor
Limits    B * ceil(H / 64) programs, one to a multiprocessor: with few sequences most have nothing to do; and the
          longest keeps its one busy when all others are done. All warps multiply, then all weigh: never at once.
          147 KB of shared memory for 64 heads: cards that have 100 KB refuse the launch
Next      k02_split cuts the sequence, too; k03_wgmma multiplies and weighs at once
Source    DeepSeek-AI 2024, arXiv:2405.04434, section 2.1; Dao 2023, arXiv:2307.08691, algorithm 1
"""

from __future__ import annotations

from math import e, log2

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.mla_decode.arguments import MOST_HEADS, sizes_of
from course_kernels.mla_decode.problem import LATENT, PAGE, ROPE, SCALE
from course_kernels.problem import Workload

STEP = 32  # tokens of a step, half a page: two steps of 36 KB and the heads' 72 KB have room in shared memory
STAGES = 2  # one step is on its way while one is worked on
WARPS = 8  # two warpgroups, each with half of the columns of the answer
MOST_ROWS, LEAST_ROWS = (
    64,
    16,
)  # heads of a program: what a product of two warpgroups takes; of one on tensor cores

# --- on the device -----------------------------------------------------------


@triton.jit
def attend(
    Q, cache, table, b, H, block, first, last, scale,
    ROWS: tl.constexpr, STEP: tl.constexpr, PAGE: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr,
):  # fmt: skip
    """Let the tokens first to last of a sequence pass by: sums [ROWS, LATENT], maxima and weights [ROWS].

    `first` is a multiple of STEP, and PAGE another one: the tokens of a step lie in one page.
    """
    ROW: tl.constexpr = LATENT + ROPE
    head = block * ROWS + tl.arange(0, ROWS)
    latent, rope = tl.arange(0, LATENT), LATENT + tl.arange(0, ROPE)
    places = (b.to(tl.int64) * H + head)[:, None] * ROW
    q = tl.load(Q + places + latent[None, :], mask=(head < H)[:, None], other=0.0)  # [ROWS, LATENT]
    q_rope = tl.load(Q + places + rope[None, :], mask=(head < H)[:, None], other=0.0)
    m = tl.full([ROWS], -float("inf"), tl.float32)  # counts in powers of two
    l = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, LATENT], tl.float32)
    for start in tl.range(first, last, STEP):
        n = start + tl.arange(0, STEP)
        there = (n < last)[:, None]
        page = tl.load(table + start // PAGE).to(tl.int64)
        rows = cache + page * (PAGE * ROW) + (n % PAGE)[:, None] * ROW
        # Past the end nothing is read: a weight of zero times the NaN that may lie there is NaN.
        c = tl.load(rows + latent[None, :], mask=there, other=0.0)  # [STEP, LATENT]
        c_rope = tl.load(rows + rope[None, :], mask=there, other=0.0)
        s = tl.dot(q_rope, c_rope.T, tl.dot(q, c.T)) * scale  # [ROWS, STEP]
        s = tl.where((n < last)[None, :], s, -float("inf"))
        # A step has a token that is there: m_new is never -inf, and no exponent is NaN.
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - m_new[:, None])
        repair = tl.math.exp2(m - m_new)
        l = l * repair + tl.sum(p, 1)
        acc = tl.dot(p.to(c.dtype), c, acc * repair[:, None])
        m = m_new
    return acc, m, l


@triton.jit
def store_answers(O, b, H, block, acc, l):
    """Store the weighted means of a block of heads; zeros where no token was there."""
    ROWS: tl.constexpr = acc.shape[0]
    LATENT: tl.constexpr = acc.shape[1]
    head = block * ROWS + tl.arange(0, ROWS)
    places = (b.to(tl.int64) * H + head)[:, None] * LATENT + tl.arange(0, LATENT)[None, :]
    o = acc / tl.where(l == 0.0, 1.0, l)[:, None]
    tl.store(O + places, o.to(O.dtype.element_ty), mask=(head < H)[:, None])


@triton.jit
def one_program_kernel(
    Q, cache, table_ptr, lengths_ptr, O, H, MOST, scale,
    ROWS: tl.constexpr, STEP: tl.constexpr, PAGE: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr,
):  # fmt: skip
    """One program answers a block of heads of one sequence; the blocks of a sequence are neighbours."""
    block, b = tl.program_id(0), tl.program_id(1)
    # The host does not look at the lengths; whatever they hold, no program leaves its row of the table.
    last = tl.minimum(tl.load(lengths_ptr + b), MOST * PAGE)
    table = table_ptr + b.to(tl.int64) * MOST
    acc, _, l = attend(Q, cache, table, b, H, block, 0, last, scale, ROWS, STEP, PAGE, LATENT, ROPE)
    store_answers(O, b, H, block, acc, l)


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether the kernels of this folder take a workload."""
    return w.dtype in ("bfloat16", "float16") and w.H <= MOST_HEADS


def rows_of(H: int) -> int:
    """Heads of a program."""
    return min(MOST_ROWS, max(LEAST_ROWS, triton.next_power_of_2(H)))


def constants_of(H: int) -> dict[str, int]:
    """Return what the loop is compiled for."""
    return {
        "ROWS": rows_of(H),
        "STEP": STEP,
        "PAGE": PAGE,
        "LATENT": LATENT,
        "ROPE": ROPE,
        "num_warps": WARPS,
        "num_stages": STAGES,
    }


def scale_of() -> float:
    """Return what a product of two rows is multiplied by; exp2 takes the place of exp."""
    return SCALE * log2(e)


def mla_decode(
    q: torch.Tensor, cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's rows.

    Args:
        q: (B, H, 576) bfloat16 or float16, contiguous; B <= 8192, H <= 128.
        cache: (PAGES, 64, 576), the same type, contiguous.
        block_table: (B, MOST) int32, on the device: which pages a sequence has, in the order of its tokens.
        lengths: (B,) int32, on the device: the tokens that are there, 0 to MOST * 64. More count as so many.
    Returns:
        (B, H, 512), the same type: every row a weighted mean of the first 512 numbers of the cache's rows, or zeros
        where the length is 0.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, H, MOST = sizes_of(q, cache, block_table, lengths)
    o = torch.empty((B, H, LATENT), dtype=q.dtype, device=q.device)
    one_program_kernel[(triton.cdiv(H, rows_of(H)), B)](
        q, cache, block_table, lengths, o, H, MOST, scale_of(), **constants_of(H)
    )
    return o
