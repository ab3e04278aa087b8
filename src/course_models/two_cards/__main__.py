"""One card's part: `python -m course_models.two_cards FOLDER CARD`; see together.py."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from course_kernels.two_cards.__main__ import main
from course_kernels.two_cards.clock import Clock
from course_models.config import Config
from course_models.model import Model
from course_models.two_cards.carried import Carried
from course_models.two_cards.ways import CARDS, Adam, Training, Whole

ALLOWED = 1e-9  # a weight in float64, after a few steps; one that missed a gradient is 1e-3 off
WARM_UP = 2  # steps: DDP makes its buckets anew in the first
TINY = Config(layers=1, width=64, heads=1, kv_heads=1, head_dim=64, hidden=64, vocab=64, max_tokens=64)


def tokens_of(config: Config, shape: tuple[int, int], card: int, seed: int, device: str) -> torch.Tensor:
    """Draw a card's tokens, and one more of each sequence to guess."""
    draw = torch.Generator().manual_seed(1000 * seed + card)
    return torch.randint(config.vocab, (shape[0], shape[1] + 1), generator=draw).to(device)


def check(asked: dict[str, Any], card: int) -> dict[str, float]:
    """Return for each way how far its weights are from those of one card that had the tokens of both, in float64."""
    config, device, shape = Config(**asked["config"]), asked["device"], tuple(asked["shape"])
    steps = range(asked["steps"])
    due = Whole(Model.random(config, 0, dtype=torch.float64, device=device))
    adam = Adam(due.parameters())
    for seed in steps:
        for weight in adam.weights:
            weight.grad = None
        both = torch.cat([tokens_of(config, shape, of_card, seed, device) for of_card in range(CARDS)])
        with torch.enable_grad():
            due(both).backward()
        adam.step()
    errors = {}
    for way in asked["ways"]:
        training = Training(way, config, 0, torch.float64, device)
        for seed in steps:
            training.step(tokens_of(config, shape, card, seed, device))
        errors[way] = max(
            float((whole_of(found) - weight).abs().max())
            for found, weight in zip(training.adam.weights, adam.weights, strict=True)
        )
    return errors


def whole_of(weight: torch.Tensor) -> torch.Tensor:
    """Return all of a weight that may be shared out."""
    return weight.full_tensor() if hasattr(weight, "full_tensor") else weight


def train(asked: dict[str, Any], card: int, folder: Path) -> dict[str, Any]:
    """Return what each way keeps and sends, and the times of its steps, on one card.

    Raises:
        RuntimeError: steps of a way that are not those of one card, or a loss that is no number.
    """
    off = check(asked["first"], card)
    for way, error in off.items():
        if way != "alone" and not error <= ALLOWED:
            raise RuntimeError(
                f"{way}: a weight is {error:.3g} from that of one card, and {ALLOWED:g} is allowed"
            )
    config, device = Config(**asked["config"]), asked["device"]
    memory = Memory(device)
    _wake(device)
    found: dict[str, Any] = {"off": off, "kept": {}, "us": []}
    trainings = {}
    for way in asked["ways"]:
        before = memory.now()
        training = trainings[way] = Training(way, config, 0, torch.bfloat16, device)
        few = tokens_of(config, tuple(asked["few"]), card, 0, device)
        for _ in range(WARM_UP):
            training.step(few)
        memory.forget_peak()
        training.step(few)
        of_way = {
            "peak_bytes": memory.peak() - before,
            "held_bytes": memory.now() - before,
            "state_bytes": training.state_bytes(),
        }
        with Carried(CARDS) as carried:
            training.step(few)
        found["kept"][way] = {
            **of_way,
            "sent_bytes": dict(carried.sent_bytes),
            "calls": dict(carried.calls),
        }
        dist.barrier()
    clock = Clock(card, device)
    for number, shape in enumerate(asked["shapes"]):
        many = tokens_of(config, tuple(shape), card, number, device)
        calls = {
            way: lambda mark, training=training, many=many: training.step(many)
            for way, training in trainings.items()
        }
        for call in calls.values():
            call(lambda stage: None)
        last = clock.rounds(calls, asked["rounds"], seed=number)
        for way, loss in last.items():
            if not bool(torch.isfinite(loss)):
                raise RuntimeError(f"{way}: the loss is no number")
        found["us"].append(clock.taken()["us"])
    return found


def _wake(device: str) -> None:
    """Make a step of a tiny model: what libraries keep for themselves from then on is no way's."""
    whole = Whole(Model.random(TINY, 0, device=device))
    with torch.enable_grad():
        whole(torch.zeros(1, 65, dtype=torch.int64, device=device)).backward()
    dist.all_reduce(torch.ones(1, device=device))


class Memory:
    """Bytes that torch has given out on this card; on the CPU nobody counts them, and all is 0."""

    def __init__(self, device: str) -> None:
        self._counts = device == "cuda"

    def now(self) -> int:
        """Bytes at this moment."""
        if not self._counts:
            return 0
        gc.collect()
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    def forget_peak(self) -> None:
        """Begin anew with the largest."""
        if self._counts:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> int:
        """Most bytes at one moment since then."""
        if not self._counts:
            return 0
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], {"train": train}))
