"""In the process that runs a stranger's file: samples of its function, and batches for the judge's own clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import torch

from course_judge.channel import Channel
from course_kernels.measure.clock import Clock


class Answers(Protocol):
    """What stands between a stranger's function and the judge."""

    def take(self, memory: Mapping[str, Any], files: Sequence[int]) -> None:
        """Work in other shared memory from now on."""

    def tensors(self, places: Any) -> list[torch.Tensor]:
        """The tensors at places."""

    def told(self, outputs: Sequence[Any], inputs: Sequence[torch.Tensor], room: int) -> list[dict[str, Any]]:
        """Hand outputs over."""


class _Race:
    """What the clock times, with inputs that come from the judge."""

    def __init__(
        self, answers: Answers, function: Callable[..., Any], ask: Callable[[dict[str, Any]], Any]
    ) -> None:
        self._answers, self._function, self._ask = answers, function, ask
        self._last: Any = None
        self._room = 0

    def block(self, number: int) -> dict[str, Callable[[], Any]]:
        self._last = None
        message, files = self._ask({"want": "block"})
        self._answers.take(message["memory"], files)
        self._room = message["room"]
        inputs = self._answers.tensors(message["inputs"])
        return {"it": partial(self._function, *inputs, **message["options"])}

    def refill(self) -> None:
        torch.cuda.synchronize()
        self._ask({"want": "refill"})

    def keep(self, name: str, result: Any) -> None:
        self._last = result

    def judge(self) -> None:
        result = self._last
        outputs = result if isinstance(result, tuple | list) else (result,)
        self._answers.told(outputs, [], self._room)
        torch.cuda.synchronize()
        self._ask({"want": "judge"})


def timed(
    answers: Answers, function: Callable[..., Any], channel: Channel, how: dict[str, Any]
) -> dict[str, Any]:
    """Sample a function, on inputs that the judge gives while it lasts."""
    mark = how["of"]

    def ask(question: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        nonlocal mark
        channel.send({**question, "of": mark})
        message, files = channel.receive()
        mark = message["of"]
        return message, files

    with torch.no_grad():
        sampled = Clock().time(_Race(answers, function, ask), how["seconds"], seed=how["seed"]).sampled["it"]
    return {
        "samples_us": [round(float(value), 3) for value in sampled.us],
        "blocks": [int(value) for value in sampled.block],
        "of": mark,
    }


def batch(answers: Answers, function: Callable[..., Any], how: dict[str, Any]) -> dict[str, Any]:
    """Call a function on many inputs, and hand all answers over."""
    calls = [answers.tensors(places) for places in how["inputs"]]
    with torch.no_grad():
        results = [function(*inputs, **how["options"]) for inputs in calls]
        for number, result in enumerate(results):
            outputs = result if isinstance(result, tuple | list) else (result,)
            answers.told(outputs, [], how["room"] + number * how["each"])
    torch.cuda.synchronize()
    return {}
