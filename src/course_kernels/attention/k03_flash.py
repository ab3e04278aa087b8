"""Attention, kernel 3: FlashAttention on tensor cores, in Triton.

Contract  problem.py
Idea      the loop of k02_teaching with tiles large enough for the tensor cores; the copy engine brings the next
          tiles of K and V while this one is worked on
Against   k02_teaching, which multiplies on the CUDA cores and waits for every tile
Cost      Q and O cross memory once; K and V once for every block of rows, mostly from L2
Limits    within a program softmax and multiply take turns; float32 takes three TF32 products for one, and at
          D = 128 it runs out of registers and spills
Next      k04_specialised gives the warps roles
Source    Dao 2023, arXiv:2307.08691, algorithm 1; Triton tutorial 06
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, log2, sqrt
from typing import Any

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course_kernels.attention.arguments import HEAD_SIZES, heads_of
from course_kernels.problem import Workload

# How tl.dot multiplies. Plain TF32 would keep 11 bits of a float32; three products of split numbers keep 21.
PRECISION = {torch.bfloat16: "tf32", torch.float16: "tf32", torch.float32: "tf32x3"}


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m: query rows of a program.
        block_n: keys of one step of the loop.
        warps: warps of a program.
        stages: tiles of K, and of V, in shared memory at once; the copies run that far ahead.
        tma: whether tiles come by the copy engine (TMA, Hopper and later) or by loads of the threads.
        registers: most a thread may use, so that several programs fit on a multiprocessor; None: no limit.
    """

    block_m: int
    block_n: int
    warps: int
    stages: int
    tma: bool
    registers: int | None = None


# By bytes of an element, then D. A program is one warpgroup of 64 rows, and three stages of 64 keys leave room for a
# second program on the multiprocessor (at D = 64 for a third): while one takes exponentials, the other multiplies.
# float32 must split its operands in registers, so its steps are shorter.
HOPPER = {
    (2, 64): Tile(64, 64, warps=4, stages=3, tma=True),
    (2, 128): Tile(64, 64, warps=4, stages=3, tma=True),
    (4, 64): Tile(64, 32, warps=4, stages=2, tma=True),
    (4, 128): Tile(64, 32, warps=4, stages=2, tma=True),
}

# Everything else, sized for the 99 KB of shared memory that the smallest of them has (sm_86, 89, 120) and for
# tensor cores that take their operands from registers.
GENERIC = {
    (2, 64): Tile(128, 64, warps=8, stages=2, tma=False),
    (2, 128): Tile(128, 32, warps=8, stages=2, tma=False),
    (4, 64): Tile(64, 16, warps=4, stages=2, tma=False),
    (4, 128): Tile(32, 32, warps=4, stages=2, tma=False),
}


# --- on the device -----------------------------------------------------------


# region kernel
@triton.jit
def _rows(x, head, start, N, D: tl.constexpr, ROWS: tl.constexpr, TMA: tl.constexpr):
    """Return rows start to start + ROWS of one head, zeros past its end: [ROWS, D]."""
    if TMA:  # x is a descriptor of three dimensions: it ends where the head ends, never in the next one
        rows = x.load([head, start, 0]).reshape(ROWS, D)
    else:
        row = start + tl.arange(0, ROWS)  # [ROWS]
        places = (head.to(tl.int64) * N + row)[:, None] * D + tl.arange(0, D)[None, :]  # [ROWS, D]
        rows = tl.load(x + places, mask=(row < N)[:, None], other=0.0)
    return rows


