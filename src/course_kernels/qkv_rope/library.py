"""PyTorch's beginning of a layer: its operators in a row, and the same through its compiler.

No library that we know has these steps in one kernel: they are given in a row there, too, by kernels that are raced
one by one in `rms_norm` and in the multiplies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from course_kernels.qkv_rope.problem import EPSILON

Answer = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def eager(
    x: torch.Tensor,
    g: torch.Tensor,
    w_qkv: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    *,
    kv_heads: int,
) -> Answer:
    """torch's `rms_norm`, one multiply with the merged weights by cuBLAS, and RoPE written out, in float32.

    Args:
        x: (B, W), any floating-point type.
        g: (W,), the same type.
        w_qkv: ((H + 2 KV) * D, W), the same type.
        positions: (B,) int32.
        cos, sin: (P, D/2) float32.
        kv_heads: KV.
    Returns:
        q (B, H, D), k and v (B, KV, D), the same type.
    """
    h = torch.nn.functional.rms_norm(x, (x.shape[-1],), g, EPSILON)
    p = torch.nn.functional.linear(h, w_qkv).view(x.shape[0], -1, 2 * cos.shape[1])
    turned, v = p[:, :-kv_heads], p[:, -kv_heads:]
    c, s = cos[positions][:, None], sin[positions][:, None]  # (B, 1, D/2)
    a, b = turned.float().chunk(2, dim=-1)
    turned = torch.cat((a * c - b * s, b * c + a * s), dim=-1).to(x.dtype)
    q, k = turned[:, :-kv_heads], turned[:, -kv_heads:]
    return q.contiguous(), k.contiguous(), v.contiguous()


def compiled(
    x: torch.Tensor,
    g: torch.Tensor,
    w_qkv: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    *,
    kv_heads: int,
) -> Answer:
    """`eager` through torch.compile, which leaves the multiply to cuBLAS and fuses what is beside it."""
    return _compiled()(x, g, w_qkv, positions, cos, sin, kv_heads=kv_heads)


@functools.cache
def _compiled() -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(eager, fullgraph=True, dynamic=False)
