"""The load of a model's experts: where its routers send the tokens of a text, and how unevenly.

    picked = choices(pretrained.load("experts"), corpus.load().held_out)
    imbalance(loads(picked, experts=8))                    of the whole text, for each layer
    imbalance(loads(picked, experts=8, tokens=16))         of every 16 tokens that follow each other

Neighbouring tokens are about the same thing, and few tokens are uneven by chance alone: the second is the larger one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from course_models.byte_tokens import encode
from course_models.model import Model
from course_models.operators import PLAIN, sdpa_prefill_attention


@torch.no_grad()
def choices(model: Model, texts: Sequence[bytes], *, batch: int = 32) -> Tensor:
    """Return which experts each token goes to, in every layer.

    A text longer than the model has positions is read in windows that do not overlap.

    Args:
        model: with experts, in any type.
        texts: at least one byte together; `BEGIN`, which stands before each, is a token as well.
        batch: windows at once.
    Returns:
        (layers, N, TOP_K) int64 on the CPU: the tokens of all texts, one after the other.
    Raises:
        ValueError: a model without experts, or no text.
    """
    config = model.config
    if not config.experts:
        raise ValueError("model: expected one with experts, got one without")
    if not any(texts):
        raise ValueError("texts: expected at least one byte, got none")
    layer_of = {id(layer.router): number for number, layer in enumerate(model.layers)}
    heard: list[Tensor] = [torch.empty(0)] * config.layers

    def linear(x: Tensor, weight: Tensor) -> Tensor:
        y = functional.linear(x, weight)
        if (number := layer_of.get(id(weight))) is not None:
            heard[number] = y.topk(config.experts_per_token, dim=-1).indices.cpu()
        return y

    listening = model.with_operators(
        dataclasses.replace(PLAIN, linear=linear, prefill_attention=sdpa_prefill_attention)
    )
    windows = [part for text in texts for part in torch.tensor(encode(text)).split(config.max_tokens)]
    found: list[Tensor] = [torch.empty(0)] * len(windows)
    # Windows of one length go through together; none is padded, so every token that is counted is one of the text.
    by_length: dict[int, list[int]] = {}
    for number, window in enumerate(windows):
        by_length.setdefault(len(window), []).append(number)
    for numbers in by_length.values():
        for begin in range(0, len(numbers), batch):
            some = numbers[begin : begin + batch]
            listening(torch.stack([windows[number] for number in some]).to(model.device))
            of_all = torch.stack(heard).unflatten(1, (len(some), -1))  # (layers, windows, tokens, TOP_K)
            for number, of_one in zip(some, of_all.unbind(1), strict=True):
                found[number] = of_one
    return torch.cat(found, dim=1)


def loads(picked: Tensor, experts: int, *, tokens: int | None = None) -> Tensor:
    """Return how many choices each expert got.

    Args:
        picked: (layers, N, TOP_K), as `choices` returns it.
        experts: how many there are.
        tokens: count within every so many tokens that follow each other; what is left at the end is left out.
    Returns:
        (layers, experts) int64; with `tokens` (layers, N // tokens, experts).
    Raises:
        ValueError: more tokens in a step than there are.
    """
    layers, N, _ = picked.shape
    step = N if tokens is None else tokens
    if not 1 <= step <= N:
        raise ValueError(f"tokens: expected 1 to {N}, the tokens there are, got {step}")
    steps = picked[:, : N // step * step].reshape(layers, N // step, -1)
    counted = torch.zeros(layers, N // step, experts, dtype=torch.int64)
    counted.scatter_add_(2, steps, torch.ones_like(steps))
    return counted[:, 0] if tokens is None else counted


def imbalance(load: Tensor) -> Tensor:
    """Return the load of the busiest expert over the mean load, over the last dimension; 1 where all have as many."""
    load = load.double()
    return load.amax(dim=-1) / load.mean(dim=-1)


def skew_of(imbalances: Tensor, experts: int, top_k: int) -> int:
    """Return the mean of some imbalances as the workloads of `course_kernels.moe` want it: SKEW, in hundredths.

    Args:
        imbalances: of any shape, each at least 1.
        experts, top_k: of that workload, whose busiest expert has at most all tokens, experts / top_k times the mean.
    """
    return round(100 * min(float(imbalances.mean()), experts / top_k))
