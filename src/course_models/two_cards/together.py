"""Train in several ways on two cards, a process for each: what pages and tests call."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_kernels.two_cards.together import run, slower
from course_models.config import Config

MODULE = "course_models.two_cards"
# Half a billion weights in sixteen blocks: a step is work for a card, and a block is a small part of the whole.
HALF_A_BILLION = Config(
    layers=16, width=1536, heads=24, kv_heads=24, head_dim=64, hidden=4096, vocab=8192, max_tokens=1024
)
# Sequences of a card, and their tokens, where memory is counted: activations are small beside the weights.
FEW = (1, 64)
SMALL = Config(layers=2, width=32, heads=2, kv_heads=1, head_dim=16, hidden=48, vocab=64, max_tokens=32)


@dataclass(frozen=True)
class Kept:
    """Memory and traffic of one way on the busier card; a step with few tokens.

    Attributes:
        peak_bytes: most that torch had given out for it at one moment of a step; 0 on the CPU.
        held_bytes: what it had given out right after the step; 0 on the CPU.
        state_bytes: of weights, gradients and the optimizer's numbers, added up tensor by tensor.
        sent_bytes: that leave a card in a step, by kind of collective, as a ring sends them.
        calls: of each kind, in a step.
    """

    peak_bytes: int
    held_bytes: int
    state_bytes: int
    sent_bytes: Mapping[str, int]
    calls: Mapping[str, int]


@dataclass(frozen=True)
class Trained:
    """Result of `train`.

    Attributes:
        off: how far, at most, a way's weights were from those of one card that had the tokens of both, after three
            steps of a small model in float64; "alone" has to be elsewhere.
        kept: by way.
        us: for each shape, and way, microseconds of each round, the slower card.
    """

    off: Mapping[str, float]
    kept: Mapping[str, Kept]
    us: Sequence[Mapping[str, Sequence[float]]]


def train(
    ways: Sequence[str],
    shapes: Sequence[tuple[int, int]],
    config: Config = HALF_A_BILLION,
    *,
    rounds: int = 8,
    device: str = "cuda",
    limit_s: float = 180.0,
) -> Trained:
    """Take the steps of all ways in the same rounds; before that, check them, and count what each keeps and sends.

    Args:
        ways: of `ways.WAYS`.
        shapes: sequences of a card and their tokens, for which steps are timed.
        config: of the model, in bfloat16.
        rounds: for each shape.
        device: "cuda"; or "cpu", to see whether it runs, and what is sent.
        limit_s: seconds for all of it.
    Raises:
        CardsFailed: steps that are not those of one card, a loss that is no number, a process that failed, or time is
            up.
    """
    asked = {
        "first": {
            "ways": [*ways],
            "config": dataclasses.asdict(SMALL),
            "shape": [2, 16],
            "steps": 3,
            "device": device,
        },
        "ways": [*ways],
        "config": dataclasses.asdict(config),
        "few": [*FEW],
        "shapes": [[*shape] for shape in shapes],
        "rounds": rounds,
    }
    found = run("train", asked, module=MODULE, device=device, limit_s=limit_s)
    kept = {way: _busier([card["kept"][way] for card in found]) for way in ways}
    us = [
        {way: slower([card["us"][number][way] for card in found]) for way in ways}
        for number in range(len(shapes))
    ]
    # max() would lose a NaN that comes second.
    off = {way: max((card["off"][way] for card in found), key=lambda e: (e != e, e)) for way in ways}
    return Trained(off, kept, us)


def _busier(cards: Sequence[Mapping[str, Any]]) -> Kept:
    def counts(name: str) -> dict[str, int]:
        return {kind: max(card[name].get(kind, 0) for card in cards) for kind in cards[0][name]}

    sizes = {name: max(card[name] for card in cards) for name in ("peak_bytes", "held_bytes", "state_bytes")}
    return Kept(**sizes, sent_bytes=counts("sent_bytes"), calls=counts("calls"))
