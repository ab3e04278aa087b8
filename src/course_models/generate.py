"""Writing text: one token after the other, each chosen from the logits that the ones before it gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_models.model import Cache, Model

# What answers `decode(token, cache)`: the model's own, or a captured one.
Decode = Callable[[Tensor, Cache], Tensor]


def choose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """Return the next token of each sequence.

    Args:
        logits: (B, vocab).
        temperature: 0 takes the largest logit; above it, each token has the chance softmax(logits / temperature).
        generator: draws; on the device of the logits.
    Returns:
        (B,) int64.
    """
    if temperature == 0:
        return logits.argmax(dim=-1)
    chances = torch.softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature, dim=-1)
    return torch.multinomial(chances, 1, generator=generator)[:, 0]


def generate(
    model: Model,
    prompt: Tensor,
    most: int,
    *,
    temperature: float = 0.0,
    seed: int = 0,
    decode: Decode | None = None,
    cache: Cache | None = None,
) -> Iterator[list[int]]:
    """Go on from a prompt; every step yields as soon as its tokens are known.

    Args:
        model: what gives logits.
        prompt: (B, N) int64 on the model's device, N at least 1, every token below the model's vocab.
        most: tokens to write for each sequence.
        temperature: 0 is greedy, and the same every time; above 0 tokens are drawn, the same ones for a seed.
        seed: draws the tokens.
        decode: another way to make a step, such as a `graph.CapturedDecode`; the model's own without it.
        cache: where keys and values go, empty and with room; made to measure without it.
    Yields:
        One new token for each of the B sequences.
    Raises:
        ValueError: before the first token: an empty prompt, a token that the model does not have, a temperature
            below 0, or a text that is longer than the model's positions (`CacheFull` for a cache that came along).
    """
    if prompt.dim() != 2 or prompt.dtype != torch.int64 or 0 in prompt.shape:
        raise ValueError(
            f"prompt: expected (B, N) int64, none of them 0, got {prompt.dtype} {tuple(prompt.shape)}"
        )
    if temperature < 0:
        raise ValueError(f"temperature: expected 0 or more, got {temperature}")
    if most < 1:
        raise ValueError(f"most: expected at least 1, got {most}")
    low, high = int(prompt.min()), int(prompt.max())
    if low < 0 or high >= model.config.vocab:
        raise ValueError(f"prompt: expected tokens from 0 to {model.config.vocab - 1}, got {low} to {high}")
    batch, length = prompt.shape
    # The last token that is written is never read again, and needs no room.
    if length + most - 1 > model.config.max_tokens:
        raise ValueError(
            f"prompt: {length} tokens and {most} to write are more than the model's {model.config.max_tokens} "
            "positions: ask for fewer, or give a shorter prompt"
        )
    cache = cache or model.cache(batch, length + most - 1)
    cache.check_room(length + most - 1)
    return _steps(model, prompt, most, temperature, seed, decode or model.decode, cache)


def _steps(
    model: Model,
    prompt: Tensor,
    most: int,
    temperature: float,
    seed: int,
    decode: Decode,
    cache: Cache,
) -> Iterator[list[int]]:
    generator = torch.Generator(device=prompt.device).manual_seed(seed)
    logits = model.prefill(prompt, cache)
    for left in range(most, 0, -1):
        token = choose(logits, temperature, generator)
        yield token.tolist()
        if left > 1:
            logits = decode(token, cache)
