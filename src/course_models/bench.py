"""Speed of a model's decoding and prefill: checked against float64, then timed in turns, by `course_kernels.measure`.

    model = bench.subject()                    the 8B shape with random weights, on the GPU: speed only
    record(decode=bench.decode(model, 1), prefill=bench.prefill(model))

What is timed is a *problem* like any other. Its input are tokens drawn at random; weights and cache belong to the model
and are the same for all who take part, since two copies of them would not fit twice. The truth is the written-out model
in float64, one layer at a time: the same formulas, which the tests hold against NumPy at a small size.

A decode call is `STEPS` tokens one after the other, given and not chosen, on top of a cache of random keys and values.
So a step reads what the step before wrote, and a host that is slower than the GPU is waited for, as it would be in use.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.measure import Measurement, compare
from course_kernels.measure.check import WrongResult
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Problem, Workload, worst_error
from course_models import hopper_operators
from course_models.config import (
    LLAMA_8B,
    Config,
    cache_bytes,
    decode_bytes,
    decode_flops,
    prefill_flops,
)
from course_models.graph import CapturedDecode
from course_models.hopper_operators import SIXTEEN_BITS
from course_models.model import Cache, Layer, Model, decode_layer, prefill_layer, rope_tables
from course_models.operators import (
    PLAIN,
    Operators,
    our_decode_attention,
    our_prefill_attention,
    sdpa_decode_attention,
    sdpa_prefill_attention,
)
from course_models.step_kernels import fused, is_for

HELD = 1024  # tokens in the cache before the first step; tokens of a prefill
STEPS = 8  # tokens of one decode call

# Random queries and keys give scores of size 1, and a softmax over a thousand of them is nearly a mean: what attention
# finds would be small beside the rest, and a wrong one would not show. Scores twice as large pick some keys. Four times
# as large, and the rounding of bfloat16 alone picks others: 32 layers later nothing could be told from a fault.
SHARP = 2.0

# What lies in the room past a sequence's end: who reads it is wrong by a lot. Finite, as the plain operators ask.
PAST_THE_END = 100.0

# An answer passes through many layers and is rounded several times in each. In bfloat16 a twentieth of it is then
# noise, and the worst of millions of logits is off by several times that; by how much depends on depth, width and
# weights. So nobody types a bound: `decode_noise` and `prefill_noise` find what rounding does to the plain model, over
# many draws, and an answer may be off by so many times as much, since a race's worst row is one that was not drawn. In
# every record so far, those who keep more bits on the way, which are all the others, were off by less than it.
MARGIN = 1.5
# No bound may be larger. A wrong rotation, or heads that read another's keys, are off by several times the answer, and
# must still be seen: so a plain model that is off by more than rounding is refused, and not measured away. What is
# finer, such as a key that is left out, is checked where it shows: kernel by kernel, and on a model in float32.
MAX_ERROR = {"bfloat16": 1.5, "float32": 2.0**-12}

# What the noise is found over: rows of logits, each of tokens of its own. A step has one for each sequence, behind keys
# of its own, and a pass over a text one for each token.
NOISE_SEQUENCES = 64
NOISE_PASSES = 2
NOISE_SEED = 2  # other tokens, and other keys, than those that are timed

Function = Callable[[Tensor], Tensor]


def subject(
    config: Config = LLAMA_8B,
    seed: int = 0,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cuda",
) -> Model:
    """Return a model with random weights whose attention picks a few keys, so that a wrong one shows."""
    model = Model.random(config, seed, dtype=dtype, device=device)
    with torch.no_grad():
        for layer in model.layers:
            layer.query.mul_(SHARP)
    return model


def filled_cache(model: Model, batch: int, held: int = HELD, steps: int = STEPS, seed: int = 1) -> Cache:
    """Return a cache that holds `held` tokens of random keys and values of size 1, as the model's own have."""
    cache = model.cache(batch, held + steps)
    generator = torch.Generator(device=model.device).manual_seed(seed)
    for kept in (cache.keys, cache.values):
        kept.fill_(PAST_THE_END)
        kept[:, :, :, :held].normal_(generator=generator)
    cache.reset(held)
    return cache


# --- how far a right answer may be off ---------------------------------------------------------------


