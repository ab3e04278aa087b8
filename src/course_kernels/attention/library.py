"""PyTorch's attention: one function for each back end of `scaled_dot_product_attention`; and FlashInfer.

All take q, k, v (B, H, N, D) of one type and `causal`, and return (B, H, N, D). A back end that does not take
a workload raises RuntimeError instead of handing it to another.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

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
    """Return the memory-efficient kernel that came with xFormers: bfloat16, float16 and float32."""
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


def flashinfer_version() -> str:
    """Return the FlashInfer that is installed here, such as "0.5.3", or "" where there is none; nothing is imported."""
    try:
        return version("flashinfer-python")
    except PackageNotFoundError:
        return ""


def flashinfer_fa3(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False
) -> torch.Tensor:
    """FlashInfer's FlashAttention-3, for one sequence on a Hopper: bfloat16 and float16, B = 1.

    FlashInfer has the heads inside, (N, H, D). It takes any strides, so q, k and v go over as views, nothing is copied,
    and the answer is a view of what it wrote. The first call of a type and D compiles, with nvcc, for minutes.

    Raises:
        ValueError: B is not 1.
        RuntimeError: FlashInfer is not installed.
    """
    if q.shape[0] != 1:
        raise ValueError(f"q: expected B = 1, one sequence, got B={q.shape[0]}")
    if not flashinfer_version():
        raise RuntimeError(
            "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
        )
    flashinfer = import_module("flashinfer")
    heads_inside = (x[0].transpose(0, 1) for x in (q, k, v))
    o = flashinfer.single_prefill_with_kv_cache(*heads_inside, causal=causal, kv_layout="NHD", backend="fa3")
    return o.transpose(0, 1)[None]
