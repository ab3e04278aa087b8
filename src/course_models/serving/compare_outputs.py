"""Comparison of an engine's text with the plain model's, and if they differ, by how little.

In company sums are made in another order, and round otherwise. A greedy answer then changes where the two best logits
are nearly equal, and nowhere else; behind that place the two texts are two texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from course_models.generate import generate
from course_models.model import Model
from course_models.serving.request import Request


@dataclass(frozen=True)
class Agreement:
    """Agreement of two answers.

    Attributes:
        equal: tokens from the beginning on that both have.
        gap: by how much the plain model's best logit is above the one of the token that the engine wrote instead, at
            the first place where they differ; None where they do not.
    """

    equal: int
    gap: float | None


def agreement(model: Model, request: Request, written: Sequence[int]) -> Agreement:
    """Hold an engine's answer against the plain model's.

    Args:
        model: the engine's, without pages and alone.
        request: greedy, that is of temperature 0.
        written: what the engine wrote.
    Raises:
        ValueError: a request whose tokens are drawn, or an answer that ends where the plain one goes on.
    """
    if request.temperature:
        raise ValueError(f"temperature: expected 0, got {request.temperature}: drawn tokens have no best one")
    prompt = torch.tensor([list(request.prompt)], device=model.device)
    plain = []
    for (token,) in generate(model, prompt, request.most):
        plain.append(token)
        if token in request.stops:
            break
    both = zip(plain, written, strict=False)
    equal = next((i for i, (one, other) in enumerate(both) if one != other), min(len(plain), len(written)))
    if equal == len(plain) == len(written):
        return Agreement(equal, None)
    if equal == min(len(plain), len(written)):
        raise ValueError(f"written: {len(written)} tokens where the plain model writes {len(plain)}")
    so_far = torch.tensor([[*request.prompt, *plain[:equal]]], device=model.device)
    logits = model.prefill(so_far, model.cache(1, so_far.shape[1]))[0].double()
    return Agreement(equal, float(logits[plain[equal]] - logits[written[equal]]))