def bound_over(noise: float, dtype: str) -> float:
    """Return the largest error of a right answer, over what rounding does to the plain model.

    Args:
        noise: the plain model's largest `worst_error` against float64, over many draws.
        dtype: of the weights, one of `MAX_ERROR`.
    Raises:
        WrongResult: it is no rounding any more, or not a number, and a fault could hide in such a bound.
    """
    bound = MARGIN * noise
    if not bound <= MAX_ERROR[dtype]:
        why = (
            f"the plain model is off by {noise:.2g} from itself in float64: with {MARGIN:g} times that allowed, "
            f"which is more than {MAX_ERROR[dtype]:.2g}, a fault could not be told from rounding"
        )
        raise WrongResult(f"a model in {dtype}: {why}", why)
    return bound


def decode_noise(model: Model, held: int = HELD, steps: int = STEPS) -> float:
    """Return the plain model's largest error in decoding: `NOISE_SEQUENCES` sequences of `steps` tokens.

    Each has its own tokens, behind `held` random keys and values of its own.
    """
    plain = model.with_operators(PLAIN)
    cache = filled_cache(plain, NOISE_SEQUENCES, held, steps, NOISE_SEED)
    (tokens,) = _tokens(plain, (NOISE_SEQUENCES, steps), _noise_generator(plain), plain.device)
    due = truth(plain, tokens, cache, held)
    return worst_error(stepping(plain.decode, cache, held, plain.config.vocab)(tokens), due, rows_apart=True)


@torch.no_grad()
def prefill_noise(model: Model, tokens: int = HELD) -> float:
    """Return the plain model's largest error in reading `NOISE_PASSES` texts of so many tokens, behind every token."""
    plain, errors = model.with_operators(PLAIN), []
    generator = _noise_generator(plain)
    for _ in range(NOISE_PASSES):
        (text,) = _tokens(plain, (1, tokens), generator, plain.device)
        errors.append(worst_error(plain(text), truth(plain, text), rows_apart=True))
    return float("nan") if any(error != error for error in errors) else max(errors)


def _noise_generator(model: Model) -> torch.Generator:
    return torch.Generator(device=model.device).manual_seed(NOISE_SEED)


def _found_once(noise: Callable[[Workload], float]) -> Callable[[Workload], float]:
    """Return the bound of a workload, found when somebody first asks for it: before anything is timed."""

    @functools.cache
    def bound(w: Workload) -> float:
        return bound_over(noise(w), w.dtype)

    return bound


# --- the problems --------------------------------------------------------------------------------


def widened_as_it_is(layer: Layer) -> Layer:
    """Return the layer in float64, its weights as they are."""
    return copy.deepcopy(layer).double()


def decode_problem(
    model: Model,
    cache: Cache,
    held: int,
    *,
    widened: Callable[[Layer], Layer] = widened_as_it_is,
    least_bytes: Callable[[Config, int, int], int] | None = None,
) -> Problem:
    """Make steps behind the first `held` tokens of a cache: tokens (B, T) to logits (B, T, vocab).

    Workloads have B sequences, N tokens in the cache of each, and T steps. The least cost is that of all steps
    (`config.decode_bytes`): the logits are not in it, which need not leave the chip to choose a token. An answer may be
    off by what rounding does to the plain model (`decode_noise`), whose weights are those of `model`.

    Args:
        widened: a layer in float64, with the numbers that its weights stand for.
        least_bytes: of a step, by config, batch and tokens before it; without it, `config.decode_bytes`.
    """
    config, size = model.config, model.embedding.element_size()
    step_bytes = least_bytes or partial(decode_bytes, element_bytes=size)

    def reads_bytes(w: Workload) -> int:
        return sum(step_bytes(config, w.B, w.N + t) for t in range(w.T)) - writes_bytes(w)

    def writes_bytes(w: Workload) -> int:
        return cache_bytes(config, w.B, w.T, size)

    return Problem(
        name="decode",
        formula="logits = model(tokens before, tokens), for each of the tokens",
        make_inputs=lambda w, generator, device: _tokens(model, (w.B, w.T), generator, device),
        reference=lambda tokens: truth(model, tokens, cache, held, widened),
        reads_bytes=reads_bytes,
        writes_bytes=writes_bytes,
        flops=lambda w: sum(decode_flops(config, w.B, w.N + t) for t in range(w.T)),
        math=_math,
        max_error=_found_once(lambda w: decode_noise(model, w.N, w.T)),
        rows_apart=True,
        hard=lambda w: (),  # every token is as good as another, and none is NaN
        check_on=(),
        time_on=(),
    )


