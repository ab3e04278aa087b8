"""Memory layout of NVFP4 weights, so that a shift and a mask make bfloat16 numbers of them where they are multiplied.

The fragments are those of cuda/four_bits.py with other columns: of a tile of 16 rows and 64 columns lane l holds, in
four words, the rows r = l / 4 and r + 8 and, with c = l % 4, the columns 16c to 16c + 15. That is a block of each row,
so that a lane needs two scales a tile, and of a row of x it needs 32 bytes that lie side by side.

    word j      columns 16c + 4j and the next three: one multiply
    register i  of that multiply, two numbers of 16 bits. i = 0: row r, the first two columns; 1: row r + 8, the same
                columns; 2 and 3: the next two columns

An E2M1 code is a sign, two bits of the exponent and one of the mantissa. At bits 15, 8, 7 and 6 of a bfloat16, with
zeros elsewhere, they are 2**-126 times the number, 0.5 among them: that one is subnormal in both. So a register is
`word moved & 0x81c081c0`, if its eight bits lie apart as these do. Four such sets do not fit into 32 bits, three do:

    register 0  sign 9,  exponent 2, 1,   mantissa 0    6 to the left
    register 1  sign 13, exponent 6, 5,   mantissa 4    2 to the left
    register 2  sign 19, exponent 12, 11, mantissa 10   4 to the right, around the end of the word
    register 3  sign 15, exponent 8, 7,   mantissa 14   where they are, but the mantissa 8 to the right

These are the bits of the first number; the second has them 16 further up, around the end of the word.

A scale in E4M3 loses its sign and becomes a byte of five bits of exponent and three of mantissa, with a bias of 22:
E4M3's subnormal numbers are normal ones then, and `0x7000 | byte << 4` is a bfloat16, the scale scaled by 2**119. The
sign goes into the codes of the block, and a scale of zero makes them zeros: nothing is rounded. Number times scale has
six bits at most and is exact in bfloat16; 2**-126 * 2**119 leaves 2**7 for the end.

A lane's scales of 128 columns are one word: the first tile's row r, its row r + 8, then the second tile's.

Source  PTX ISA, mma.m16n8k16; Frantar et al. 2024, arXiv:2408.11743 (weights in the order of fragments);
        vLLM, nvfp4_marlin_process_scales (scales without a sign and with five bits of exponent)
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.nvfp4.formats import E2M1, E4M3, Minifloat, encode, values

BLOCK = 16  # numbers that share a scale
GROUP = 128  # columns whose scales are a word of a lane
TILE_N, TILE_K = 16, 64
LANES, WORDS = 32, 4
SCALE = Minifloat("E5M3", 5, 3, bias=22, signed=False, subnormals=False, ends="ieee")
NO_SCALE = 23 << 3  # the code of 2: what a block of zeros gets
# Of each register's first number: where the lowest bit of its code lies, the next two, and the sign.
BITS = ((0, 1, 2, 9), (4, 5, 6, 13), (10, 11, 12, 19), (14, 7, 8, 15))


class Place(NamedTuple):
    """Position of a code: which tile down and across, which lane, which of its words, and where its four bits lie."""

    down: int
    across: int
    lane: int
    word: int
    bits: tuple[int, ...]


def place_of(n: int, k: int) -> Place:
    """Return where the code of row n and column k lies; its bits from the lowest up."""
    row, column = n % TILE_N, k % TILE_K
    register, second = column % 4 // 2 * 2 + row // 8, column % 2
    bits = tuple((bit + 16 * second) % 32 for bit in BITS[register])
    return Place(n // TILE_N, k // TILE_K, row % 8 * 4 + column // BLOCK, column % BLOCK // 4, bits)


def packed(codes: torch.Tensor, scales: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a matrix in NVFP4 in the order in which a warp reads it.

    Args:
        codes: (N, K) uint8, codes of E2M1 as `blocks.encode` gives them, N a multiple of 16 and K of 128.
        scales: (N, K/16) uint8, codes of E4M3.
    Returns:
        (N/16, K/64, 32, 4) int32; (N/16, K/128, 32, 4) uint8, codes of `SCALE`.
    Raises:
        ValueError: N or K is no such multiple, or there is not a scale for each sixteen.
    """
    N, K = codes.shape
    for letter, size, multiple in (("N", N, TILE_N), ("K", K, GROUP)):
        if size % multiple:
            raise ValueError(
                f"codes: expected (N, K) with {letter} a multiple of {multiple}, got {letter}={size}"
            )
    if scales.shape != (N, K // BLOCK):
        raise ValueError(f"scales: expected (N, K/16) = {(N, K // BLOCK)}, got {tuple(scales.shape)}")
    zero, minus = (scales & 0x7F) == 0, scales >> 7 << 3
    blocks = codes.unflatten(1, (K // BLOCK, BLOCK)) ^ minus[..., None]
    blocks = torch.where(zero[..., None], 0, blocks)
    # n = (down, upper, row), k = (across, c, word, two, second); the register is (two, upper).
    x = blocks.view(N // TILE_N, 2, 8, K // TILE_K, 4, 4, 2, 2).permute(0, 3, 2, 4, 5, 6, 1, 7)
    x = x.reshape(N // TILE_N, K // TILE_K, LANES, WORDS, 4, 2)
    words = torch.zeros(x.shape[:4], dtype=torch.int32, device=codes.device)
    for register, bits in enumerate(BITS):
        for second in range(2):
            code = x[..., register, second].to(torch.int32)
            for bit, place in enumerate(bits):
                words |= (code >> bit & 1) << (place + 16 * second) % 32
    bytes_ = _scale_bytes(scales.device)[scales.long()]
    bytes_ = bytes_.view(N // TILE_N, 2, 8, K // GROUP, 2, 4).permute(0, 3, 2, 5, 4, 1)
    return words, bytes_.reshape(N // TILE_N, K // GROUP, LANES, WORDS).contiguous()


def unpacked(words: torch.Tensor) -> torch.Tensor:
    """Return the codes of packed weights: (N/16, K/64, 32, 4) int32 to (N, K) uint8."""
    down, across = words.shape[:2]
    found = torch.zeros((*words.shape, 4, 2), dtype=torch.uint8, device=words.device)
    for register, bits in enumerate(BITS):
        for second in range(2):
            for bit, place in enumerate(bits):
                # The highest place's shift brings its sign along; the mask takes it off.
                one = (words >> (place + 16 * second) % 32 & 1) << bit
                found[..., register, second] |= one.to(torch.uint8)
    found = found.view(down, across, 8, 4, 4, 2, 2, 2).permute(0, 6, 2, 1, 3, 4, 5, 7)
    return found.reshape(down * TILE_N, across * TILE_K)


def scales_in_order(scales: torch.Tensor) -> torch.Tensor:
    """Return the scales of packed weights: (N/16, K/128, 32, 4) uint8 to (N, K/16), codes of `SCALE`."""
    down, groups = scales.shape[:2]
    return scales.view(down, groups, 8, 4, 2, 2).permute(0, 5, 2, 1, 4, 3).reshape(down * TILE_N, -1)


def values_of(words: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return what packed weights stand for, but for the second scale: (N, K) float64, exact."""
    numbers = torch.tensor(values(E2M1), device=words.device)[unpacked(words).long()]
    steps = torch.tensor(values(SCALE), device=words.device)[scales_in_order(scales).long()]
    return numbers * steps.repeat_interleave(BLOCK, dim=1)


def _scale_bytes(device: torch.device) -> torch.Tensor:
    """Return the code of `SCALE` for each code of E4M3: its magnitude, exactly; NaN for NaN, and 2 for zero."""
    size = abs(values(E4M3))
    return torch.tensor(encode(size + 2 * (size == 0), SCALE), device=device)
