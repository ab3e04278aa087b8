"""PyTorch's backward passes of attention: a function for each back end of its attention; and autograd.

All take what the problem's kernels take, and return dq, dk and dv. Those of the back ends call the operator that
autograd would call, with the O and L that are given: nothing but the backward pass is in their time. A back end that
does not take a workload raises RuntimeError; so does a torch that has another signature, in one line that names both.

FlashAttention and the memory-efficient kernel have the heads inside, (B, N, H, D), and want O and dO so in memory. What
lies otherwise is copied first, within their time: two tensors, where a backward pass reads five and writes three.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import pad, scaled_dot_product_attention

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

# What a row of lse is aligned to where the memory-efficient kernel reads it.
LSE_MULTIPLE = 32

# The arguments that each operator must have, by name and in order: torch keeps no promise about operators with a `_`.
FLASH = (
    "grad_out query key value out logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p is_causal "
    "philox_seed philox_offset scale"
)
CUDNN = (
    "grad_out query key value out logsumexp philox_seed philox_offset attn_bias cum_seq_q cum_seq_k "
    "max_q max_k dropout_p is_causal scale"
)
EFFICIENT = (
    "grad_out_ query key value attn_bias out logsumexp philox_seed philox_offset dropout_p grad_input_mask "
    "is_causal scale"
)


@cache
def operator(name: str, arguments: str) -> Callable[..., Any]:
    """Return an operator of torch, once its arguments are the ones that it is called with here.

    Raises:
        RuntimeError: this torch does not have it, or it takes other arguments.
    """
    found = getattr(torch.ops.aten, name, None)
    has = " ".join(a.name for a in found.default._schema.arguments) if found else "no such operator"
    if found is None or has != arguments:
        raise RuntimeError(f"aten::{name}: expected ({arguments}), torch {torch.__version__} has ({has})")
    function: Callable[..., Any] = found.default
    return function


def no_dropout(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a seed and an offset for random numbers that nobody draws."""
    seed, offset = (torch.empty((), dtype=torch.int64, device=q.device) for _ in range(2))
    return seed, offset


def sdpa_flash(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
) -> Gradients:
    """FlashAttention-2, as torch carries it: bfloat16 and float16. It adds to dQ by atomics, in no order."""
    backward = operator("_scaled_dot_product_flash_attention_backward", FLASH)
    N = q.shape[2]
    dq, dk, dv = backward(do, q, k, v, o, lse, None, None, N, N, 0.0, causal, *no_dropout(q))
    return dq, dk, dv


def sdpa_flash_deterministic(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
) -> Gradients:
    """FlashAttention-2 with the same bits every time, as torch's setting for deterministic algorithms asks it to be."""
    was_on = torch.are_deterministic_algorithms_enabled()
    was_warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    was_filling = torch.utils.deterministic.fill_uninitialized_memory
    # Not `torch.use_deterministic_algorithms`, which reads all of PyTorch's compiler first; and no memory is filled
    # before it is used, which that setting asks for as well.
    torch._C._set_deterministic_algorithms(True, warn_only=False)
    torch.utils.deterministic.fill_uninitialized_memory = was_on and was_filling
    try:
        return sdpa_flash(q, k, v, o, lse, do, causal=causal)
    finally:
        torch._C._set_deterministic_algorithms(was_on, warn_only=was_warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = was_filling


def sdpa_cudnn(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
) -> Gradients:
    """cuDNN's fused attention: bfloat16 and float16."""
    backward = operator("_scaled_dot_product_cudnn_attention_backward", CUDNN)
    N = q.shape[2]
    column = lse.unsqueeze(-1)  # of four dimensions, as its forward pass leaves it
    dq, dk, dv = backward(do, q, k, v, o, column, *no_dropout(q), None, None, None, N, N, 0.0, causal)
    return dq, dk, dv


def sdpa_efficient(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
) -> Gradients:
    """Return the memory-efficient kernel that came with xFormers: bfloat16, float16 and float32."""
    backward = operator("_scaled_dot_product_efficient_attention_backward", EFFICIENT)
    # Its forward pass leaves an O with the heads inside, and rows of lse of a multiple of 32.
    o = o.transpose(1, 2).contiguous().transpose(1, 2)
    lse = pad(lse, (0, -lse.shape[2] % LSE_MULTIPLE), value=torch.inf)
    wanted = [True, True, True, False]  # no gradient of a bias
    dq, dk, dv, _ = backward(do, q, k, v, None, o, lse, *no_dropout(q), 0.0, wanted, causal)
    return dq, dk, dv


def sdpa_math(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
) -> Gradients:
    """Plain torch operations with the scores in memory, by autograd: any type, float32 without TF32.

    It takes nothing of o and lse and does the forward pass again, with what autograd keeps of it: both are in its time.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
            out = scaled_dot_product_attention(q, k, v, is_causal=causal)
            dq, dk, dv = torch.autograd.grad(out, (q, k, v), do)
        # A multiply hands out what it wrote as it comes, turned: whoever reads a gradient next wants its rows.
        return dq.contiguous(), dk.contiguous(), dv.contiguous()
    finally:
        torch.set_float32_matmul_precision(before)
