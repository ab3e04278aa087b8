"""Expert parallelism, its three kernels: rows go to their places, pass the gate, and are added up.

Contract  place_rows   target[place[i]] = source[i // each]                       where place[i] >= 0
          gate_rows    g[n] = silu(h[n, :F]) * h[n, F:]                           n < count
          sum_rows     out[n] = base[n] + sum over k of weights[n, k] * rows[place[n, k]]     where place[n, k] >= 0
Idea      a kernel does not know whose memory an address is in: with a target on the neighbour's card `place_rows` is
          the whole journey, without a buffer to pack, and without a count that the host must know
Against   sorting rows into a buffer of their own, and a library that moves the buffer
Cost      each row is read once and written once; a program for every row that might be there, and one that finds
          nothing to do ends at once
Limits    nobody on the other card knows that a row has come: that takes a signal, behind the kernel
Source    DeepSeek-AI, DeepEP, github.com/deepseek-ai/DeepEP: rows into buffers that the neighbours have mapped
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor

# 128 threads with two vectors of 16 bytes each: a row of 2048 bfloat16 is one program.
BLOCK, WARPS = 2048, 4


# region place_rows
@triton.jit
def place_rows_kernel(source_ptr, place_ptr, target_ptr, W, EACH, BLOCK: tl.constexpr):
    """Copy one row, if it has a place."""
    i = tl.program_id(0).to(tl.int64)
    place = tl.load(place_ptr + i)
    if place >= 0:
        w = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        row = tl.load(source_ptr + i // EACH * W + w, mask=w < W)
        tl.store(target_ptr + place * W + w, row, mask=w < W)


# endregion


@triton.jit
def gate_rows_kernel(h_ptr, count_ptr, g_ptr, F, BLOCK: tl.constexpr):
    """Gate one row, if it is there."""
    n = tl.program_id(0).to(tl.int64)
    if n < tl.load(count_ptr):
        f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        gate = tl.load(h_ptr + n * 2 * F + f, mask=f < F).to(tl.float32)
        up = tl.load(h_ptr + n * 2 * F + F + f, mask=f < F).to(tl.float32)
        g = gate / (1.0 + tl.exp(-gate)) * up
        tl.store(g_ptr + n * F + f, g.to(g_ptr.dtype.element_ty), mask=f < F)


@triton.jit
def sum_rows_kernel(
    rows_ptr, place_ptr, weight_ptr, base_ptr, count_ptr, out_ptr, W, K, apart,
    WEIGHTED: tl.constexpr, BASED: tl.constexpr, COUNTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add up one row, in the order of k; the weights of two rows are `apart` numbers after each other."""
    n = tl.program_id(0).to(tl.int64)
    count = n + 1
    if COUNTED:
        count = tl.load(count_ptr)
    if n < count:
        w = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], tl.float32)
        if BASED:
            total = tl.load(base_ptr + n * W + w, mask=w < W)
        for k in range(K):
            place = tl.load(place_ptr + n * K + k)
            if place >= 0:
                row = tl.load(rows_ptr + place * W + w, mask=w < W).to(tl.float32)
                if WEIGHTED:
                    row *= tl.load(weight_ptr + n * apart + k)
                total += row
        tl.store(out_ptr + n * W + w, total.to(out_ptr.dtype.element_ty), mask=w < W)


# --- on the host -------------------------------------------------------------


def place_rows(source: torch.Tensor, place: torch.Tensor, target: torch.Tensor, *, each: int = 1) -> None:
    """Write every row that has a place to it.

    Args:
        source: (N, W), contiguous, any type.
        place: (N * each,) int64, contiguous: rows of the target, each named at most once; -1 for none.
        target: (M, W), contiguous, the same type; also in another card's memory, where it is mapped.
        each: places in a row that belong to one row of the source.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, or not contiguous.
    """
    sizes: dict[str, int] = {}
    check_tensor("source", source, "NW", sizes, dtypes=(source.dtype,))
    check_tensor("target", target, "MW", sizes, dtypes=(source.dtype,), device=source.device)
    check_tensor("place", place, "P", sizes, dtypes=(torch.int64,), device=source.device)
    if each < 1 or sizes["P"] != sizes["N"] * each:
        raise ValueError(f"place: expected (N * each,) = ({sizes['N']} * {each},), got {tuple(place.shape)}")
    grid = (sizes["P"], triton.cdiv(sizes["W"], BLOCK))
    place_rows_kernel[grid](source, place, target, sizes["W"], each, BLOCK=BLOCK, num_warps=WARPS)


