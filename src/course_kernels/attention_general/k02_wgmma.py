"""General attention, kernel 2: the kernel of attention/k06_wgmma.cu, asked for packed sequences. On Hopper.

Contract  problem.py
Idea      one thread brings tiles of K and V by the copy engine, two or three warpgroups multiply; where a sequence ends
          within a block of rows, threads write for themselves, and the next sequence is left alone
Against   k01_teaching: no roles, and a mask on every tile
Cost      as k01_teaching, with 128 rows or more to a block
Limits    Hopper only, bfloat16 and float16. Past the end of a sequence its block of keys reads those of the next one
          and gives them no weight: an infinity or NaN there would still reach the answer, as zero times that
Source    Shah et al. 2024, arXiv:2407.08608
"""

from __future__ import annotations

import torch

from course_kernels.attention.k06_wgmma import attend
from course_kernels.attention_general.arguments import HEAD_SIZES, sizes_of
from course_kernels.problem import Workload


def supports(w: Workload) -> bool:
    """Whether this kernel takes a workload: bfloat16 or float16, D = 64, 96, 128 or 256, H a multiple of KV."""
    return w.dtype in ("bfloat16", "float16") and w.D in HEAD_SIZES and w.H % w.KV == 0


def attention_general(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *,
    longest: int,
    causal: bool = False,
    window: int | None = None,
) -> torch.Tensor:
    """Attention over packed sequences.

    Args:
        q, k, v, starts_q, starts_k, longest, window: see `sizes_of`; bfloat16 or float16.
        causal: query m sees no key behind the one that it stands at.
    Returns:
        (T, H, D), of q's type.
    Raises:
        TypeError, ValueError: see `sizes_of` and `attend`.
        RuntimeError: a GPU that is no Hopper.
    """
    return attention_general_with_lse(
        q, k, v, starts_q, starts_k, longest=longest, causal=causal, window=window
    )[0]


def attention_general_with_lse(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *,
    longest: int,
    causal: bool = False,
    window: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, and the log-sum-exp of every row of scores, (H, T) float32."""
    sizes = sizes_of(q, k, v, starts_q, starts_k, longest, window)
    seen = None if window is None else (min(window, sizes.S), 0 if causal else sizes.S)
    heads_outside = (x.transpose(0, 1)[None] for x in (q, k, v))  # views, nothing is copied
    o, lse = attend(*heads_outside, causal=causal, window=seen, begins=(starts_q, starts_k, longest, sizes.S))
    return o[0].transpose(0, 1), lse[0]
