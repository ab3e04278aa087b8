"""Proxy of a stranger's function, as the judge calls it: tensors in, tensors out, by memory that both processes see."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from course_judge.host import Broken, Stranger
from course_judge.protocol.layout import GUARD_BYTES, Layout, Place, aligned
from course_judge.protocol.messages import Again, Call, Hold, Output, Outputs
from course_judge.protocol.tensors import POISON, SharedMemory, place_in, touched
from course_kernels.problem import Problem, Workload

SLACK_BYTES = 2**20
MOST_OUTPUTS = 64  # of one call
MOST_AXES = 16
# By torch's own names.
DTYPES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
# Earlier answers that a stranger still holds, and that are looked at again.
HELD_BYTES = 3 * 2**17  # of one; twice as much always finds room
MOST_HELD_BYTES = 2**22  # of one that is held as long as the size is the same
MOST_HELD = 12
HOLD_EVERY, LOOK_EVERY = 3, 4  # on average
# What the judge writes over inputs, a byte each: finite in every floating-point type, and no usual number. An answer
# that moves by itself, since a thread is still at work, does not move every time.
OTHERS = (0x55, 0x2A, 0x51)


@dataclass(frozen=True)
class _Held:
    """An answer as it was handed over: each output's description without its place, and its bytes."""

    size: str
    outputs: tuple[tuple[Any, ...], ...]
    bytes: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class FewRun:
    """Answer to a question for which few programs of each launch were run.

    Attributes:
        outputs: NaN where no program was run that stores there.
        launches: how many there were.
        reach: elements that the launches can have stored, if no program stores more than one that was run.
        updates: a program did an atomic.
        seconds: what all programs would take.
    """

    outputs: tuple[Any, ...]
    launches: int
    reach: int
    updates: bool
    seconds: float