def gate_rows(h: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """silu of the first half of each row times the second.

    Args:
        h: (N, 2 F) bfloat16, contiguous.
        count: (1,) int32 or int64, on the same card: rows that are there; what is behind them is left as it was.
    Returns:
        (N, F) bfloat16.
    Raises:
        TypeError: another type.
        ValueError: an odd number of columns, a wrong shape, or not contiguous.
    """
    sizes: dict[str, int] = {}
    check_tensor("h", h, "NH", sizes, dtypes=(torch.bfloat16,))
    check_tensor("count", count, "C", sizes, dtypes=(torch.int32, torch.int64), device=h.device)
    if sizes["H"] % 2 or sizes["C"] != 1:
        raise ValueError(f"h: expected (N, 2 F) and a count (1,), got {tuple(h.shape)}, {tuple(count.shape)}")
    F = sizes["H"] // 2
    g = torch.empty(sizes["N"], F, dtype=h.dtype, device=h.device)
    gate_rows_kernel[(sizes["N"], triton.cdiv(F, BLOCK))](h, count, g, F, BLOCK=BLOCK, num_warps=WARPS)
    return g


def sum_rows(
    rows: torch.Tensor,
    place: torch.Tensor,
    out: torch.Tensor,
    *,
    weights: torch.Tensor | None = None,
    base: torch.Tensor | None = None,
    count: torch.Tensor | None = None,
) -> None:
    """Write the sum of the rows that belong together, in float32 and rounded once.

    Args:
        rows: (M, W) bfloat16, contiguous.
        place: (N, K) int64, contiguous: rows, or -1 for none.
        out: (at least N, W) bfloat16 or float32, contiguous; also in another card's memory, where it is mapped.
        weights: (N, K) float32, each row contiguous; without them every weight is 1.
        base: (N, W) float32, contiguous: what the sums begin with.
        count: (1,) int64: how many of the N are there; the others are not written.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, or not contiguous.
    """
    sizes: dict[str, int] = {}
    check_tensor("rows", rows, "MW", sizes, dtypes=(torch.bfloat16,))
    check_tensor("place", place, "NK", sizes, dtypes=(torch.int64,), device=rows.device)
    check_tensor("out", out, "OW", sizes, dtypes=(torch.bfloat16, torch.float32), device=rows.device)
    if sizes["O"] < sizes["N"]:
        raise ValueError(f"out: expected at least N={sizes['N']} rows, got {sizes['O']}")
    if base is not None:
        check_tensor("base", base, "NW", sizes, dtypes=(torch.float32,), device=rows.device)
    if count is not None:
        check_tensor("count", count, "C", sizes | {"C": 1}, dtypes=(torch.int64,), device=rows.device)
    if weights is not None:
        if weights.dtype != torch.float32:
            raise TypeError(f"weights: expected float32, got {str(weights.dtype).removeprefix('torch.')}")
        if weights.shape != place.shape or weights.stride(1) != 1:
            raise ValueError(f"weights: expected {tuple(place.shape)} in rows, got {tuple(weights.shape)}")
    sum_rows_kernel[(sizes["N"], triton.cdiv(sizes["W"], BLOCK))](
        rows, place, weights, base, count, out, sizes["W"], sizes["K"],
        weights.stride(0) if weights is not None else 0,
        WEIGHTED=weights is not None, BASED=base is not None, COUNTED=count is not None,
        BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