def prefill_problem(model: Model) -> Problem:
    """N tokens of B sequences at once: tokens (B, N) to the logits of the last one, (B, vocab).

    An answer may be off by what rounding does to the plain model (`prefill_noise`).
    """
    config, size = model.config, model.embedding.element_size()
    return Problem(
        name="prefill",
        formula="logits = model(tokens), of the last token",
        make_inputs=lambda w, generator, device: _tokens(model, (w.B, w.N), generator, device),
        reference=lambda tokens: truth(model, tokens)[:, -1],
        # The weights are read once; of the embedding the rows of the tokens, at the least one.
        reads_bytes=lambda w: decode_bytes(config, 1, 0, size) - cache_bytes(config, 1, 1, size),
        writes_bytes=lambda w: cache_bytes(config, w.B, w.N, size),
        flops=lambda w: prefill_flops(config, w.B, w.N),
        math=_math,
        max_error=_found_once(lambda w: prefill_noise(model, w.N)),
        rows_apart=True,
        hard=lambda w: (),
        check_on=(),
        time_on=(),
    )


@torch.no_grad()
def truth(
    model: Model,
    tokens: Tensor,
    cache: Cache | None = None,
    held: int = 0,
    widened: Callable[[Layer], Layer] = widened_as_it_is,
) -> Tensor:
    """Logits of the written-out model in float64. One layer is widened at a time: the 8B shape would not fit whole.

    Args:
        model: of any type.
        tokens: (B, N) int64.
        cache, held: what came before them, of each sequence the first `held`; it is read and not written.
        widened: a layer in float64, with the numbers that its weights stand for.
    Returns:
        (B, N, vocab) float64.
    """
    (B, N), device = tokens.shape, tokens.device
    cos, sin = (
        table[held : held + N][None, None] for table in rope_tables(model.config, torch.float64, device)
    )
    x = model.embedding[tokens].double()
    for i, layer in enumerate(model.layers):
        shape = B, model.config.kv_heads, held + N, model.config.head_dim
        keys, values = (torch.empty(shape, dtype=torch.float64, device=device) for _ in range(2))
        if cache is not None:
            keys[:, :, :held], values[:, :, :held] = cache.keys[i, :, :, :held], cache.values[i, :, :, :held]
        assert isinstance(layer, Layer)
        x = prefill_layer(PLAIN, widened(layer), x, cos, sin, keys, values, held)
    x = PLAIN.rms_norm(x, model.norm.double(), model.config.norm_eps)
    head = model.embedding if model.head is None else model.head
    return PLAIN.linear(x, head.double())


def _tokens(
    model: Model, shape: tuple[int, int], generator: torch.Generator, device: torch.device | str
) -> tuple[Tensor]:
    return (torch.randint(model.config.vocab, shape, generator=generator, device=device),)


def _math(w: Workload) -> str:
    return {"bfloat16": "bf16", "float16": "fp16"}.get(w.dtype, "fp32")


# --- who takes part ------------------------------------------------------------------------------

LIBRARY = replace(PLAIN, prefill_attention=sdpa_prefill_attention, decode_attention=sdpa_decode_attention)
# Ours, swap by swap: each by itself in the place of a plain operator, everything else as in the plain graph.
DECODE_SWAPS: Mapping[str, Operators] = {
    "our_attention": replace(PLAIN, decode_attention=our_decode_attention),
}
PREFILL_SWAPS: Mapping[str, Operators] = {
    "our_attention": replace(PLAIN, prefill_attention=our_prefill_attention),
}


def compiled(model: Model) -> Model:
    """Return the same model, its layers compiled by `torch.compile`: one layer, since all have the same code."""
    twin = model.with_operators(LIBRARY)
    twin.prefill_layer = torch.compile(prefill_layer, dynamic=False, fullgraph=True)
    twin.decode_layer = torch.compile(decode_layer, dynamic=False, fullgraph=True)
    return twin


def stepping(step: Callable[[Tensor, Cache], Tensor], cache: Cache, held: int, vocab: int) -> Function:
    """Make of one step a whole call: tokens (B, T) to logits (B, T, vocab), behind the first `held` of the cache."""

    def decode(tokens: Tensor) -> Tensor:
        cache.reset(held)
        B, T = tokens.shape
        logits = torch.empty((B, T, vocab), dtype=cache.keys.dtype, device=tokens.device)
        for t in range(T):
            logits[:, t] = step(tokens[:, t], cache)
        return logits

    return decode


