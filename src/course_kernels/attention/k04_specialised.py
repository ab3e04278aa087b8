"""Attention, kernel 4: FlashAttention-3 on Hopper, warps with roles, in Triton's Gluon.

Contract  problem.py
Idea      one warp feeds a ring of tiles of K and V; two warpgroups of 64 query rows multiply and take
          exponentials, each while its own last product of weights and values still runs
Against   k03_flash, where softmax and multiply take turns within a program
Cost      as k03_flash; half as many bytes from L2 or fewer, since a program has 128 query rows or more, not 64
Limits    Hopper only, bfloat16 and float16; the barriers are ours to get right: a wrong phase hangs the card
Source    Shah et al. 2024, arXiv:2407.08608, section 3
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, log2, sqrt

# mypy: allow-untyped-defs
import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from course_kernels.attention.arguments import HEAD_SIZES, heads_of
from course_kernels.problem import Workload

DTYPES = (torch.bfloat16, torch.float16)
GL_TYPE = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}

ROWS = gl.constexpr(64)  # query rows of a warpgroup: what one warpgroup instruction multiplies
WARPS = gl.constexpr(4)  # warps of a warpgroup
PRODUCER_REGISTERS = gl.constexpr(24)  # the least that can be asked for; it computes addresses only


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        consumers: warpgroups that compute, of 64 query rows each.
        block_n: keys of one step of the loop.
        stages: tiles of K, and of V, in shared memory at once.
        take_turns: whether the consumers hand the tensor cores to each other, so that one multiplies while the
            other takes exponentials; else they meet as it happens.
        registers: of a thread of a consumer.
    """

    consumers: int
    block_n: int
    stages: int
    take_turns: bool
    registers: int


# By D. Registers: a multiprocessor has 65536; the producer keeps 24 a thread, and two consumers take 240 each or three
# 160. At D = 128 a step multiplies twice as much for the same softmax, so two consumers meet as it happens; at D = 64
# three share the softmax and take turns.
TILES = {
    64: Tile(consumers=3, block_n=64, stages=4, take_turns=True, registers=160),
    128: Tile(consumers=2, block_n=128, stages=2, take_turns=False, registers=240),
}


# --- on the device -----------------------------------------------------------


# region kernel
@gluon.jit
def _fetch(X, head, start, full, buffer):
    """Ask the copy engine for a tile of X, zeros past the end of the head; `full` turns when it is there."""
    mbarrier.expect(full, X.block_type.nbytes)
    place = buffer._reinterpret(X.dtype, X.block_shape, X.layout)  # the descriptor counts heads, too
    tma.async_copy_global_to_shared(X, [head, start, 0], full, place)


