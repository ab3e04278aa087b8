"""Decode attention, kernel 3: the split, and it begins while the kernel before it ends.

Contract  problem.py
Idea      programmatic dependent launch: programs take their places while the last ones of the kernel before still run,
          and wait there for its answers; and they say at once that the next kernel may do the same. What that one asks
          for ahead, its weights, is then on its way while attention is worked out
Against   k02_split: at its end, and before it begins, the card stands nearly empty for some microseconds
Cost      as k02_split
Limits    Hopper and later. Nothing of its own can be asked for ahead: the newest key is the last kernel's work
Source    CUDA C++ Programming Guide, programmatic dependent launch
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from course_kernels.arguments import check_tensor
from course_kernels.decode_attention.arguments import sizes_of
from course_kernels.decode_attention.k01_one_program import constants_of, scale_of, step_of, supports
from course_kernels.decode_attention.k02_split import merge_constants_of, split_kernel, splits_for
from course_kernels.dependent_launch import check_early

__all__ = ["decode_attention", "supports"]

# --- on the device -----------------------------------------------------------


@triton.jit
def early_kernel(
    Q, K, V, lengths_ptr, O, parts, tickets, N, scale,
    SHARE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
    GROUP: tl.constexpr, MERGED: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """k02_split's program, which first lets the next grid begin, and waits for the last one to end."""
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    split_kernel(
        Q, K, V, lengths_ptr, O, parts, tickets, N, scale, SHARE, ROWS, D, STEP, PRECISION, GROUP, MERGED
    )  # fmt: skip


# --- on the host -------------------------------------------------------------


def decode_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    lengths: torch.Tensor,
    *,
    tickets: torch.Tensor | None = None,
    splits: int | None = None,
    pdl: bool = False,
) -> torch.Tensor:
    """Attention of one query for each sequence and head over that sequence's cache.

    Args:
        q, k_cache, v_cache, lengths, tickets, splits: as k02_split.
        pdl: begin while the kernel before this one on the stream ends (Hopper and later); without it this is k02_split.
    Returns:
        (B, H, D), the same type; see k02_split.
    Raises:
        TypeError, ValueError: see `sizes_of`; tickets of another shape, type or device; no card on which a kernel can
            begin early.
    """
    B, H, KV, N, D = sizes_of(q, k_cache, v_cache, lengths)
    check_early(pdl, q.device)
    heads, share = B * KV, H // KV
    if tickets is not None:
        check_tensor("tickets", tickets, "T", {"T": heads}, dtypes=(torch.int32,), device=q.device)
    splits = splits or splits_for(q.device, heads, triton.cdiv(N, step_of(q.element_size(), D)))
    if tickets is None:
        tickets = torch.zeros(heads, dtype=torch.int32, device=q.device)
    parts = torch.empty(heads * splits * share * (D + 2), dtype=torch.float32, device=q.device)
    o = torch.empty_like(q)
    early_kernel[(splits, KV, B)](
        q, k_cache, v_cache, lengths, o, parts, tickets, N, scale_of(D),
        **constants_of(q.element_size(), share, D), **merge_constants_of(share), PDL=pdl, launch_pdl=pdl,
    )  # fmt: skip
    return o
