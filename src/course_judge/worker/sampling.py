"""Samples of a stranger's function in its own process, and batches for the judge's own clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import torch

from course_judge.protocol.layout import Place
from course_judge.protocol.messages import Answer, Batch, Block, Go, Memory, Output, Sampled, Time
from course_judge.worker.connection import Connection
from course_kernels.measure.clock import Clock


class Answers(Protocol):
    """Layer between a stranger's function and the judge."""

    def take(self, memory: Memory, files: Sequence[int]) -> None:
        """Work in other shared memory from now on."""

    def tensors(self, places: Iterable[Place]) -> list[torch.Tensor]:
        """Return the tensors at places."""

    def told(self, outputs: Sequence[Any], inputs: Sequence[torch.Tensor], room: int) -> tuple[Output, ...]:
        """Hand outputs over."""


class _Race:
    """Race of one, as the clock times it, with inputs that come from the judge."""

    def __init__(self, answers: Answers, function: Callable[..., Any], connection: Connection) -> None:
        self._answers, self._function, self._connection = answers, function, connection
        self._last: Any = None
        self._room = 0

    def block(self, number: int) -> dict[str, Callable[[], Any]]:
        self._last = None
        self._connection.say(Sampled("block"))
        block, files = self._connection.hear((Block,))
        assert isinstance(block, Block)
        self._answers.take(block.memory, files)
        self._room = block.room
        inputs = self._answers.tensors(block.inputs)
        return {"it": partial(self._function, *inputs, **block.options)}

    def refill(self) -> None:
        torch.cuda.synchronize()
        self._want("refill")

    def keep(self, name: str, result: Any) -> None:
        self._last = result

    def judge(self) -> None:
        result = self._last
        outputs = result if isinstance(result, tuple | list) else (result,)
        self._answers.told(outputs, [], self._room)
        torch.cuda.synchronize()
        self._want("judge")

    def _want(self, what: str) -> None:
        self._connection.say(Sampled(what))
        self._connection.hear((Go,))


def timed(answers: Answers, function: Callable[..., Any], connection: Connection, time: Time) -> Sampled:
    """Sample a function, on inputs that the judge gives while it lasts."""
    with torch.no_grad():
        race = _Race(answers, function, connection)
        sampled = Clock().time(race, time.seconds, seed=time.seed).sampled["it"]
    return Sampled(
        samples_us=tuple(round(float(value), 3) for value in sampled.us),
        blocks=tuple(int(value) for value in sampled.block),
    )


def batch(answers: Answers, function: Callable[..., Any], asked: Batch) -> Answer:
    """Call a function on many inputs, and hand all answers over."""
    calls = [answers.tensors(places) for places in asked.inputs]
    with torch.no_grad():
        results = [function(*inputs, **asked.options) for inputs in calls]
        for number, result in enumerate(results):
            outputs = result if isinstance(result, tuple | list) else (result,)
            answers.told(outputs, [], asked.room + number * asked.each)
    torch.cuda.synchronize()
    return Answer()
