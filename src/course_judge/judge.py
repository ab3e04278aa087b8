"""The judge: draws inputs, asks a stranger's process, and decides from what it hands over."""

from __future__ import annotations

import dataclasses
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from course_judge.host import Broken, Host, Stranger, Task
from course_judge.layout import GUARD_BYTES, Layout, Place
from course_judge.sizes import drawn, small
from course_judge.tensors import POISON, SharedMemory, place_in
from course_judge.verdict import RIGHT, Verdict, refused
from course_kernels.measure.check import Check, WrongResult
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Problem, Workload

# Further questions on one size when all seems right: nobody knows beforehand how many, or on which.
AGAIN = (25, 120)
AGAIN_SECONDS = 2.0  # none is begun later; the least of them are always asked
SLACK_BYTES = 2**20


def judge(
    host: Host,
    file: Path,
    problem: Problem,
    *,
    workloads: Sequence[Workload] = (),
    device: str = "cpu",
    time_on: Workload | None = None,
    task: Task | None = None,
    seed: int | None = None,
) -> Verdict:
    """Judge one file.

    Args:
        host: what starts its process.
        file: defines a function of the problem's name, called as the problem's kernels are.
        workloads: the sizes announced; without them those of the problem, on the CPU the small ones.
        device: "cpu" or "cuda".
        time_on: what is timed, on a card.
        task: how its process is started; without it as the problem says, with the usual limits.
        seed: for tests; otherwise nobody knows it.
    """
    task = task or Task(file, problem.name)
    draw = random.Random(secrets.randbits(64) if seed is None else seed)
    workloads = tuple(workloads) or (problem.check_on if device == "cuda" else small(problem))
    examination = _Examination(problem, device, draw)
    with host.stranger(task) as stranger:
        try:
            stranger.ask({"load": True})
            verdict = examination.of(stranger, workloads, time_on)
            stranger.finish()
        except Broken as broken:
            verdict = Verdict(broken.found, broken.why, examination.size)
        printed = stranger.printed
        return dataclasses.replace(verdict, printed=printed, not_held=stranger.not_held)


class _Examination:
    def __init__(self, problem: Problem, device: str, draw: random.Random) -> None:
        self._problem, self._device, self._draw = problem, device, draw
        self.size = ""

    def of(self, stranger: Stranger, workloads: Sequence[Workload], time_on: Workload | None) -> Verdict:
        """The verdict on a stranger whose file is loaded."""
        function = Remote(stranger, self._problem, self._device)
        unannounced = drawn(self._problem, workloads, self._draw)
        try:
            for workload in (*workloads, *unannounced):
                self._checked(function, workload)
            lines: tuple[str, ...] = ()
            if time_on:
                from course_judge.timing import Times

                self.size = time_on.label
                lines = Times(function, self._problem, time_on, self._draw).lines()
            head = "right before the timing, wrong after it: "
            again = self._draw.choice([*small(self._problem, workloads), *unannounced])
            until = time.monotonic() + AGAIN_SECONDS
            for number in range(self._draw.randint(*AGAIN)):
                if number >= AGAIN[0] and time.monotonic() > until:
                    break
                self._once_more(function, again, head)
        except WrongResult as error:
            return refused(error.why, self.size)
        finally:
            function.close()
        count = len(workloads) + len(unannounced)
        return Verdict(RIGHT, f"{count} sizes, {len(unannounced)} of them not announced", lines=lines)

    def _checked(self, function: Remote, workload: Workload) -> None:
        self.size = workload.label
        field = {"it": Competitor("the file", self._problem, function)}
        function.begin(workload)
        _RemoteCheck(function, field, workload, self._draw.getrandbits(32), self._device).before()

    def _once_more(self, function: Remote, workload: Workload, head: str) -> None:
        """A single question, as a stranger who counts calls cannot foresee."""
        self.size = workload.label
        field = {"it": Competitor("the file", self._problem, function)}
        function.begin(workload)
        check = _RemoteCheck(function, field, workload, self._draw.getrandbits(32), self._device)
        try:
            check.once()
        except WrongResult as error:
            raise WrongResult(str(error), head + error.why) from None


