"""The model on the card: our operators, a step in a graph, compiled layers, and the check ahead of the timing."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.measure.check import WrongResult, checked_errors, poisoned_memory
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_models import bench, int4_decode, nvfp4_decode, operators
from course_models.config import LLAMA_8B, Config
from course_models.generate import generate
from course_models.graph import CapturedDecode
from course_models.model import CacheFull
from course_models.operators import PLAIN
from course_models.step_kernels import fused, is_for, kernels_for

GROUPS = ("models",)
SMALL = Config(layers=4, width=512, heads=8, kv_heads=2, head_dim=128, hidden=768, vocab=1000, max_tokens=512)
DEEP = dataclasses.replace(SMALL, layers=32, max_tokens=1100)  # as many layers as the shape that is timed
EXPERTS = dataclasses.replace(SMALL, experts=4, experts_per_token=2)
OURS = dataclasses.replace(PLAIN, decode_attention=operators.our_decode_attention)


def drawn(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, generator=generator, device="cuda").to(dtype)


def tokens_for(batch, length, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randint(1000, (batch, length), generator=generator, device="cuda")


def close(out, truth, allowed):
    return worst_error(out, truth, rows_apart=True) <= allowed


# --- operators -------------------------------------------------------------------------------------


@pytest.mark.parametrize("N", [1, 17, 128, 300])
@pytest.mark.parametrize("name", ["our_prefill_attention", "sdpa_prefill_attention"])
def test_prefill_attention_is_the_plain_one(name, N):
    q, k, v = drawn(2, 8, N, 128), drawn(2, 2, N, 128, seed=1), drawn(2, 2, N, 128, seed=2)
    truth = operators.prefill_attention(q.double(), k.double(), v.double())
    assert close(getattr(operators, name)(q, k, v), truth, 2.0**-4)
    of_others = operators.prefill_attention(q.double(), k.double().flip(1), v.double().flip(1))
    assert not close(of_others, truth, 2.0**-4)


@pytest.mark.parametrize("lengths", [(1, 300), (17, 128), (300, 300)])
@pytest.mark.parametrize("name", ["our_decode_attention", "sdpa_decode_attention"])
@pytest.mark.parametrize(
    ("dtype", "allowed"), [(torch.bfloat16, 2.0**-4), (torch.float32, 2.0**-13)], ids=str
)
def test_decode_attention_is_the_plain_one(name, lengths, dtype, allowed):
    q, k, v = (
        drawn(2, 8, 128, dtype=dtype),
        drawn(2, 2, 300, 128, dtype=dtype, seed=1),
        drawn(2, 2, 300, 128, dtype=dtype),
    )
    held = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    truth = operators.decode_attention(q.double(), k.double(), v.double(), held)
    for _ in range(2):  # the second call finds the tickets as the first one left them
        assert close(getattr(operators, name)(q, k, v, held), truth, allowed)


def test_our_prefill_attention_refuses_what_its_kernel_does_not_take():
    q, k = drawn(1, 8, 16, 128, dtype=torch.float32), drawn(1, 2, 16, 128, dtype=torch.float32)
    with pytest.raises(TypeError, match="q: expected bfloat16 or float16, got float32"):
        operators.our_prefill_attention(q, k, k)


# --- a step in a graph -----------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [SMALL, EXPERTS], ids=["one block", "experts"])
@pytest.mark.parametrize("swap", [PLAIN, OURS], ids=["plain", "ours"])
def test_a_graph_writes_what_the_model_writes(sizes, swap):
    model = bench.subject(sizes, dtype=torch.float32).with_operators(swap)
    prompt = tokens_for(3, 20)
    cache = model.cache(3, 40)
    step = CapturedDecode(model, cache)
    assert (cache.held, cache.lengths.tolist()) == (0, [0, 0, 0])
    captured = list(generate(model, prompt, 20, decode=step, cache=cache))
    assert captured == list(generate(model, prompt, 20))
    cache.reset()
    assert captured == list(
        generate(model, prompt, 20, decode=step, cache=cache)
    )  # once more, the same graph


def test_a_graph_captured_halfway_goes_on_from_there():
    model, text = bench.subject(SMALL, dtype=torch.float32), tokens_for(2, 12)
    with torch.no_grad():
        whole = model(text)
    cache = model.cache(2, 12)
    model.prefill(text[:, :8], cache)
    step = CapturedDecode(model, cache)
    for n in range(8, 12):
        assert torch.allclose(step(text[:, n], cache), whole[:, n], atol=1e-3)
    with pytest.raises(CacheFull, match="12 of 12 tokens are held"):
        step(text[:, 0], cache)
    with pytest.raises(ValueError, match="cache: expected the one that was captured"):
        step(text[:, 0], model.cache(2, 12))
    cache.reset(3)
    with pytest.raises(ValueError, match=r"token: expected shape \(2,\), got \(1,\)"):
        step(text[:1, 0], cache)


def test_a_graph_serves_sequences_of_different_lengths():
    model, text = bench.subject(SMALL, dtype=torch.float32).with_operators(OURS), tokens_for(2, 30)
    alone = []
    both = model.cache(2, 40)
    for b, length in enumerate((5, 29)):
        cache = model.cache(1, 40)
        model.prefill(text[b : b + 1, :length], cache)
        both.keys[:, b], both.values[:, b] = cache.keys[:, 0], cache.values[:, 0]
        alone.append(model.decode(text[b : b + 1, length], cache))
    both.reset(29)
    both.lengths.copy_(torch.tensor([5, 29]))
    together = CapturedDecode(model, both)(torch.stack((text[0, 5], text[1, 29])), both)
    assert torch.allclose(together, torch.cat(alone), atol=1e-3)


# --- a step by our kernels -------------------------------------------------------------------------

STEPPED = {
    "the shape that is timed": dataclasses.replace(LLAMA_8B, layers=2, vocab=4112, max_tokens=512),
    "heads of 64": dataclasses.replace(SMALL, layers=2, head_dim=64),
    "32 heads share one": dataclasses.replace(SMALL, layers=2, heads=64),
}


@pytest.mark.parametrize(("dtype", "allowed"), [("bfloat16", 2.0**-3), ("float16", 2.0**-6)])
@pytest.mark.parametrize("batch", [1, 9, 32])
def test_a_step_in_four_bits_is_that_of_the_rounded_weights(batch, dtype, allowed, record_property):
    """The graph alone holds the packed weights; what is freed meanwhile is NaN. Every replay gives the same bits."""
    model = bench.subject(STEPPED["the shape that is timed"], dtype=getattr(torch, dtype))
    if not is_for(model, batch):
        assert not is_hopper(model.device)
        return
    held, steps = 100, 4
    tokens = torch.randint(model.config.vocab, (batch, steps), device="cuda")
    cache = bench.filled_cache(model, batch, held, steps)
    due = bench.truth(model, tokens, cache, held, int4_decode.rounded)
    captured = CapturedDecode(int4_decode.in_four_bits(model), cache)
    short = bench.stepping(captured, cache, held, model.config.vocab)
    with poisoned_memory():
        first = short(tokens)
        assert torch.equal(short(tokens), first)
    error = worst_error(first, due, rows_apart=True)
    record_property("error", error)
    assert error <= allowed
    assert not close(first, bench.truth(model, tokens, cache, held), 2.0**-5)


@pytest.mark.parametrize("batch", [1, 8, 9, 32])
@pytest.mark.parametrize("sizes", ["the shape that is timed", "heads of 64"])
def test_a_step_in_nvfp4_is_that_of_the_rounded_weights(sizes, batch, record_property):
    """As in whole numbers of four bits; besides, rows in one, two and four eights, and K cut among blocks."""
    model = bench.subject(STEPPED[sizes])
    if not is_for(model, batch):
        assert not is_hopper(model.device)
        return
    held, steps = 100, 4
    tokens = torch.randint(model.config.vocab, (batch, steps), device="cuda")
    cache = bench.filled_cache(model, batch, held, steps)
    due = bench.truth(model, tokens, cache, held, nvfp4_decode.rounded)
    captured = CapturedDecode(nvfp4_decode.in_nvfp4(model), cache)
    short = bench.stepping(captured, cache, held, model.config.vocab)
    with poisoned_memory():
        first = short(tokens)
        assert all(torch.equal(short(tokens), first) for _ in range(5))
    error = worst_error(first, due, rows_apart=True)
    record_property("error", error)
    assert error <= 2.0**-3
    assert not close(first, bench.truth(model, tokens, cache, held), 2 * error)


def test_a_step_in_nvfp4_finds_the_logits_of_eager_kernels():
    """Whether the host is ahead or waits behind each step: the same bits."""
    model = bench.subject(STEPPED["the shape that is timed"])
    if not is_for(model, 3):
        assert not is_hopper(model.device)
        return
    tokens = torch.randint(model.config.vocab, (3, 2), device="cuda")
    cache, vocab = bench.filled_cache(model, 3, 100, 2), model.config.vocab
    twin = nvfp4_decode.in_nvfp4(model)
    captured = bench.stepping(CapturedDecode(twin, cache), cache, 100, vocab)(tokens)

    def waited_for(token, cache):
        logits = twin.decode(token, cache)
        torch.cuda.synchronize()
        return logits

    assert torch.equal(bench.stepping(waited_for, cache, 100, vocab)(tokens), captured)


@pytest.mark.parametrize(("dtype", "allowed"), [("bfloat16", 2.0**-3), ("float16", 2.0**-6)])
@pytest.mark.parametrize("batch", [1, 2, 16, 17, 32])
@pytest.mark.parametrize("sizes", STEPPED.values(), ids=STEPPED)
def test_our_step_is_the_plain_one(sizes, batch, dtype, allowed, record_property):
    """Whatever the table takes for so many rows, and what it takes for others; every replay gives the same bits."""
    model = bench.subject(sizes, dtype=getattr(torch, dtype))
    if not is_for(model, batch):
        assert not is_hopper(model.device)
        return
    held, steps = 100, 4
    tokens = torch.randint(sizes.vocab, (batch, steps), device="cuda")
    cache = bench.filled_cache(model, batch, held, steps)
    due = bench.truth(model, tokens, cache, held)
    for kernels in (None, kernels_for(1), kernels_for(32)):
        cache = bench.filled_cache(model, batch, held, steps)
        call = bench.stepping(CapturedDecode(fused(model, kernels), cache), cache, held, sizes.vocab)
        first = call(tokens)
        error = worst_error(first, due, rows_apart=True)
        record_property("error", error)
        assert error <= allowed, kernels
        assert all(torch.equal(call(tokens), first) for _ in range(5))


# --- the check that stands before the timing -------------------------------------------------------


def checked(problem, functions, w):
    field = {name: Competitor(name, problem, function) for name, function in functions.items()}
    return checked_errors(field, w)


# What a narrow model is off by at most. What it may be off by comes from draws of the plain one.
NARROW = {"bfloat16": 0.33, "float32": 2.0**-13}


@pytest.mark.parametrize(("dtype", "batch"), [("float32", 5), ("bfloat16", 1), ("bfloat16", 32)])
def test_all_who_decode_pass_the_check(dtype, batch, record_property):
    model = bench.subject(SMALL, dtype=getattr(torch, dtype))
    cache = bench.filled_cache(model, batch, 100, 6)
    functions = bench.decode_functions(model, cache, 100)
    ours = {"our_step"} if is_for(model, batch) else set()
    assert ours or dtype == "float32" or not is_hopper(model.device)
    assert {"plain", "graph", "library", "compiled", *bench.DECODE_SWAPS, *ours} == set(functions)
    w = Workload.of(dtype, B=batch, N=100, T=6)
    problem = bench.decode_problem(model, cache, 100)
    errors = checked(problem, functions, w)
    record_property("errors", errors)
    record_property("allowed", problem.max_error(w))
    assert max(errors.values()) < NARROW[dtype]


def test_all_who_prefill_pass_the_check(record_property):
    model = bench.subject(SMALL)
    functions = bench.prefill_functions(model)
    ours = {"our_both"} if is_hopper(model.device) else set()
    assert {"plain", "library", "compiled", *bench.PREFILL_SWAPS, *ours} == set(functions)
    w = Workload.of("bfloat16", B=2, N=200)
    problem = bench.prefill_problem(model)
    errors = checked(problem, functions, w)
    record_property("errors", errors)
    record_property("allowed", problem.max_error(w))
    assert max(errors.values()) < NARROW["bfloat16"]


def pairs_neighbours(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2).to(x.dtype)


def every_other_shares(q, k_cache, v_cache, lengths):
    """Query head h reads head h % KV instead of h // group."""
    B, H, D = q.shape
    KV = k_cache.shape[1]
    mixed = q.view(B, H // KV, KV, D).transpose(1, 2).reshape(B, H, D)
    found = operators.decode_attention(mixed, k_cache, v_cache, lengths)
    return found.view(B, KV, H // KV, D).transpose(1, 2).reshape(B, H, D)


FAULTS = {
    "rope pairs neighbours": {"rope": pairs_neighbours},
    "heads that share keys with the wrong ones": {"decode_attention": every_other_shares},
    "scores off by a tenth": {
        "decode_attention": lambda q, k, v, n: operators.decode_attention(1.1 * q, k, v, n)
    },
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_after_32_layers_the_check_still_tells_a_fault_from_rounding(fault, record_property):
    model = bench.subject(DEEP)
    cache = bench.filled_cache(model, 2, 1024, 4)
    problem, w = bench.decode_problem(model, cache, 1024), Workload.of("bfloat16", B=2, N=1024, T=4)
    right = checked(problem, {"it": bench.stepping(model.decode, cache, 1024, 1000)}, w)
    record_property("error", right["it"])
    wrong = model.with_operators(dataclasses.replace(PLAIN, **fault))
    with pytest.raises(WrongResult, match="wrong: "):
        checked(problem, {"it": bench.stepping(wrong.decode, cache, 1024, 1000)}, w)
