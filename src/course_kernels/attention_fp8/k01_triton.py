"""Attention of 8-bit numbers, kernel 1: FlashAttention with both products on the 8-bit tensor cores, in Triton.

Contract  problem.py
Idea      the loop of FlashAttention; what changes is that the weights are rounded to 8 bits before they meet V, and
          that each product is scaled by its block's scales when it leaves the tensor cores
Cost      Q and O cross memory once; K and V once for every block of rows, mostly from L2, a byte a number
Limits    within a program softmax and multiply take turns, and softmax is as long as it was in bfloat16; each step's
          product with V leaves the tensor cores to be scaled and added in float32, since a block of V has a scale of
          its own, and since Hopper's sums of 8-bit products keep some 14 bits. V must come transposed
Next      roles for warps, as attention/k04_specialised has them
Source    Shah et al. 2024, arXiv:2407.08608, section 3.3; Dao 2023, arXiv:2307.08691, algorithm 1
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2, sqrt

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from course_kernels.attention_fp8.arguments import sizes_of
from course_kernels.attention_fp8.problem import BLOCK
from course_kernels.problem import Workload

SHIFT = 8  # the largest weight is 2**8; the largest number of the type is 448


@dataclass(frozen=True)
class Tile:
    """Tile shape; a step of the loop takes BLOCK keys, so that a step has one scale of K and one of V.

    Attributes:
        block_m: query rows of a program.
        warps: warps of a program.
        stages: tiles of K, and of V, in shared memory at once; the copies run that far ahead.
        tma: whether tiles come by the copy engine (TMA, Hopper) or by loads of the threads.
    """

    block_m: int
    warps: int
    stages: int
    tma: bool


# A warpgroup has 64 rows; a tile of K or V is 8 KB, so shared memory limits nothing, and registers do.
HOPPER = Tile(64, warps=4, stages=3, tma=True)

# Everything else, and lengths the copy engine does not take.
GENERIC = Tile(64, warps=4, stages=2, tma=False)


# --- on the device -----------------------------------------------------------


@triton.jit
def _tile(X, head, row, col, ROWS_OF_X, COLS_OF_X, ROWS: tl.constexpr, COLS: tl.constexpr, TMA: tl.constexpr):
    """Return a tile of one head from (row, col) on, zeros past its edges: [ROWS, COLS]."""
    if TMA:  # X is a descriptor of three dimensions: it ends where the head ends, never in the next one
        tile = X.load([head, row, col]).reshape(ROWS, COLS)
    else:
        r, c = row + tl.arange(0, ROWS)[:, None], col + tl.arange(0, COLS)[None, :]
        places = (head.to(tl.int64) * ROWS_OF_X + r) * COLS_OF_X + c  # [ROWS, COLS]
        tile = tl.load(X + places, mask=(r < ROWS_OF_X) & (c < COLS_OF_X), other=0.0)
    return tile


# region step
@triton.jit
def _attend(
    acc, m, l, q, K, VT, scale_k_ptr, scale_v_ptr, head, row, scale, N, first, last,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr, SHIFT: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Let the keys first to last pass by."""
    D: tl.constexpr = q.shape[1]
    blocks = head.to(tl.int64) * tl.cdiv(N, BLOCK)  # scales of the heads before this one
    for start in tl.range(first, last, BLOCK):
        k = _tile(K, head, start, 0, N, D, BLOCK, D, TMA)
        by = scale * tl.load(scale_k_ptr + blocks + start // BLOCK)  # [BLOCK_M]
        s = tl.dot(q, k.T) * by[:, None]  # [BLOCK_M, BLOCK]
        if MASKED:
            col = start + tl.arange(0, BLOCK)
            # Causal needs no test against N: keys past the end are seen by rows past the end only.
            seen = col[None, :] <= row[:, None] if CAUSAL else col[None, :] < N
            s = tl.where(seen, s, -float("inf"))
        # Every row sees key 0, which comes first: m_new is never -inf, and no exponent is NaN. It is a whole number, so
        # that what repairs is a power of two: a weight is then rounded alike, whatever the largest was when it came by.
        m_new = tl.maximum(m, tl.ceil(tl.max(s, 1)))  # [BLOCK_M]
        # Up to 2**SHIFT in place of 1: e4m3 has many numbers there, and few below 2**-6. l divides it out again.
        p = tl.math.exp2(s - (m_new - SHIFT)[:, None])  # [BLOCK_M, BLOCK]
        repair = tl.math.exp2(m - m_new)
        l = l * repair + tl.sum(p, 1)
        v_t = _tile(VT, head, 0, start, D, N, D, BLOCK, TMA)  # [D, BLOCK]
        step = tl.dot(p.to(v_t.dtype), v_t.T)  # [BLOCK_M, D]
        acc = acc * repair[:, None] + step * tl.load(scale_v_ptr + blocks + start // BLOCK)
        m = m_new
    return acc, m, l


# endregion


@triton.jit
def attention_fp8_kernel(
    Q, K, VT, O, scale_q_ptr, scale_k_ptr, scale_v_ptr, N, scale,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK: tl.constexpr,
    SHIFT: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """One program answers BLOCK_M query rows of one head. Q, K, VT, O: descriptors if TMA, else pointers."""
    head = tl.program_id(1)
    # Programs start in the order of their number. Causal: the longest rows first, so that short ones fill the end.
    block = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    first_row = block * BLOCK_M
    row = first_row + tl.arange(0, BLOCK_M)  # [BLOCK_M]

    # Most tiles need no mask. Those that do come last: the diagonal, or the last tile where it is short.
    if CAUSAL:
        unmasked, last = first_row // BLOCK * BLOCK, tl.minimum(first_row + BLOCK_M, N)
    else:
        unmasked, last = N // BLOCK * BLOCK, N

    q = _tile(Q, head, first_row, 0, N, D, BLOCK_M, D, TMA)
    of_row = head.to(tl.int64) * tl.cdiv(N, BLOCK) + row // BLOCK
    scale = scale * tl.load(scale_q_ptr + of_row, mask=row < N, other=0.0)  # [BLOCK_M]
    m = tl.full([BLOCK_M], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    acc, m, l = _attend(
        acc, m, l, q, K, VT, scale_k_ptr, scale_v_ptr, head, row, scale, N, 0, unmasked,
        False, CAUSAL, BLOCK, SHIFT, TMA,
    )  # fmt: skip
    acc, m, l = _attend(
        acc, m, l, q, K, VT, scale_k_ptr, scale_v_ptr, head, row, scale, N, unmasked, last,
        True, CAUSAL, BLOCK, SHIFT, TMA,
    )  # fmt: skip

    o = (acc / l[:, None]).to(tl.bfloat16)
    if TMA:  # rows past N are cut off, as they were read
        O.store([head, first_row, 0], o.reshape(1, BLOCK_M, D))
    else:
        places = (head.to(tl.int64) * N + row)[:, None] * D + tl.arange(0, D)[None, :]
        tl.store(O + places, o, mask=(row < N)[:, None])


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: O in bfloat16, D = 64 or 128."""
    return w.dtype == "bfloat16" and w.D in (64, 128)


def attention_fp8(
    q: torch.Tensor,
    k: torch.Tensor,
    v_t: torch.Tensor,
    scale_q: torch.Tensor,
    scale_k: torch.Tensor,
    scale_v: torch.Tensor,
    *,
    causal: bool = False,
    tile: Tile | None = None,
) -> torch.Tensor:
    """Attention of what 8-bit numbers and their scales stand for.

    Args:
        q, k: (B, H, N, D) float8_e4m3fn, contiguous, D = 64 or 128, B * H <= 65535, N <= 1073741824.
        v_t: (B, H, D, N) float8_e4m3fn, contiguous: V transposed.
        scale_q, scale_k, scale_v: (B, H, ceil(N / 64)) float32, contiguous, one for each 64 rows.
        causal: row m sees keys 0 to m only.
        tile: how to cut the work; without it, what suits the card and the length.
    Returns:
        (B, H, N, D) bfloat16. Weights are rounded to 8 bits before they meet V; sums over keys are in float32.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    B, H, N, D = sizes_of(q, k, v_t, scale_q, scale_k, scale_v)
    heads = B * H
    o = torch.empty((B, H, N, D), dtype=torch.bfloat16, device=q.device)
    tile = tile or (HOPPER if by_copy_engine(q, k, v_t) else GENERIC)

    def tiles_of(tensor: torch.Tensor, rows: int, cols: int) -> torch.Tensor | TensorDescriptor:
        if not tile.tma:
            return tensor
        return TensorDescriptor.from_tensor(tensor.view(heads, *tensor.shape[2:]), [1, rows, cols])

    grid = (triton.cdiv(N, tile.block_m), heads)
    attention_fp8_kernel[grid](
        tiles_of(q, tile.block_m, D), tiles_of(k, BLOCK, D), tiles_of(v_t, D, BLOCK), tiles_of(o, tile.block_m, D),
        scale_q, scale_k, scale_v, N, log2(e) / sqrt(D),
        D=D, CAUSAL=causal, BLOCK_M=tile.block_m, BLOCK=BLOCK, SHIFT=SHIFT,
        TMA=tile.tma, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return o


def by_copy_engine(*tensors: torch.Tensor) -> bool:
    """Return whether tiles can come and go by TMA: a Hopper, and every row at a multiple of 16 bytes."""
    aligned = all(t.data_ptr() % 16 == 0 and t.shape[-1] * t.element_size() % 16 == 0 for t in tensors)
    device = tensors[0].device
    return aligned and device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)
