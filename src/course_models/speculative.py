"""Speculative decoding: a small model drafts K tokens, the large one looks at all of them at once, and some stay.

    pair = Pair(pretrained.load("small"), pretrained.load("draft"), K=4)
    for tokens in pair.write(prompt, most=100): ...

What is written is what the large model alone would write: token by token where it is greedy, and with the same
probabilities where it draws (`course_kernels.speculative_sampling`). The draft decides how many steps that takes.

A step has K + 1 rows for each of B sequences: the last token that was written, and the K drafts behind it. Keys and
values of all of them go into the cache before anybody knows which of them stay; those of refused drafts are forgotten,
by the length alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional

from course_kernels.speculative_sampling.problem import reference
from course_models.config import Config
from course_models.exact_pairs import Rule
from course_models.generate import choose
from course_models.model import Cache, Layer, Model, rope_tables

# --- the two models -----------------------------------------------------------------------------------


def accept(
    target: Tensor, draft: Tensor, drafted: Tensor, temperature: Tensor, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Accept by the truth, in torch and float64, on any device; a kernel of the problem may take its place."""
    tokens, accepted = reference(target, draft, drafted, temperature, uniforms)
    return tokens.int(), accepted.int()


def rows_attention(q: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    """Attention of T new tokens of each sequence, which may be of different lengths, over a cache with fixed room.

    Query heads that share a head of keys go as rows of one, so that no key is copied; each row is masked behind its
    own position. No shape hangs on a length: a CUDA graph can hold the call.

    Args:
        q: (B, H, T, D).
        keys, values: (B, KV, room, D), finite everywhere, the new tokens among them.
        position: (B, T), where each row stands.
    Returns:
        (B, H, T, D).
    """
    B, H, T, D = q.shape
    KV, room = keys.shape[1:3]
    group = H // KV
    rows = q.reshape(B, KV, group * T, D)
    seen = torch.arange(room, device=q.device) <= position.repeat(1, group)[:, None, :, None]
    return functional.scaled_dot_product_attention(
        rows, keys, values, attn_mask=seen, scale=1 / sqrt(D)
    ).reshape(B, H, T, D)  # not all of its kernels leave the answer with strides in order


@torch.no_grad()
def verify(model: Model, tokens: Tensor, cache: Cache) -> Tensor:
    """Look at T tokens of every sequence at once, behind what the cache holds of it.

    Args:
        tokens: (B, T) int64.
        cache: its `lengths` say where each sequence goes on; they grow by T.
    Returns:
        (B, T, vocab): row t scores what may follow tokens 0 to t.
    Raises:
        CacheFull: no room for T more.
    """
    B, T = tokens.shape
    cache.claim(T)
    position = cache.lengths.long()[:, None] + torch.arange(T, device=tokens.device)
    cache.lengths += T
    kind = torch.promote_types(model.dtype, torch.float32)
    cos, sin = (table[position][:, None] for table in _tables(model.config, kind, model.device))
    each, ops = torch.arange(B, device=tokens.device)[:, None], model.operators
    x = model.embedding[tokens]  # (B, T, width)
    for layer, keys, values in zip(model.layers, cache.keys, cache.values, strict=True):
        assert isinstance(layer, Layer)
        q, k, v = layer.queries_keys_values(ops, x, cos, sin)
        keys[each, :, position], values[each, :, position] = k.transpose(1, 2), v.transpose(1, 2)
        attended = rows_attention(q, keys, values, position)
        x = layer.add_block(ops, layer.add_attention(ops, x, attended))
    x = ops.rms_norm(x, model.norm, model.config.norm_eps)
    return ops.linear(x, model.embedding if model.head is None else model.head)


def roll_back(cache: Cache, lengths: Sequence[int]) -> None:
    """Keep the first tokens of each sequence, so many, and forget the others: nothing is moved.

    Raises:
        ValueError: another number of sequences, or more tokens than are held.
    """
    if len(lengths) != cache.batch or not all(0 <= n <= cache.held for n in lengths):
        raise ValueError(
            f"lengths: expected {cache.batch} numbers from 0 to {cache.held}, got {list(lengths)}"
        )
    cache.lengths.copy_(torch.tensor(lengths, dtype=torch.int32))
    cache.held = max(lengths)


@functools.cache
def _tables(config: Config, kind: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """RoPE's cosine and sine, kept: a graph holds their addresses."""
    return rope_tables(config, kind, device)


@dataclass
class Pair:
    """A model and its draft, which write together.

    Attributes:
        model, draft: with one vocabulary, on one device.
        K: drafted tokens of a step.
        temperature: of both; 0 is greedy.
        seed: draws drafts and uniform numbers.
        rule: what accepts, such as a kernel of `course_kernels.speculative_sampling`.
        asked, written: how often a sequence was under way in a step, and the tokens that it got.
        drafted, passed: how many drafts were looked at up to the first that was refused, and how many passed. Their
            ratio is the acceptance rate: drafts behind a refused one were never asked.
    """

    model: Model
    draft: Model
    K: int
    temperature: float = 0.0
    seed: int = 0
    rule: Rule = accept
    asked: int = field(default=0, init=False)
    written: int = field(default=0, init=False)
    drafted: int = field(default=0, init=False)
    passed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.K < 1:
            raise ValueError(f"K: expected at least 1, got {self.K}")
        if not self.temperature >= 0:
            raise ValueError(f"temperature: expected 0 or more, got {self.temperature}")
        if self.draft.config.vocab != self.model.config.vocab:
            raise ValueError(
                f"draft: expected the model's vocabulary of {self.model.config.vocab} tokens, got "
                f"{self.draft.config.vocab}"
            )

    @property
    def acceptance(self) -> float:
        """Share of drafts that passed, of those that were looked at."""
        return self.passed / self.drafted if self.drafted else float("nan")

    @property
    def tokens_a_step(self) -> float:
        """Tokens that a step of the model gave a sequence, in the mean; its last one may be cut short."""
        return self.written / self.asked if self.asked else float("nan")

    def write(self, prompt: Tensor, most: int) -> Iterator[list[list[int]]]:
        """Go on from prompts, each until it has `most` tokens.

        Args:
            prompt: (B, N) int64 on the model's device, N at least 1.
            most: tokens to write for each sequence.
        Yields:
            For each sequence what a step wrote: from none, where it is done, to K + 1 tokens.
        Raises:
            ValueError: no prompt, nothing to write, or a text that is longer than the positions of one of the models.
        """
        if prompt.dim() != 2 or prompt.dtype != torch.int64 or 0 in prompt.shape:
            raise ValueError(
                f"prompt: expected (B, N) int64, none of them 0, got {prompt.dtype} {tuple(prompt.shape)}"
            )
        if most < 1:
            raise ValueError(f"most: expected at least 1, got {most}")
        N = prompt.shape[1]
        # The last step may look at K drafts that nobody wants any more.
        room = N + most + self.K
        for model in (self.model, self.draft):
            if room > model.config.max_tokens:
                raise ValueError(
                    f"prompt: {N} tokens, {most} to write and {self.K} drafts are more than the "
                    f"{model.config.max_tokens} positions of a model: ask for fewer, or give a shorter prompt"
                )
        return self._rounds(prompt, most, room)

    def _rounds(self, prompt: Tensor, most: int, room: int) -> Iterator[list[list[int]]]:
        B, N = prompt.shape
        generator = torch.Generator(prompt.device).manual_seed(self.seed)
        caches = self.model.cache(B, room), self.draft.cache(B, room)
        for model, cache in zip((self.model, self.draft), caches, strict=True):
            if N > 1:
                model.prefill(prompt[:, :-1], cache)
        held, left, last = [N - 1] * B, [most] * B, prompt[:, -1]
        while any(left):
            tokens, accepted = (x.tolist() for x in self.step(last, *caches, generator))
            wrote = []
            for b, a in enumerate(accepted):
                new = tokens[b][: a + 1][: left[b]]
                if new:
                    self.asked += 1
                    self.written += len(new)
                    self.drafted += min(a + 1, self.K)
                    self.passed += a
                # Who is done stays where it is, and its rows are thrown away.
                held[b] += len(new)
                left[b] -= len(new)
                wrote.append(new)
            for cache in caches:
                roll_back(cache, held)
            last = torch.tensor([new[-1] if new else 0 for new in wrote], device=prompt.device)
            yield wrote

    def step(
        self, last: Tensor, cache: Cache, draft_cache: Cache, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Draft, verify and accept once; both caches grow by K + 1, and are not rolled back. Nothing asks the device.

        Args:
            last: (B,) int64, the last token of each sequence, which no cache holds yet.
            cache, draft_cache: what stands before it.
            generator: draws.
        Returns:
            tokens (B, K + 1), -1 behind the last, and accepted (B,).
        """
        drafted, shares = propose(self.draft, last, draft_cache, self.K, self.temperature, generator)
        logits = verify(self.model, torch.cat((last[:, None], drafted), 1), cache).float()
        B, device = len(last), last.device
        temperature = torch.full((B,), self.temperature, device=device)
        uniforms = torch.rand(B, self.K + 1, generator=generator, device=device)
        target = logits if self.temperature == 0 else torch.softmax(logits / self.temperature, -1)
        return self.rule(target, shares, drafted.int(), temperature, uniforms)


def propose(
    draft: Model, last: Tensor, cache: Cache, K: int, temperature: float, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """Draft K tokens behind the last one of each sequence, one after the other.

    The last draft is read, too, though nothing is drawn behind it: if it stays, the cache must hold it.

    Returns:
        drafted (B, K) int64, and the probabilities that they were drawn from, (B, K, vocab) float32; a greedy draft
        has what it would have been drawn from at a temperature of 1.
    """
    drafted, shares, token = [], [], last
    for _ in range(K):
        logits = draft.decode(token, cache).float()
        token = choose(logits, temperature, generator)
        drafted.append(token)
        shares.append(torch.softmax(logits / (temperature or 1.0), -1))
    draft.decode(token, cache)
    return torch.stack(drafted, 1), torch.stack(shares, 1)


# --- how often it passes ------------------------------------------------------------------------------


@torch.no_grad()
def acceptance(model: Model, draft: Model, tokens: Tensor, temperature: float) -> Tensor:
    """Return the probability that a drafted token passes, behind every place of given texts.

    Args:
        tokens: (B, N) int64.
        temperature: 0: whether both have the same largest logit.
    Returns:
        (B, N) float64: the sum of the smaller of each pair of probabilities.
    """
    ours, theirs = (one(tokens).double() for one in (model, draft))
    if temperature == 0:
        return (ours.argmax(-1) == theirs.argmax(-1)).double()
    p, q = (torch.softmax(x / temperature, -1) for x in (ours, theirs))
    return torch.minimum(p, q).sum(-1)


# --- what it is worth ---------------------------------------------------------------------------------


def expected_tokens(p: float, k: int) -> float:
    """Return how many tokens a step writes in the mean, if each of k drafts passes with probability p, independently.

    The leading drafts that pass, and one more: 1 + p + ... + p^k.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p: expected 0 to 1, got {p}")
    if k < 0:
        raise ValueError(f"k: expected at least 0, got {k}")
    return float(sum(p**i for i in range(k + 1)))


def gain(acceptance: float, k: int, step_us_of_rows: Callable[[int], float], draft_us: float) -> float:
    """Compute how many times the tokens a second become, by drafting k tokens a step; below 1 it is a loss.

    Args:
        acceptance: the probability that a draft passes.
        k: drafted tokens of a step.
        step_us_of_rows: what a step takes with so many rows for each sequence, in microseconds: 1 without drafts.
        draft_us: a step of the draft; there are k + 1, see `propose`.
    """
    step_us = step_us_of_rows(k + 1) + (k + 1) * draft_us
    return expected_tokens(acceptance, k) * step_us_of_rows(1) / step_us


def first_loss(gains: Mapping[int, float]) -> int | None:
    """Return the smallest batch from which on drafting loses at every batch, of those given; None without one.

    Args:
        gains: by batch, as `gain` computes them.
    """
    found = None
    for batch in sorted(gains, reverse=True):
        if gains[batch] >= 1:
            break
        found = batch
    return found
