"""A request to a server, and its progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class Refused(ValueError):
    """A request that cannot be served; one line. The others go on."""


@dataclass(frozen=True)
class Request:
    """A text to go on from.

    Attributes:
        prompt: its tokens, at least one.
        most: how many tokens to write, at least one.
        temperature: 0 takes the likeliest token; above it each has the chance softmax(logits / temperature).
        seed: draws the tokens; the same ones whoever else is served beside.
        stops: tokens that end the answer; the one that did is written, too.
    """

    prompt: Sequence[int]
    most: int
    temperature: float = 0.0
    seed: int = 0
    stops: frozenset[int] = frozenset()


@dataclass(eq=False)  # two that ask the same are two
class Running:
    """A request that was taken.

    `tokens` are known, of `computed` of them keys and values lie in the cache. A prompt has many that are not; while
    the answer is written it is one, the last. So a prompt and an answer are served alike.

    Attributes:
        number: the engine's name for it, counted from 1 in the order in which they came.
        request: what was asked.
        tokens: the prompt, and behind it what was written.
        computed: how many of the tokens the cache holds.
        pages: the block table.
        name: of what stands in its last full page (`Pages.fill`).
        filled: how many of its pages are full and named.
        over: nothing more is written, because it is done or was cancelled.
    """

    number: int
    request: Request
    tokens: list[int]
    computed: int = 0
    pages: list[int] = field(default_factory=list)
    name: int = 0
    filled: int = 0
    over: bool = False

    @property
    def left(self) -> int:
        """Tokens that are known and not in the cache."""
        return len(self.tokens) - self.computed

    @property
    def written(self) -> int:
        """Tokens of the answer so far."""
        return len(self.tokens) - len(self.request.prompt)

    @property
    def done(self) -> bool:
        """True once the answer is complete."""
        return self.written >= self.request.most or (
            self.written > 0 and self.tokens[-1] in self.request.stops
        )
