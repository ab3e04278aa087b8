"""LayerNorm, kernel 2: a row is split over many blocks.

Contract  problem.py
Idea      every block takes a part of a row and leaves the part's mean and sum of squared distances in memory. A second
          launch reads those of its row, puts them together, and writes a part each. The order of adding is fixed, so
          the same call gives the same bits
Against   k01_row_a_block, which has no more blocks than rows: with few long rows most multiprocessors are idle
Cost      reads x twice; the second time it comes from memory where x is larger than L2. 8 bytes for each part, written
          once and read by every part of the row. One launch more
Limits    with many short rows there is one part to a row: the second launch and the way through memory buy nothing
Next      a row that fits into all multiprocessors together, 16 MB of the published ones do, could stay there between
          its two passes, if all blocks waited for each other: x would be read once
Source    Chan, Golub & LeVeque 1983, doi:10.1080/00031305.1983.10483115
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, interpreted
from course_kernels.layer_norm.arguments import sizes_of
from course_kernels.layer_norm.problem import EPSILON
from course_kernels.layer_norm.statistics import merged, normalise, of_numbers

BLOCK = 4096  # numbers of a step: 16 for each thread, four vectors of 16 bytes under way at a time
WARPS = 8
PROGRAMS = 8  # for each multiprocessor: as many as fit at once, so that a slow one is not waited for
STEPS = 4  # of a part, at least: a shorter one is over before its launch has paid
MOST_PARTS = 1024  # of a row; every program of the second launch reads them all
MAX_PROGRAMS = 2**31 - 1


# --- on the device -----------------------------------------------------------


@triton.jit
def part_kernel(x_ptr, parts_ptr, N, PARTS, LENGTH, BLOCK: tl.constexpr):
    """Leave mean and sum of squared distances of one part of a row."""
    program = tl.program_id(0)
    row, part = program // PARTS, program % PARTS
    first = part * LENGTH
    mean, squares = of_numbers(x_ptr + row.to(tl.int64) * N + first, tl.minimum(LENGTH, N - first), BLOCK)
    place = parts_ptr + program.to(tl.int64) * 2
    tl.store(place, mean)
    tl.store(place + 1, squares)


@triton.jit
def write_kernel(
    x_ptr, g_ptr, b_ptr, y_ptr, parts_ptr, N, PARTS, LENGTH, epsilon, BLOCK: tl.constexpr, ROOM: tl.constexpr
):
    """Put the parts of a row together, and write one of them."""
    program = tl.program_id(0)
    row, part = program // PARTS, program % PARTS
    p = tl.arange(0, ROOM)
    place = parts_ptr + (row.to(tl.int64) * PARTS + p) * 2
    mean = tl.load(place, mask=p < PARTS, other=0.0)
    squares = tl.load(place + 1, mask=p < PARTS, other=0.0)
    count = tl.where(p < PARTS, tl.minimum(LENGTH, N - p * LENGTH), 0).to(tl.float32)
    mean, squares = merged(count, mean, squares, tl.cast(N, tl.float32))
    scale = 1.0 / tl.sqrt(squares / N + epsilon)

    first = part * LENGTH
    begin = row.to(tl.int64) * N + first
    left = tl.minimum(LENGTH, N - first)
    normalise(x_ptr + begin, y_ptr + begin, g_ptr + first, b_ptr + first, left, mean, scale, BLOCK)


# --- on the host -------------------------------------------------------------


def parts_of(M: int, N: int, multiprocessors: int) -> tuple[int, int]:
    """Return into how many parts a row is split, and how many numbers a part has, the last one fewer.

    Args:
        M, N: rows, and numbers of a row.
        multiprocessors: of the card.
    """
    wanted = min(-(-PROGRAMS * multiprocessors // M), N // (STEPS * BLOCK), MOST_PARTS)
    length = triton.cdiv(triton.cdiv(N, max(1, wanted)), BLOCK) * BLOCK  # whole steps for all but the last
    return triton.cdiv(N, length), length


def layer_norm(
    x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, *, eps: float = EPSILON, parts: int | None = None
) -> torch.Tensor:
    """Return the rows of x with mean 0 and variance 1, weighed by g and shifted by b.

    Args:
        x: (M, N) float32, contiguous, M and N <= 2**30, and M times the parts of a row < 2**31.
        g, b: (N,) float32, contiguous.
        eps: added to the variance.
        parts: of a row, at most; by default as many as fill the card.
    Returns:
        (M, N) float32.
    Raises:
        TypeError, ValueError: see `sizes_of`; too many parts.
    """
    M, N = sizes_of(x, g, b)
    if parts is None:
        count, length = parts_of(M, N, multiprocessors_of(x))
    else:
        if not 1 <= parts <= MOST_PARTS:
            raise ValueError(f"parts: expected 1 to {MOST_PARTS}, got {parts}")
        length = triton.cdiv(N, parts)
        count = triton.cdiv(N, length)
    check_size("x", "M * parts", M * count, MAX_PROGRAMS)
    y = torch.empty_like(x)
    kept = torch.empty(M, count, 2, dtype=torch.float32, device=x.device)
    grid = (M * count,)
    part_kernel[grid](x, kept, N, count, length, BLOCK=BLOCK, num_warps=WARPS)
    room = triton.next_power_of_2(count)
    write_kernel[grid](x, g, b, y, kept, N, count, length, eps, BLOCK=BLOCK, ROOM=room, num_warps=WARPS)
    return y


def multiprocessors_of(x: torch.Tensor) -> int:
    """Return how many multiprocessors the tensor's card has; one where Triton interprets."""
    if interpreted():
        return 1
    return torch.cuda.get_device_properties(x.device).multi_processor_count