@triton.jit
def _weigh(s, m, l, row, start, scale, N, MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    """Return one step of online softmax: weights of this tile, and the factor that repairs what came before."""
    if MASKED:
        col = start + tl.arange(0, s.shape[1])  # [BLOCK_N]
        # Causal needs no test against N: keys past the end are seen by rows past the end only.
        seen = col[None, :] <= row[:, None] if CAUSAL else col[None, :] < N
        s = tl.where(seen, s, -float("inf"))
    # Every row sees key 0, which comes first: m_new is never -inf, and no exponent is NaN.
    m_new = tl.maximum(m, tl.max(s, 1) * scale)  # [BLOCK_M]
    p = tl.math.exp2(s * scale - m_new[:, None])  # [BLOCK_M, BLOCK_N]
    repair = tl.math.exp2(m - m_new)
    return p, m_new, l * repair + tl.sum(p, 1), repair


@triton.jit
def _attend(
    acc, m, l, q, K, V, head, row, scale, N, first, last,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr, PRECISION: tl.constexpr,
    TMA: tl.constexpr,
):  # fmt: skip
    """Let the keys first to last pass by."""
    D: tl.constexpr = q.shape[1]
    for start in tl.range(first, last, BLOCK_N):
        k = _rows(K, head, start, N, D, BLOCK_N, TMA)
        s = tl.dot(q, k.T, input_precision=PRECISION)  # [BLOCK_M, BLOCK_N]
        p, m, l, repair = _weigh(s, m, l, row, start, scale, N, MASKED, CAUSAL)
        v = _rows(V, head, start, N, D, BLOCK_N, TMA)
        acc = tl.dot(p.to(v.dtype), v, acc * repair[:, None], input_precision=PRECISION)  # [BLOCK_M, D]
    return acc, m, l


@triton.jit
def attention_kernel(
    Q, K, V, O, lse_ptr, N, scale, ln_2,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """One program answers BLOCK_M query rows of one head. Q, K, V, O: descriptors if TMA, else pointers."""
    head = tl.program_id(1)
    # Programs start in the order of their number. Causal: the longest rows first, so that short ones fill the
    # end. The programs of one head stand together, so that its K and V stay in L2.
    block = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    first_row = block * BLOCK_M
    row = first_row + tl.arange(0, BLOCK_M)  # [BLOCK_M]

    # Most tiles need no mask. Those that do come last: the diagonal, or the last tile where it is short.
    if CAUSAL:
        unmasked, last = first_row // BLOCK_N * BLOCK_N, tl.minimum(first_row + BLOCK_M, N)
    else:
        unmasked, last = N // BLOCK_N * BLOCK_N, N

    q = _rows(Q, head, first_row, N, D, BLOCK_M, TMA)
    if TMA and q.dtype.primitive_bitwidth == 16:
        # Times the identity: exact, and the product lies in registers as the tensor cores want an operand. Read
        # from shared memory, Q would be fetched again for every tile, beside K, and 64 keys are few to pay for it.
        identity = (tl.arange(0, D)[:, None] == tl.arange(0, D)[None, :]).to(q.dtype)  # [D, D]
        q = tl.dot(q, identity).to(q.dtype)
    m = tl.full([BLOCK_M], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    acc, m, l = _attend(
        acc, m, l, q, K, V, head, row, scale, N, 0, unmasked, False, CAUSAL, BLOCK_N, PRECISION, TMA
    )
    acc, m, l = _attend(
        acc, m, l, q, K, V, head, row, scale, N, unmasked, last, True, CAUSAL, BLOCK_N, PRECISION, TMA
    )

    o = (acc / l[:, None]).to(q.dtype)
    if TMA:  # rows past N are cut off, as they were read
        O.store([head, first_row, 0], o.reshape(1, BLOCK_M, D))
    else:
        places = (head.to(tl.int64) * N + row)[:, None] * D + tl.arange(0, D)[None, :]
        tl.store(O + places, o, mask=(row < N)[:, None])
    # m counts in powers of two; the log-sum-exp is a natural logarithm.
    lse = (m + tl.math.log2(l)) * ln_2  # [BLOCK_M]
    tl.store(lse_ptr + head.to(tl.int64) * N + row, lse, mask=row < N)


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16, float16 or float32, D = 64 or 128."""
    return w.dtype in ("bfloat16", "float16", "float32") and w.D in HEAD_SIZES


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention: the first of the two results of `attention_with_lse`, which says what it takes and refuses."""
    return attention_with_lse(q, k, v, causal=causal)[0]


def attention_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, tile: Tile | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention, and the log-sum-exp of every row of scores.

    Args:
        q, k, v: (B, H, N, D) bfloat16, float16 or float32, contiguous, D = 64 or 128, B * H <= 65535,
            N <= 1073741824, at addresses divisible by 16 (as torch allocates).
        causal: row m sees keys 0 to m only.
        tile: how to cut the work; without it, the tile for this card, type and D.
    Returns:
        (B, H, N, D) of the same type: every row a weighted mean of rows of v.
        (B, H, N) float32: the natural logarithm of the sum of exp(score) over the keys a row sees.
    Raises:
        TypeError, ValueError: see `heads_of`.
    """
    heads, N, D = heads_of(q, k, v, tuple(PRECISION), in_vectors=True)
    tile = tile or tile_for(q.device, q.element_size(), D)
    o = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)

    def rows_of(tensor: torch.Tensor, rows: int) -> torch.Tensor | TensorDescriptor:
        return TensorDescriptor.from_tensor(tensor.view(heads, N, D), [1, rows, D]) if tile.tma else tensor

    grid = (triton.cdiv(N, tile.block_m), heads)
    limits: dict[str, Any] = {"maxnreg": tile.registers} if tile.registers else {}
    attention_kernel[grid](
        rows_of(q, tile.block_m), rows_of(k, tile.block_n), rows_of(v, tile.block_n), rows_of(o, tile.block_m),
        lse, N, log2(e) / sqrt(D), log(2),
        D=D, CAUSAL=causal, BLOCK_M=tile.block_m, BLOCK_N=tile.block_n, PRECISION=PRECISION[q.dtype],
        TMA=tile.tma, num_warps=tile.warps, num_stages=tile.stages, **limits,
    )  # fmt: skip
    return o, lse


def tile_for(device: torch.device, element_bytes: int, D: int) -> Tile:
    """Return the tile for a card: its own table on Hopper, the generic one elsewhere and in the interpreter."""
    hopper = device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)
    return (HOPPER if hopper else GENERIC)[element_bytes, D]
