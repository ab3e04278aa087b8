"""Time of a verification: T rows for each of B sequences, behind a cache, checked against float64 and then timed.

    times = verify_bench.steps(bench.subject(), batches=(1, 64), rows=(1, 5))
    times[64, 5]

With one row it is a step without drafts, by the same code: what differs is the number of rows alone. As in `bench`, the
weights are random, and the time is that of a CUDA graph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_kernels.measure import Measurement, measure
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Problem, Workload
from course_models import bench
from course_models.capture import captured
from course_models.config import LLAMA_8B, cache_bytes, decode_bytes, decode_flops
from course_models.model import Cache, Model
from course_models.speculative import verify

# A draft for the 8B shape: a seventh of its weights, and the vocabulary.
DRAFT_OF_8B = dataclasses.replace(LLAMA_8B, layers=16, width=2048, head_dim=64, hidden=8192, tied=True)


def problem(model: Model, cache: Cache, held: int, max_error: Callable[[], float]) -> Problem:
    """Make a verification behind the first `held` tokens of a cache: tokens (B, T) to logits (B, T, vocab).

    Workloads have B sequences, N tokens in the cache of each, and T rows. The least bytes are the weights and what the
    cache holds, read once for all rows, and the rows' own keys and values, written.

    Args:
        max_error: how far a right answer may be off, asked for before anything is timed.
    """
    config, size = model.config, model.embedding.element_size()
    return Problem(
        name="verify",
        formula="logits = model(tokens before, tokens), for all of the tokens at once",
        make_inputs=lambda w, generator, device: (
            torch.randint(config.vocab, (w.B, w.T), generator=generator, device=device),
        ),
        reference=lambda tokens: bench.truth(model, tokens, cache, held),
        reads_bytes=lambda w: decode_bytes(config, w.B, w.N, size) - cache_bytes(config, w.B, 1, size),
        writes_bytes=lambda w: cache_bytes(config, w.B, w.T, size),
        flops=lambda w: sum(decode_flops(config, w.B, w.N + t) for t in range(w.T)),
        math=lambda w: {"bfloat16": "bf16", "float16": "fp16"}.get(w.dtype, "fp32"),
        max_error=lambda w: max_error(),
        rows_apart=True,
        hard=lambda w: (),  # every token is as good as another, and none is NaN
        check_on=(),
        time_on=(),
    )


def verifying(model: Model, cache: Cache, held: int, T: int) -> Callable[[Tensor], Tensor]:
    """Return what looks at (B, T) tokens behind the first `held`.

    On a GPU from a CUDA graph, whose logits it copies: the next call writes over them.
    """

    def run(tokens: Tensor) -> Tensor:
        cache.reset(held)
        return verify(model, tokens, cache)

    if cache.keys.device.type != "cuda":
        return run
    given = torch.zeros(cache.batch, T, dtype=torch.int64, device=cache.keys.device)
    graph, logits = captured(lambda: run(given))

    def replay(tokens: Tensor) -> Tensor:
        given.copy_(tokens)
        graph.replay()
        return logits.clone()

    return replay


def steps(
    model: Model,
    batches: Sequence[int],
    rows: Sequence[int],
    *,
    held: int = bench.HELD,
    seconds: float = 0.05,
    **how: Any,
) -> dict[tuple[int, int], Measurement]:
    """Check and time verifications.

    Args:
        model: see `bench.subject`.
        batches: numbers of sequences.
        rows: numbers of rows of each.
        held: tokens in the cache before them.
        seconds, how: as in `measure.measure`.
    Returns:
        By batch and rows.
    Raises:
        Refused: a wrong answer, or one that came faster than it can.
    """
    dtype = str(model.dtype).removeprefix("torch.")
    noise: list[float] = []

    def max_error() -> float:
        if not noise:
            noise.append(bench.decode_noise(model, held, max(rows)))
        return bench.bound_over(noise[0], dtype)

    found = {}
    for B in batches:
        for T in rows:
            cache = bench.filled_cache(model, B, held, T)
            competitor = Competitor(
                "verify, graph", problem(model, cache, held, max_error), verifying(model, cache, held, T)
            )
            workload = Workload.of(dtype, B=B, N=held, T=T)
            found[B, T] = measure(competitor, workload, seconds=seconds, device=model.device.type, **how)
            del cache, competitor
    return found
