"""The model against its formulas: written out once more in NumPy, number by number, in float64.

`by_hand` shares no line with the model. It reads weights by Hugging Face's names, so it holds the checkpoints as well.
"""

from __future__ import annotations

import dataclasses
import json
import math
import struct
from itertools import islice

import numpy as np
import pytest
import torch
from test_measure_run import MadeUpClock

from course_kernels.measure.check import WrongResult, checked_errors
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_models import bench, checkpoint, config, operators
from course_models.checkpoint import CheckpointRefused, config_json, save, slots
from course_models.config import LLAMA_8B, Config, RopeScaling
from course_models.downloaded import load
from course_models.generate import generate
from course_models.graph import CapturedDecode
from course_models.hugging_face import config_of
from course_models.model import Cache, CacheFull, Model, rope_frequencies, rope_tables
from course_models.operators import PLAIN

pytestmark = pytest.mark.kept

GQA = Config(
    layers=2, width=24, heads=6, kv_heads=2, head_dim=8, hidden=40, vocab=30, max_tokens=32, norm_eps=1e-2
)  # an eps that shows
SCALED = RopeScaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_tokens=40)
CONFIGS = {
    "every head has its own keys": dataclasses.replace(GQA, heads=4, kv_heads=4),
    "heads share keys": GQA,
    "one head of keys": dataclasses.replace(GQA, kv_heads=1, layers=1),
    "tied": dataclasses.replace(GQA, tied=True),
    "scaled rope": dataclasses.replace(GQA, rope_scaling=SCALED, rope_theta=100.0),
    "heads wider than the width": dataclasses.replace(GQA, head_dim=16, heads=4),
    "experts": dataclasses.replace(GQA, experts=5, experts_per_token=2),
    "one expert": dataclasses.replace(GQA, experts=3, experts_per_token=1, tied=True),
}
EVERY_CONFIG = pytest.mark.parametrize("sizes", CONFIGS.values(), ids=CONFIGS)


def a_model(sizes, dtype=torch.float64):
    """Weights all random, the norms' too: a norm that is left out would not show where all are 1."""
    model = Model.random(sizes, seed=3, dtype=dtype)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.uniform_(0.5, 1.5, generator=generator)
            if name.endswith("query"):
                weight.mul_(3)  # a softmax that picks
    return model


def tokens_for(sizes, batch, length, seed=5):
    return torch.randint(sizes.vocab, (batch, length), generator=torch.Generator().manual_seed(seed))


def weights_of(model):
    return {slot.name: slot.of(model).double().numpy() for slot in slots(model.config)}


# --- the formulas, by hand ---------------------------------------------------------------------------


def by_hand(weights, sizes, tokens):
    """Logits (N, vocab) of one sequence, one position after the other."""
    kept = [([], []) for _ in range(sizes.layers)]
    rows = []
    for position, token in enumerate(tokens):
        x = weights["model.embed_tokens.weight"][token].copy()
        for i, (keys, values) in enumerate(kept):
            of = {
                name.removeprefix(f"model.layers.{i}."): weight
                for name, weight in weights.items()
                if name.startswith(f"model.layers.{i}.")
            }
            h = normed(x, of["input_layernorm.weight"], sizes.norm_eps)
            q = heads_of(of["self_attn.q_proj.weight"] @ h, sizes.heads)
            k = heads_of(of["self_attn.k_proj.weight"] @ h, sizes.kv_heads)
            values.append(heads_of(of["self_attn.v_proj.weight"] @ h, sizes.kv_heads))
            keys.append([turned(row, position, sizes) for row in k])
            found = []
            for head, row in enumerate(q):
                shared = head * sizes.kv_heads // sizes.heads  # neighbours share
                row = turned(row, position, sizes)
                scores = [row @ key[shared] / math.sqrt(sizes.head_dim) for key in keys]
                chances = softmax(scores)
                found.append(sum(p * v[shared] for p, v in zip(chances, values, strict=True)))
            x = x + of["self_attn.o_proj.weight"] @ np.concatenate(found)
            x = x + block(normed(x, of["post_attention_layernorm.weight"], sizes.norm_eps), of, sizes)
        x = normed(x, weights["model.norm.weight"], sizes.norm_eps)
        head = weights["model.embed_tokens.weight" if sizes.tied else "lm_head.weight"]
        rows.append(head @ x)
    return np.array(rows)


def normed(x, weight, eps):
    return x / math.sqrt(sum(number * number for number in x) / len(x) + eps) * weight


def heads_of(x, heads):
    return np.split(x, heads)


def turned(row, position, sizes):
    """A pair is a complex number, and a turn a product with exp(i * angle)."""
    half = sizes.head_dim // 2
    turned = np.empty_like(row)
    for pair in range(half):
        frequency = sizes.rope_theta ** (-2 * pair / sizes.head_dim)
        if sizes.rope_scaling:
            frequency = stretched(frequency, sizes.rope_scaling)
        number = complex(row[pair], row[pair + half]) * np.exp(1j * position * frequency)
        turned[pair], turned[pair + half] = number.real, number.imag
    return turned


