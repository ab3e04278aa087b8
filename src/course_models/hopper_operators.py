"""Operators of a prefill by our Hopper kernels, to be swapped in one by one, and the swaps by name.

    faster = model.with_operators(PREFILL_SWAPS["both"])

Everything else is as in the model with the library's attention, so the gain of a swap is its own. B is the batch, H the
query heads, KV the heads of keys and values, D the numbers of a head, N the tokens of this call, M the tokens so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from course_kernels.attention import k06_wgmma
from course_kernels.gemm import k14_tuned
from course_models.operators import PLAIN, Operators, sdpa_prefill_attention

# Below it a tile of 128 rows is not full, and a product is bound by the bytes of its weights: another kernel's work.
LEAST_ROWS = 128
EIGHT = 8  # 16-bit numbers in 16 bytes: what the copy engine wants rows and addresses to be multiples of
SIXTEEN_BITS = (torch.bfloat16, torch.float16)


def is_ours(x: Tensor, weight: Tensor) -> bool:
    """Return whether `tuned_linear` multiplies these with our kernel; it is torch's work otherwise.

    Args:
        x: (..., K).
        weight: (N, K).
    """
    N, K = weight.shape
    return (
        x.numel() // K >= LEAST_ROWS
        and x.dtype in SIXTEEN_BITS
        and x.dtype is weight.dtype
        and N % EIGHT == K % EIGHT == 0
        and all(t.is_contiguous() and t.data_ptr() % 16 == 0 for t in (x, weight))
    )


def tuned_linear(x: Tensor, weight: Tensor) -> Tensor:
    """`linear` by `course_kernels.gemm.k14_tuned`, on Hopper: x times the transpose of weight.

    Fewer rows than LEAST_ROWS, other types than bfloat16 and float16, and what the copy engine does not take (N or K no
    multiple of 8, another address than a multiple of 16 bytes, rows that do not lie one behind the other) go to torch.

    Args:
        x: (..., K).
        weight: (N, K), as checkpoints have it: to the kernel it is B, laid the other way.
    Returns:
        (..., N), the same type.
    Raises:
        ValueError: no tensors on the current GPU, or one that is no Hopper; sizes that do not fit.
    """
    if not is_ours(x, weight):
        return functional.linear(x, weight)
    N, K = weight.shape
    return k14_tuned.gemm(x.view(-1, K), weight.t()).view(*x.shape[:-1], N)


def wgmma_prefill_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """`prefill_attention` by `course_kernels.attention.k06_wgmma`: Hopper, bfloat16 or float16, D 64, 96, 128 or 256.

    The kernel knows shared heads, and keys before the first query, so nothing is copied out and M > N is taken.

    Args:
        q: (B, H, N, D).
        k, v: (B, KV, M, D), M >= N.
    Returns:
        (B, H, N, D).
    Raises:
        TypeError, ValueError, RuntimeError: what the kernel does not take, in one line.
    """
    if q.shape[2] > k.shape[2]:
        raise ValueError(
            f"wgmma_prefill_attention: expected at least as many keys as queries, got {k.shape[2]} and {q.shape[2]}"
        )
    return k06_wgmma.attention(q, k, v, causal=True)


LIBRARY = replace(PLAIN, prefill_attention=sdpa_prefill_attention)
PREFILL_SWAPS: Mapping[str, Operators] = {
    "our_multiply": replace(LIBRARY, linear=tuned_linear),
    "our_attention": replace(LIBRARY, prefill_attention=wgmma_prefill_attention),
    "both": replace(LIBRARY, linear=tuned_linear, prefill_attention=wgmma_prefill_attention),
}
