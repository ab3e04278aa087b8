"""A step of decoding with weights of four bits: whole steps without a card, its bytes, and what is refused."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map

from course_kernels.cuda.four_bits import GROUP
from course_kernels.decode_attention import k04_cluster
from course_kernels.decode_linear import by_tma, k02_even, stream_w4
from course_kernels.decode_linear.arguments import GATE, ROPE
from course_kernels.decode_linear.stream_w4 import Packed
from course_kernels.problem import worst_error
from course_models import bench, int4_decode
from course_models.config import Config, decode_bytes
from course_models.int4_decode import ROUNDED, in_four_bits, rounded, step_bytes
from course_models.model import Model
from course_models.operators import PLAIN

pytestmark = pytest.mark.kept

TOY = Config(layers=2, width=128, heads=4, kv_heads=2, head_dim=64, hidden=256, vocab=80, max_tokens=64)
KERNELS = (stream_w4, k02_even, k04_cluster)
HELD, STEPS = 20, 3
ALLOWED = 2.0**-6  # as of the steps in 16 bits


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Launchers run here, on a card of three multiprocessors."""

    def forget():
        for kernel in KERNELS:
            for kept in vars(kernel).values():
                getattr(kept, "cache_clear", lambda: None)()

    forget()
    prepare = prepare_in(tmp_path)
    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "prepare", prepare)
    monkeypatch.setattr(by_tma, "tensor_map", tensor_map)
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
    card = SimpleNamespace(multi_processor_count=3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda d: card)
    yield
    forget()


def subject(config=TOY):
    """A model whose norms are not all ones, so that one in another's place shows."""
    model = bench.subject(config, dtype=torch.float16, device="cpu")
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for layer in model.layers:
            for norm in (layer.attention_norm, layer.block_norm):
                norm.normal_(1, 0.1, generator=generator)
    return model


def steps(model, batch):
    """What some steps answer, and what is due: by the model of the rounded weights, in float64."""
    cache = bench.filled_cache(model, batch, HELD, STEPS)
    tokens = torch.randint(TOY.vocab, (batch, STEPS), generator=torch.Generator().manual_seed(0))
    due = bench.truth(model, tokens, cache, HELD, rounded)
    short = in_four_bits(model)
    short.operators = replace(short.operators, rms_norm=PLAIN.rms_norm)  # ours begins early, on a card alone
    return bench.stepping(short.decode, cache, HELD, TOY.vocab)(tokens), due


@pytest.mark.parametrize("batch", [1, 2, 8, 9, 17, 32])
def test_steps_give_the_logits_of_the_rounded_weights(here, batch):
    found, due = steps(subject(), batch)
    assert worst_error(found, due, rows_apart=True) < ALLOWED


def test_the_rounded_weights_are_other_weights(here):
    """Else every test here would pass with the 16-bit model, too."""
    model = subject()
    cache = bench.filled_cache(model, 2, HELD, STEPS)
    tokens = torch.randint(TOY.vocab, (2, STEPS), generator=torch.Generator().manual_seed(0))
    due, was = (bench.truth(model, tokens, cache, HELD, *how) for how in ((rounded,), ()))
    assert worst_error(was, due, rows_apart=True) > 4 * ALLOWED


def replace_in(short, layer, **parts):
    short[layer] = short[layer]._replace(**parts)


def of_another_layer(short, model):
    one, other = model.layers
    replace_in(short, one, output=short[other].output)


def gate_as_up(short, model):
    layer = model.layers[1]
    replace_in(short, layer, gate_up=stream_w4.packed_for((layer.up, layer.gate), GATE))


def keys_as_values(short, model):
    layer = model.layers[0]
    of_qkv = layer.query, layer.value, layer.key
    replace_in(short, layer, qkv=stream_w4.packed_for(of_qkv, ROPE, TOY.head_dim))


def heads_of_another_size(short, model):
    layer = model.layers[0]
    of_qkv = layer.query, layer.key, layer.value
    replace_in(short, layer, qkv=stream_w4.packed_for(of_qkv, ROPE, 2 * TOY.head_dim))


def a_scale_of_another_group(short, model):
    words, scales = short[model.layers[1]].down
    replace_in(short, model.layers[1], down=Packed(words, scales.roll(1, 1).contiguous()))


def a_scale_of_another_row(short, model):
    words, scales = short[model.layers[0]].gate_up
    replace_in(short, model.layers[0], gate_up=Packed(words, scales.roll(1, 2).contiguous()))


FAULTS = (
    of_another_layer,
    gate_as_up,
    keys_as_values,
    heads_of_another_size,
    a_scale_of_another_group,
    a_scale_of_another_row,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(here, monkeypatch, fault):
    model, packed = subject(), int4_decode.packed_weights

    def wrong(of):
        short = packed(of)
        fault(short, model)
        return short

    monkeypatch.setattr(int4_decode, "packed_weights", wrong)
    found, due = steps(model, 2)
    assert worst_error(found, due, rows_apart=True) > 2 * ALLOWED


def test_its_bytes_are_those_of_what_it_reads():
    model = subject()
    layers = list(model.layers)
    of_layers = sum(getattr(layer, name).numel() for layer in layers for name in ROUNDED)
    packed = int4_decode.packed_weights(model).values()
    short = sum(part.numel() * part.element_size() for of in packed for each in of for part in each)
    for batch, tokens in ((1, 0), (7, 20)):
        assert decode_bytes(TOY, batch, tokens) - step_bytes(TOY, batch, tokens) == 2 * of_layers - short
    assert short == of_layers // 2 + 2 * (of_layers // GROUP)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"experts": 2, "experts_per_token": 1}, "in_four_bits: expected a model without experts"),
        ({"width": 192}, "in_four_bits: expected width a multiple of 128, got 192"),
        ({"heads": 3, "kv_heads": 1}, "in_four_bits: expected heads * head_dim a multiple of 128, got 192"),
        ({"hidden": 320}, "in_four_bits: expected hidden a multiple of 128, got 320"),
    ],
    ids=lambda x: str(x),
)
def test_what_is_refused(change, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        in_four_bits(Model.empty(replace(TOY, **change), dtype=torch.float16))


def test_the_rest_is_the_same_memory():
    model = subject()
    short = in_four_bits(model)
    assert short.head is model.head
    assert short.embedding is model.embedding
    assert short.layers is model.layers
    assert model.operators is PLAIN
    assert model.decode_layer is not short.decode_layer