@gluon.jit
def _produce(shared, CONSUMERS: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr):
    """Keep the ring full: K of a tile, then V of the tile before, in the order in which they are used."""
    (
        Q, K, V, q_tiles, k_ring, v_ring, q_full, k_full, v_full, k_empty, v_empty, head, first_row, tiles,
    ) = shared  # fmt: skip
    for w in gl.static_range(CONSUMERS):
        _fetch(Q, head, first_row + w * ROWS, q_full.index(w), q_tiles.index(w))
    for j in range(tiles + 1):
        # A fresh barrier counts as having turned once already: the first pass over the ring does not wait.
        if j < tiles:
            stage = j % STAGES
            mbarrier.wait(k_empty.index(stage), (j // STAGES & 1) ^ 1)
            _fetch(K, head, j * BLOCK_N, k_full.index(stage), k_ring.index(stage))
        if j > 0:
            i = j - 1
            stage_v = i % STAGES
            mbarrier.wait(v_empty.index(stage_v), (i // STAGES & 1) ^ 1)
            _fetch(V, head, i * BLOCK_N, v_full.index(stage_v), v_ring.index(stage_v))


@gluon.jit
def _mask(s, start, row, N, CAUSAL: gl.constexpr, LAYOUT: gl.constexpr):
    """Minus infinity where a row does not see a key."""
    col = start + gl.arange(0, s.shape[1], gl.SliceLayout(0, LAYOUT))
    # Causal needs no test against N: keys past the end are seen by rows past the end only.
    seen = col[None, :] <= row[:, None] if CAUSAL else col[None, :] < N
    return gl.where(seen, s, -float("inf"))


@gluon.jit
def _repaired(acc, repair, O_LAYOUT: gl.constexpr):
    """Return what came before, in the measure of the new maximum."""
    return acc * gl.convert_layout(repair, gl.SliceLayout(1, O_LAYOUT))[:, None]


@gluon.jit
def _operand(p, dtype: gl.constexpr, O_LAYOUT: gl.constexpr):
    """Weights as the left operand of the next product; they stay in the registers where they are."""
    return gl.convert_layout(p.to(dtype), gl.DotOperandLayout(0, O_LAYOUT, 2))


@gluon.jit
def _steps(
    acc, m, l, weights, repair, q, k_ring, v_ring, q_full, k_full, v_full, k_empty, v_empty, turn,
    row, N, scale, first, last,
    MASKED: gl.constexpr, CAUSAL: gl.constexpr, W: gl.constexpr, CONSUMERS: gl.constexpr,
    BLOCK_N: gl.constexpr, STAGES: gl.constexpr, TAKE_TURNS: gl.constexpr,
    S_LAYOUT: gl.constexpr, O_LAYOUT: gl.constexpr,
):  # fmt: skip
    """Tiles first to last: scores of tile j, and the product of the weights and the values of tile j - 1."""
    for j in range(first, last):
        stage = j % STAGES
        before = (j - 1) % STAGES
        mbarrier.wait(k_full.index(stage), j // STAGES & 1)
        if TAKE_TURNS:
            mbarrier.wait(turn.index(W), (j - 1) & 1)
        s = warpgroup_mma(
            q, k_ring.index(stage).permute((1, 0)), gl.zeros([ROWS, BLOCK_N], gl.float32, S_LAYOUT),
            use_acc=False, is_async=True,
        )  # fmt: skip
        # In the shadow of that product: what came before is repaired, and the weights become an operand.
        acc = _repaired(acc, repair, O_LAYOUT)
        p = _operand(weights, q.dtype, O_LAYOUT)
        mbarrier.wait(v_full.index(before), (j - 1) // STAGES & 1)
        acc = warpgroup_mma(p, v_ring.index(before), acc, is_async=True)
        if TAKE_TURNS:
            mbarrier.arrive(turn.index((W + 1) % CONSUMERS), count=1)
        # Products end in the order in which they began: at most one left means that the scores are there.
        s = warpgroup_mma_wait(1, deps=[s])
        mbarrier.arrive(k_empty.index(stage), count=1)

        # Softmax of tile j; meanwhile the tensor cores work on acc.
        if MASKED:
            s = _mask(s, j * BLOCK_N, row, N, CAUSAL, S_LAYOUT)
        m_new = gl.maximum(m, gl.max(s, 1) * scale)
        weights = gl.exp2(s * scale - m_new[:, None])
        repair = gl.exp2(m - m_new)
        l = l * repair + gl.sum(weights, 1)
        m = m_new

        # The assembler likes to wait early, before the softmax, and all overlap is lost. It moves nothing across a
        # branch, and this wait is one: long over, it costs a look. The weights pass through the next one, too, for
        # the compiler before it.
        mbarrier.wait(q_full.index(W), 0)
        acc, weights, l = warpgroup_mma_wait(0, deps=[acc, weights, l])
        mbarrier.arrive(v_empty.index(before), count=1)
    return acc, m, l, weights, repair


@gluon.jit
def _consume(
    shared, W: gl.constexpr, CAUSAL: gl.constexpr, CONSUMERS: gl.constexpr, D: gl.constexpr, BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr, TAKE_TURNS: gl.constexpr,
):  # fmt: skip
    """Answer the 64 rows of consumer W."""
    (
        O, lse_ptr, q_tiles, k_ring, v_ring, q_full, k_full, v_full, k_empty, v_empty, turn,
        N, scale, ln_2, head, first_row, tiles, unmasked,
    ) = shared  # fmt: skip
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, D, 16])
    first_row = first_row + W * ROWS
    row = first_row + gl.arange(0, ROWS, gl.SliceLayout(1, S_LAYOUT))
    q = q_tiles.index(W)
    if TAKE_TURNS and W == CONSUMERS - 1:  # the first turn is the first consumer's
        mbarrier.arrive(turn.index(0), count=1)

    # Tile 0 has no values before it to multiply. The mask costs nothing here: it is met once.
    mbarrier.wait(q_full.index(W), 0)
    mbarrier.wait(k_full.index(0), 0)
    s = warpgroup_mma(
        q, k_ring.index(0).permute((1, 0)), gl.zeros([ROWS, BLOCK_N], gl.float32, S_LAYOUT), use_acc=False
    )
    mbarrier.arrive(k_empty.index(0), count=1)
    s = _mask(s, 0, row, N, CAUSAL, S_LAYOUT)
    # Every row sees key 0: m is never -inf, and no exponent is NaN.
    m = gl.max(s, 1) * scale
    weights = gl.exp2(s * scale - m[:, None])
    l = gl.sum(weights, 1)
    acc = gl.zeros([ROWS, D], gl.float32, O_LAYOUT)
    repair = gl.full([ROWS], 1.0, gl.float32, gl.SliceLayout(1, S_LAYOUT))

    acc, m, l, weights, repair = _steps(
        acc, m, l, weights, repair, q, k_ring, v_ring, q_full, k_full, v_full, k_empty, v_empty, turn,
        row, N, scale, 1, unmasked,
        False, CAUSAL, W, CONSUMERS, BLOCK_N, STAGES, TAKE_TURNS, S_LAYOUT, O_LAYOUT,
    )  # fmt: skip
    acc, m, l, weights, repair = _steps(
        acc, m, l, weights, repair, q, k_ring, v_ring, q_full, k_full, v_full, k_empty, v_empty, turn,
        row, N, scale, gl.maximum(unmasked, 1), tiles,
        True, CAUSAL, W, CONSUMERS, BLOCK_N, STAGES, TAKE_TURNS, S_LAYOUT, O_LAYOUT,
    )  # fmt: skip

    last = (tiles - 1) % STAGES
    mbarrier.wait(v_full.index(last), (tiles - 1) // STAGES & 1)
    acc = warpgroup_mma(
        _operand(weights, q.dtype, O_LAYOUT), v_ring.index(last), _repaired(acc, repair, O_LAYOUT)
    )

    # q has been read for the last time: its place takes the rows of the answer.
    o = acc / gl.convert_layout(l, gl.SliceLayout(1, O_LAYOUT))[:, None]
    q.store(o.to(q.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(O, [head, first_row, 0], q._reinterpret(O.dtype, O.block_shape, O.layout))
    # m counts in powers of two; the log-sum-exp is a natural logarithm.
    gl.store(lse_ptr + head.to(gl.int64) * N + row, (m + gl.log2(l)) * ln_2, mask=row < N)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["N"])  # one kernel for all lengths; nothing in it would gain from knowing more
def attention_kernel(
    Q, K, V, O, lse_ptr, N, scale, ln_2,
    D: gl.constexpr, CAUSAL: gl.constexpr, CONSUMERS: gl.constexpr, BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr, TAKE_TURNS: gl.constexpr, REGISTERS: gl.constexpr,
):  # fmt: skip
    """One program answers CONSUMERS * 64 query rows of one head. Q, K, V, O: descriptors."""
    BLOCK_M: gl.constexpr = CONSUMERS * ROWS
    head = gl.program_id(1)
    # Causal: the longest rows first, so that short ones fill the end.
    block = gl.num_programs(0) - 1 - gl.program_id(0) if CAUSAL else gl.program_id(0)
    first_row = block * BLOCK_M
    # Most tiles need no mask. Those that do come last: the diagonal, or the last tile where it is short.
    if CAUSAL:
        unmasked, end = first_row // BLOCK_N, gl.minimum(first_row + BLOCK_M, N)
    else:
        unmasked, end = N // BLOCK_N, N
    tiles = gl.cdiv(end, BLOCK_N)

    LAYOUT: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_N, D], Q.dtype)
    q_tiles = gl.allocate_shared_memory(Q.dtype, [CONSUMERS, ROWS, D], LAYOUT)
    k_ring = gl.allocate_shared_memory(Q.dtype, [STAGES, BLOCK_N, D], LAYOUT)
    v_ring = gl.allocate_shared_memory(Q.dtype, [STAGES, BLOCK_N, D], LAYOUT)
    # A barrier turns when all whom it counts have arrived: for `full` the copy engine, for `empty` every consumer.
    q_full = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    turn = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=CONSUMERS)
        mbarrier.init(v_empty.index(i), count=CONSUMERS)
    for i in gl.static_range(CONSUMERS):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(turn.index(i), count=1)
    fence_async_shared()  # the copy engine must see the barriers, too

    # Constants stay out of these tuples: an assignment would make variables of them.
    produce = (
        Q, K, V, q_tiles, k_ring, v_ring, q_full, k_full, v_full, k_empty, v_empty, head, first_row, tiles,
    )  # fmt: skip
    consume = (
        O, lse_ptr, q_tiles, k_ring, v_ring, q_full, k_full, v_full, k_empty, v_empty, turn,
        N, scale, ln_2, head, first_row, tiles, unmasked,
    )  # fmt: skip
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (consume, 0, CAUSAL, CONSUMERS, D, BLOCK_N, STAGES, TAKE_TURNS)),
                (_consume, (consume, 1, CAUSAL, CONSUMERS, D, BLOCK_N, STAGES, TAKE_TURNS)),
                (_produce, (produce, CONSUMERS, BLOCK_N, STAGES)),
            ],
            [WARPS, 1],
            [REGISTERS, PRODUCER_REGISTERS],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (consume, 0, CAUSAL, CONSUMERS, D, BLOCK_N, STAGES, TAKE_TURNS)),
                (_consume, (consume, 1, CAUSAL, CONSUMERS, D, BLOCK_N, STAGES, TAKE_TURNS)),
                (_consume, (consume, 2, CAUSAL, CONSUMERS, D, BLOCK_N, STAGES, TAKE_TURNS)),
                (_produce, (produce, CONSUMERS, BLOCK_N, STAGES)),
            ],
            [WARPS, WARPS, 1],
            [REGISTERS, REGISTERS, PRODUCER_REGISTERS],
        )


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16 or float16, D = 64 or 128."""
    return w.dtype in ("bfloat16", "float16") and w.D in HEAD_SIZES


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Attention: the first of the two results of `attention_with_lse`, which says what it takes and refuses."""
    return attention_with_lse(q, k, v, causal=causal)[0]


