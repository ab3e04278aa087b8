"""Answers of a stranger's function over tensors: one call, a batch, samples of its time."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from course_judge.protocol.errors import Rejected
from course_judge.protocol.layout import GUARD_BYTES, Place, span_of
from course_judge.protocol.messages import (
    ON_TENSORS,
    Again,
    Answer,
    Batch,
    Call,
    Hold,
    Memory,
    Output,
    Outputs,
    Question,
    Time,
)
from course_judge.protocol.tensors import SharedMemory, name_of
from course_judge.worker import interpreter
from course_judge.worker.connection import Connection
from course_judge.worker.dispatch_guard import Zones

# As they are before any stranger's file is loaded: whoever replaces them works for nothing.
_copy, _detach, _address = torch.Tensor.copy_, torch.Tensor.detach, torch.Tensor.data_ptr
_stride, _size = torch.Tensor.stride, torch.Tensor.size


class Answers:
    """A stranger's function, asked by messages.

    Args:
        function: what is asked while answers are judged.
        plain: the same one with nothing around it, for the clock.
        zones: what lies around the memory that it asks torch for; None where nothing does.
        watch: what looks at the memory that Triton's interpreter touches, see `memory_watch`.
    """

    asks = ON_TENSORS

    def __init__(
        self,
        function: Callable[..., Any],
        plain: Callable[..., Any],
        connection: Connection,
        zones: Zones | None,
        watch: Callable[[Sequence[torch.Tensor]], Any] | None = None,
    ) -> None:
        self._function, self._plain, self._connection = function, plain, connection
        self._zones, self._watch = zones, watch or memory_watch()
        self._memory: SharedMemory | None = None
        self._inputs: dict[Place, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []  # the answers that the judge has not let go of
        self._numbered: dict[int, list[Any]] = {}  # those that it asks for again

    def answer(self, question: Question[Any], files: Sequence[int]) -> Answer:
        """Do what is asked, one of `asks`."""
        if isinstance(question, Memory):
            self.take(question, files)
            return Answer()
        if isinstance(question, Call):
            return self._called(question)
        if isinstance(question, Again):
            return self._again(question)
        if isinstance(question, Hold):
            return self._held(question)
        from course_judge.worker.sampling import batch, timed

        if isinstance(question, Time):
            return timed(self, self._plain, self._connection, question)
        assert isinstance(question, Batch)
        return batch(self, self._plain, question)

    def take(self, memory: Memory, files: Sequence[int]) -> None:
        """Work in other shared memory from now on."""
        self._inputs, self._kept = {}, []
        if self._memory:
            self._memory.close()
        self._memory = SharedMemory.taken(memory, files)

    @property
    def shared(self) -> SharedMemory:
        """The memory that the judge sees too."""
        if self._memory is None:
            raise RuntimeError("asked before there was memory")
        return self._memory

    def tensors(self, places: Iterable[Place]) -> list[torch.Tensor]:
        """Return the same objects for the same places: who keeps an answer for a tensor meets that tensor again."""
        found = []
        for place in places:
            if place not in self._inputs:
                self._inputs[place] = self.shared.tensor(place)
            found.append(self._inputs[place])
        return found

    def _called(self, call: Call) -> Outputs:
        from course_kernels.measure.check import poisoned_memory

        inputs = self.tensors(call.inputs)
        for out in self._kept:
            # The memory that this call's output will most likely get holds NaN: PyTorch hands a freed block out again.
            if out.dtype.is_floating_point:
                torch.full_like(out, math.nan)
        poisoned = poisoned_memory() if call.poisoned else contextlib.nullcontext()
        with torch.no_grad(), poisoned, self._watch(inputs) as memory:
            if call.few and memory:
                memory.few = interpreter.Few(call.few)
                result = None
                with contextlib.suppress(Exception):  # it may meet what its kernels have not written
                    result = self._function(*inputs, **call.options)
            else:
                result = self._function(*inputs, **call.options)
        if self._zones:
            broken = self._zones.broken()
            self._zones.forget()
            if broken:
                raise Rejected("out of bounds", broken)
        found = memory.findings if memory else []
        if call.few:  # what reads that which was not run to be stored may go anywhere
            found = [finding for finding in found if finding.kind == interpreter.GRID]
        if found:
            first = found[0]
            raise Rejected(_FOUND[first.kind], f"{f'line {first.line}: ' if first.line else ''}{first.text}")
        few = memory.few if memory else None
        if call.few and (result is None or few is None or few.is_late):
            return Outputs(())
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        told = self.told(outputs, inputs, call.room)
        self._kept = [out for out in outputs if isinstance(out, torch.Tensor)] if call.keep else []
        if call.number >= 0:
            self._numbered[call.number] = outputs
        if self.shared.device == "cuda":
            torch.cuda.synchronize()
        launches = memory.launches if memory else -1
        if few:
            return Outputs(told, launches, few.run, few.programs, few.reach, few.updates, few.seconds)
        return Outputs(told, launches)

    def _again(self, again: Again) -> Outputs:
        """Return the outputs of an earlier call, as they are now."""
        if self.shared.device == "cuda":
            torch.cuda.synchronize()
        outputs = self._numbered.get(again.number, [])
        told = self.told(outputs, [], again.room)
        if again.let_go:
            self._numbered.pop(again.number, None)
        if self.shared.device == "cuda":
            torch.cuda.synchronize()
        return Outputs(told)

    def told(self, outputs: Sequence[Any], inputs: Sequence[torch.Tensor], room: int) -> tuple[Output, ...]:
        """Describe each output, and put their numbers into shared memory, one behind the other."""
        rooms = _rooms(outputs, room)
        return tuple(self._told(out, inputs, at) for out, at in zip(outputs, rooms, strict=True))

    def _told(self, out: Any, inputs: Sequence[torch.Tensor], at: int) -> Output:
        """Describe an output, and put its numbers into shared memory."""
        kind = type(out).__name__
        if not isinstance(out, torch.Tensor):
            return Output(kind)
        if type(out) is not torch.Tensor:
            return Output(kind, plain=False)
        if out.layout != torch.strided or out.is_neg() or out.is_conj() or out._is_zerotensor():
            return Output("tensor that is worked out only when it is read", plain=False)
        if vars(out):
            return Output(f"tensor with a {min(vars(out))} of its own", plain=False)
        size = out.numel() * out.element_size()
        fits = at + size <= self.shared.size - GUARD_BYTES
        about = Output(
            kind,
            plain=True,
            dtype=name_of(out.dtype),
            shape=tuple(_size(out)),
            strides=tuple(_stride(out)),
            device=out.device.type,
            at=at if fits else -1,
            shares=next((n for n, x in enumerate(inputs) if _overlap(out, x)), -1),
            again=any(_overlap(out, kept) for kept in self._kept),
        )
        if fits and size:
            _copy(self.shared.raw(at, size).view(out.dtype).view(out.shape), _detach(out))
        return about

    def _held(self, hold: Hold) -> Outputs:
        """Return the answer behind work that holds the stream back."""
        from course_kernels.measure.check import Check

        function, options = self._function, hold.options

        class Behind(Check):
            """The check's own way to hold a stream back; it has no truth, and needs none."""

            def __init__(self) -> None:
                pass

            def _call(self, name: str, working: Any) -> Any:
                return function(*working, **options)

            def _outputs(self, name: str, result: Any, working: Any) -> Any:
                return tuple(result) if isinstance(result, tuple | list) else (result,)

        inputs = self.tensors(hold.inputs)
        first, second = self.tensors(hold.first), self.tensors(hold.second)
        with torch.no_grad():
            copies = Behind()._behind_a_hold("it", tuple(inputs), tuple(first), tuple(second))
        told = self.told(list(copies), [], hold.room)
        torch.cuda.synchronize()
        return Outputs(told)


