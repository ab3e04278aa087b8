"""PyTorch's attention for a step of decoding: `scaled_dot_product_attention` with heads that share, by its back ends.

All take what the problem's kernels take, and answer for a cache that is full: the lengths are not looked at. With a
mask for the others torch would read all of the room, and a weight of zero times the NaN in it would be NaN. A back end
that does not take a workload raises RuntimeError instead of handing it to another.
"""

from __future__ import annotations

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def _by(back_end: SDPBackend, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(back_end):
        return scaled_dot_product_attention(q[:, :, None], k_cache, v_cache, enable_gqa=True)[:, :, 0]


def sdpa_flash(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """FlashAttention-2, as torch carries it: bfloat16 and float16. It cuts long sequences, too."""
    return _by(SDPBackend.FLASH_ATTENTION, q, k_cache, v_cache)


def sdpa_cudnn(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """cuDNN's fused attention: bfloat16 and float16."""
    return _by(SDPBackend.CUDNN_ATTENTION, q, k_cache, v_cache)


def sdpa_math(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Plain torch operations, keys and values copied for every head of the query: any type, float32 without TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        return _by(SDPBackend.MATH, q, k_cache, v_cache)
    finally:
        torch.set_float32_matmul_precision(before)
