"""A step of decoding with weights in NVFP4: whole steps without a card, its bytes, and what is refused."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map

from course_kernels.decode_attention import k04_cluster
from course_kernels.decode_linear import by_tma, k01_stream, k02_even
from course_kernels.nvfp4 import blocks
from course_kernels.problem import worst_error
from course_kernels.skinny_gemm_fp4 import k02_fragments, layout
from course_kernels.swiglu.k01_fused import swiglu
from course_models import bench, nvfp4_decode
from course_models.config import Config, attention_parameters, block_parameters, decode_bytes
from course_models.model import Model
from course_models.nvfp4_decode import TOGETHER, Packed, in_nvfp4, quantised, rounded, step_bytes, values_of
from course_models.operators import PLAIN

pytestmark = pytest.mark.kept

TOY = Config(layers=2, width=128, heads=4, kv_heads=2, head_dim=64, hidden=256, vocab=80, max_tokens=64)
KERNELS = (k02_fragments, k01_stream, k02_even, k04_cluster)
HELD, STEPS = 20, 2
ALLOWED = 0.1  # in bfloat16, which Triton's interpreter rounds towards zero; the plain model is off by 0.06


def encoded(x):
    """As `quantise`, by the encoder that it is held against: Triton's interpreter takes its time."""
    codes, scales, second = blocks.encode(x.detach().float().numpy())
    pairs = torch.from_numpy(blocks.pack(codes))
    return pairs, torch.from_numpy(scales), torch.tensor([float(second)])


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
    monkeypatch.setattr(nvfp4_decode, "quantise", encoded)
    card = SimpleNamespace(multi_processor_count=3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda d: card)
    yield
    forget()


def subject(config=TOY):
    """A model whose norms are not all ones, so that one in another's place shows."""
    model = bench.subject(config, device="cpu")
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for layer in model.layers:
            for norm in (layer.attention_norm, layer.block_norm):
                norm.normal_(1, 0.1, generator=generator)
    return model


def tokens_for(batch, count=STEPS):
    return torch.randint(TOY.vocab, (batch, count), generator=torch.Generator().manual_seed(0))


def steps(model, batch, count=STEPS, **operators):
    """What some steps answer, and what is due: by the model of the rounded weights, in float64."""
    cache, tokens = bench.filled_cache(model, batch, HELD, count), tokens_for(batch, count)
    due = bench.truth(model, tokens, cache, HELD, rounded)
    short = in_nvfp4(model)
    # Our last norm begins early, on a card alone.
    short.operators = replace(short.operators, rms_norm=PLAIN.rms_norm, **operators)
    return bench.stepping(short.decode, cache, HELD, TOY.vocab)(tokens), due


@pytest.mark.parametrize("batch", [1, 17])
def test_steps_give_the_logits_of_the_rounded_weights(here, batch):
    found, due = steps(subject(), batch)
    assert worst_error(found, due, rows_apart=True) < ALLOWED


def test_the_rounded_weights_are_other_weights(here):
    """Else every test here would pass with the 16-bit model, too."""
    model = subject()
    cache, tokens = bench.filled_cache(model, 2, HELD, STEPS), tokens_for(2)
    due, was = (bench.truth(model, tokens, cache, HELD, *how) for how in ((rounded,), ()))
    assert worst_error(was, due, rows_apart=True) > 4 * ALLOWED


# --- what each product is handed -----------------------------------------------------------------


@pytest.fixture
def products(here, monkeypatch):
    """Plain attention, and the product's stand-in, by what the layout says of packed weights: what it is asked for."""
    asked = []

    def multiply(x, words, scales, second, *, tickets, early):
        assert not early  # on a card alone
        assert tickets.shape == (len(words),)
        assert tickets.dtype is torch.int32
        asked.append((*x.shape, 16 * len(words)))
        return (x.double() @ layout.values_of(words, scales).t() * second.double()).to(x.dtype)

    monkeypatch.setattr(nvfp4_decode, "skinny_gemm_fp4", multiply)
    monkeypatch.setattr(nvfp4_decode, "attention", PLAIN.decode_attention)
    return asked


def test_each_of_four_products_is_asked_for_once_a_layer(products):
    found, due = steps(subject(), 2, 1, linear=PLAIN.linear)
    assert worst_error(found, due, rows_apart=True) < ALLOWED
    assert products == 2 * [(2, 128, 512), (2, 256, 128), (2, 128, 512), (2, 256, 128)]


def replace_in(short, layer, **parts):
    short[layer] = short[layer]._replace(**parts)


def of_another_layer(short, model):
    one, other = model.layers
    replace_in(short, one, output=short[other].output)


def gate_as_up(short, model):
    layer = model.layers[1]
    replace_in(short, layer, gate_up=nvfp4_decode._packed((layer.up, layer.gate)))


def keys_as_values(short, model):
    layer = model.layers[0]
    replace_in(short, layer, qkv=nvfp4_decode._packed((layer.query, layer.value, layer.key)))