def stretched(frequency, scaling):
    """As Hugging Face writes it, by wavelengths."""
    wavelength = 2 * math.pi / frequency
    if wavelength < scaling.original_max_tokens / scaling.high_freq_factor:
        return frequency
    if wavelength > scaling.original_max_tokens / scaling.low_freq_factor:
        return frequency / scaling.factor
    smooth = (scaling.original_max_tokens / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    return (1 - smooth) * frequency / scaling.factor + smooth * frequency


def softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def block(h, of, sizes):
    def swiglu(gate, up, down):
        gated = gate @ h
        return down @ (gated / (1 + np.exp(-gated)) * (up @ h))

    if not sizes.experts:
        return swiglu(*(of[f"mlp.{name}_proj.weight"] for name in ("gate", "up", "down")))
    scores = of["block_sparse_moe.gate.weight"] @ h
    chosen = sorted(range(sizes.experts), key=lambda e: -scores[e])[: sizes.experts_per_token]
    shares = softmax([scores[e] for e in chosen])
    answers = [
        swiglu(*(of[f"block_sparse_moe.experts.{e}.{name}.weight"] for name in ("w1", "w3", "w2")))
        for e in chosen
    ]
    return sum(share * answer for share, answer in zip(shares, answers, strict=True))


def distance(model, tokens):
    """How far the model's logits are from those by hand, at the worst place."""
    with torch.no_grad():
        logits = model(tokens)
    weights = weights_of(model)
    truth = np.stack([by_hand(weights, model.config, row.tolist()) for row in tokens])
    return float(np.abs(logits.numpy() - truth).max())


@EVERY_CONFIG
@pytest.mark.parametrize("batch", [1, 3])
def test_the_model_is_its_formulas(sizes, batch):
    assert distance(a_model(sizes), tokens_for(sizes, batch, 11)) < 1e-11


def test_in_float32_it_is_as_exact_as_float32():
    model = a_model(GQA, torch.float32)
    assert 1e-9 < distance(model, tokens_for(GQA, 2, 11)) < 1e-4


# --- faults, planted one by one: each must show ----------------------------------------------------


def neighbours_paired(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2).to(x.dtype)


def turned_back(x, cos, sin):
    return operators.rope(x, cos, -sin)


def without_eps(x, weight, eps):
    return operators.rms_norm(x, weight, 0.0)


def less_the_mean(x, weight, eps):
    return operators.rms_norm(x - x.mean(dim=-1, keepdim=True), weight, eps)


def one_key_short(q, k, v):
    N = q.shape[2]
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT / math.sqrt(q.shape[-1])
    seen = torch.ones(N, N, dtype=torch.bool).tril(-1)
    seen[0, 0] = True
    scores = scores.masked_fill(~seen, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def sees_the_next(q, k, v):
    N = q.shape[2]
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(
        ~torch.ones(N, N, dtype=torch.bool).tril(1), -torch.inf
    )
    return torch.softmax(scores, dim=-1) @ v


def every_third_shares(q, k, v):
    """Query head h reads head h % KV instead of h // group."""
    B, H, N, D = q.shape
    KV = k.shape[1]
    mixed = q.view(B, H // KV, KV, N, D).transpose(1, 2).reshape(B, H, N, D)
    found = operators.prefill_attention(mixed, k, v)
    return found.view(B, KV, H // KV, N, D).transpose(1, 2).reshape(B, H, N, D)


def not_scaled(q, k, v):
    return operators.prefill_attention(q * math.sqrt(q.shape[-1]), k, v)


FAULTS = {
    "rope pairs neighbours": {"rope": neighbours_paired},
    "rope turns the other way for queries and keys": {"rope": turned_back},
    "a norm without its eps": {"rms_norm": without_eps},
    "a norm that takes the mean away": {"rms_norm": less_the_mean},
    "a mask that hides the token itself": {"prefill_attention": one_key_short},
    "a mask that shows the next token": {"prefill_attention": sees_the_next},
    "heads that share keys with the wrong ones": {"prefill_attention": every_third_shares},
    "scores that are not scaled": {"prefill_attention": not_scaled},
    "gate and up in each other's place": {"swiglu": lambda gate, up: operators.swiglu(up, gate)},
    "a sigmoid for a silu": {"swiglu": lambda gate, up: torch.sigmoid(gate) * up},
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_shows(fault):
    model = a_model(GQA).with_operators(dataclasses.replace(PLAIN, **fault))
    if fault.get("rope") is turned_back:
        # All angles reversed leave every product of a query and a key as it was, if both are turned back.
        half = a_model(GQA).with_operators(
            dataclasses.replace(
                PLAIN, rope=lambda x, cos, sin: turned_back(x, cos, sin) if x.shape[1] == 6 else x
            )
        )
        model = half
    assert distance(model, tokens_for(GQA, 1, 9)) > 1e-3


def test_the_norm_is_worked_out_in_float32():
    x = torch.full((1, 64), 300.0, dtype=torch.float16)  # squares past the largest float16
    ones = torch.ones(64, dtype=torch.float16)
    assert torch.allclose(operators.rms_norm(x, ones, 1e-5), ones)
    in_half = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True))
    assert not torch.allclose(in_half, ones)


# --- rope ------------------------------------------------------------------------------------------


def test_rope_knows_distances_and_nothing_else():
    cos, sin = rope_tables(dataclasses.replace(GQA, max_tokens=200), torch.float64, torch.device("cpu"))
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def score(at, other):
        a = operators.rope(q, cos[at][None, None, None], sin[at][None, None, None])
        b = operators.rope(k, cos[other][None, None, None], sin[other][None, None, None])
        return float((a * b).sum())

    assert score(9, 4) == pytest.approx(score(105, 100), abs=1e-12)
    assert abs(score(9, 4) - score(9, 5)) > 1e-3
    assert abs(score(9, 4) - score(4, 9)) > 1e-3  # before is not after
    turned_q = operators.rope(q, cos[77][None, None, None], sin[77][None, None, None])
    assert float(turned_q.norm()) == pytest.approx(float(q.norm()))
    assert torch.equal(operators.rope(q, cos[:1][None, None], sin[:1][None, None]), q)  # position 0 stays


def test_scaling_slows_what_is_slow_and_leaves_what_is_fast():
    plain = rope_frequencies(dataclasses.replace(LLAMA_8B))
    scaling = RopeScaling(8.0, 1.0, 4.0, 8192)
    scaled = rope_frequencies(dataclasses.replace(LLAMA_8B, rope_scaling=scaling))
    ratio = scaled / plain
    assert float(ratio[0]) == 1.0
    assert float(ratio[-1]) == pytest.approx(1 / 8)
    assert bool((ratio.diff() <= 0).all())
    assert 0.2 < float(ratio[(ratio < 0.99) & (ratio > 0.13)].mean()) < 0.9  # some lie between


def test_angles_keep_their_digits_when_the_weights_lose_theirs():
    model = a_model(GQA, torch.float32)
    model.to(torch.bfloat16)
    cos, _ = model._turns(torch.arange(32)[None])
    assert cos.dtype == torch.float32
    assert float(cos[0, 0, 31, 0]) == pytest.approx(math.cos(31), abs=1e-6)


# --- the cache -------------------------------------------------------------------------------------


@EVERY_CONFIG
@pytest.mark.parametrize(("batch", "parts"), [(1, (1,)), (2, (5,)), (3, (2, 3)), (1, (1, 1, 4))])
def test_prefill_and_decode_give_what_the_whole_gives(sizes, batch, parts):
    model, tokens = a_model(sizes), tokens_for(sizes, batch, 12)
    with torch.no_grad():
        whole = model(tokens)
    cache = model.cache(batch, 12)
    done = 0
    for part in parts:
        logits = model.prefill(tokens[:, done : done + part], cache)
        done += part
        assert torch.allclose(logits, whole[:, done - 1], atol=1e-12)
    for n in range(done, 12):
        assert torch.allclose(model.decode(tokens[:, n], cache), whole[:, n], atol=1e-12)
    assert cache.lengths.tolist() == [12] * batch
    assert cache.held == 12


def test_sequences_of_different_lengths_decode_side_by_side():
    model, tokens = a_model(GQA), tokens_for(GQA, 2, 9)
    alone = []
    both = model.cache(2, 12)
    for b, length in enumerate((3, 8)):
        cache = model.cache(1, 12)
        model.prefill(tokens[b : b + 1, :length], cache)
        both.keys[:, b], both.values[:, b] = cache.keys[:, 0], cache.values[:, 0]
        alone.append(model.decode(tokens[b : b + 1, length], cache))
    both.lengths.copy_(torch.tensor([3, 8]))
    both.held = 8
    together = model.decode(torch.stack((tokens[0, 3], tokens[1, 8])), both)
    assert torch.allclose(together, torch.cat(alone), atol=1e-12)


def test_what_lies_past_the_end_of_a_sequence_changes_nothing():
    model, tokens = a_model(GQA), tokens_for(GQA, 1, 6)
    answers = []
    for rest in (0.0, 100.0):
        cache = model.cache(1, 20)
        cache.keys.fill_(rest)
        cache.values.fill_(rest)
        model.prefill(tokens[:, :5], cache)
        answers.append(model.decode(tokens[:, 5], cache))
    assert torch.equal(*answers)


def test_a_full_cache_is_refused_and_stays_as_it_was():
    model, tokens = a_model(GQA), tokens_for(GQA, 1, 8)
    cache = model.cache(1, 6)
    model.prefill(tokens[:, :6], cache)
    before = cache.keys.clone()
    said = r"cache: 6 of 6 tokens are held, no room for 1 more: make it with more room"
    with pytest.raises(CacheFull, match=said):
        model.decode(tokens[:, 6], cache)
    with pytest.raises(CacheFull, match="no room for 2 more"):
        model.prefill(tokens[:, 6:8], cache)
    assert torch.equal(cache.keys, before)
    assert (cache.held, cache.lengths.tolist()) == (6, [6])
    cache.reset(5)
    model.decode(tokens[:, 5], cache)


@pytest.mark.parametrize(
    ("batch", "room", "said"),
    [
        (0, 5, "batch: expected at least 1, got 0"),
        (1, 0, "room: expected 1 to"),
        (1, 33, "max_tokens=32, got 33"),
    ],
)
def test_a_cache_that_cannot_be_is_refused(batch, room, said):
    with pytest.raises(ValueError, match=said):
        Cache(GQA, batch, room)


def test_a_cache_may_hold_a_single_token_and_as_many_as_there_are_positions():
    model = a_model(GQA)
    assert [model.cache(1, room).room for room in (1, 32)] == [1, 32]
    assert torch.isfinite(model.prefill(tokens_for(GQA, 1, 1), model.cache(1, 1))).all()


def test_a_text_longer_than_the_positions_is_refused():
    with pytest.raises(ValueError, match="expected at most max_tokens=32 positions, got 33"):
        a_model(GQA)(tokens_for(GQA, 1, 33))


def test_random_weights_keep_the_size_of_what_passes_through():
    sizes = dataclasses.replace(GQA, width=128, hidden=256, heads=8, head_dim=16, layers=8, norm_eps=1e-5)
    model = Model.random(sizes, dtype=torch.float32)
    with torch.no_grad():
        logits = model(tokens_for(sizes, 4, 20))
    model.requires_grad_(False)
    assert float(logits.std()) == pytest.approx(1, rel=0.2)
    assert float(model.layers[3].up.std() * math.sqrt(128)) == pytest.approx(1, rel=0.05)
    assert float(model.layers[3].down.std() * math.sqrt(256 * 16)) == pytest.approx(1, rel=0.05)
    assert float(model.layers[3].output.std() * math.sqrt(128 * 16)) == pytest.approx(1, rel=0.05)
    again, other = Model.random(sizes, dtype=torch.float32), Model.random(sizes, 1, dtype=torch.float32)
    assert torch.equal(again.head, model.head)
    assert not torch.equal(other.head, model.head)


# --- training --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [CONFIGS["tied"], CONFIGS["experts"]], ids=["tied", "experts"])
def test_every_weight_learns(sizes):
    model, tokens = a_model(sizes, torch.float32), tokens_for(sizes, 4, 12)
    loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    assert [name for name, weight in model.named_parameters() if not weight.grad.abs().sum() > 0] == []


# --- swaps -----------------------------------------------------------------------------------------

WIDE = dataclasses.replace(GQA, head_dim=64, heads=4, kv_heads=2)  # a size our kernels take
SWAPS = {
    "our decode attention": {"decode_attention": operators.our_decode_attention},  # interpreted
    "the library's decode attention": {"decode_attention": operators.sdpa_decode_attention},
    "the library's prefill attention": {"prefill_attention": operators.sdpa_prefill_attention},
}


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
def test_a_swapped_operator_agrees(swap):
    plain, tokens = a_model(WIDE, torch.float32), tokens_for(WIDE, 2, 9)
    ran = []

    def seen(function):
        return lambda *inputs: ran.append(function) or function(*inputs)

    swapped = plain.with_operators(
        dataclasses.replace(PLAIN, **{name: seen(function) for name, function in swap.items()})
    )
    answers = []
    for model in (plain, swapped):
        cache = model.cache(2, 12)
        steps = [model.prefill(tokens[:, :4], cache), model.prefill(tokens[:, 4:6], cache)]
        steps += [model.decode(tokens[:, n], cache) for n in range(6, 9)]
        answers.append(torch.stack(steps))
    assert torch.allclose(*answers, atol=1e-4)
    assert set(ran) == set(swap.values())
    assert plain.operators is PLAIN  # the swap is the twin's alone
    assert swapped.embedding is plain.embedding


def test_our_prefill_attention_says_what_it_cannot():
    q, k = torch.zeros(1, 4, 5, 64), torch.zeros(1, 2, 5, 64)
    with pytest.raises(
        RuntimeError, match="our_prefill_attention: expected tensors on a GPU, got cpu: take the plain"
    ):
        operators.our_prefill_attention(q, k, k)
    with pytest.raises(ValueError, match="expected as many keys as queries, got 5 and 2"):
        operators.our_prefill_attention(q[:, :, :2], k, k)


# --- what it costs ---------------------------------------------------------------------------------


def test_parameters_of_models_that_are_known():
    known = {
        8_030_261_248: LLAMA_8B,
        6_738_415_616: Config(32, 4096, 32, 32, 128, 11008, 32000),  # Llama 2 7B
        1_235_814_400: Config(16, 2048, 32, 8, 64, 8192, 128256, tied=True),  # Llama 3.2 1B
        46_702_792_704: Config(32, 4096, 32, 8, 128, 14336, 32000, experts=8, experts_per_token=2),  # Mixtral
    }
    assert {config.parameters(sizes) for sizes in known.values()} == set(known)
    assert config.weight_bytes(LLAMA_8B) == 16_060_522_496


@EVERY_CONFIG
def test_parameters_are_counted_as_the_model_has_them(sizes):
    assert config.parameters(sizes) == sum(weight.numel() for weight in Model(sizes).parameters())


def test_bytes_of_a_step_by_hand():
    # A key and a value, 32 layers, 8 heads, 128 numbers, two bytes: 128 KiB for each token.
    assert config.cache_bytes(LLAMA_8B, 1, 1) == 128 * 1024
    read = (8_030_261_248 - 128256 * 4096 + 4096) * 2  # all but the embedding, of which one row
    assert config.decode_bytes(LLAMA_8B, 1, 1024) == read + 1025 * 128 * 1024
    more = 31 * (4096 * 2 + 1025 * 128 * 1024)
    assert config.decode_bytes(LLAMA_8B, 32, 1024) == config.decode_bytes(LLAMA_8B, 1, 1024) + more
    assert config.decode_floor_us(LLAMA_8B, 1, 1024, 1000.0) == config.decode_bytes(LLAMA_8B, 1, 1024) / 1e6
    tied = CONFIGS["tied"]  # the table is read as a head, whole
    assert config.decode_bytes(tied, 2, 0) == config.parameters(tied) * 2 + config.cache_bytes(tied, 2, 1)


def test_of_the_experts_only_those_that_are_picked_are_read():
    sizes = CONFIGS["experts"]
    # A layer: queries and output, keys and values, two norms, the router, two experts of three matrices.
    layer = 2 * 24 * 48 + 2 * 24 * 16 + 2 * 24 + 5 * 24 + 2 * 3 * 24 * 40
    read = 2 * layer + 24 + 30 * 24 + 24  # two layers, a norm, the head, a row of the embedding
    assert config.decode_bytes(sizes, 1, 7) == 2 * read + config.cache_bytes(sizes, 1, 8)
    fewer = dataclasses.replace(sizes, experts=2)
    unread = sizes.layers * 3 * sizes.width  # the rows of the router, which are read
    assert config.decode_bytes(sizes, 1, 7) == config.decode_bytes(fewer, 1, 7) + unread * 2


def test_operations_by_hand():
    # Two for each weight that a token is multiplied with: all but the embedding and the norms.
    products = 8_030_261_248 - 128256 * 4096 - 65 * 4096
    assert config.decode_flops(LLAMA_8B, 1, 0) == 2 * products + 4 * 32 * 4096
    assert config.decode_flops(LLAMA_8B, 3, 10) == 3 * (2 * products + 4 * 32 * 4096 * 11)
    # A prefill of two tokens: three pairs of a query and a key, and one row of logits.
    layers = products - 128256 * 4096
    assert config.prefill_flops(LLAMA_8B, 1, 2) == 2 * (2 * layers + 128256 * 4096) + 4 * 32 * 4096 * 3
    assert config.prefill_flops(GQA, 2, 1) == config.decode_flops(GQA, 2, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers": 0}, "layers: expected a whole number of at least 1, got 0"),
        ({"width": 2.5}, "width: expected a whole number of at least 1, got 2.5"),
        ({"kv_heads": 4}, "kv_heads: expected a divisor of heads=6, got 4"),
        ({"head_dim": 7}, "head_dim: expected an even number, since RoPE turns pairs, got 7"),
        ({"experts": 4}, "experts_per_token: expected 1 to experts=4, got 0"),
        ({"experts": 2, "experts_per_token": 3}, "experts_per_token: expected 1 to experts=2, got 3"),
        ({"experts_per_token": 1}, "experts_per_token: expected 0 without experts, got 1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        dataclasses.replace(GQA, **change)


# --- checkpoints -----------------------------------------------------------------------------------


def write_safetensors(file, tensors):
    """The format by hand: the head's length in 8 bytes, the head as JSON, then the numbers."""
    head, numbers = {}, b""
    for name, tensor in tensors.items():
        kind = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32", torch.int8: "I8"}[
            tensor.dtype
        ]
        raw = tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        place = [len(numbers), len(numbers) + len(raw)]
        head[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": place}
        numbers += raw
    text = json.dumps(head).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + numbers)


def random_tensors(sizes, dtype=torch.bfloat16):
    """By Hugging Face's names, typed here once more."""
    generator = torch.Generator().manual_seed(7)

    def drawn(*shape):
        return (torch.randn(shape, generator=generator) / math.sqrt(shape[-1])).to(dtype)

    heads, kv_heads = sizes.heads * sizes.head_dim, sizes.kv_heads * sizes.head_dim
    found = {
        "model.embed_tokens.weight": drawn(sizes.vocab, sizes.width),
        "model.norm.weight": drawn(sizes.width),
    }
    if not sizes.tied:
        found["lm_head.weight"] = drawn(sizes.vocab, sizes.width)
    for i in range(sizes.layers):
        layer = f"model.layers.{i}."
        found[f"{layer}input_layernorm.weight"] = drawn(sizes.width)
        found[f"{layer}post_attention_layernorm.weight"] = drawn(sizes.width)
        found[f"{layer}self_attn.q_proj.weight"] = drawn(heads, sizes.width)
        found[f"{layer}self_attn.k_proj.weight"] = drawn(kv_heads, sizes.width)
        found[f"{layer}self_attn.v_proj.weight"] = drawn(kv_heads, sizes.width)
        found[f"{layer}self_attn.o_proj.weight"] = drawn(sizes.width, heads)
        if not sizes.experts:
            found[f"{layer}mlp.gate_proj.weight"] = drawn(sizes.hidden, sizes.width)
            found[f"{layer}mlp.up_proj.weight"] = drawn(sizes.hidden, sizes.width)
            found[f"{layer}mlp.down_proj.weight"] = drawn(sizes.width, sizes.hidden)
            continue
        found[f"{layer}block_sparse_moe.gate.weight"] = drawn(sizes.experts, sizes.width)
        for e in range(sizes.experts):
            found[f"{layer}block_sparse_moe.experts.{e}.w1.weight"] = drawn(sizes.hidden, sizes.width)
            found[f"{layer}block_sparse_moe.experts.{e}.w3.weight"] = drawn(sizes.hidden, sizes.width)
            found[f"{layer}block_sparse_moe.experts.{e}.w2.weight"] = drawn(sizes.width, sizes.hidden)
    return found


# What Hugging Face writes for GQA, typed here; `config_json` has no part in it.
HUGGING_FACE = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "bos_token_id": 1,
    "hidden_act": "silu",
    "hidden_size": 24,
    "head_dim": 8,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 6,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 0.01,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 30,
}
OF_SCALED = {
    "factor": 8.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 40,
    "rope_type": "llama3",
}
JSON_OF = {
    "heads share keys": {},
    "tied": {"tie_word_embeddings": True},
    "scaled rope": {"rope_theta": 100.0, "rope_scaling": OF_SCALED},
    "experts": {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
}


def write_checkpoint(folder, sizes=GQA, change=None, dtype=torch.bfloat16):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(HUGGING_FACE | (change or {})))
    tensors = random_tensors(sizes, dtype)
    write_safetensors(folder / "model.safetensors", tensors)
    return tensors


@pytest.mark.parametrize("name", JSON_OF)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_a_file_of_hugging_face_loads_and_gives_the_logits_of_its_numbers(tmp_path, name, dtype):
    sizes = CONFIGS[name]
    tensors = write_checkpoint(tmp_path, sizes, JSON_OF[name], dtype)
    model = load(tmp_path, dtype=torch.float64)
    assert model.config == sizes
    tokens = tokens_for(sizes, 2, 8)
    weights = {key: tensor.double().numpy() for key, tensor in tensors.items()}
    truth = np.stack([by_hand(weights, sizes, row.tolist()) for row in tokens])
    assert np.abs(model(tokens).detach().numpy() - truth).max() < 1e-11
    assert load(tmp_path).dtype == torch.bfloat16


def split_in_two(folder, tensors):
    """The same tensors in two files with an index."""
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files = {"model-00001-of-00002.safetensors": names[:7], "model-00002-of-00002.safetensors": names[7:]}
    for file, held in files.items():
        write_safetensors(folder / file, {name: tensors[name] for name in held})
    index = {"weight_map": {name: file for file, held in files.items() for name in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return index


def test_several_files_with_an_index_load_as_one(tmp_path):
    tensors = write_checkpoint(tmp_path)
    one = load(tmp_path)
    split_in_two(tmp_path, tensors)
    several = load(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), several.parameters(), strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_frequencies_that_old_files_carry_are_held_against_the_config(tmp_path, dtype):
    tensors = write_checkpoint(tmp_path)
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    right = torch.tensor([10000.0 ** (-pair / 4) for pair in range(4)])
    write_safetensors(tmp_path / "model.safetensors", tensors | {name: right.to(dtype)})
    load(tmp_path)
    for wrong in (right[:3], right.pow(1.05)):
        write_safetensors(tmp_path / "model.safetensors", tensors | {name: wrong.to(dtype)})
        with pytest.raises(
            CheckpointRefused, match=f"{name} holds other frequencies than those of RoPE in con"
        ):
            load(tmp_path)


def test_a_tied_head_that_lies_in_the_file_as_well_is_the_embedding_or_refused(tmp_path):
    tensors = write_checkpoint(tmp_path, CONFIGS["tied"], JSON_OF["tied"])
    table = tensors["model.embed_tokens.weight"]
    write_safetensors(tmp_path / "model.safetensors", tensors | {"lm_head.weight": table.float()})
    assert load(tmp_path).head is None
    for other in (table * 1.01, table[:-1]):
        write_safetensors(tmp_path / "model.safetensors", tensors | {"lm_head.weight": other})
        said = "lm_head.weight differs from model.embed_tokens.weight, and config.json says tie_word_embeddings: where"
        with pytest.raises(CheckpointRefused, match=said):
            load(tmp_path)


def test_a_whole_file_is_the_truth_where_an_index_was_left_over(tmp_path):
    tensors = write_checkpoint(tmp_path)
    whole = (tmp_path / "model.safetensors").read_bytes()
    split_in_two(tmp_path, tensors)
    (tmp_path / "model.safetensors").write_bytes(whole)
    with pytest.raises(
        CheckpointRefused, match=r"holds model.safetensors, and model-00001-of-00002.safetensors, whi"
    ):
        load(tmp_path)
    for shard in tmp_path.glob("model-*"):
        shard.unlink()
    load(tmp_path)
    index = {"weight_map": dict.fromkeys(tensors, "model.safetensors")}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    load(tmp_path)


def test_a_tensor_in_two_files_is_the_same_in_both_or_refused(tmp_path):
    tensors = write_checkpoint(tmp_path)
    split_in_two(tmp_path, tensors)
    second = tmp_path / "model-00002-of-00002.safetensors"
    held = {name: tensors[name] for name in sorted(tensors)[7:]}
    write_safetensors(second, held | {"lm_head.weight": tensors["lm_head.weight"]})
    load(tmp_path)
    write_safetensors(second, held | {"lm_head.weight": tensors["lm_head.weight"] * 1.01})
    with pytest.raises(
        CheckpointRefused, match=r"00002-of-00002.safetensors: lm_head.weight has other numbers than in"
    ):
        load(tmp_path)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_weight_that_is_no_number_is_refused(tmp_path, number):
    tensors = write_checkpoint(tmp_path)
    tensors["model.norm.weight"][3] = number
    write_safetensors(tmp_path / "model.safetensors", tensors)
    with pytest.raises(
        CheckpointRefused, match=r"model.norm.weight holds NaN or infinity as torch.bfloat16: get it"
    ):
        load(tmp_path)


def test_a_weight_that_a_type_does_not_hold_is_refused(tmp_path):
    tensors = write_checkpoint(tmp_path)
    tensors["model.norm.weight"][3] = 1e6
    write_safetensors(tmp_path / "model.safetensors", tensors)
    load(tmp_path)
    with pytest.raises(
        CheckpointRefused, match=r"infinity as torch.float16: load it in a type of a larger range"
    ):
        load(tmp_path, dtype=torch.float16)


def test_as_many_positions_as_are_asked_for(tmp_path):
    write_checkpoint(tmp_path, change={"max_position_embeddings": 4_194_304})
    said = r"promises 4194304 positions, and RoPE's tables would be as long: say how many you use, such as load\("
    with pytest.raises(CheckpointRefused, match=said):
        load(tmp_path)
    model = load(tmp_path, dtype=torch.float64, max_tokens=32)
    assert model.config == GQA
    cos, sin = rope_tables(dataclasses.replace(GQA, max_tokens=64), torch.float64, torch.device("cpu"))
    asked = rope_tables(model.config, torch.float64, torch.device("cpu"))
    assert torch.equal(asked[0], cos[:32])  # to the last bit, however long the table is
    assert torch.equal(asked[1], sin[:32])
    for wrong in (0, 4_194_305):
        with pytest.raises(
            CheckpointRefused, match=f"max_tokens: expected 1 to 4194304, which it promises, got {wrong}"
        ):
            load(tmp_path, max_tokens=wrong)


def test_newer_files_say_rope_elsewhere():
    data = {key: value for key, value in HUGGING_FACE.items() if not key.startswith("rope")}
    data["rope_parameters"] = OF_SCALED | {"rope_theta": 100.0}
    assert config_of(data) == CONFIGS["scaled rope"]
    data["rope_parameters"] = {"rope_type": "default", "rope_theta": 500.0}
    assert config_of(data) == dataclasses.replace(GQA, rope_theta=500.0)
    data["rope_parameters"] = {"rope_theta": 500.0}
    assert config_of(data) == dataclasses.replace(GQA, rope_theta=500.0)
    data["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 500,
        "partial_rotary_factor": 1.0,
        "factor": None,
    }
    assert config_of(data) == dataclasses.replace(GQA, rope_theta=500.0)


def test_rope_may_be_said_twice_where_both_say_the_same():
    twice = {
        "rope_theta": 100,
        "rope_scaling": OF_SCALED,
        "rope_parameters": OF_SCALED | {"rope_theta": 100.0},
    }
    assert config_of(HUGGING_FACE | twice) == CONFIGS["scaled rope"]


def test_what_a_config_leaves_out():
    data = {
        key: value for key, value in HUGGING_FACE.items() if key not in ("num_key_value_heads", "head_dim")
    }
    assert config_of(data) == dataclasses.replace(GQA, kv_heads=6, head_dim=4)
    del data["rope_theta"], data["rope_scaling"], data["tie_word_embeddings"], data["hidden_act"]
    data["max_sequence_length"] = data.pop("max_position_embeddings")  # as the first Llamas have it
    assert config_of(data) == dataclasses.replace(GQA, kv_heads=6, head_dim=4)


@EVERY_CONFIG
def test_what_is_saved_is_loaded(tmp_path, sizes):
    model = a_model(sizes, torch.bfloat16)
    save(model, tmp_path / "made")
    again = load(tmp_path / "made")
    assert again.config == sizes
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    first = (tmp_path / "made" / "model.safetensors").read_bytes()
    save(again, tmp_path / "made")
    assert (tmp_path / "made" / "model.safetensors").read_bytes() == first
    assert config_of(config_json(sizes)) == sizes


def test_a_save_that_is_stopped_leaves_what_was_there(tmp_path, monkeypatch):
    model = a_model(GQA, torch.bfloat16)
    save(model, tmp_path)
    (tmp_path / "tokens.json").write_text("{}")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def stopped(tensors, file, metadata):
        file.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", stopped)
    with pytest.raises(KeyboardInterrupt):
        save(a_model(CONFIGS["tied"], torch.bfloat16), tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def spoil(folder, what):
    """A checkpoint with one fault."""
    if what == "no folder":
        return folder / "nowhere"
    tensors = write_checkpoint(folder)
    weights = folder / "model.safetensors"
    name = "model.layers.1.mlp.up_proj.weight"
    if what == "cut short":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif what == "cut in its head":
        weights.write_bytes(weights.read_bytes()[:60])
    elif what == "no safetensors":
        weights.write_bytes(b"PK\x03\x04" * 100)
    elif what == "empty":
        weights.write_bytes(b"")
    elif what == "missing":
        del tensors[name]
        write_safetensors(weights, tensors)
    elif what == "shape":
        write_safetensors(weights, tensors | {name: tensors[name].T})
    elif what == "unexpected":
        write_safetensors(weights, tensors | {"model.layers.2.mlp.up_proj.weight": tensors[name]})
    elif what == "bias":
        write_safetensors(weights, tensors | {"model.layers.1.self_attn.q_proj.bias": torch.ones(48)})
    elif what == "type":
        write_safetensors(weights, tensors | {name: tensors[name].to(torch.int8)})
    elif what == "no weights":
        weights.rename(folder / "model.bin")
    elif what == "two and no index":
        write_safetensors(folder / "more.safetensors", tensors)
    elif what == "no config":
        (folder / "config.json").unlink()
    elif what == "config no json":
        (folder / "config.json").write_text("{")
    elif what == "config a list":
        (folder / "config.json").write_text("[]")
    elif what == "config with a key twice":
        text = (folder / "config.json").read_text()
        (folder / "config.json").write_text('{"rope_theta": 1e6, ' + text[1:])
    elif what == "config nested too deep":
        (folder / "config.json").write_text('{"rope_scaling": ' + "[" * 100_000 + "]" * 100_000 + "}")
    elif what == "config nested deep":
        change = {"rope_scaling": json.loads("[" * 900 + "]" * 900)}
        (folder / "config.json").write_text(json.dumps(HUGGING_FACE | change))
    elif what == "a billion layers":
        (folder / "config.json").write_text(json.dumps(HUGGING_FACE | {"num_hidden_layers": 10**7}))
    elif what == "a width past memory":
        change = {
            "num_attention_heads": 2**20,
            "num_key_value_heads": 1,
            "head_dim": 2**20,
            "hidden_size": 2**24,
        }
        (folder / "config.json").write_text(json.dumps(HUGGING_FACE | change))
    elif what == "no head":
        del tensors["lm_head.weight"]
        write_safetensors(weights, tensors)
    elif what == "an adapter beside":
        (folder / "adapter_config.json").write_text("{}")
    elif what.startswith("index"):
        index = split_in_two(folder, tensors)
        if what == "index names a file that is not there":
            (folder / "model-00002-of-00002.safetensors").unlink()
        elif what == "index leads elsewhere":
            index["weight_map"][name] = "../model.safetensors"
        elif what == "index without a map":
            index = {}
        elif what == "index is wrong about a file":
            index["weight_map"]["lm_head.weight"] = "model-00002-of-00002.safetensors"
        elif what == "index names too little":
            del index["weight_map"][name]
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


SPOILED = {
    "no folder": "nowhere: no such folder: name the one that holds config.json",
    "cut short": "model.safetensors: is cut short or no safetensors (",
    "cut in its head": "model.safetensors: is cut short or no safetensors (",
    "no safetensors": "model.safetensors: is cut short or no safetensors (",
    "empty": "model.safetensors: is cut short or no safetensors (",
    "missing": ": model.layers.1.mlp.up_proj.weight is missing: get the model's files again, all of them",
    "shape": "model.safetensors: model.layers.1.mlp.up_proj.weight has shape (24, 40), config.json says (40, 24):",
    "unexpected": "model.safetensors: model.layers.2.mlp.up_proj.weight is not expected: the model of config.json has",
    "bias": "model.safetensors: model.layers.1.self_attn.q_proj.bias is not expected: the model of config.json has no",
    "type": "model.layers.1.mlp.up_proj.weight is of type I8, expected BF16, F16, F32: get the model without quantisat",
    "no weights": ": has no *.safetensors: get the model in that format, all of its files; pickled weights are not",
    "two and no index": ": has 2 *.safetensors and no model.safetensors.index.json: get",
    "no config": "config.json: is missing: a checkpoint has config.json beside its weights",
    "config no json": "config.json: cannot be read (",
    "config a list": "config.json: expected a JSON object, got list",
    "config with a key twice": "config.json: rope_theta stands there twice: take out the wrong one",
    "config nested too deep": "config.json: cannot be read (it is nested too deep): get it again",
    "config nested deep": "config.json: rope_scaling: expected an object, got ",
    "a billion layers": "config.json: 10000000 layers of 1 blocks of 24 x 40, and the files hold 21 tensors: check",
    "a width past memory": "config.json: 2 layers of 1 blocks of 16777216 x 40, and the files hold 21 tensors: check",
    "no head": ": lm_head.weight is missing, and config.json does not say that the embedding serves as the head: where",
    "an adapter beside": "adapter_config.json: an adapter changes the weights and is not read: merge it into them",
    "index names a file that is not there": "model-00002-of-00002.safetensors: is missing, and model.safetensors.index",
    "index leads elsewhere": "lies in '../model.safetensors', expected a file of this folder",
    "index without a map": "model.safetensors.index.json: has no weight_map: get the model's files again",
    "index is wrong about a file": "model-00002-of-00002.safetensors: lm_head.weight is missing, and model.safetensors",
    "index names too little": "model.layers.1.mlp.up_proj.weight is not expected: model.safetensors.index.json",
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_spoiled_checkpoint_is_refused_in_one_line(tmp_path, what, monkeypatch):
    monkeypatch.setattr(
        Model, "empty", lambda *a, **k: pytest.fail("memory was taken before all was looked at")
    )
    with pytest.raises(CheckpointRefused) as refused:
        load(spoil(tmp_path, what))
    assert SPOILED[what] in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


FOREIGN = {
    "another family": (
        {"model_type": "qwen2"},
        "model_type is 'qwen2': only llama and mixtral are read, take",
    ),
    "a family in a list": (
        {"model_type": ["llama"]},
        "model_type is ['llama']: only llama and mixtral are read",
    ),
    "no family": ({"model_type": None}, "has no model_type: take the config.json that came with"),
    "a classifier": (
        {"architectures": ["LlamaForSequenceClassification"]},
        "architectures is ['LlamaForSequenceClassification']: only LlamaForCausalLM is known here, take a model of",
    ),
    "no width": (
        {"hidden_size": None},
        "has no hidden_size: take the config.json that came with the weights; if that",
    ),
    "no eps": ({"rms_norm_eps": None}, "has no rms_norm_eps: take the"),
    "no experts": ({"model_type": "mixtral", "architectures": None}, "has no num_local_experts: take the"),
    "biases": (
        {"attention_bias": True},
        "attention_bias is True: only False is known here, take a model without it",
    ),
    "another gate": ({"hidden_act": "gelu"}, "hidden_act is 'gelu': only 'silu' is known here"),
    "a window": ({"sliding_window": 4096}, "sliding_window is 4096: only None is known here"),
    "pairs of neighbours": ({"rope_interleaved": True}, "rope_interleaved is True: only False is known here"),
    "quantised": (
        {"quantization_config": {"bits": 4}},
        "quantization_config is {'bits': 4}: quantised weights are",
    ),
    "quantised by others": (
        {"quantization": {"bits": 4}},
        "quantization is {'bits': 4}: quantised weights are not",
    ),
    "sizes at odds": (
        {"num_key_value_heads": 4},
        "its sizes do not fit together (kv_heads: expected a divisor",
    ),
    "a size in words": (
        {"vocab_size": "30"},
        "vocab_size is '30': expected a whole number from 1 to 16777216, take",
    ),
    "no heads": (
        {"num_attention_heads": 0, "head_dim": None},
        "num_attention_heads is 0: expected a whole number",
    ),
    "no heads of keys": ({"num_key_value_heads": 0}, "num_key_value_heads is 0: expected a whole number"),
    "a size past counting": (
        {"hidden_size": 10**30},
        "hidden_size is 1000000000000000000000000000000: expected a who",
    ),
    "a tie in words": (
        {"tie_word_embeddings": "false"},
        "tie_word_embeddings is 'false': expected true or false, t",
    ),
    "eps that is no number": (
        {"rms_norm_eps": math.nan},
        "rms_norm_eps is nan: expected a number above 0 and below",
    ),
    "eps below 0": (
        {"rms_norm_eps": -1e-5},
        "rms_norm_eps is -1e-05: expected a number above 0 and below 1, take",
    ),
    "layers of two kinds": (
        {"layer_types": ["full_attention", "sliding_attention"]},
        "layer_types is ['full_attention', 'sliding_attention']: only full_attention is known here, for each of the",
    ),
    "two reaches": (
        {"max_sequence_length": 64},
        "max_sequence_length is 64 and max_position_embeddings 32: take out",
    ),
    # RoPE
    "scaled otherwise": (
        {"rope_scaling": {"type": "linear", "factor": 2}},
        "rope_scaling: RoPE is scaled by 'linear': only llama3 is known here, take a model without it",
    ),
    "scaled by halves": (
        {"rope_scaling": {"rope_type": "llama3"}},
        "rope_scaling: has no low_freq_factor: take the",
    ),
    "scaled by no type": (
        {"rope_scaling": {"factor": 2.0}},
        "rope_scaling: has no rope_type, so nobody knows how",
    ),
    "scaled by nothing": (
        {"rope_scaling": {}},
        "rope_scaling: has no rope_type, so nobody knows how RoPE is scaled",
    ),
    "scaled by two types": (
        {"rope_scaling": OF_SCALED | {"type": "linear"}},
        "rope_scaling: rope_type is 'llama3' and type 'linear': take out the wrong one",
    ),
    "not scaled, by a factor": (
        {"rope_scaling": {"rope_type": "default", "factor": 8.0}},
        "rope_scaling: factor is 8.0: is not known here for RoPE of type default, take a model without it",
    ),
    "scaled by a word": ({"rope_scaling": "llama3"}, "rope_scaling: expected an object, got 'llama3'"),
    "scaled by a key nobody knows": (
        {"rope_scaling": OF_SCALED | {"attention_factor": 1.2}},
        "rope_scaling: attention_factor is 1.2: is not known here for RoPE of type llama3",
    ),
    "half a head turns": (
        {"rope_theta": None, "rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}},
        "rope_parameters: partial_rotary_factor is 0.5: is not known here for RoPE of type default",
    ),
    "a factor of 0": (
        {"rope_scaling": OF_SCALED | {"factor": 0}},
        "rope_scaling: factor is 0: expected a number above",
    ),
    "low above high": (
        {"rope_scaling": OF_SCALED | {"low_freq_factor": 4.0}},
        "rope_scaling: low_freq_factor is 4 and high_freq_factor 4: expected the first below the second",
    ),
    "trained on half a token": (
        {"rope_scaling": OF_SCALED | {"original_max_position_embeddings": 0.5}},
        "rope_scaling: original_max_position_embeddings is 0.5: expected a whole number from 1",
    ),
    "a base in two places": (
        {"rope_theta": 1e4, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        "rope_theta is 10000 and rope_parameters.rope_theta is 1e+06: take out the one that is not the model's",
    ),
    "a scaling in two places": (
        {"rope_scaling": OF_SCALED, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
        "rope_parameters and rope_scaling say different things: take out the one that is not the model's",
    ),
    "RoPE without a base": (
        {"rope_theta": None, "rope_scaling": OF_SCALED},
        "has no rope_theta, RoPE's base: take",
    ),
    "experts without a base": (
        JSON_OF["experts"] | {"rope_theta": None},
        "has no rope_theta, RoPE's base: take",
    ),
    "RoPE by type of layer": (
        {"rope_parameters": {kind: {"rope_theta": 1e4} for kind in ("full_attention", "sliding_attention")}},
        "rope_parameters: has RoPE by type of layer (full_attention, sliding_attention): one for all layers is known",
    ),
    **{
        f"a base of {theta!r}": (
            {"rope_theta": theta},
            f"rope_theta is {theta!r}: expected a number above 1 and below",
        )
        for theta in (0, -1.0, math.nan, math.inf, True, "10000")
    },
    "a base past counting": ({"rope_theta": 10**400}, "…: expected a number above 1 and below 1e+300, take"),
    # what nobody here knows
    **{
        key: (
            {key: value},
            f"{key} is {value!r}: this key is not known here and may change what the model computes;",
        )
        for key, value in {
            "attention_chunk_size": 8192,
            "no_rope_layers": [1, 0],
            "clip_qkv": 8.0,
            "rotary_pct": 0.25,
            "rotary_dim": 64,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "embedding_multiplier": 12.0,
            "logits_scaling": 8.0,
            "residual_multiplier": 0.22,
            "query_pre_attn_scalar": 256,
            "hidden_activation": "gelu",
            "position_embedding_type": "alibi",
            "is_causal": False,
            "auto_map": {"AutoModel": "m.M"},
            "num_local_experts": 8,
        }.items()
    },
    "a key of two lines": ({"a\nb": 1}, "config.json: 'a\\nb' is 1: this key is not known here"),
    "experts weighted otherwise": (
        JSON_OF["experts"] | {"norm_topk_prob": False},
        "norm_topk_prob is False: this key is not known here",
    ),
}


@pytest.mark.parametrize(("change", "said"), FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_config_is_refused_in_one_line(change, said):
    with pytest.raises(CheckpointRefused) as refused:
        config_of(HUGGING_FACE | change)
    assert said in str(refused.value)
    assert str(refused.value).startswith("config.json: ")
    assert "\n" not in str(refused.value)


def test_a_key_that_is_null_is_not_there_and_one_that_means_nothing_changes_nothing():
    more = {"attention_chunk_size": None, "transformers.js_config": {"dtype": "q4"}, "pretraining_tp": 2}
    assert config_of(HUGGING_FACE | more | {"layer_types": ["full_attention"] * 2}) == GQA


# --- writing text ----------------------------------------------------------------------------------


def test_greedy_text_is_what_the_whole_model_would_choose():
    model, prompt = a_model(GQA), tokens_for(GQA, 2, 4)
    written = list(generate(model, prompt, 6))
    text = prompt
    for step in written:
        with torch.no_grad():
            best = model(text)[:, -1].argmax(dim=-1)
        assert step == best.tolist()
        text = torch.cat((text, best[:, None]), dim=1)
    assert len(written) == 6


def test_drawn_text_is_the_same_for_a_seed_and_another_for_another():
    model, prompt = a_model(GQA), tokens_for(GQA, 1, 3)
    texts = [list(generate(model, prompt, 20, temperature=1.0, seed=seed)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    cold = list(generate(model, prompt, 20, temperature=1e-6, seed=1))
    assert cold == list(generate(model, prompt, 20))


def test_tokens_are_drawn_as_often_as_their_chance_says():
    from course_models.generate import choose

    logits = torch.tensor([[0.0, 1.0, 2.0]]).expand(30_000, 3)
    drawn = choose(logits, 0.5, torch.Generator().manual_seed(0))
    share = torch.bincount(drawn, minlength=3) / 30_000
    assert torch.allclose(share, torch.softmax(2 * logits[0], dim=-1), atol=0.01)


def test_text_comes_token_by_token():
    model, steps = a_model(GQA), []

    def counted(token, cache):
        steps.append(cache.held)
        return model.decode(token, cache)

    stream = generate(model, tokens_for(GQA, 1, 3), 9, decode=counted)
    assert steps == []
    list(islice(stream, 3))
    assert steps == [3, 4]  # the first token is the prefill's, the fourth nobody asked for


def test_all_positions_can_be_written_and_not_one_more():
    model, prompt = a_model(GQA), tokens_for(GQA, 1, 4)
    assert len(list(generate(model, prompt, 29))) == 29  # the last one is not read again
    with pytest.raises(
        ValueError, match="4 tokens and 30 to write are more than the model's 32 positions: ask for"
    ):
        generate(model, prompt, 30)
    with pytest.raises(CacheFull, match="no room for 9 more"):
        generate(model, prompt, 6, cache=model.cache(1, 8))


@pytest.mark.parametrize(
    ("prompt", "how", "said"),
    [
        (torch.zeros(1, 0, dtype=torch.int64), {}, r"prompt: expected \(B, N\) int64, none of them 0, got"),
        (torch.zeros(4, dtype=torch.int64), {}, r"prompt: expected \(B, N\) int64"),
        (torch.zeros(1, 4), {}, r"prompt: expected \(B, N\) int64, none of them 0, got torch.float32"),
        (torch.tensor([[3, 30]]), {}, "prompt: expected tokens from 0 to 29, got 3 to 30"),
        (torch.tensor([[-1, 3]]), {}, "prompt: expected tokens from 0 to 29, got -1 to 3"),
        (torch.tensor([[1, 3]]), {"temperature": -1.0}, "temperature: expected 0 or more, got -1.0"),
        (torch.tensor([[1, 3]]), {"most": 0}, "most: expected at least 1, got 0"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_first_token(prompt, how, said):
    with pytest.raises(ValueError, match=said):
        generate(a_model(GQA), prompt, **{"most": 3, **how})


def test_a_graph_without_a_gpu_says_what_to_call():
    model = a_model(GQA)
    with pytest.raises(RuntimeError, match="graph: expected a cache on a GPU, got cpu: call"):
        CapturedDecode(model, model.cache(1, 4))


# --- checked, then timed -----------------------------------------------------------------------------

TIMED = Config(layers=3, width=64, heads=4, kv_heads=2, head_dim=32, hidden=96, vocab=200, max_tokens=64)


def decode_checked(model, twin, batch=2):
    cache = bench.filled_cache(model, batch, 40, 5)
    problem = bench.decode_problem(model, cache, 40)
    function = bench.stepping(twin.decode, cache, 40, model.config.vocab)
    w = Workload.of(str(model.dtype).removeprefix("torch."), B=batch, N=40, T=5)
    return checked_errors({"it": Competitor("it", problem, function)}, w, 0, "cpu")["it"]


def test_the_truth_of_the_bench_is_the_model_in_float64():
    model = bench.subject(TIMED, dtype=torch.float32, device="cpu")
    tokens = tokens_for(TIMED, 2, 13)
    wide = Model.empty(TIMED, dtype=torch.float64)
    wide.load_state_dict(model.state_dict())
    with torch.no_grad():
        assert torch.allclose(bench.truth(model, tokens), wide(tokens), atol=1e-12)
    cache = wide.cache(2, 13)
    wide.prefill(tokens[:, :9], cache)
    assert torch.allclose(
        bench.truth(model, tokens[:, 9:], cache, 9), bench.truth(model, tokens)[:, 9:], atol=1e-12
    )


def test_the_check_takes_the_plain_model_and_the_library():
    model = bench.subject(TIMED, dtype=torch.float32, device="cpu")
    for twin in (model, model.with_operators(bench.LIBRARY)):
        assert decode_checked(model, twin) < bench.MAX_ERROR["float32"] / 4


WRONG_STEPS = {
    "a key short": {"decode_attention": lambda q, k, v, n: operators.decode_attention(q, k, v, n - 1)},
    "a key too many": {"decode_attention": lambda q, k, v, n: operators.decode_attention(q, k, v, n + 1)},
    "scores off by a hundredth": {
        "decode_attention": lambda q, k, v, n: operators.decode_attention(1.01 * q, k, v, n)
    },
    "rope pairs neighbours": {"rope": neighbours_paired},
    "a sigmoid for a silu": FAULTS["a sigmoid for a silu"],
}


@pytest.mark.parametrize("fault", WRONG_STEPS.values(), ids=WRONG_STEPS)
def test_the_check_refuses_a_wrong_step(fault):
    model = bench.subject(TIMED, dtype=torch.float32, device="cpu")
    with pytest.raises(WrongResult, match="wrong: "):
        decode_checked(model, model.with_operators(dataclasses.replace(PLAIN, **fault)))


@pytest.mark.parametrize("fault", ["rope pairs neighbours", "a sigmoid for a silu"])
def test_in_bfloat16_the_check_still_tells_a_fault_from_rounding(fault):
    model = bench.subject(TIMED, device="cpu")
    assert decode_checked(model, model) < 0.25
    with pytest.raises(WrongResult, match="wrong: "):
        decode_checked(model, model.with_operators(dataclasses.replace(PLAIN, **WRONG_STEPS[fault])))


def off_by(model, batch, held=40, steps=5, seed=5):
    """What plain decoding is off by, on tokens and behind keys of its own."""
    cache = bench.filled_cache(model, batch, held, steps, seed)
    tokens = tokens_for(model.config, batch, steps, seed)
    found = bench.stepping(model.decode, cache, held, model.config.vocab)(tokens)
    return worst_error(found, bench.truth(model, tokens, cache, held), rows_apart=True)


def bounds_of(model):
    """What a step and a prefill may be off by."""
    decode = bench.decode_problem(model, model.cache(1, 45), 40).max_error(STEPS_OF_FIVE)
    return decode, bench.prefill_problem(model).max_error(Workload.of(STEPS_OF_FIVE.dtype, B=1, N=48))


STEPS_OF_FIVE = Workload.of("bfloat16", B=1, N=40, T=5)


def test_how_far_a_model_may_be_off_is_found_over_draws_of_the_plain_one(monkeypatch):
    model = bench.subject(TIMED, device="cpu")
    monkeypatch.setattr(bench, "NOISE_SEED", 5)
    found, tokens = [], bench._tokens(model, (64, 5), torch.Generator().manual_seed(5), "cpu")[0]
    monkeypatch.setattr(
        bench, "filled_cache", lambda *how, of=bench.filled_cache: found.append(of(*how)) or found[-1]
    )

    decode, prefill = bounds_of(
        model.with_operators(dataclasses.replace(PLAIN, **FAULTS["a sigmoid for a silu"]))
    )

    (cache,) = found
    due = bench.truth(model, tokens, cache, 40)
    rows = [  # by hand: |found - due| over |due| and what is usual in its row
        (out.double() - exact).abs() / (exact.abs() + exact.square().mean().sqrt())
        for sequence in zip(bench.stepping(model.decode, cache, 40, 200)(tokens), due, strict=True)
        for out, exact in zip(*sequence, strict=True)
    ]
    assert len(rows) == 320
    assert decode == pytest.approx(1.5 * max(float(row.max()) for row in rows))
    assert 0.05 < prefill < decode < 0.5
    assert (decode, prefill) == bounds_of(model)  # from the same weights, whoever takes part


def test_a_deeper_model_is_given_more_room_and_stays_inside_it():
    """No one number fits both: what the deep one is off by would be a fault in the other."""
    flat, deep = (bench.subject(dataclasses.replace(TIMED, layers=n), device="cpu") for n in (1, 16))
    bounds = [bounds_of(model)[0] for model in (flat, deep)]
    errors = [off_by(deep, 16, seed=seed) for seed in range(10, 14)]
    assert bounds[0] < max(errors) < bounds[1] < 0.75


def test_the_room_of_a_model_is_found_once_before_anything_is_timed(monkeypatch):
    asked = []
    monkeypatch.setattr(bench, "decode_noise", lambda model, held, steps: asked.append((held, steps)) or 0.2)
    problem = bench.decode_problem(bench.subject(TIMED, device="cpu"), None, 40)
    assert [problem.max_error(STEPS_OF_FIVE) for _ in range(3)] == [pytest.approx(0.3)] * 3
    assert asked == [(40, 5)]


@pytest.mark.parametrize(
    ("noise", "dtype"), [(1.01, "bfloat16"), (float("nan"), "bfloat16"), (2.0**-12, "float32")]
)
def test_a_plain_model_that_is_wrong_is_refused_and_not_measured_away(noise, dtype):
    assert bench.bound_over(2.0**-13, dtype) == 1.5 * 2.0**-13
    with pytest.raises(WrongResult, match="a fault could not be told from rounding"):
        bench.bound_over(noise, dtype)


def test_a_plain_model_that_steps_wrongly_makes_no_room_for_itself(monkeypatch):
    model = bench.subject(TIMED, device="cpu")
    monkeypatch.setattr(
        Model, "decode", lambda self, token, cache, of=Model.decode: of(self, token, cache).flip(-1)
    )
    with pytest.raises(WrongResult, match=r"the plain model is off by .* from itself in float64"):
        decode_checked(model, model)


def test_decode_and_prefill_are_measured_with_the_bytes_of_their_floor():
    model = bench.subject(TIMED, dtype=torch.float32, device="cpu")
    found = bench.decode(model, 2, held=40, steps=4, timer=MadeUpClock())
    assert list(found) == ["plain"]  # the others want a GPU
    assert found["plain"].workload == {"dtype": "float32", "dims": {"B": 2, "N": 40, "T": 4}}
    each = [config.decode_bytes(TIMED, 2, 40 + t, 4) for t in range(4)]
    assert found["plain"].reads_bytes + found["plain"].writes_bytes == sum(each)
    assert found["plain"].flops == sum(config.decode_flops(TIMED, 2, 40 + t) for t in range(4))
    first = bench.prefill(model, 33, timer=MadeUpClock())["plain"]
    assert first.flops == config.prefill_flops(TIMED, 1, 33)
    assert first.kernel == "prefill, plain"


def test_every_call_begins_on_the_cache_as_it_was():
    model = bench.subject(TIMED, dtype=torch.float32, device="cpu")
    cache = bench.filled_cache(model, 1, 40, 5)
    function, tokens = bench.stepping(model.decode, cache, 40, TIMED.vocab), tokens_for(TIMED, 1, 5)
    assert torch.equal(function(tokens), function(tokens))
    assert cache.lengths.tolist() == [45]
