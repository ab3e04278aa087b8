"""Memory layout of 4-bit weights, so that one load of 16 bytes gives a lane what its tensor core wants of it.

`mma.m16n8k16` multiplies 16 rows of weights, 16 columns of them at a time. Of such a tile lane l holds, in four
registers of two numbers each, parts of the rows r = l / 4 and r + 8; which columns it holds is a matter of agreement
with x, for a sum over k may be taken in any order. So we agree on this:

    tile      16 rows times 64 columns: 1024 weights, 512 bytes, 16 bytes for each of the 32 lanes of a warp
    lane      l has the rows r = l / 4 and r + 8, and with c = l % 4 the columns 8c to 8c + 7 and 32 + 8c to
              32 + 8c + 7: of a row of x these are two vectors of 16 bytes, so that x needs no packing
    word j    of the lane's four: columns 32 * (j / 2) + 8c + 4 * (j % 2) and the next three: one multiply
    bits      4i to 4i + 3 and 16 + 4i to 16 + 4i + 3: the two numbers of register i of that multiply, side by side as
              16-bit numbers will be. i = 0: row r; 1: row r + 8, the same two columns; 2 and 3: the next two columns

So register i is `word >> 4 * i & 0x000f000f`, with a pattern put over it that makes 16-bit numbers of the two
(four_bits.cuh). A weight q from -8 to 7 is stored as q + 8. Tiles of the same rows follow each other, and `place_of`
says where one weight lies.

Scales lie as weights do: for each 16 rows and each group of 128 columns 16 numbers, those of r and r + 8 side by side,
so that a lane finds the two of its rows in one word.

Source  PTX ISA, mma.m16n8k16; Frantar et al. 2024, arXiv:2408.11743 (weights in the order of fragments);
        Kim et al. 2022, arXiv:2211.10017 (the pattern that makes a number of four bits)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address

GROUP = 128  # columns that share a scale
TILE_N, TILE_K = 16, 64
LANES, WORDS = 32, 4
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels


class Place(NamedTuple):
    """Position of a weight: which tile down and across, which lane, which of its words, and its lowest bit there."""

    down: int
    across: int
    lane: int
    word: int
    bit: int


def place_of(n: int, k: int) -> Place:
    """Return where the weight of row n and column k lies; `packed[down, across, lane, word] >> bit & 15` is q + 8."""
    row, column = n % TILE_N, k % TILE_K
    lane = row % 8 * 4 + column % 32 // 8
    word = column // 32 * 2 + column % 8 // 4
    register = column % 4 // 2 * 2 + row // 8
    return Place(n // TILE_N, k // TILE_K, lane, word, 4 * register + 16 * (column % 2))


def quantised(weights: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights as whole numbers from -8 to 7, and a scale for every 128 of a row.

    The largest of a group, by its size, becomes -8: the scale has the sign for that. All sixteen numbers are used,
    and a step is an eighth of the largest.

    Args:
        weights: (N, K) float32, K a multiple of 128.
        dtype: of the scales.
    Returns:
        (N, K) int8; (N, K/128) of that type, 1 where a group is all zeros.
    Raises:
        ValueError: K is no multiple of 128.
    """
    N, K = weights.shape
    if K % GROUP:
        raise ValueError(f"weights: expected (N, K) with K a multiple of {GROUP}, got K={K}")
    groups = weights.unflatten(1, (K // GROUP, GROUP))
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    scales = (largest / -8).to(dtype)
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    # Divided by the scale as it is stored: what its rounding moved is then made good.
    q = (groups / scales.float()).round().clamp(-8, 7).to(torch.int8)
    return q.view(N, K), scales[..., 0].contiguous()


def values_of(q: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return what whole numbers (N, K) and their scales (N, K/128) stand for, as `quantised` gives them.

    (N, K) float64.
    """
    return q.double() * scales.double().repeat_interleave(GROUP, dim=1)


def packed(q: torch.Tensor, scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights and their scales as kernels read them.

    Args:
        q: (N, K) int8 from -8 to 7, N a multiple of 16, K of 128.
        scales: (N, K/128), any type.
    Returns:
        (N/16, K/64, 32, 4) int32; (N/16, K/128, 16), the type of the scales.
    Raises:
        ValueError: N or K is no such multiple.
    """
    N, K = q.shape
    for letter, size, multiple in (("N", N, TILE_N), ("K", K, GROUP)):
        if size % multiple:
            raise ValueError(
                f"q: expected (N, K) with {letter} a multiple of {multiple}, got {letter}={size}"
            )
    # n = (down, upper, row), k = (across, half, c, quad, two, one); the word gets (two, upper) and then one.
    x = (q.to(torch.int32) + 8).view(N // TILE_N, 2, 8, K // TILE_K, 2, 4, 2, 2, 2)
    x = x.permute(0, 3, 2, 5, 4, 6, 8, 7, 1).reshape(N // TILE_N, K // TILE_K, LANES, WORDS, 8)
    words = torch.zeros(x.shape[:-1], dtype=torch.int32, device=q.device)
    for place in range(8):  # (one, two, upper): bits from the lowest
        words |= x[..., place] << 4 * place
    in_pairs = scales.view(N // TILE_N, 2, 8, K // GROUP).permute(0, 3, 2, 1)
    return words, in_pairs.reshape(N // TILE_N, K // GROUP, TILE_N).contiguous()


def unpacked(words: torch.Tensor) -> torch.Tensor:
    """Return the inverse for the weights: (N/16, K/64, 32, 4) int32 to (N, K) int8."""
    down, across = words.shape[:2]
    # The highest place's shift brings its sign along; the mask takes it off.
    x = torch.stack([(words >> 4 * place & 15) - 8 for place in range(8)], dim=-1).to(torch.int8)
    x = x.view(down, across, 8, 4, 2, 2, 2, 2, 2).permute(0, 8, 2, 1, 4, 3, 5, 7, 6)
    return x.reshape(down * TILE_N, across * TILE_K)


def check_packed(x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor) -> int:
    """Refuse weights that do not fit x; how many rows they have.

    Args:
        x: (M, K) of the right type, contiguous, as it was looked at before.
        words: (N/16, K/64, 32, 4) int32, contiguous, as `packed` makes them; N and K <= 2**30.
        scales: (N/16, K/128, 16), the type of x, contiguous. All three at addresses divisible by 16.
    Raises:
        TypeError: another type.
        ValueError: K is no multiple of 128, shapes that do not fit together, a size out of range, not contiguous, not
            where x is, or an address between two 16-byte vectors.
    """
    K = x.shape[1]
    if K % GROUP:
        raise ValueError(f"x: expected (M, K) with K a multiple of {GROUP}, got K={K}")
    for_words: Any = ("N/16", "K/64", "32", "4")  # names of several letters: a string would take them apart
    for_scales: Any = ("N/16", "K/128", "16")
    sizes = {"K/64": K // TILE_K, "32": LANES, "4": WORDS, "K/128": K // GROUP, "16": TILE_N}
    check_tensor("words", words, for_words, sizes, dtypes=(torch.int32,), device=x.device)
    check_tensor("scales", scales, for_scales, sizes, dtypes=(x.dtype,), device=x.device)
    check_size("x", "K", K, MAX_SIZE)
    check_size("words", "N/16", sizes["N/16"], MAX_SIZE // TILE_N)
    for name, tensor in (("x", x), ("words", words), ("scales", scales)):
        check_address(name, tensor)
    return sizes["N/16"] * TILE_N


def scales_in_order(scales: torch.Tensor) -> torch.Tensor:
    """Return the inverse for the scales: (N/16, K/128, 16) to (N, K/128)."""
    down, groups, _ = scales.shape
    return scales.view(down, groups, 8, 2).permute(0, 3, 2, 1).reshape(down * TILE_N, groups)