def a_scale_of_another_block(short, model):
    words, scales, second = short[model.layers[1]].down
    replace_in(short, model.layers[1], down=Packed(words, scales.roll(1, 1).contiguous(), second))


def a_scale_of_another_row(short, model):
    words, scales, second = short[model.layers[0]].gate_up
    replace_in(short, model.layers[0], gate_up=Packed(words, scales.roll(1, 2).contiguous(), second))


def the_second_scale_of_another_tensor(short, model):
    layer = model.layers[0]
    replace_in(short, layer, down=short[layer].down._replace(second=short[layer].qkv.second))


FAULTS = (
    of_another_layer,
    gate_as_up,
    keys_as_values,
    a_scale_of_another_block,
    a_scale_of_another_row,
    the_second_scale_of_another_tensor,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(products, monkeypatch, fault):
    model, packed = subject(), nvfp4_decode.packed_weights

    def wrong(of):
        short = packed(of)
        fault(short, model)
        return short

    monkeypatch.setattr(nvfp4_decode, "packed_weights", wrong)
    found, due = steps(model, 2, 1, linear=PLAIN.linear)
    assert worst_error(found, due, rows_apart=True) > 2 * ALLOWED


def halves_change_places(x, *how, **more):
    return swiglu(x.roll(x.shape[1] // 2, 1), *how, **more)


def a_sum_is_forgotten(x, g, r, **how):
    x.copy_(nvfp4_decode.rms_norm(x + r, g, **how))


def a_place_too_far(products, tables, position, keys, values, right=nvfp4_decode._turned):
    return right(products, tables, position + 1, keys, values)


WRONG = {
    "swiglu": halves_change_places,
    "rms_norm_in_place": a_sum_is_forgotten,
    "_turned": a_place_too_far,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_step_between_the_products_is_seen(products, monkeypatch, name):
    monkeypatch.setattr(nvfp4_decode, name, WRONG[name])
    found, due = steps(subject(), 2, 1, linear=PLAIN.linear)
    assert not worst_error(found, due, rows_apart=True) <= 2 * ALLOWED


# --- the weights ---------------------------------------------------------------------------------


def test_matrices_together_are_one_tensor_of_the_format():
    """Held against the encoder that is the truth: it has one second scale for all of them."""
    layer = subject(replace(TOY, layers=1, hidden=128)).layers[0]
    together = torch.cat([layer.query, layer.key, layer.value]).detach()
    due = blocks.encode(together.float().numpy())
    found = quantised([layer.query.detach(), layer.key.detach(), layer.value.detach()])
    assert np.array_equal(found.codes, due.codes)
    assert np.array_equal(found.scales, due.scales)
    assert found.second == float(due.second)
    np.testing.assert_allclose(values_of(found), blocks.decode(due), rtol=2.0**-23)
    wide = rounded(layer)
    assert torch.equal(torch.cat([wide.query, wide.key, wide.value]), values_of(found))
    assert torch.equal(wide.attention_norm, layer.attention_norm.double())


def test_its_bytes_are_those_of_what_it_reads(here):
    model = subject()
    layers = list(model.layers)
    names = [name for group in TOGETHER for name in group]
    of_layers = sum(getattr(layer, name).numel() for layer in layers for name in names)
    packed = nvfp4_decode.packed_weights(model).values()
    short = sum(part.numel() * part.element_size() for of in packed for each in of for part in each)
    for batch, tokens in ((1, 0), (7, 20)):
        assert decode_bytes(TOY, batch, tokens) - step_bytes(TOY, batch, tokens) == 2 * of_layers - short
    assert of_layers == 2 * (attention_parameters(TOY) + block_parameters(TOY))
    assert short == of_layers * 4.5 / 8 + 2 * 4 * 4  # and four second scales a layer


# --- what is refused, what is kept ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"experts": 2, "experts_per_token": 1}, "in_nvfp4: expected a model without experts"),
        ({"width": 192}, "in_nvfp4: expected width a multiple of 128, got 192"),
        ({"heads": 3, "kv_heads": 1}, "in_nvfp4: expected heads * head_dim a multiple of 128, got 192"),
        ({"hidden": 320}, "in_nvfp4: expected hidden a multiple of 128, got 320"),
    ],
    ids=lambda x: str(x),
)
def test_what_is_refused(change, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        in_nvfp4(Model.empty(replace(TOY, **change)))


def test_another_type_is_refused():
    with pytest.raises(TypeError, match=r"^in_nvfp4: expected a model in bfloat16, got float16$"):
        in_nvfp4(Model.empty(TOY, dtype=torch.float16))


def test_the_rest_is_the_same_memory(here):
    model = subject()
    short = in_nvfp4(model)
    assert short.head is model.head
    assert short.embedding is model.embedding
    assert short.layers is model.layers
    assert model.operators is PLAIN
    assert model.decode_layer is not short.decode_layer
