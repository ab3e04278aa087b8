"""Grouped matrix multiply of 8-bit numbers with scales of blocks, the contract.

    C[m, n] = sum over s of scale_a[s, m] * scale_b[g, n // 128, s] * sum over k in block s of A[m, k] * B[g, n, k]

with block s of K the numbers 128 * s to 128 * s + 127, and g the group of row m: the rows are tokens, a group's matrix
is an expert of a mixture. Groups come in one of two forms, and the number of A's dimensions says which.

Contiguous  A (M, K): the rows of all groups one below the other. M is a multiple of 128, and so is the first row of a
            group: the rest of its last 128 rows is padding. groups (M,) says which group a row is of, -1 for a row of
            padding, which stands behind its group's rows. It is answered by zeros, whatever lies there in A
Masked      A (G, M, K): M places for each group, M a multiple of 4; groups (G,) says how many of them, from the first
            on, are taken, 0 to M. It lies on the device and a launch does not look at it: the same launches, once in a
            CUDA graph, serve every step. What lies behind is nobody's in A, and in C stays as it was
Shapes      B (G, N, K), K a multiple of 128; C (M, N) or (G, M, N); scale_a (S, M) or (G, S, M) with S = K / 128;
            scale_b (G, ceil(N / 128), S). All row-major: the scales of 128 rows lie side by side. A group may be empty
Types       A and B float8_e4m3fn, the scales float32, groups int32, C bfloat16. A workload names the type of C
Cost        2*N*K operations for each row that is there; read those rows, the matrices of groups that have rows, and
            the scales; write C

A workload's M counts the rows that are there, of all groups together. The definition, with both forms, is that of
DeepGEMM on Hopper (DeepSeek-AI, deepseek-ai/DeepGEMM, m_grouped_fp8_gemm_nt_contiguous and _masked).
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any

import torch

from course_kernels.problem import NAN, Problem, Workload

BLOCK = (
    128  # numbers of K that share a scale, and rows of B; a group of the contiguous form begins at a multiple
)
LARGEST = 448.0  # of float8_e4m3fn
PLACES = 4  # a group of the masked form has a multiple of so many places

# Far from any fraction of small numbers: its multiples, cut to what follows the point, fill 0 to 1 evenly.
GOLDEN = (sqrt(5) - 1) / 2


def rounded_up(x: int, multiple: int) -> int:
    """Return the smallest multiple that is not below x."""
    return -(-x // multiple) * multiple


def rows_of(w: Workload) -> list[int]:
    """Return how many rows each of the G groups has, in no order that matters; together M.

    With the flag `even` they are as equal as can be. Else one group of three or more is empty, another has one row, and
    the others are of many sizes.
    """
    if w.dims.get("even", False) or w.G == 1:
        return [w.M // w.G + (g < w.M % w.G) for g in range(w.G)]
    few = [0, 1] if w.G > 2 else [1]
    shares = [1 + int(GOLDEN * i % 1 * 8) for i in range(1, w.G - len(few) + 1)]
    ends = [(w.M - 1) * sum(shares[:i]) // sum(shares) for i in range(len(shares) + 1)]
    return few + [end - begin for begin, end in pairwise(ends)]


def places_of(w: Workload) -> int:
    """Return M of the tensors: all rows with their padding, or in the masked form the places of one group."""
    if w.dims.get("masked", False):
        return max(rounded_up(rows, PLACES) for rows in rows_of(w))
    return sum(rounded_up(rows, BLOCK) for rows in rows_of(w))


def quantised_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows as 8-bit numbers, and a scale for every 128 of a row: x is about scale * numbers.

    Args:
        x: (..., M, K) float32, K a multiple of 128.
    Returns:
        (..., M, K) float8_e4m3fn, of each 128 numbers the largest 448, or all 0; (..., K / 128, M) float32.
    """
    blocks = x.unflatten(-1, (-1, BLOCK))  # [..., M, S, 128]
    scale = _scale(blocks.abs().amax(-1))
    return _rounded(blocks / scale[..., None]).flatten(-2), scale.mT.contiguous()