# What the interpreter's watch calls a finding, and the property that it is.
_FOUND = {
    "read out of bounds": "out of bounds",
    "stored out of bounds": "out of bounds",
    "overwritten": "stored twice",
    "depends on order": "a race",
    "too large a grid": "out of bounds",
}


def memory_watch() -> Callable[[Sequence[torch.Tensor]], Any]:
    """Return what watches over the memory of a Triton kernel, where the interpreter runs it; else over nothing."""
    watched = None
    if os.environ.get("TRITON_INTERPRET") == "1" and "triton" in sys.modules:
        from course_judge.worker.interpreter import watched_memory

        watched = watched_memory

    def watch(inputs: Sequence[torch.Tensor]) -> Any:
        if watched is None:
            return contextlib.nullcontext()
        return watched({f"input {number}": tensor for number, tensor in enumerate(inputs, start=1)})

    return watch


def _rooms(outputs: Sequence[Any], at: int) -> list[int]:
    """Places for the numbers of each output, one behind the other."""
    found = []
    for out in outputs:
        found.append(at)
        if isinstance(out, torch.Tensor):
            at += -(-out.numel() * out.element_size() // 16) * 16
    return found


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True if two tensors lie on common bytes."""
    if one.device != other.device or not one.numel() or not other.numel():
        return False

    def ends(tensor: torch.Tensor) -> tuple[int, int]:
        begin = _address(tensor)
        return begin, begin + span_of(_size(tensor), _stride(tensor)) * tensor.element_size()

    (a, b), (c, d) = ends(one), ends(other)
    return a < d and c < b
