"""What torch offers for attention: one function for each back end of `scaled_dot_product_attention`.

All take q, k, v (B, H, N, D) of one type and `causal`, and return (B, H, N, D). A back end that does not take
a workload raises RuntimeError instead of handing it to another.
"""

from __future__ import annotations

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def sdpa_flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """FlashAttention-2, as torch carries it: bfloat16 and float16."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


def sdpa_cudnn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """cuDNN's fused attention: bfloat16 and float16."""
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


def sdpa_efficient(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False
) -> torch.Tensor:
    """The memory-efficient kernel that came with xFormers: bfloat16, float16 and float32."""
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)


def sdpa_math(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """Plain torch operations with the scores in memory: any type, float32 without TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(q, k, v, is_causal=causal)
    finally:
        torch.set_float32_matmul_precision(before)
