"""Tensors in the memory that the judge and a stranger's process share: how the one asks, and the other answers."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from course_judge import memory as host_memory
from course_judge.channel import Channel
from course_judge.layout import GUARD_BYTES, Layout, Place, span_of
from course_judge.operators import Zones
from course_judge.unfit import Unfit

POISON = 0xFF  # a NaN in every floating-point type

# As they are before any stranger's file is loaded: whoever replaces them works for nothing.
_copy, _detach, _address = torch.Tensor.copy_, torch.Tensor.detach, torch.Tensor.data_ptr
_stride, _size = torch.Tensor.stride, torch.Tensor.size


class _At:
    """Memory on the card, in the words in which torch takes it over without a copy."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 2,
        }


class SharedMemory:
    """Bytes that two processes see, on the host or on the card.

    Attributes:
        device: "cpu" or "cuda".
        size: bytes.
    """

    def __init__(self, device: str, size: int, memory: Any, *, file: int = -1, ticket: str = "") -> None:
        self.device, self.size = device, size
        self._memory, self._file, self._ticket = memory, file, ticket

    @classmethod
    def make(cls, device: str, size: int) -> SharedMemory:
        """New memory, on the judge's side."""
        if device == "cuda":
            from course_judge import card

            address, ticket = card.allocate(size)
            return cls(device, size, address, ticket=ticket)
        made, file = host_memory.made(size)
        return cls(device, size, made, file=file)

    @classmethod
    def taken(cls, message: Mapping[str, Any], files: Sequence[int]) -> SharedMemory:
        """The same memory, in the stranger's process."""
        if message["device"] == "cuda":
            from course_judge import card

            return cls("cuda", message["size"], card.opened(message["ticket"]))
        (file,) = files
        return cls("cpu", message["size"], host_memory.taken(file, message["size"]))

    def as_message(self) -> tuple[dict[str, Any], list[int]]:
        """What the other side takes it over with."""
        files = [] if self._file < 0 else [self._file]
        return {"device": self.device, "size": self.size, "ticket": self._ticket}, files

    def raw(self, at: int, size: int) -> torch.Tensor:
        """Bytes, as a tensor whose storage is these bytes alone."""
        if at < 0 or at + size > self.size:
            raise ValueError(f"bytes {at} to {at + size} of {self.size}")
        if not size:
            return torch.empty(0, dtype=torch.uint8, device=self.device)
        if self.device == "cuda":
            return torch.as_tensor(_At(self._memory + at, size), device="cuda")
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=at)

    def tensor(self, place: Place) -> torch.Tensor:
        """The tensor at a place, with the guards in its storage: reading past an end is no fault of the system's."""
        dtype = getattr(torch, place.dtype)
        if not place.span:
            return torch.empty(place.shape, dtype=dtype, device=self.device)
        with_guards = self.raw(place.at - GUARD_BYTES, place.bytes + 2 * GUARD_BYTES)
        own = with_guards[GUARD_BYTES : GUARD_BYTES + place.bytes].view(dtype)
        return torch.as_strided(own, place.shape, place.strides)

    def write(self, places: Sequence[Place], values: Sequence[torch.Tensor]) -> None:
        """Copy values to their places; on a card, on the current stream."""
        for place, tensor in zip(places, values, strict=True):
            if place.span:
                self.tensor(place).copy_(tensor)

    def close(self) -> None:
        """Give the memory back; nothing that lies in it may be used any more."""
        if self.device == "cuda" and self._memory:
            from course_judge import card

            (card.free if self._ticket else card.close)(self._memory)
        self._memory = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def name_of(dtype: torch.dtype) -> str:
    """A type's name, as torch spells it: "float32"."""
    return str(dtype).removeprefix("torch.")


def place_in(layout: Layout, tensor: torch.Tensor) -> Place:
    """The next place for a tensor."""
    return layout.place(tensor.shape, tensor.stride(), name_of(tensor.dtype), tensor.element_size())


# --- in the stranger's process -----------------------------------------------------------------