def attention_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, tile: Tile | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention, and the log-sum-exp of every row of scores.

    Args:
        q, k, v: (B, H, N, D) bfloat16 or float16, contiguous, D = 64 or 128, B * H <= 65535, N <= 1073741824, at
            addresses divisible by 16 (as torch allocates).
        causal: row m sees keys 0 to m only.
        tile: how to cut the work; without it, the tile for this D.
    Returns:
        (B, H, N, D) of the same type: every row a weighted mean of rows of v.
        (B, H, N) float32: the natural logarithm of the sum of exp(score) over the keys a row sees.
    Raises:
        TypeError, ValueError: see `heads_of`.
        RuntimeError: a GPU that is no Hopper.
    """
    heads, N, D = heads_of(q, k, v, DTYPES, in_vectors=True)
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device) != (9, 0):
        raise RuntimeError(f"q: expected a Hopper GPU (compute capability 9.0), got {q.device}")
    tile = tile or TILES[D]
    o = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)

    def rows_of(tensor: torch.Tensor, rows: int) -> TensorDescriptor:
        block = [1, rows, D]
        layout = gl.NVMMASharedLayout.get_default_for(block, GL_TYPE[tensor.dtype])
        return TensorDescriptor.from_tensor(tensor.view(heads, N, D), block, layout)

    rows = ROWS.value
    attention_kernel[triton.cdiv(N, tile.consumers * rows), heads](
        rows_of(q, rows), rows_of(k, tile.block_n), rows_of(v, tile.block_n), rows_of(o, rows),
        lse, N, log2(e) / sqrt(D), log(2),
        D=D, CAUSAL=causal, CONSUMERS=tile.consumers, BLOCK_N=tile.block_n, STAGES=tile.stages,
        TAKE_TURNS=tile.take_turns, REGISTERS=tile.registers, num_warps=WARPS.value,
    )  # fmt: skip
    return o, lse