class Remote:
    """A stranger's function, called like any other: tensors in, tensors out.

    Args:
        fill: the byte around the inputs: a NaN in every floating-point type, or a number that no input holds.
        rng: by which some answers are looked at again later; without it none is.
    """

    def __init__(
        self,
        stranger: Stranger,
        problem: Problem,
        device: str,
        fill: int = POISON,
        rng: random.Random | None = None,
    ) -> None:
        self.stranger, self._problem, self.device, self._fill_byte = stranger, problem, device, fill
        self._memory: SharedMemory | None = None
        self._known: Any = None
        self._room_bytes = 0
        self._room = 0
        self._calls = 0
        self._last: list[torch.Tensor] = []
        self._rng, self._held, self._numbers = rng, dict[int, _Held](), 0
        self._size, self._is_held, self._is_large = "", False, False
        self._after: tuple[Sequence[Place], Sequence[torch.Tensor]] | None = None
        self._written = -1  # the byte that was written over the inputs after the last call; -1 where none was
        self.seconds = 0.0  # that the last call took, by the stranger's clock
        self.launches: tuple[int, int] | None = None  # of a call, fewest and most; None where nobody counted

    def begin(self, workload: Workload) -> None:
        """Begin with another workload."""
        if self._is_large and workload.label != self._size:
            # The next size may have no room for them.
            for number in [number for number, held in self._held.items() if held.size == self._size]:
                self._look(number, let_go=True)
        writes = self._problem.writes_bytes(workload)
        self._room_bytes = 2 * writes + SLACK_BYTES
        self._calls, self._last = 0, []
        self._size, self._is_held = workload.label, writes <= MOST_HELD_BYTES
        self._is_large = writes > HELD_BYTES

    def close(self) -> None:
        """Give the shared memory back."""
        if self._memory:
            self._memory.close()
        self._memory = self._known = None

    def __call__(self, *inputs: torch.Tensor, **options: Any) -> tuple[Any, ...]:
        """Hand the inputs over, ask, and take what comes back."""
        # On a card with the places for `behind_a_hold`: were the memory laid anew between two calls, a stranger who
        # keeps answers for tensors would meet others, work once more, and be blamed for a stream.
        places = self._share(*[inputs] * (3 if self.device == "cuda" else 1))[0]
        if self._rng and self._held and not self._rng.randrange(LOOK_EVERY):
            self._look(self._rng.choice(list(self._held)))
        self._poison()
        self._after, self._written = None, -1
        self._fill(places, inputs)  # last of all: whoever works between the calls has not seen them
        first = self._calls == 0
        number = self._number(first)
        call = Call(tuple(places), options, self._room, poisoned=first, keep=first, number=number)
        self._calls += 1
        began = self.stranger.clock.now()
        answer = self.stranger.ask(call)
        self.seconds = self.stranger.clock.now() - began
        if answer.launches >= 0:
            fewest, most = self.launches or (answer.launches, answer.launches)
            self.launches = min(fewest, answer.launches), max(most, answer.launches)
        self._guards(places, inputs)
        for place, tensor in zip(places, inputs, strict=True):
            # As it is now: whoever calls looks whether it changed.
            tensor.data.copy_(self._shared.tensor(place))
        self._after = places, inputs
        outputs = self._taken(answer, inputs)
        if number >= 0:
            self._held[number] = self._as_held(answer)
            if first and all(about.shares < 0 for about in answer.outputs):
                self._apart(number, places)
        return outputs

    def few(self, programs: int, inputs: Sequence[torch.Tensor], options: Mapping[str, Any]) -> FewRun | None:
        """Call the function with few programs of each of its kernels' launches.

        Returns:
            what came of it; None where nothing did.
        Raises:
            Broken: it launches a grid that no card takes.
        """
        places = self._share(inputs)[0]
        self._poison()
        self._fill(places, inputs)
        answer = self.stranger.ask(Call(tuple(places), options, self._room, poisoned=True, few=programs))
        if not answer.outputs or not 0 < answer.run <= answer.programs:
            return None
        outputs = self._taken(answer, inputs)
        return FewRun(outputs, answer.launches, max(0, answer.reach), answer.updates, answer.seconds)

    def still(self) -> None:
        """Look whether the inputs of the last call are what they were when it had answered.

        Raises:
            Broken: one is not: something of the stranger's still works on them.
        """
        if self._after is None or self._memory is None:
            return
        for number, (place, tensor) in enumerate(zip(*self._after, strict=True), start=1):
            if self._written >= 0:
                changed = place.span and touched(self._shared.raw(place.at, place.bytes), self._written, 1)
            else:
                changed = not torch.equal(_bits(self._shared.tensor(place)), _bits(tensor))
            if changed:
                why = f"input {number} changed some time after the answer was handed over"
                raise Broken("input modified", why)

    def finish(self) -> None:
        """Look at every answer that is still held.

        Raises:
            Broken: one is no longer what it was.
        """
        for number in list(self._held):
            self._look(number, let_go=True)

    def behind_a_hold(
        self,
        working: Sequence[torch.Tensor],
        first: Sequence[torch.Tensor],
        second: Sequence[torch.Tensor],
        options: Mapping[str, Any],
    ) -> tuple[Any, ...]:
        """Return the answer to the second values, asked for behind work that holds the stream back."""
        places = self._share(working, first, second)
        self._poison()
        for group, values in zip(places, (working, first, second), strict=True):
            self._fill(group, values)
        inputs, earlier, later = map(tuple, places)
        answer = self.stranger.ask(Hold(inputs, earlier, later, options, self._room))
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
            *(tuple(_first(group, t) for t in group) for group in groups),
        )
        if self._known and self._known[0] == kinds:
            return list(self._known[1])
        layout = Layout()
        places = []
        for group in groups:
            # A tensor that is handed in twice lies in one place.
            found = {_first(group, tensor): place_in(layout, tensor) for tensor in _each_once(group)}
            places.append([found[_first(group, tensor)] for tensor in group])
        self._room = layout.room(self._room_bytes)
        self.close()
        self._memory = SharedMemory.make(self.device, layout.bytes)
        self._memory.raw(0, layout.bytes).fill_(self._fill_byte)
        memory, files = self._memory.as_message()
        self._settle()
        self.stranger.ask(memory, files)
        self._known = kinds, places
        return places

    def _fill(self, places: Sequence[Place], values: Sequence[torch.Tensor]) -> None:
        self._shared.write(places, values)
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
                if count := touched(self._shared.raw(at, size), self._fill_byte, place.item_bytes):
                    many = "s" * (count > 1)
                    raise Broken("out of bounds", f"{count} element{many} stored {where} of input {number}")

    def _gap(self, end: int) -> int:
        """Return how many bytes of guard lie behind a place that ends here."""
        return aligned(end) - end + GUARD_BYTES

    # --- answers that are held -----------------------------------------------------------------

    def _number(self, first: bool) -> int:
        """Return the number under which the next answer is held; -1 where it is not."""
        if self._rng is None or not self._is_held or not (first or not self._rng.randrange(HOLD_EVERY)):
            return -1
        if len(self._held) >= MOST_HELD:
            self._look(self._rng.choice(list(self._held)), let_go=True)
        self._numbers += 1
        return self._numbers

    def _as_held(self, answer: Outputs) -> _Held:
        told, numbers = [], []
        for about in answer.outputs:
            told.append((about.type, about.plain, about.dtype, about.shape, about.strides, about.device))
            size = self._bytes_of(about)
            numbers.append(self._shared.raw(about.at, size).clone() if size else torch.empty(0))
        return _Held(self._size, tuple(told), tuple(numbers))

    def _bytes_of(self, about: Output) -> int:
        """Return how many bytes of an output lie in shared memory; 0 where none does."""
        size = DTYPES[about.dtype].itemsize if about.dtype in DTYPES and about.plain else 0
        for length in about.shape:
            size *= max(length, 0)
        within = self._room <= about.at and about.at + size <= self._room + self._room_bytes
        return size if within else 0

    def _look(self, number: int, *, let_go: bool = False) -> None:
        """Have a held answer handed over again.

        Raises:
            Broken: it is no longer what it was.
        """
        held = self._held[number]
        if self._moved(number, let_go):
            why = f"the answer to an earlier call ({held.size}) changed afterwards; make a new one in every call"
            raise Broken("wrong in the end", why)
        if let_go:
            del self._held[number]

    def _moved(self, number: int, let_go: bool = False) -> _Held | None:
        """Return what has become of a held answer; None where nothing has."""
        held = self._held[number]
        self._poison()
        answer = self.stranger.ask(Again(number, self._room, let_go))
        if len(answer.outputs) > MOST_OUTPUTS:
            raise Broken("out of turn", f"it answered with {len(answer.outputs)} outputs")
        now = replace(self._as_held(answer), size=held.size)
        same = now.outputs == held.outputs and all(map(_are_equal, now.bytes, held.bytes))
        return None if same else now

    def _apart(self, number: int, places: Sequence[Place]) -> None:
        """Write into the inputs, and look whether the answer moves.

        What the stranger's process says of its memory need not be so.

        Raises:
            Broken: it does.
        """
        for other in OTHERS:
            for place in places:
                if place.span:
                    self._shared.raw(place.at, place.bytes).fill_(other)
            self._settle()
            self._written = other
            if not (moved := self._moved(number)):
                return
            self._held[number] = moved
        raise Broken("shares memory", "the answer changes when other numbers are written into the inputs")

    # --- answers -------------------------------------------------------------------------------

    def _taken(self, answer: Outputs, inputs: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """Tensors of our own, made of what a stranger says and of what lies in shared memory."""
        if len(answer.outputs) > MOST_OUTPUTS:
            raise Broken("out of turn", f"it answered with {len(answer.outputs)} outputs")
        try:
            outputs = [self._output(about, inputs) for about in answer.outputs]
        except (TypeError, ValueError, RuntimeError, OverflowError, MemoryError):
            raise Broken("out of turn", "what it says of its outputs does not fit together") from None
        if self._calls == 1:
            self._last = [out for out in outputs if isinstance(out, torch.Tensor)]
        return tuple(outputs)

    def _output(self, about: Output, inputs: Sequence[torch.Tensor]) -> Any:
        kind = about.type[:60]
        if about.plain is None:
            return type(kind, (), {})()
        if not about.plain:
            return torch.empty(0).as_subclass(type(kind, (torch.Tensor,), {}))
        dtype, shape, strides = DTYPES.get(about.dtype), list(about.shape), list(about.strides)
        if dtype is None or min(shape, default=0) < 0 or len(shape) > MOST_AXES:
            raise ValueError
        count = 1
        for size in shape:
            count *= size
        if about.device != self.device:
            return torch.empty(shape, dtype=dtype, device="cpu" if about.device == "cpu" else "meta")
        if 0 <= about.shares < len(inputs):
            return _in_memory_of(inputs[about.shares], dtype, shape)
        size, at = count * dtype.itemsize, about.at
        if at < 0 or size > self._room_bytes:
            # More than there is room for: a wrong shape.
            return torch.empty(shape, dtype=dtype, device="meta")
        if at < self._room or at + size > self._room + self._room_bytes:
            raise ValueError
        numbers = self._shared.raw(at, size).clone().view(dtype).view(shape) if size else None
        if numbers is None:
            return torch.empty(shape, dtype=dtype, device=self.device)
        if about.again and self._last:
            return _in_memory_of(self._last[0], dtype, shape, numbers)
        # Where there is one of a dimension its step says nothing, and may be any.
        strides = [
            step if length > 1 else usual
            for step, length, usual in zip(strides, shape, numbers.stride(), strict=True)
        ]
        if strides == list(numbers.stride()) or any(step < 0 for step in strides):
            return numbers
        if any(step > 4 * max(count, 1) for step in strides):
            raise ValueError
        laid = torch.empty_strided(shape, strides, dtype=dtype, device=self.device)
        return laid.copy_(numbers)


def _first(group: Sequence[torch.Tensor], tensor: torch.Tensor) -> int:
    """Return where in a group a tensor stands first."""
    return next(number for number, other in enumerate(group) if other is tensor)


def _each_once(group: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors of a group, each once."""
    return [tensor for number, tensor in enumerate(group) if _first(group, tensor) == number]


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's numbers: NaN is equal to itself there."""
    return tensor.contiguous().view(-1).view(torch.uint8)


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.numel() == other.numel() and torch.equal(one, other)


def _in_memory_of(
    tensor: torch.Tensor, dtype: torch.dtype, shape: Sequence[int], numbers: torch.Tensor | None = None
) -> torch.Tensor:
    """Return a tensor whose storage is another's, as the stranger's was; with the numbers, where they fit."""
    if (
        numbers is not None
        and tensor.dtype == dtype
        and list(tensor.shape) == list(shape)
        and tensor.is_contiguous()
    ):
        return tensor.view(shape).copy_(numbers)
    return torch.as_strided(tensor, shape, [0] * len(shape))
