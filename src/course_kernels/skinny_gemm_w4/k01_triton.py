"""4-bit weights, kernel 1: in Triton, every nibble sorted into its place of a tile.

Contract  problem.py
Idea      a program takes some rows of the weights and all of K: it loads words, makes eight numbers of each, sorts them
          into a tile, and lets the tensor cores multiply the tile with the rows of x
Against   skinny_gemm/k01_one_program, which reads four times as many bytes
Cost      eight shifts, eight masks and eight subtractions for a word; and sorting, for which the tile goes through
          shared memory, since the compiler does not know that the words lie in fragments already
Limits    more work for each byte than memory leaves time for
Next      k02_fragments leaves every nibble in the lane that loaded it
Source    Triton tutorial 03; the layout is that of cuda/four_bits.py
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.skinny_gemm_w4.arguments import sizes_of

TILES = 4  # of 16 rows of weights for a program: 64 rows are what a warpgroup multiplies
LEAST_ROWS = 16  # of x, in a multiply on tensor cores
WARPS, STAGES = 4, 4

# A number whose steps are 1, as bits; and what it stands for, and 8 more.
PATTERNS = {torch.bfloat16: (0x4300, 128.0 + 8.0), torch.float16: (0x6400, 1024.0 + 8.0)}


@triton.jit
def w4_kernel(
    X, words_ptr, scales_ptr, Y, M, N, K,
    TILES: tl.constexpr, ROWS: tl.constexpr, PATTERN: tl.constexpr, LESS: tl.constexpr,
):  # fmt: skip
    """16 * TILES rows of the weights times all rows of x."""
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    there = tile < N // 16
    at = tile.to(tl.int64) * (K // 64) * 128  # the first word of each tile
    m = tl.arange(0, ROWS)
    n = tl.program_id(0) * (16 * TILES) + tl.arange(0, 16 * TILES)
    # A row's scale lies beside that of the row eight further down.
    pair = (n // 16).to(tl.int64) * (K // 128) * 16 + n % 8 * 2 + n % 16 // 8
    bits = tl.arange(0, 8) * 4
    acc = tl.zeros([16 * TILES, ROWS], tl.float32)
    for group in tl.range(0, K // 128):
        words = words_ptr + at[:, None] + group * 256 + tl.arange(0, 256)[None, :]
        words = tl.load(words, mask=there[:, None], other=0)  # [TILES, 256]: across, row, c, half, quad
        # A pattern makes a number with steps of 1 of each: converting whole numbers is a slow instruction.
        q = ((words[:, :, None] >> bits[None, None, :]) & 15) | PATTERN  # [TILES, 256, 8]: one, two, upper
        q = q.to(tl.int16).to(X.dtype.element_ty, bitcast=True) - LESS
        q = tl.reshape(q, (TILES, 2, 8, 4, 2, 2, 2, 2, 2)).permute(0, 8, 2, 1, 4, 3, 5, 7, 6)
        q = tl.reshape(q, (16 * TILES, 128))
        k = group * 128 + tl.arange(0, 128)
        x = X + m[:, None].to(tl.int64) * K + k[None, :]
        x = tl.load(x, mask=(m < M)[:, None], other=0.0)  # [ROWS, 128]
        s = tl.load(scales_ptr + pair + group * 16, mask=n < N, other=0.0).to(tl.float32)
        acc += tl.dot(q, x.T) * s[:, None]
    y = acc.to(Y.dtype.element_ty)
    tl.store(Y + m[None, :].to(tl.int64) * N + n[:, None], y, mask=(m < M)[None, :] & (n < N)[:, None])


def skinny_gemm_w4(x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return a few rows times the transpose of 4-bit weights.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 128, K a multiple of 128.
        words: (N/16, K/64, 32, 4) int32, as `packed` makes them.
        scales: (N/16, K/128, 16), the type of x.
    Returns:
        (M, N), the type of x; sums in float32, rounded once.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    M, N, K = sizes_of(x, words, scales)
    pattern, less = PATTERNS[x.dtype]
    rows = max(LEAST_ROWS, triton.next_power_of_2(M))
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    w4_kernel[(triton.cdiv(N, 16 * TILES),)](
        x, words, scales, y, M, N, K,
        TILES=TILES, ROWS=rows, PATTERN=pattern, LESS=less, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return y