def quantised_blocks(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a matrix as 8-bit numbers, and a scale for every 128 x 128 of it; the last rows may be fewer.

    Args:
        x: (..., N, K) float32, K a multiple of 128.
    Returns:
        (..., N, K) float8_e4m3fn; (..., ceil(N / 128), K / 128) float32.
    """
    N = x.shape[-2]
    padded = torch.nn.functional.pad(x, (0, 0, 0, -N % BLOCK))
    blocks = padded.unflatten(-1, (-1, BLOCK)).unflatten(-3, (-1, BLOCK))  # [..., N / 128, 128, S, 128]
    scale = _scale(blocks.abs().amax((-3, -1)))
    numbers = _rounded(blocks / scale[..., None, :, None])
    return numbers.flatten(-2).flatten(-3, -2)[..., :N, :].contiguous(), scale


def _scale(largest: torch.Tensor) -> torch.Tensor:
    return torch.where(largest > 0, largest / LARGEST, 1.0)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    # Dividing and multiplying round: the largest can come out a hair above 448, where torch would make it NaN.
    return x.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Return A, B, scale_a, scale_b and groups; which group has how many rows is drawn.

    Numbers normal with sizes from a half to 2, drawn for every 128 of a row and every 128 x 128, before they are
    rounded. Rows of padding are zeros with scale 1; places of the masked form that nobody has are NaN, scales too.
    """
    of = {"generator": generator, "device": device}
    masked, S, places = w.dims.get("masked", False), w.K // BLOCK, places_of(w)
    counts = torch.tensor(rows_of(w), device=device)[torch.randperm(w.G, **of)]
    place = torch.arange(places, device=device)
    if masked:
        groups = counts
        there = place < counts[:, None]  # [G, M]
    else:
        room = (counts + BLOCK - 1) // BLOCK * BLOCK
        ends = room.cumsum(0)
        group = torch.searchsorted(ends, place, right=True)
        there = place - (ends - room)[group] < counts[group]  # [M]
        groups = torch.where(there, group, -1)

    x = torch.randn(*there.shape, S, BLOCK, **of) * _size(*there.shape, S, 1, **of)
    numbers, scale_a = quantised_rows(x.flatten(-2))
    nobody = ~there[..., None]
    a = numbers.view(torch.uint8).masked_fill_(nobody, 0x7F if masked else 0).view(torch.float8_e4m3fn)
    scale_a.masked_fill_(nobody.mT, NAN if masked else 1.0)

    b = torch.empty((w.G, w.N, w.K), dtype=torch.float8_e4m3fn, device=device)
    scale_b = torch.empty((w.G, rounded_up(w.N, BLOCK) // BLOCK, S), device=device)
    for g in range(w.G):  # one at a time: in float32 a matrix of 4096 x 7168 takes 117 MB
        sizes = _size(*scale_b.shape[1:], **of).repeat_interleave(BLOCK, 0)[: w.N].repeat_interleave(BLOCK, 1)
        b[g], scale_b[g] = quantised_blocks(torch.randn(w.N, w.K, **of) * sizes)
    return a, b, scale_a, scale_b, groups.int()


def _size(*shape: int, **of: Any) -> torch.Tensor:
    return torch.exp2(2 * torch.rand(*shape, **of) - 1)


def reference(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, groups: torch.Tensor
) -> torch.Tensor:
    """Return the products of what the 8-bit numbers stand for, in float64, zeros where nobody has a row.

    Rounding to 8 bits is not their error.
    """
    c = torch.zeros((*a.shape[:-1], b.shape[1]), dtype=torch.float64, device=a.device)
    for g in range(b.shape[0]):
        if a.dim() == 3:
            at: tuple[int | torch.Tensor | slice, ...] = (g, slice(int(groups[g])))
        else:
            at = ((groups == g).nonzero().flatten(),)
        rows = a[at].double() * scale_a[(*at[:-1], slice(None), at[-1])].mT.double().repeat_interleave(
            BLOCK, 1
        )
        scale = scale_b[g].double().repeat_interleave(BLOCK, 0)[: b.shape[1]].repeat_interleave(BLOCK, 1)
        c[at] = rows @ (b[g].double() * scale).mT
    return c


def max_error(w: Workload) -> float:
    """Bound the error of rounding C to bfloat16 once, and of what Hopper's tensor cores lose in 128 of K.

    They line up the terms of a sum with the largest of them and drop what falls off the end: about 14 bits stay
    (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2). Each of 128 terms is off by up to 2**-13 of a sum as large as
    the block's, with signs as random as theirs; together less than 2**-13 * sqrt(128), and twice that is out of reach.
    The blocks are then added in float32, so the bound does not grow with K: sums that stay in the tensor cores are past
    it where they are long and of one sign.
    """
    return 2.0**-8 + 2 * 2.0**-13 * sqrt(BLOCK)


def reads_bytes(w: Workload) -> int:
    """Rows that are there, matrices of groups that have one, the scales of both, and what says whose the rows are."""
    S, rows = w.K // BLOCK, rows_of(w)
    matrix = w.N * w.K + 4 * rounded_up(w.N, BLOCK) // BLOCK * S
    whose = w.G if w.dims.get("masked", False) else places_of(w) // BLOCK
    return w.M * (w.K + 4 * S) + sum(map(bool, rows)) * matrix + 4 * whose


def _of(G: int, M: int, N: int, K: int, **more: bool) -> Workload:
    return Workload.of("bfloat16", G=G, M=M, N=N, K=K, **more)


PROBLEM = Problem(
    name="grouped_gemm",
    formula="C[m, n] = sum over s of scale_a[s, m] * scale_b[g, n // 128, s] * sum over k in s of A[m, k] * B[g, n, k]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: "fp8",
    max_error=max_error,
    rows_apart=True,  # a row of a group is as large as its scales; a row of padding is exactly 0
    hard=lambda w: ({0: (0.0, -0.0, NAN), 1: (NAN,)},),
    check_on=(
        _of(1, 4, 16, 128, masked=True),
        _of(1, 1, 72, 128),  # one row, and 127 of padding
        _of(4, 33, 65, 256, masked=True),  # an empty group, and one of a single row
        _of(3, 131, 72, 384),  # the same, and one that ends between two tiles
        _of(2, 300, 200, 384, masked=True),
        _of(5, 420, 392, 640),
        _of(8, 8, 136, 128, even=True, masked=True),
    ),
    # The two multiplies of an expert in DeepSeek-V3, gate and up in one: a prompt's tokens over a card's experts, each
    # group a whole number of tiles, and uneven; then a step of decoding, few rows for each expert.
    time_on=(
        *(
            _of(8, 8192, N, K, **more)
            for N, K in ((4096, 7168), (7168, 2048))
            for more in ({"even": True}, {})
        ),
        *(
            _of(G, rows * G, N, K, masked=True, even=True)
            for N, K in ((4096, 7168), (7168, 2048))
            for G, rows in ((8, 64), (32, 16))
        ),
    ),
)