class Answers:
    """A stranger's function, asked by messages.

    Args:
        function: what is asked while answers are judged.
        plain: the same one with nothing around it, for the clock.
        zones: what lies around the memory that it asks torch for; None where nothing does.
    """

    def __init__(
        self, function: Callable[..., Any], plain: Callable[..., Any], channel: Channel, zones: Zones | None
    ) -> None:
        self._function, self._plain, self._channel = function, plain, channel
        self._zones = zones
        self._memory: SharedMemory | None = None
        self._inputs: dict[Place, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []  # the answers that the judge has not let go of

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message asks for."""
        if "memory" in message:
            self.take(message["memory"], message["files"])
            return {}
        if "call" in message:
            return self._called(message["call"])
        if "hold" in message:
            return self._held(message["hold"])
        if "time" in message:
            from course_judge.sampling import timed

            return timed(self, self._plain, self._channel, message["time"] | {"of": message["of"]})
        if "batch" in message:
            from course_judge.sampling import batch

            return batch(self, self._plain, message["batch"])
        raise ValueError(f"unknown question {sorted(message)}")

    def take(self, memory: Mapping[str, Any], files: Sequence[int]) -> None:
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

    def tensors(self, places: Iterable[dict[str, Any]]) -> list[torch.Tensor]:
        """The same objects for the same places: who keeps an answer for a tensor meets that tensor again."""
        found = []
        for place in map(Place.from_json, places):
            if place not in self._inputs:
                self._inputs[place] = self.shared.tensor(place)
            found.append(self._inputs[place])
        return found

    def _called(self, call: dict[str, Any]) -> dict[str, Any]:
        from course_kernels.measure.check import poisoned_memory

        inputs = self.tensors(call["inputs"])
        for out in self._kept:
            # The memory that this call's output will most likely get holds NaN: PyTorch hands a freed block out again.
            if out.dtype.is_floating_point:
                torch.full_like(out, math.nan)
        poisoned = poisoned_memory() if call["poisoned"] else contextlib.nullcontext()
        with torch.no_grad(), poisoned, _watched_memory(inputs) as memory:
            result = self._function(*inputs, **call["options"])
        if self._zones:
            broken = self._zones.broken()
            self._zones.forget()
            if broken:
                raise Unfit("out of bounds", broken)
        if memory and memory.findings:
            first = memory.findings[0]
            raise Unfit(_FOUND[first.kind], f"{f'line {first.line}: ' if first.line else ''}{first.text}")
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        told = self.told(outputs, inputs, call["room"])
        self._kept = [out for out in outputs if isinstance(out, torch.Tensor)] if call["keep"] else []
        if self.shared.device == "cuda":
            torch.cuda.synchronize()
        return {"outputs": told}

    def told(self, outputs: Sequence[Any], inputs: Sequence[torch.Tensor], room: int) -> list[dict[str, Any]]:
        """What each output is; their numbers go into shared memory, one behind the other."""
        return [self._told(out, inputs, at) for out, at in zip(outputs, _rooms(outputs, room), strict=True)]

    def _told(self, out: Any, inputs: Sequence[torch.Tensor], at: int) -> dict[str, Any]:
        """What an output is; its numbers go into shared memory."""
        if not isinstance(out, torch.Tensor):
            return {"type": type(out).__name__}
        about: dict[str, Any] = {"type": type(out).__name__, "plain": False}
        if type(out) is not torch.Tensor:
            return about
        if out.layout != torch.strided or out.is_neg() or out.is_conj() or out._is_zerotensor():
            return about | {"type": "tensor that is worked out only when it is read"}
        if vars(out):
            return about | {"type": f"tensor with a {min(vars(out))} of its own"}
        about |= {
            "plain": True,
            "dtype": name_of(out.dtype),
            "shape": list(_size(out)),
            "strides": list(_stride(out)),
            "device": out.device.type,
            "at": -1,
            "shares": next((n for n, x in enumerate(inputs) if _overlap(out, x)), -1),
            "again": any(_overlap(out, kept) for kept in self._kept),
        }
        size = out.numel() * out.element_size()
        if at + size <= self.shared.size - GUARD_BYTES:
            about["at"] = at
            if size:
                _copy(self.shared.raw(at, size).view(out.dtype).view(out.shape), _detach(out))
        return about

    def _held(self, hold: dict[str, Any]) -> dict[str, Any]:
        """The answer behind work that holds the stream back."""
        from course_kernels.measure.check import Check

        function, options = self._function, hold["options"]

        class Behind(Check):
            """The check's own way to hold a stream back; it has no truth, and needs none."""

            def __init__(self) -> None:
                pass

            def _call(self, name: str, working: Any) -> Any:
                return function(*working, **options)

            def _outputs(self, name: str, result: Any, working: Any) -> Any:
                return tuple(result) if isinstance(result, tuple | list) else (result,)

        inputs = self.tensors(hold["inputs"])
        first, second = self.tensors(hold["first"]), self.tensors(hold["second"])
        with torch.no_grad():
            copies = Behind()._behind_a_hold("it", tuple(inputs), tuple(first), tuple(second))
        told = self.told(list(copies), [], hold["room"])
        torch.cuda.synchronize()
        return {"outputs": told}


# What the interpreter's watch calls a finding, and the property that it is.
_FOUND = {
    "read out of bounds": "out of bounds",
    "stored out of bounds": "out of bounds",
    "overwritten": "stored twice",
    "depends on order": "a race",
}


def _watched_memory(inputs: Sequence[torch.Tensor]) -> Any:
    """A watch over what a Triton kernel touches, where the interpreter runs it; else nothing."""
    if os.environ.get("TRITON_INTERPRET") != "1" or "triton" not in sys.modules:
        return contextlib.nullcontext()
    from course_judge.interpreter import watched_memory

    return watched_memory({f"input {number}": tensor for number, tensor in enumerate(inputs, start=1)})


def _rooms(outputs: Sequence[Any], at: int) -> list[int]:
    """Where the numbers of each output go, one behind the other."""
    found = []
    for out in outputs:
        found.append(at)
        if isinstance(out, torch.Tensor):
            at += -(-out.numel() * out.element_size() // 16) * 16
    return found


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two tensors lie on common bytes."""
    if one.device != other.device or not one.numel() or not other.numel():
        return False

    def ends(tensor: torch.Tensor) -> tuple[int, int]:
        begin = _address(tensor)
        return begin, begin + span_of(_size(tensor), _stride(tensor)) * tensor.element_size()

    (a, b), (c, d) = ends(one), ends(other)
    return a < d and c < b
