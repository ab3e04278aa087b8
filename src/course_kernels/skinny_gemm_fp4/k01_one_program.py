"""NVFP4 weights, kernel 1: in Triton, every code sorted into its place of a tile.

Contract  problem.py
Idea      a program takes some rows of the weights and all of K: it loads words, puts the bits of eight codes together,
          decodes them as nvfp4/dequantise.py does, multiplies each by its scale, and lets the tensor cores multiply the
          tile with the rows of x. The second scale waits for the sums
Against   skinny_gemm_w4/k01_triton: a scale for sixteen numbers instead of 128 belongs to the weight, not to a sum
Cost      some fifteen instructions for each number, in float32; and sorting, for which the tile goes through shared
          memory, since the compiler does not know that the words lie in fragments already
Limits    far more work for each byte than memory leaves time for
Next      k02_fragments, which makes two numbers at a time and leaves them in the lane that loaded them
Source    Triton tutorial 03; the layout is that of layout.py
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.nvfp4.dequantise import bf16_of, e2m1_to_float
from course_kernels.skinny_gemm_fp4.arguments import sizes_of

TILES = 4  # of 16 rows of weights for a program: 64 rows are what a warpgroup multiplies
LEAST_ROWS = 16  # of x, in a multiply on tensor cores
WARPS, STAGES = 4, 4
MULTIPLIED = (
    tl.bfloat16
)  # exact for every weight; Triton's interpreter, which cannot multiply it, is given float32


@triton.jit
def fp4_kernel(
    X, words_ptr, scales_ptr, second_ptr, Y, M, N, K,
    TILES: tl.constexpr, ROWS: tl.constexpr, MULTIPLIED: tl.constexpr,
):  # fmt: skip
    """16 * TILES rows of the weights times all rows of x."""
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    there = tile < N // 16
    words_at = tile.to(tl.int64) * (K // 64) * 128  # the first word of each tile
    scales_at = tile.to(tl.int64) * K  # and the first scale: 16 * K / 16 of them
    m = tl.arange(0, ROWS)
    n = tl.program_id(0) * (16 * TILES) + tl.arange(0, 16 * TILES)
    acc = tl.zeros([16 * TILES, ROWS], tl.float32)
    for group in tl.range(0, K // 128):
        words = words_ptr + words_at[:, None] + group * 256 + tl.arange(0, 256)[None, :]
        words = tl.load(words, mask=there[:, None], other=0)  # [TILES, 256]: across, row, c, word
        words = words.to(tl.uint32, bitcast=True)
        # The four registers of layout.py: a code at bits 15 and 8 to 6, another at bits 31 and 24 to 22.
        first = tl.join(words << 6, words >> 4 | words << 28)  # two: row r
        upper = tl.join(words << 2, (words & 0x81808180) | (words >> 8 & 0x00400040))  # row r + 8
        pair = tl.join(first, upper)  # [TILES, 256, 2, 2]: two, upper
        code = pair[:, :, :, :, None] >> (tl.arange(0, 2) * 16)[None, None, None, None, :]
        code = ((code >> 6 & 7) | (code >> 12 & 8)).to(tl.int32)
        q = tl.reshape(e2m1_to_float(code), (TILES, 2, 8, 4, 4, 2, 2, 2))
        s = scales_ptr + scales_at[:, None] + group * 128 + tl.arange(0, 128)[None, :]
        s = tl.load(s, mask=there[:, None], other=0).to(tl.int32)  # [TILES, 128]: row, c, across, upper
        s = (0x7000 | s << 4) << 16  # 2**119 times the scale, in the upper half of a float32
        s = s.to(tl.float32, bitcast=True) * 1.504632769052528e-36
        s = tl.reshape(s, (TILES, 8, 4, 2, 2)).permute(0, 3, 1, 2, 4)
        q *= tl.reshape(s, (TILES, 2, 8, 4, 1, 1, 2, 1))
        q = tl.reshape(q.permute(0, 6, 2, 1, 3, 4, 5, 7), (16 * TILES, 128))
        k = group * 128 + tl.arange(0, 128)
        x = X + m[:, None].to(tl.int64) * K + k[None, :]
        x = tl.load(x, mask=(m < M)[:, None], other=0.0)  # [ROWS, 128]
        acc += tl.dot(q.to(MULTIPLIED), x.to(MULTIPLIED).T)
    y = bf16_of(acc * tl.load(second_ptr))
    tl.store(Y + m[None, :].to(tl.int64) * N + n[:, None], y, mask=(m < M)[None, :] & (n < N)[:, None])


def skinny_gemm_fp4(
    x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor, second: torch.Tensor
) -> torch.Tensor:
    """Return a few rows times the transpose of NVFP4 weights.

    Args:
        x: (M, K) bfloat16, contiguous, M <= 128, K a multiple of 128.
        words: (N/16, K/64, 32, 4) int32, as `packed` makes them.
        scales: (N/16, K/128, 32, 4) uint8.
        second: (1,) float32.
    Returns:
        (M, N) bfloat16; sums in float32, rounded once.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    M, N, K = sizes_of(x, words, scales, second)
    rows = max(LEAST_ROWS, triton.next_power_of_2(M))
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    fp4_kernel[(triton.cdiv(N, 16 * TILES),)](
        x, words, scales, second, y, M, N, K,
        TILES=TILES, ROWS=rows, MULTIPLIED=MULTIPLIED, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return y
