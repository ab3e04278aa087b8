"""A few rows times a matrix of 8-bit floats, kernel 2: every program gets the same share of the weights.

Contract  problem.py
Idea      the tiles of the weights in one long row, K within N: as many programs as fit on the card take equal pieces of
          it. Where a piece begins or ends within rows of the weights, the sums are left in memory, and the last program
          to finish with these rows adds the parts, in their order
Against   k01_one_program, where rows of the weights are a program's from end to end: too few, or just too many for the
          card
Cost      every weight is read once, and parts of ROWS * BLOCK_N numbers cross L2: at most two for each program
Limits    a launch is one kernel, but finds the tickets at zero: without tickets of your own that is a fill before it.
          Within a program the copies begin anew with other rows; its neighbours on the multiprocessor fill the gap
Next      half as many bytes: skinny_gemm_w4
Source    Osama et al. 2023, arXiv:2301.03598 (Stream-K); the ticket: CUDA samples, threadFenceReduction
"""

from __future__ import annotations

from functools import cache

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor
from course_kernels.skinny_gemm_fp8.arguments import sizes_of
from course_kernels.skinny_gemm_fp8.k01_one_program import TILES, Tile, multiply, rows_of, store

# --- on the device -----------------------------------------------------------


@triton.jit
def begin_of(program, each, more):
    """Return the first step of a program's share: the first `more` programs have one step more than `each`."""
    return program * each + tl.minimum(program, more)


@triton.jit
def owner_of(step, each, more):
    """Return the program whose share a step is in."""
    early = more * (each + 1)
    return tl.where(step < early, step // (each + 1), more + (step - early) // tl.maximum(each, 1))


@triton.jit
def merge(parts, tile, low, high, STEPS, each, more, BLOCK_N: tl.constexpr, ROWS: tl.constexpr):
    """Return the parts of a tile that programs low to high have left, added in this order: [BLOCK_N, ROWS]."""
    at = tl.arange(0, BLOCK_N)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    acc = tl.zeros([BLOCK_N, ROWS], tl.float32)
    for program in tl.range(low, high + 1):
        place = program * 2 + (tile != begin_of(program, each, more) // STEPS).to(tl.int32)
        # Others wrote these: .cg looks in L2, where all multiprocessors see the same.
        acc += tl.load(parts + place.to(tl.int64) * (BLOCK_N * ROWS) + at, cache_modifier=".cg")
    return acc


@triton.jit
def shares_kernel(
    X, W, scale_x_ptr, scale_w_ptr, Y, parts, tickets, M, N, K, each, more,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One program takes its share, which may begin and end within a tile's rows."""
    program = tl.program_id(0)
    STEPS = tl.cdiv(K, BLOCK_K)
    begin, end = begin_of(program, each, more), begin_of(program + 1, each, more)
    for tile in tl.range(begin // STEPS, tl.cdiv(end, STEPS)):
        first = tl.maximum(begin - tile * STEPS, 0)
        last = tl.minimum(end - tile * STEPS, STEPS)
        n = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = multiply(X, W, n, first, last, M, N, K, ROWS, BLOCK_K)
        if last - first == STEPS:
            store(Y, scale_x_ptr, scale_w_ptr, n, acc, M, N)
        else:
            # The first of its tiles, or the last: a share has no other that is not whole.
            place = program * 2 + (tile != begin // STEPS).to(tl.int32)
            at = tl.arange(0, BLOCK_N)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
            tl.store(parts + place.to(tl.int64) * (BLOCK_N * ROWS) + at, acc)
            low = owner_of(tile * STEPS, each, more)
            high = owner_of(tile * STEPS + STEPS - 1, each, more)
            # All threads have stored before one of them takes the ticket, which orders what lies before and after it.
            tl.debug_barrier()
            ticket = tl.atomic_add(tickets + tile, 1, sem="acq_rel")
            if ticket == high - low:
                total = merge(parts, tile, low, high, STEPS, each, more, BLOCK_N, ROWS)
                store(Y, scale_x_ptr, scale_w_ptr, n, total, M, N)
                tl.store(tickets + tile, 0)  # as the next launch wants it


# --- on the host -------------------------------------------------------------


@cache
def programs_for(device: torch.device, resident: int, steps: int) -> int:
    """Return as many as are on the card at once, but none without a step."""
    on_card = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
    return min(resident * on_card, steps)


def skinny_gemm_fp8(
    x: torch.Tensor,
    w: torch.Tensor,
    scale_x: torch.Tensor,
    scale_w: torch.Tensor,
    *,
    tickets: torch.Tensor | None = None,
    tile: Tile | None = None,
    programs: int | None = None,
) -> torch.Tensor:
    """Return a few rows times the transpose of a matrix of 8-bit floats.

    Args:
        x: (M, K) float8_e4m3fn, contiguous, M <= 128.
        w: (N, K) float8_e4m3fn, contiguous; N * K < 2**44.
        scale_x, scale_w: (M,) and (N,) float32.
        tickets: as many int32 as N has tiles (`tile.block_n` rows each), all zero, and zero again when the call is
            done: calls that come one after the other may share them, and then a call is one kernel.
        tile: how to cut the work; without it, what suits the rows of x.
        programs: how many share the work; without it, as many as are on the card at once.
    Returns:
        (M, N) bfloat16; sums over K in the tensor cores, rounded once. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; N * K out of range; or tickets of another shape, type or device.
    """
    M, N, K = sizes_of(x, w, scale_x, scale_w)
    rows = rows_of(M)
    tile = tile or TILES[rows]
    tiles = triton.cdiv(N, tile.block_n)
    steps = tiles * triton.cdiv(K, tile.block_k)
    if steps >= 2**30:
        raise ValueError(
            f"w: expected fewer than {2**30} tiles of {tile.block_n} x {tile.block_k}, got {steps}"
        )
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {"T": tiles}, dtypes=(torch.int32,), device=x.device)
    programs = min(programs or programs_for(x.device, tile.resident, steps), steps)
    y = torch.empty((M, N), dtype=torch.bfloat16, device=x.device)
    if tickets is None:
        tickets = torch.zeros(tiles, dtype=torch.int32, device=x.device)
    parts = torch.empty(programs * 2 * tile.block_n * rows, dtype=torch.float32, device=x.device)
    shares_kernel[(programs,)](
        x, w, scale_x, scale_w, y, parts, tickets, M, N, K, steps // programs, steps % programs,
        ROWS=rows, BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return y
