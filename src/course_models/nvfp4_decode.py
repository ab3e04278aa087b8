"""A step of decoding with weights in NVFP4: a card without FP4 arithmetic decodes them where it multiplies.

    short = in_nvfp4(model)             its `decode` is for a CUDA graph, as every other
    CapturedDecode(short, cache)

Of every layer the seven matrices that a token is multiplied with are rounded to E2M1, in blocks of 16 columns with a
scale in E4M3 each. Matrices that are multiplied in one kernel are one tensor, with one second scale, as in checkpoints
that are made for serving. Embedding, head and norms stay in 16 bits, and so does the cache. A model's own weights stay
where they are, too: a server would drop those of the layers.

The product is one that knows nothing of its neighbours (`skinny_gemm_fp4.k02_fragments`). So a layer takes ten kernels
and not five, as `int4_decode` does: norm, product, turn, attention, product, sum and norm, product, gate, product, sum.
All but turn and last sum begin while the one before them ends.

Only steps are short. `prefill` multiplies with the weights as they were, so a text is to be read by `decode`, too, or
its first tokens are those of another model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_kernels.measure import Measurement, compare
from course_kernels.measure.competitor import Competitor
from course_kernels.nvfp4 import formats
from course_kernels.nvfp4.formats import E2M1, E4M3
from course_kernels.nvfp4.quantise import quantise
from course_kernels.problem import Workload
from course_kernels.qkv_rope.k01_three_kernels import WARPS, rope_kernel, rows_for
from course_kernels.rms_norm.k02_one_read import rms_norm, rms_norm_in_place
from course_kernels.skinny_gemm_fp4.k02_fragments import skinny_gemm_fp4
from course_kernels.skinny_gemm_fp4.layout import BLOCK, GROUP, packed
from course_kernels.swiglu.k01_fused import swiglu
from course_models import bench
from course_models.config import BF16_BYTES, Config, attention_parameters, block_parameters, decode_bytes
from course_models.graph import CapturedDecode
from course_models.model import Layer, Model, rope_tables
from course_models.operators import Operators, _tickets
from course_models.step_kernels import Weights, attention, fused

# The matrices of a layer that are one tensor each, and are multiplied in one kernel.
TOGETHER = (("query", "key", "value"), ("output",), ("gate", "up"), ("down",))
SECOND_BYTES = 4  # of each of them, float32


# --- the weights ---------------------------------------------------------------------------------


class Rounded(NamedTuple):
    """A matrix in NVFP4: codes of E2M1 (N, K) and of E4M3 (N, K/16), uint8; the second scale (1,) float32."""

    codes: Tensor
    scales: Tensor
    second: Tensor


class Packed(NamedTuple):
    """A matrix in NVFP4 as the kernel reads it: see `skinny_gemm_fp4.layout`."""

    words: Tensor
    scales: Tensor
    second: Tensor


def quantised(weights: Sequence[Tensor]) -> Rounded:
    """Return matrices of the same width, one below the other, as one tensor in NVFP4.

    Args:
        weights: (N, K) each, on a GPU, or anywhere where Triton interprets; K a multiple of 16.
    """
    pairs, scales, second = quantise(torch.cat(list(weights)))
    return Rounded(torch.stack((pairs & 15, pairs >> 4), dim=-1).flatten(1), scales, second)


def values_of(matrix: Rounded) -> Tensor:
    """Return what a matrix in NVFP4 stands for: (N, K) float64, exact."""
    numbers, steps = (
        torch.tensor(formats.values(form), device=codes.device)[codes.long()]
        for form, codes in ((E2M1, matrix.codes), (E4M3, matrix.scales))
    )
    return numbers * (steps * matrix.second.double()).repeat_interleave(BLOCK, dim=1)


@torch.no_grad()
def packed_weights(model: Model) -> dict[Layer, Weights]:
    """Return what the four products of each layer are handed, rounded and packed."""
    return {layer: Weights(*map(_packed, _tensors(layer))) for layer in model.layers}


def _tensors(layer: Any) -> list[list[Tensor]]:
    return [[getattr(layer, name) for name in names] for names in TOGETHER]


def _packed(weights: Sequence[Tensor]) -> Packed:
    codes, scales, second = quantised(weights)
    return Packed(*packed(codes, scales), second)


@torch.no_grad()
def rounded(layer: Layer) -> Layer:
    """Return the layer in float64, with the numbers that its codes stand for; by no packing, and by no product."""
    wide = copy.deepcopy(layer).double()
    for there, weights in zip(_tensors(wide), _tensors(layer), strict=True):
        parts = values_of(quantised(weights)).split([len(weight) for weight in weights])
        for to, part in zip(there, parts, strict=True):
            to.copy_(part)
    return wide


def step_bytes(config: Config, batch: int, tokens: int) -> int:
    """Return the least bytes that one decode step moves, as `decode_bytes` counts them, with weights in NVFP4.

    A rounded weight is half a byte, and a sixteenth of a scale of one byte: four and a half bits. Each of the four
    tensors of a layer has a second scale.
    """
    weights = config.layers * (attention_parameters(config) + block_parameters(config))
    short = weights // 2 + weights // BLOCK + SECOND_BYTES * len(TOGETHER) * config.layers
    return decode_bytes(config, batch, tokens) - BF16_BYTES * weights + short


# --- the step ------------------------------------------------------------------------------------


def in_nvfp4(model: Model) -> Model:
    """Return the same model, whose steps multiply with weights in NVFP4. The rest of it is the very same memory.

    Args:
        model: bfloat16, for which `step_kernels.is_for` holds.
    Raises:
        TypeError: another type.
        ValueError: experts; a width, heads or numbers inside a block that are no multiple of 128.
    """
    c = model.config
    if model.dtype is not torch.bfloat16:
        raise TypeError(
            f"in_nvfp4: expected a model in bfloat16, got {str(model.dtype).removeprefix('torch.')}"
        )
    if c.experts:
        raise ValueError("in_nvfp4: expected a model without experts")
    for name, size in (("width", c.width), ("heads * head_dim", c.heads * c.head_dim), ("hidden", c.hidden)):
        if size % GROUP:
            raise ValueError(f"in_nvfp4: expected {name} a multiple of {GROUP}, got {size}")
    twin = fused(model)  # for its head, and the norm before it
    tables = rope_tables(c, torch.float32, model.device)
    twin.decode_layer = partial(short_decode_layer, weights=packed_weights(model).__getitem__, tables=tables)
    return twin


def short_decode_layer(
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
    weights: Callable[[Layer], Weights],
    tables: tuple[Tensor, Tensor],
) -> Tensor:
    """`model.decode_layer`, ten kernels; the sums take the place of x, which is returned.

    Args:
        weights: of a layer, each of the four `Packed`.
        tables: cosine and sine of every position, (P, D/2) float32 each; those of the new tokens are not used.
    Raises:
        TypeError, ValueError: what the kernels do not take, in one line; more than 32 sequences.
    """
    c, B, w = layer.config, x.shape[0], weights(layer)
    stream, early = x.view(B, c.width), x.is_cuda
    h = rms_norm(stream, layer.attention_norm, eps=c.norm_eps, pdl=early)
    q = _turned(_product(h, w.qkv), tables, position, keys, values)
    h = _product(attention(q, keys, values, lengths).view(B, -1), w.output)
    rms_norm_in_place(h, layer.block_norm, stream, eps=c.norm_eps, pdl=early)  # stream becomes the sum
    stream += _product(swiglu(_product(h, w.gate_up), pdl=early), w.down)
    return x


def _product(x: Any, matrix: Packed) -> Tensor:
    """x (B, K) times the transpose of a packed matrix, begun early, with tickets that all layers share."""
    return skinny_gemm_fp4(x, *matrix, tickets=_tickets(x.device, len(matrix.words)), early=x.is_cuda)


def _turned(
    products: Tensor, tables: tuple[Tensor, Tensor], position: Tensor, keys: Tensor, values: Tensor
) -> Tensor:
    """Return the queries of a step, turned, (B, H, D); keys, turned too, and values go into the cache.

    Args:
        products: (B, (H + 2 KV) * D): queries, then keys, then values.
        tables: as for `short_decode_layer`.
        position: (B,): places of the new tokens.
        keys, values: (B, KV, room, D).
    """
    B, KV, room, D = keys.shape
    heads = products.shape[1] // D
    q = torch.empty((B, heads - 2 * KV, D), dtype=products.dtype, device=products.device)
    rope_kernel[(heads,)](
        products, position, *tables, q, keys, values, B, heads - 2 * KV, KV, len(tables[0]), room,
        ROWS=rows_for(B), D=D, INTO_CACHE=True, num_warps=WARPS,
    )  # fmt: skip
    return q


# --- what a page calls ---------------------------------------------------------------------------


def decode(
    model: Model,
    batch: int,
    *,
    held: int = bench.HELD,
    steps: int = bench.STEPS,
    seconds: float = 0.5,
    **how: Any,
) -> Measurement:
    """Check and time short steps, captured: as `bench.decode`, against the model of the rounded weights.

    Raises:
        Refused: a wrong answer, or one that came faster than it can.
    """
    cache = bench.filled_cache(model, batch, held, steps)
    problem = bench.decode_problem(model, cache, held, widened=rounded, least_bytes=step_bytes)
    workload = Workload.of(str(model.dtype).removeprefix("torch."), B=batch, N=held, T=steps)
    captured = CapturedDecode(in_nvfp4(model), cache)
    function = bench.stepping(captured, cache, held, model.config.vocab)
    field = {"short": Competitor("decode, weights in NVFP4", problem, function)}
    return compare(field, workload, seconds=seconds, device=model.device.type, **how)["short"]
