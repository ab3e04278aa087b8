"""The operators of a layer that may be swapped: plain PyTorch, the library's attention, and our kernels.

    faster = model.with_operators(dataclasses.replace(PLAIN, decode_attention=our_decode_attention))

A swap takes the place of one function and nothing else, so its gain is its own. B is the batch, H the query heads,
KV the heads of keys and values, D the numbers of a head, N the tokens of this call, M the tokens so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional

# --- plain PyTorch, written out ------------------------------------------------------------------


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x times the transpose of weight: (..., K) and (M, K) give (..., M)."""
    return functional.linear(x, weight)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return every row of x, (..., width), divided by its root mean square, times weight, (width,)."""
    # region rms_norm
    # In float32 at least: half precision loses the mean of many squares.
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * scale).to(x.dtype) * weight
    # endregion


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the pairs of every head by angles that grow with the position.

    Number i is paired with number i + D/2, as Hugging Face's checkpoints have it. Meta's own files pair 2i with
    2i + 1: the same model with its rows in another order.

    Args:
        x: (B, heads, N, D).
        cos, sin: (B or 1, 1, N, D/2), of the angles; float32, or float64 for a model in float64.
    """
    # region rope
    a, b = x.to(cos.dtype).chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)
    # endregion


def prefill_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of N new tokens over M >= N tokens, of which the new ones are the last.

    Args:
        q: (B, H, N, D).
        k, v: (B, KV, M, D); query head h reads head h // (H / KV).
    Returns:
        (B, H, N, D).
    """
    B, H, N, D = q.shape
    KV, M = k.shape[1:3]
    grouped = q.reshape(B, KV, H // KV, N, D)
    scores = grouped @ k[:, :, None].transpose(-1, -2) / sqrt(D)  # (B, KV, group, N, M)
    row = torch.arange(M - N, M, device=q.device)[:, None]  # positions of the new tokens
    future = torch.arange(M, device=q.device) > row
    scores = scores.masked_fill(future, -torch.inf)
    weights = torch.softmax(scores, dim=-1, dtype=_wide(q)).to(q.dtype)
    return (weights @ v[:, :, None]).view(B, H, N, D)


def decode_attention(q: Tensor, k_cache: Tensor, v_cache: Tensor, lengths: Tensor) -> Tensor:
    """Attention of one new token for each sequence over its part of a cache with fixed room.

    The shapes do not depend on `lengths`, so that a CUDA graph can hold the call: all of the room is multiplied, and
    what lies past a sequence's end is masked.

    Args:
        q: (B, H, D).
        k_cache, v_cache: (B, KV, N_MAX, D), finite everywhere.
        lengths: (B,) int32, the tokens of each sequence, the new one among them.
    Returns:
        (B, H, D).
    """
    B, H, D = q.shape
    KV, N_MAX = k_cache.shape[1:3]
    grouped = q.reshape(B, KV, H // KV, D)
    scores = grouped @ k_cache.transpose(-1, -2) / sqrt(D)  # (B, KV, group, N_MAX)
    empty = torch.arange(N_MAX, device=q.device) >= lengths[:, None, None, None]
    scores = scores.masked_fill(empty, -torch.inf)
    weights = torch.softmax(scores, dim=-1, dtype=_wide(q)).to(q.dtype)
    return (weights @ v_cache).view(B, H, D)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, element by element; silu(x) = x / (1 + exp(-x))."""
    # region swiglu
    return functional.silu(gate) * up
    # endregion


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


@dataclass(frozen=True)
class Operators:
    """A layer's operators; each may be swapped for another of the same contract.

    Attributes:
        linear, rms_norm, rope, prefill_attention, decode_attention, swiglu: as the functions of these names.
    """

    linear: Callable[[Tensor, Tensor], Tensor] = linear
    rms_norm: Callable[[Tensor, Tensor, float], Tensor] = rms_norm
    rope: Callable[[Tensor, Tensor, Tensor], Tensor] = rope
    prefill_attention: Callable[[Tensor, Tensor, Tensor], Tensor] = prefill_attention
    decode_attention: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = decode_attention
    swiglu: Callable[[Tensor, Tensor], Tensor] = swiglu


PLAIN = Operators()

# --- the library's attention ---------------------------------------------------------------------


def sdpa_prefill_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """`prefill_attention` by torch's fused one; M > N goes with a mask."""
    N, M = q.shape[2], k.shape[2]
    if N == M:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    seen = torch.ones(N, M, dtype=torch.bool, device=q.device).tril(M - N)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


def sdpa_decode_attention(q: Tensor, k_cache: Tensor, v_cache: Tensor, lengths: Tensor) -> Tensor:
    """`decode_attention` by torch's fused one: the query heads that share a head go as rows of one."""
    B, H, D = q.shape
    KV, N_MAX = k_cache.shape[1:3]
    held = torch.arange(N_MAX, device=q.device) < lengths[:, None, None, None]  # (B, 1, 1, N_MAX)
    rows = q.reshape(B, KV, H // KV, D)
    return functional.scaled_dot_product_attention(rows, k_cache, v_cache, attn_mask=held).reshape(B, H, D)


# --- our kernels ---------------------------------------------------------------------------------


def our_prefill_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """`prefill_attention` by `course_kernels.attention.k04_specialised`: Hopper, bfloat16 or float16, D 64 or 128.

    That kernel knows neither shared heads nor keys before the first query. So keys and values are copied out to H
    heads, group times the bytes written and read again, and a call with M > N is refused.

    Raises:
        TypeError, ValueError, RuntimeError: what the kernel does not take, in one line.
    """
    if q.shape[2] != k.shape[2]:
        raise ValueError(
            f"our_prefill_attention: expected as many keys as queries, got {k.shape[2]} and {q.shape[2]}: "
            "take the plain operator to go on from a cache"
        )
    _on_a_gpu("our_prefill_attention", q)
    from course_kernels.attention.k04_specialised import attention

    group = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(group, dim=1).contiguous() for x in (k, v))
    return attention(q.contiguous(), keys, values, causal=True)


def our_decode_attention(q: Tensor, k_cache: Tensor, v_cache: Tensor, lengths: Tensor) -> Tensor:
    """`decode_attention` by `course_kernels.decode_attention.k02_split`: bfloat16, float16 or float32, D 64 or 128.

    What lies past a sequence's end is not read, whatever the room. Without a GPU Triton's interpreter may run it.

    Raises:
        TypeError, ValueError: what the kernel does not take, in one line.
    """
    from course_kernels.decode_attention.k02_split import decode_attention

    tickets = _tickets(q.device, k_cache.shape[0] * k_cache.shape[1])
    return decode_attention(q.contiguous(), k_cache, v_cache, lengths, tickets=tickets)


@cache
def _tickets(device: torch.device, heads: int) -> Tensor:
    """Zeros that every call leaves as zeros: all layers share them, since they run one after the other."""
    return torch.zeros(heads, dtype=torch.int32, device=device)


def _on_a_gpu(name: str, q: Tensor) -> None:
    if q.device.type != "cuda":
        raise RuntimeError(
            f"{name}: expected tensors on a GPU, got {q.device}: take the plain operator there"
        )