def prefilling(model: Model) -> Function:
    """Tokens (B, N) to the logits of the last one, (B, vocab), with a cache that is empty at first."""
    caches: dict[tuple[int, int], Cache] = {}  # made once: its zeros are no part of a prefill

    def prefill(tokens: Tensor) -> Tensor:
        shape = tokens.shape[0], tokens.shape[1]
        if shape not in caches:
            caches[shape] = model.cache(*shape)
        cache = caches[shape]
        cache.reset()
        return model.prefill(tokens, cache)

    return prefill


def decode_functions(
    model: Model, cache: Cache, held: int, only: Collection[str] | None = None
) -> dict[str, Function]:
    """Return who decodes, by name: on a GPU all of them, or those that `only` names; elsewhere the plain model alone.

    plain is eager, graph the same captured, library has torch's fused attention besides, compiled is `torch.compile`
    of the layers, captured; then come `DECODE_SWAPS`, captured, and our_step, five kernels a layer, where the model and
    the card are such as those are for (`step_kernels.is_for`).
    """
    vocab = model.config.vocab
    functions = {"plain": stepping(model.decode, cache, held, vocab)}
    if cache.keys.device.type == "cuda":
        models = {
            "graph": model,
            "library": model.with_operators(LIBRARY),
            "compiled": compiled(model),
            **{name: model.with_operators(operators) for name, operators in DECODE_SWAPS.items()},
            **({"our_step": fused(model)} if is_for(model, cache.batch) else {}),
        }
        for name, twin in models.items():
            if only is None or name in only:
                cache.reset(held)
                functions[name] = stepping(CapturedDecode(twin, cache), cache, held, vocab)
        if only is not None and "plain" not in only:
            del functions["plain"]
    return functions


def prefill_functions(model: Model) -> dict[str, Function]:
    """Return who prefills, by name: as `decode_functions`, but nothing is captured: here the host waits for the GPU.

    our_both, on Hopper, is our multiply and our attention (`hopper_operators`).
    """
    models = {"plain": model}
    if model.device.type == "cuda":
        models |= {
            "library": model.with_operators(LIBRARY),
            "compiled": compiled(model),
            **{name: model.with_operators(operators) for name, operators in PREFILL_SWAPS.items()},
        }
        if is_hopper(model.device) and model.dtype in SIXTEEN_BITS:
            models["our_both"] = model.with_operators(hopper_operators.PREFILL_SWAPS["both"])
    return {name: prefilling(twin) for name, twin in models.items()}


# --- what a page calls ---------------------------------------------------------------------------


def decode(
    model: Model,
    batch: int,
    *,
    held: int = HELD,
    steps: int = STEPS,
    seconds: float = 0.5,
    only: Collection[str] | None = None,
    **how: Any,
) -> dict[str, Measurement]:
    """Check and time decoding, in turns.

    Args:
        model: see `subject`.
        batch: how many sequences.
        held, steps: tokens in the cache, and of one call.
        only: names of those that take part on a GPU; without it, all.
        seconds, how: as in `measure.compare`.
    Returns:
        By the names of `decode_functions`. The time of one is that of all its steps: divided by `steps` it is that of
        one token, and batch * steps over it are tokens a second. Its bytes are those of the byte floor.
    Raises:
        Refused: a wrong answer, or one that came faster than it can.
    """
    cache = filled_cache(model, batch, held, steps)
    problem = decode_problem(model, cache, held)
    workload = Workload.of(str(model.dtype).removeprefix("torch."), B=batch, N=held, T=steps)
    field = {
        name: Competitor(f"decode, {name}", problem, function)
        for name, function in decode_functions(model, cache, held, only).items()
    }
    return compare(field, workload, seconds=seconds, device=model.device.type, **how)


def prefill(
    model: Model, tokens: int = HELD, *, batch: int = 1, seconds: float = 0.5, **how: Any
) -> dict[str, Measurement]:
    """Check and time a prefill, in turns: as `decode`; batch * tokens over its time are tokens a second."""
    problem = prefill_problem(model)
    workload = Workload.of(str(model.dtype).removeprefix("torch."), B=batch, N=tokens)
    field = {
        name: Competitor(f"prefill, {name}", problem, function)
        for name, function in prefill_functions(model).items()
    }
    return compare(field, workload, seconds=seconds, device=model.device.type, **how)
