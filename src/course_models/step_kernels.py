"""A step of decoding in five kernels a layer, each begun while the one before it ends.

    faster = fused(model)          the same weights; its `decode` is for a CUDA graph, as every other
    CapturedDecode(faster, cache)

One kernel makes queries, keys and values, and puts the last two into the cache; one is attention; one is the output
projection and its sum with the residual stream; one gate, up and what is between them; one down and its sum. Where
memory is the bound, what is left to gain lies between kernels: each asks for its first weights before the one before it
has ended. Prefill is as it was. Hopper; bfloat16 or float16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from torch import Tensor
from torch.nn import functional

from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.decode_attention import k03_early, k04_cluster
from course_kernels.decode_attention.arguments import MOST_SHARE
from course_kernels.decode_linear import k01_stream, k02_even
from course_kernels.decode_linear.arguments import (
    ADD,
    DTYPES,
    GATE,
    HEAD_SIZES,
    MOST_ROWS,
    NOTHING,
    PIECE,
    ROPE,
    TILE_N,
    Turned,
)
from course_kernels.rms_norm.k02_one_read import rms_norm
from course_kernels.rms_norm.problem import MAX_N
from course_models.model import Layer, Model
from course_models.operators import PLAIN, Operators, _tickets

# --- which kernel computes what ------------------------------------------------------------------


def started_early(kernel: ModuleType, **how: Any) -> Callable[..., Tensor]:
    """`start` of a kernel of decode_linear, early, with tickets that all layers share."""

    def start(x: Tensor, weights: tuple[Tensor, ...], behind: int, **rest: Any) -> Tensor:
        tickets = _tickets(x.device, kernel.tickets_for(sum(map(len, weights))))
        return kernel.start(x, weights, behind, tickets=tickets, early=True, **how, **rest)

    return start


def attention(q: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """Decode attention, begun early: by a cluster where a head's queries fit on a tensor core, else in parts."""
    if q.shape[1] <= keys.shape[1] * k04_cluster.MOST_SHARE:
        return k04_cluster.decode_attention(q, keys, values, lengths, early=True)
    tickets = _tickets(q.device, keys.shape[0] * keys.shape[1])
    return k03_early.decode_attention(q, keys, values, lengths, tickets=tickets, pdl=True)


@dataclass(frozen=True)
class Kernels:
    """A step's kernels; each may be swapped for another of the same contract.

    Attributes:
        qkv, output, gate_up, down, head: what multiplies, see `started_early`.
        attention: as the function of this name.
    """

    qkv: Callable[..., Tensor]
    output: Callable[..., Tensor]
    gate_up: Callable[..., Tensor]
    down: Callable[..., Tensor]
    head: Callable[..., Tensor]
    attention: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = attention


STREAM, EVEN = started_early(k01_stream), started_early(k02_even)
# With few rows a block of k01_stream holds x in registers, and nothing stands between memory and tensor core. But K of
# `down` is too long for one block, and the head has so many tiles that an even cut leaves nobody idle.
FEW = Kernels(qkv=STREAM, output=STREAM, gate_up=STREAM, down=EVEN, head=EVEN)
# More rows of x are too many for registers. Of qkv a block has few boxes, so it need not ask far ahead.
MANY = Kernels(qkv=started_early(k02_even, stages=6), output=EVEN, gate_up=EVEN, down=EVEN, head=EVEN)
MOST_FEW = 8  # rows of x, a tensor core's own number: with one more k01_stream holds twice as many


def kernels_for(rows: int) -> Kernels:
    """Return what computes a step of so many rows."""
    return FEW if rows <= MOST_FEW else MANY


class Weights(NamedTuple):
    """Weights of a layer's four products: the matrices of each, in a form that its kernel takes."""

    qkv: Any
    output: Any
    gate_up: Any
    down: Any


def own_weights(layer: Layer) -> Weights:
    """Return the matrices themselves."""
    return Weights(
        qkv=(layer.query, layer.key, layer.value),
        output=(layer.output,),
        gate_up=(layer.gate, layer.up),
        down=(layer.down,),
    )


# --- the step ------------------------------------------------------------------------------------


def is_for(model: Model, batch: int) -> bool:
    """Return whether these kernels take a model's steps on the card that it lies on."""
    c = model.config
    return (
        is_hopper(model.device)
        and model.dtype in DTYPES
        and not c.experts
        and batch <= MOST_ROWS
        and c.head_dim in HEAD_SIZES
        and c.heads <= c.kv_heads * MOST_SHARE
        and c.width <= MAX_N  # the last norm's
        and not any(size % PIECE for size in (c.width, c.hidden))
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
    *,
    kernels: Kernels | None = None,
    weights: Callable[[Layer], Weights] = own_weights,
) -> Tensor:
    """`model.decode_layer`, five kernels; the sums take the place of x, which is returned.

    Args:
        kernels: without them, `kernels_for` the rows of x.
        weights: of a layer, as the kernels take them.
    Raises:
        TypeError, ValueError: what the kernels do not take, in one line; experts; more than 32 sequences.
    """
    c = layer.config
    if c.experts:
        raise ValueError("fused_decode_layer: expected a layer without experts: take the plain layer")
    B = x.shape[0]
    by = kernels or kernels_for(B)
    stream, half = x.view(B, c.width), c.head_dim // 2
    turned = Turned(cos.view(B, half), sin.view(B, half), position, keys, values)
    w = weights(layer)
    q = by.qkv(stream, w.qkv, ROPE, g=layer.attention_norm, turned=turned, eps=c.norm_eps)
    attended = by.attention(q, keys, values, lengths).view(B, -1)
    by.output(attended, w.output, ADD, r=stream, y=stream)
    h = by.gate_up(stream, w.gate_up, GATE, g=layer.block_norm, eps=c.norm_eps)
    by.down(h, w.down, ADD, r=stream, y=stream)
    return x


def few_rows_linear(x: Tensor, weight: Tensor, *, kernels: Kernels | None = None) -> Tensor:
    """`linear` of a step: x (B, 1, K) times the transpose of weight (N, K), the head's.

    Many rows go to torch, and so does a vocabulary of no whole tiles.
    """
    rows = x.numel() // x.shape[-1]
    if rows > MOST_ROWS or len(weight) % TILE_N:
        return functional.linear(x, weight)
    by = kernels or kernels_for(rows)
    return by.head(x.flatten(0, -2), (weight,), NOTHING).view(*x.shape[:-1], -1)


def early_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`rms_norm` of a step, begun while the kernel before it ends."""
    y = rms_norm(x.flatten(0, -2), weight, eps=eps, pdl=True)
    assert isinstance(y, Tensor)
    return y.view(x.shape)


def fused(
    model: Model, kernels: Kernels | None = None, weights: Callable[[Layer], Weights] = own_weights
) -> Model:
    """Return the same model, the same weights in the same memory, whose steps take these kernels.

    Args:
        model: see `is_for`.
        kernels: what its steps compute with; without them, `kernels_for` the rows of each call.
        weights: of a layer, as these kernels take them.
    """
    linear = partial(few_rows_linear, kernels=kernels)
    twin = model.with_operators(replace(PLAIN, linear=linear, rms_norm=early_norm))
    twin.decode_layer = partial(fused_decode_layer, kernels=kernels, weights=weights)
    return twin