class _RemoteCheck(Check):
    """The check of a function that runs in another process: what needs that process is done there."""

    def __init__(self, function: Remote, *rest: Any) -> None:
        super().__init__(*rest)
        self._remote = function

    def once(self) -> None:
        """One question, and no more."""
        from course_kernels.measure.check import _Wrong

        working = self._draw()
        values = tuple(tensor.clone() for tensor in working)
        with torch.no_grad():
            try:
                self._first_time(working, values)
            except _Wrong as wrong:
                self._refuse(wrong.name, wrong.why)

    def _behind_a_hold(self, name: str, working: Any, first: Any, second: Any) -> Any:
        return self._remote.behind_a_hold(working, first, second, self._options)


class Remote:
    """A stranger's function, called like any other: tensors in, tensors out."""

    def __init__(self, stranger: Stranger, problem: Problem, device: str) -> None:
        self.stranger, self._problem, self.device = stranger, problem, device
        self._memory: SharedMemory | None = None
        self._known: Any = None
        self._room_bytes = 0
        self._room = 0
        self._calls = 0
        self._last: list[torch.Tensor] = []

    def begin(self, workload: Workload) -> None:
        """What follows is about another workload."""
        self._room_bytes = 2 * self._problem.writes_bytes(workload) + SLACK_BYTES
        self._calls, self._last = 0, []

    def close(self) -> None:
        """Give the shared memory back."""
        if self._memory:
            self._memory.close()
        self._memory = None

    def __call__(self, *inputs: torch.Tensor, **options: Any) -> tuple[Any, ...]:
        """Hand the inputs over, ask, and take what comes back."""
        (places,) = self._share(inputs)
        self._poison()
        self._fill(places, inputs)  # last of all: whoever works between the calls has not seen them
        call = {
            "inputs": [place.as_json() for place in places],
            "options": options,
            "room": self._room,
            "poisoned": self._calls == 0,
            "keep": self._calls == 0,
        }
        self._calls += 1
        answer = self.stranger.ask({"call": call})
        self._guards(places, inputs)
        for place, tensor in zip(places, inputs, strict=True):
            tensor.data.copy_(
                self._shared.tensor(place)
            )  # as it is now: whoever calls looks whether it changed
        return self._taken(answer, inputs)

    def behind_a_hold(
        self,
        working: Sequence[torch.Tensor],
        first: Sequence[torch.Tensor],
        second: Sequence[torch.Tensor],
        options: Mapping[str, Any],
    ) -> tuple[Any, ...]:
        """The answer to the second values, asked for behind work that holds the stream back."""
        places = self._share(working, first, second)
        self._poison()
        for group, values in zip(places, (working, first, second), strict=True):
            self._fill(group, values)
        names = ("inputs", "first", "second")
        hold = {name: [p.as_json() for p in group] for name, group in zip(names, places, strict=True)}
        answer = self.stranger.ask({"hold": {**hold, "options": dict(options), "room": self._room}})
        return self._taken(answer, working)

    # --- shared memory -------------------------------------------------------------------------

    @property
    def _shared(self) -> SharedMemory:
        assert self._memory is not None
        return self._memory

    def _share(self, *groups: Sequence[torch.Tensor]) -> list[list[Place]]:
        """Places for tensors, and room for the answers; the same places for the same kinds of tensors."""
        kinds = (
            self._room_bytes,
            *(tuple((t.shape, t.stride(), t.dtype) for t in group) for group in groups),
        )
        if self._known and self._known[0] == kinds:
            return list(self._known[1])
        layout = Layout()
        places = [[place_in(layout, tensor) for tensor in group] for group in groups]
        self._room = layout.room(self._room_bytes)
        self.close()
        self._memory = SharedMemory.make(self.device, layout.bytes)
        self._memory.raw(0, layout.bytes).fill_(POISON)
        message, files = self._memory.as_message()
        self._settle()
        self.stranger.ask({"memory": message}, files)
        self._known = kinds, places
        return places

    def _fill(self, places: Sequence[Place], values: Sequence[torch.Tensor]) -> None:
        for place, tensor in zip(places, values, strict=True):
            if place.span:
                self._shared.tensor(place).copy_(tensor)
        self._settle()

    def _poison(self) -> None:
        self._shared.raw(self._room, self._room_bytes).fill_(POISON)
        self._settle()

    def _settle(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()  # another process sees it

    def _guards(self, places: Sequence[Place], inputs: Sequence[torch.Tensor]) -> None:
        for number, place in enumerate(places, start=1):
            end = place.at + place.bytes
            for where, at in (("before the start", place.at - GUARD_BYTES), ("past the end", end)):
                size = GUARD_BYTES if where == "before the start" else self._gap(end)
                changed = self._shared.raw(at, size) != POISON
                if bool(changed.any()):
                    count = -(-int(changed.sum()) // place.item_bytes)
                    raise Broken("out of bounds", f"about {count} elements stored {where} of input {number}")

    def _gap(self, end: int) -> int:
        """Bytes of guard behind a place that ends here."""
        return -(-end // 4096) * 4096 - end + GUARD_BYTES

    # --- answers -------------------------------------------------------------------------------

    def _taken(self, answer: Mapping[str, Any], inputs: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """Tensors of our own, made of what a stranger says and of what lies in shared memory."""
        told = answer.get("outputs")
        if not isinstance(told, list) or len(told) > 64:
            raise Broken("out of turn", "it answered without outputs")
        try:
            outputs = [self._output(about, inputs) for about in told]
        except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError):
            raise Broken("out of turn", "what it says of its outputs does not fit together") from None
        if self._calls == 1:
            self._last = [out for out in outputs if isinstance(out, torch.Tensor)]
        return tuple(outputs)

    def _output(self, about: Mapping[str, Any], inputs: Sequence[torch.Tensor]) -> Any:
        kind = str(about["type"])[:60]
        if "plain" not in about:
            return type(kind, (), {})()
        if about["plain"] is not True:
            return torch.empty(0).as_subclass(type(kind, (torch.Tensor,), {}))
        dtype = getattr(torch, about["dtype"])
        shape = [int(size) for size in about["shape"]]
        strides = [int(step) for step in about["strides"]]
        if not isinstance(dtype, torch.dtype) or min(shape, default=0) < 0 or len(shape) > 16:
            raise ValueError
        count = 1
        for size in shape:
            count *= size
        if about["device"] != self.device:
            return torch.empty(shape, dtype=dtype, device="cpu" if about["device"] == "cpu" else "meta")
        shares, again = about.get("shares", -1), about.get("again", False)
        if isinstance(shares, int) and 0 <= shares < len(inputs):
            return _in_memory_of(inputs[shares], dtype, shape)
        size = count * dtype.itemsize
        if about.get("at", -1) < 0 or size > self._room_bytes:
            return torch.empty(
                shape, dtype=dtype, device="meta"
            )  # more than there is room for: a wrong shape
        at = int(about["at"])
        if at < self._room or at + size > self._room + self._room_bytes:
            raise ValueError
        numbers = self._shared.raw(at, size).clone().view(dtype).view(shape) if size else None
        if numbers is None:
            return torch.empty(shape, dtype=dtype, device=self.device)
        if again and self._last:
            return _in_memory_of(self._last[0], dtype, shape, numbers)
        if strides == list(numbers.stride()) or any(step < 0 for step in strides):
            return numbers
        if any(step > 4 * max(count, 1) for step in strides):
            raise ValueError
        laid = torch.empty_strided(shape, strides, dtype=dtype, device=self.device)
        return laid.copy_(numbers)


def _in_memory_of(
    tensor: torch.Tensor, dtype: torch.dtype, shape: Sequence[int], numbers: torch.Tensor | None = None
) -> torch.Tensor:
    """A tensor whose storage is another's, as the stranger's was; with the numbers, where they fit."""
    if (
        numbers is not None
        and tensor.dtype == dtype
        and list(tensor.shape) == list(shape)
        and tensor.is_contiguous()
    ):
        return tensor.view(shape).copy_(numbers)
    return torch.as_strided(tensor, shape, [0] * len(shape))
