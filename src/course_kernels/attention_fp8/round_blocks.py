"""Rows of 16-bit numbers as 8-bit floats with a scale for each 64 of them, and V turned on the way.

Contract  rounded_to_fp8 in problem.py: the same scales, and the same numbers but where a quotient lies between two
Idea      a program has 64 rows of one head on the chip: it finds their largest, divides, rounds, and writes them as
          they lay, or transposed: a tile is turned while it is on the chip, so that turning V costs no trip to memory
Cost      reads 2 bytes for each number and writes 1
Limits    a launch for each of Q, K and V; transposed rows of 64 bytes fill half of a line of 128
Next      what makes Q, K and V, a matrix multiply, has them on the chip already and can do this as they leave
Source    Shah et al. 2024, arXiv:2407.08608, section 3.3
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, check_tensor
from course_kernels.attention_fp8.arguments import HEAD_SIZES, MAX_HEADS, MAX_N, refuse_older_cards
from course_kernels.attention_fp8.problem import BLOCK, LARGEST

WARPS = 4  # 64 numbers for each thread, at D = 128


@triton.jit
def round_blocks_kernel(
    X, Y, scale_ptr, N, D: tl.constexpr, BLOCK: tl.constexpr, LARGEST: tl.constexpr, TURNED: tl.constexpr
):
    """One program rounds BLOCK rows of one head."""
    block, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, col = block * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    there = (row < N)[:, None]
    x = tl.load(X + (head * N + row)[:, None] * D + col[None, :], mask=there, other=0.0).to(tl.float32)
    # A maximum that skips NaN would make it a finite number; a sum does not, and adds zero else.
    nan = tl.sum(tl.sum(tl.where(x == x, 0.0, x), 1), 0)
    scale = tl.max(tl.max(tl.abs(x), 1), 0) / LARGEST + nan
    scale = tl.where(scale == 0.0, 1.0, scale)
    y = x / scale
    # Dividing rounds: the largest can come out a hair above 448. NaN stays NaN.
    y = tl.where(y > LARGEST, LARGEST, tl.where(y < -LARGEST, -LARGEST, y)).to(tl.float8e4nv)  # [BLOCK, D]
    if TURNED:
        places = (head * D + col)[:, None] * N + row[None, :]  # [D, BLOCK]
        tl.store(Y + places, y.T, mask=(row < N)[None, :])
    else:
        tl.store(Y + (head * N + row)[:, None] * D + col[None, :], y, mask=there)
    tl.store(scale_ptr + head * tl.num_programs(0) + block, scale)


def round_blocks(x: torch.Tensor, *, turned: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows as 8-bit floats, and a scale for each 64 of them.

    Args:
        x: (B, H, N, D) bfloat16, float16 or float32, contiguous, D = 64 or 128, B * H <= 65535, N <= 2**30.
        turned: whether to return them transposed.
    Returns:
        (B, H, N, D) float8_e4m3fn, or (B, H, D, N) if turned, the largest of a block 448; (B, H, ceil(N / 64)) float32,
        1 where a block is all zeros. A block with NaN or an infinity in it has a scale of NaN or infinity.
    Raises:
        TypeError: another type.
        ValueError: another shape, not contiguous, too long, not on the current GPU, or one without 8-bit numbers.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "BHND", sizes, dtypes=(torch.bfloat16, torch.float16, torch.float32))
    B, H, N, D = (sizes[letter] for letter in "BHND")
    if D not in HEAD_SIZES:
        raise ValueError(f"x: expected D = 64 or 128, got D={D}")
    check_size("x", "B * H", B * H, MAX_HEADS)
    check_size("x", "N", N, MAX_N)
    refuse_older_cards("x", x.device)
    blocks = triton.cdiv(N, BLOCK)
    y = torch.empty((B, H, D, N) if turned else x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty((B, H, blocks), dtype=torch.float32, device=x.device)
    round_blocks_kernel[(blocks, B * H)](
        x, y, scale, N, D=D, BLOCK=BLOCK, LARGEST=LARGEST, TURNED=turned, num_warps=WARPS
    )
    return y, scale


def in_8_bits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what `attention_fp8` is called with, of 16-bit rows: three launches; see `round_blocks`."""
    (q, scale_q), (k, scale_k) = round_blocks(q), round_blocks(k)
    v_t, scale_v = round_blocks(v, turned=True)
    return q, k, v_t, scale_q, scale_k, scale_v
