"""A step of decoding in five kernels a layer, each begun while the one before it ends.

    faster = fused(model)          the same weights; its `decode` is for a CUDA graph, as every other
    CapturedDecode(faster, cache)

One kernel makes queries, keys and values, and puts the last two into the cache; one is attention; one is the output
projection and its sum with the residual stream; one gate, up and what is between them; one down and its sum. Where
memory is the bound, what is left to gain lies between kernels: each asks for its first weights before the one before it
has ended. Prefill is as it was. Hopper; bfloat16 or float16.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.decode_attention.k03_early import decode_attention
from course_kernels.decode_linear import k01_stream
from course_kernels.decode_linear.arguments import DTYPES, MOST_ROWS, PIECE, TILE_N
from course_kernels.rms_norm.k02_one_read import rms_norm
from course_models.model import Layer, Model
from course_models.operators import PLAIN, Operators

MOST_SHARE = 64  # query heads of a head of the cache


def is_for(model: Model, batch: int) -> bool:
    """Whether these kernels take a model's steps on the card that it lies on."""
    c = model.config
    return (
        is_hopper(model.device)
        and model.dtype in DTYPES
        and not c.experts
        and batch <= MOST_ROWS
        and c.head_dim in k01_stream.HEAD_SIZES
        and c.heads <= c.kv_heads * MOST_SHARE
        and not any(size % PIECE for size in (c.width, c.hidden, c.heads * c.head_dim))
    )


def fused_decode_layer(
    ops: Operators,
    layer: Layer,
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    keys: Tensor,
    values: Tensor,
    each: Tensor,
    position: Tensor,
    lengths: Tensor,
) -> Tensor:
    """`model.decode_layer`, five kernels; the sums take the place of x, which is returned.

    Raises:
        TypeError, ValueError: what the kernels do not take, in one line; experts; more than 32 sequences.
    """
    c = layer.config
    if c.experts:
        raise ValueError("fused_decode_layer: expected a layer without experts: take the plain layer")
    B = x.shape[0]
    tickets = _tickets(x.device, k01_stream.tickets_for(2 * c.hidden))
    stream, half = x.view(B, c.width), c.head_dim // 2
    q = k01_stream.qkv_into_cache(
        stream,
        layer.attention_norm,
        (layer.query, layer.key, layer.value),
        cos.view(B, half),
        sin.view(B, half),
        position,
        keys,
        values,
        eps=c.norm_eps,
        tickets=tickets,
        early=True,
    )
    heads = _tickets(x.device, B * c.kv_heads)
    attended = decode_attention(q, keys, values, lengths, tickets=heads, pdl=True)
    k01_stream.add_to(attended.view(B, -1), layer.output, stream, tickets=tickets, early=True)
    h = k01_stream.gate_up(
        stream, layer.block_norm, layer.gate, layer.up, eps=c.norm_eps, tickets=tickets, early=True
    )
    k01_stream.add_to(h, layer.down, stream, tickets=tickets, early=True)
    return x


def few_rows_linear(x: Tensor, weight: Tensor) -> Tensor:
    """`linear` of a step: x (B, 1, K) times the transpose of weight (N, K), the head's.

    Many rows go to torch, and so does a vocabulary of no whole tiles.
    """
    if x.numel() // x.shape[-1] > MOST_ROWS or len(weight) % TILE_N:
        return functional.linear(x, weight)
    early = k01_stream.decode_linear(
        x.flatten(0, -2), weight, early=True, tickets=_head_tickets(x.device, len(weight))
    )
    return early.view(*x.shape[:-1], -1)


def early_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`rms_norm` of a step, begun while the kernel before it ends."""
    y = rms_norm(x.flatten(0, -2), weight, eps=eps, pdl=True)
    assert isinstance(y, Tensor)
    return y.view(x.shape)


def fused(model: Model) -> Model:
    """The same model, the same weights in the same memory, whose steps take these kernels."""
    twin = model.with_operators(replace(PLAIN, linear=few_rows_linear, rms_norm=early_norm))
    twin.decode_layer = fused_decode_layer
    return twin


@cache
def _tickets(device: torch.device, n: int) -> Tensor:
    """Zeros that every call leaves as zeros: all layers share them, since they run one after the other."""
    return torch.zeros(n, dtype=torch.int32, device=device)


def _head_tickets(device: torch.device, rows: int) -> Tensor:
    return _tickets(device, k01_stream.tickets_for(rows))
