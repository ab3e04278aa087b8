"""A step of decoding with weights of four bits: the five kernels a layer of `step_kernels`, a quarter of their bytes.

    short = in_four_bits(model)         its `decode` is for a CUDA graph, as every other
    CapturedDecode(short, cache)

Of every layer the seven matrices that a token is multiplied with are rounded to four bits, in groups of 128 columns
with a scale each; embedding, head and norms stay in 16 bits, and so does the cache. A model's own weights stay where
they are, too: a server would drop those of the layers.

Only steps are short. `prefill` multiplies with the weights as they were, so a text is to be read by `decode`, too, or
its first tokens are those of another model.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from course_kernels.cuda.four_bits import GROUP, TILE_N, quantised, values_of
from course_kernels.decode_linear import stream_w4
from course_kernels.decode_linear.arguments import ADD, GATE, ROPE
from course_kernels.decode_linear.stream_w4 import Packed, packed_for
from course_kernels.measure import Measurement, compare
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload
from course_models import bench
from course_models.config import BF16_BYTES, Config, attention_parameters, block_parameters, decode_bytes
from course_models.graph import CapturedDecode
from course_models.model import Layer, Model
from course_models.operators import _tickets
from course_models.step_kernels import FEW, Weights, fused, own_weights

ROUNDED = ("query", "key", "value", "output", "gate", "up", "down")  # of a layer


def in_four_bits(model: Model) -> Model:
    """Return the same model, whose steps multiply with weights of four bits. The rest of it is the very same memory.

    Args:
        model: bfloat16 or float16, for which `step_kernels.is_for` holds.
    Raises:
        ValueError: experts; a width, heads or numbers inside a block that are no multiple of 128.
    """
    c = model.config
    if c.experts:
        raise ValueError("in_four_bits: expected a model without experts")
    for name, size in (("width", c.width), ("heads * head_dim", c.heads * c.head_dim), ("hidden", c.hidden)):
        if size % GROUP:
            raise ValueError(f"in_four_bits: expected {name} a multiple of {GROUP}, got {size}")
    kernels = replace(FEW, qkv=_start, output=_start, gate_up=_start, down=_start)
    return fused(model, kernels, packed_weights(model).__getitem__)


@torch.no_grad()
def packed_weights(model: Model) -> dict[Layer, Weights]:
    """Return what the four products of each layer are handed, rounded and packed."""
    packed = {}
    for layer in model.layers:
        assert isinstance(layer, Layer)
        w = own_weights(layer)
        packed[layer] = Weights(
            qkv=packed_for(w.qkv, ROPE, layer.config.head_dim),
            output=packed_for(w.output, ADD),
            gate_up=packed_for(w.gate_up, GATE),
            down=packed_for(w.down, ADD),
        )
    return packed


def _start(x: Tensor, packed: Packed, behind: int, **rest: Any) -> Tensor:
    """`start` of stream_w4, early, with tickets that all layers share."""
    tickets = _tickets(x.device, stream_w4.tickets_for(TILE_N * len(packed.words)))
    return stream_w4.start(x, packed, behind, tickets=tickets, early=True, **rest)


def rounded(layer: Layer) -> Layer:
    """Return the layer in float64, with the numbers that its four bits stand for; by no packing, and by no kernel."""
    wide = copy.deepcopy(layer).double()
    with torch.no_grad():
        for name in ROUNDED:
            weight = getattr(layer, name)
            getattr(wide, name).copy_(values_of(*quantised(weight.float(), weight.dtype)))
    return wide


def step_bytes(config: Config, batch: int, tokens: int) -> int:
    """Return the least bytes that one decode step moves, as `decode_bytes` counts them, with weights of four bits.

    A rounded weight is half a byte, and a hundred-and-twenty-eighth of a scale of two bytes.
    """
    weights = config.layers * (attention_parameters(config) + block_parameters(config))
    short = weights // 2 + BF16_BYTES * (weights // GROUP)
    return decode_bytes(config, batch, tokens) - BF16_BYTES * weights + short


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
    captured = CapturedDecode(in_four_bits(model), cache)
    function = bench.stepping(captured, cache, held, model.config.vocab)
    field = {"short": Competitor("decode, weights of four bits", problem, function)}
    return compare(field, workload, seconds=seconds, device=model.device.type, **how)["short"]
