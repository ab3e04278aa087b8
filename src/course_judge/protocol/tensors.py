"""Tensors in the memory that the judge and a worker share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from course_judge.protocol import shared_memory as host_memory
from course_judge.protocol.layout import GUARD_BYTES, Layout, Place
from course_judge.protocol.messages import Memory

POISON = 0xFF  # a NaN in every floating-point type


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
        """Allocate memory, on the judge's side."""
        if device == "cuda":
            from course_judge.protocol import cuda_ipc

            address, ticket = cuda_ipc.allocate(size)
            return cls(device, size, address, ticket=ticket)
        made, file = host_memory.made(size)
        return cls(device, size, made, file=file)

    @classmethod
    def taken(cls, memory: Memory, files: Sequence[int]) -> SharedMemory:
        """Return the same memory, in a worker."""
        if memory.device == "cuda":
            from course_judge.protocol import cuda_ipc

            return cls("cuda", memory.size, cuda_ipc.opened(memory.ticket))
        (file,) = files
        return cls("cpu", memory.size, host_memory.taken(file, memory.size))

    def as_message(self) -> tuple[Memory, list[int]]:
        """Return the message, and the open file, with which the worker takes it over."""
        files = [] if self._file < 0 else [self._file]
        return Memory(self.size, self.device, self._ticket), files

    def raw(self, at: int, size: int) -> torch.Tensor:
        """Return bytes, as a tensor whose storage is these bytes alone."""
        if at < 0 or at + size > self.size:
            raise ValueError(f"bytes {at} to {at + size} of {self.size}")
        if not size:
            return torch.empty(0, dtype=torch.uint8, device=self.device)
        if self.device == "cuda":
            return torch.as_tensor(_At(self._memory + at, size), device="cuda")
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=at)

    def tensor(self, place: Place) -> torch.Tensor:
        """Return the tensor at a place, with the guards in its storage.

        Reading past an end is no fault of the system's.
        """
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
            from course_judge.protocol import cuda_ipc

            (cuda_ipc.free if self._ticket else cuda_ipc.close)(self._memory)
        self._memory = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def name_of(dtype: torch.dtype) -> str:
    """Return a type's name, as torch spells it: "float32"."""
    return str(dtype).removeprefix("torch.")


def place_in(layout: Layout, tensor: torch.Tensor) -> Place:
    """Return the next place for a tensor."""
    return layout.place(tensor.shape, tensor.stride(), name_of(tensor.dtype), tensor.element_size())


def touched(zone: torch.Tensor, fill: int, item_bytes: int) -> int:
    """Return the number of items in a zone of bytes that differ from its fill."""
    if zone.device.type == "cpu" and zone.numpy().tobytes() == bytes([fill]) * zone.numel():
        return 0  # by far the quickest way to see it, on a machine that has other work
    changed = zone != fill
    return int(changed.view(-1, item_bytes).any(dim=1).sum()) if bool(changed.any()) else 0
