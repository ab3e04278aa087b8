"""Matrix multiply on Hopper, what a call costs the host: shapes are looked at once, and then only addresses.

Contract  problem.py

A product of 2048 x 2048 is over before a launcher in Python has looked at everything that a kernel can refuse. All of
it follows from the shapes, the layout, the types and the GPU, so it is looked at when these come for the first time.
What a call has of its own are addresses and the stream; a launch with the same of them again is given to the driver
as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.prepared import Written
from course_kernels.gemm.arguments import MAX_SIZE, SIXTEEN_BITS

EIGHT = 8  # 16-bit numbers in the 16 bytes that the copy engine's rows are multiples of
KEPT = 1024  # launches of a shape, or shapes: an allocator without end must not fill the memory

# (a, b, room for C, room for parts) -> the launches of one product, in their order
Launches = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None], tuple[Written, ...]]


class Ready:
    """The product of two tensors that lie like these; every check that asks for no address has passed."""

    def __init__(
        self,
        a: torch.Tensor,
        M: int,
        N: int,
        current: Callable[[], tuple[int, int]],
        write: Launches,
        parts: tuple[int, int, int] | None = None,
        kept: int = 0,
    ) -> None:
        """
        Args:
            a: the first factor, for its type and GPU.
            M, N: the product's size.
            current: torch's current GPU and stream.
            write: writes the launches down.
            parts: the size of float32 numbers that a call needs between its launches.
            kept: or so many numbers of float32 that a launch finds and leaves as zeros where it says so.
        """
        self._size, self._strides = (M, N), (N, 1)
        self._how: dict[str, Any] = {"dtype": a.dtype, "device": a.device}
        self._device, self._current, self._write = a.device, current, write
        self._parts, self._kept = parts, kept
        self._rooms: dict[tuple[int, int], torch.Tensor] = {}
        self._written: dict[tuple[int, int, int, int, tuple[int, int]], tuple[Written, ...]] = {}

    def _room(self, where: tuple[int, int]) -> torch.Tensor:
        """Return what a launch needs beside its factors and its result."""
        if self._parts is not None:
            return torch.empty(self._parts, dtype=torch.float32, device=self._device)
        # Launches of a stream come one after the other, so they share one. Nobody knows beside whom a graph will run.
        alone = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
        room = None if alone else self._rooms.get(where)
        if room is None:
            room = torch.zeros(self._kept, dtype=torch.float32, device=self._device)
            if not alone:
                self._rooms[where] = room
        return room

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Multiply a @ b.

        Raises:
            ValueError: an address that is no multiple of 16 bytes, or another current GPU than that of the tensors.
            RuntimeError: the driver refused a launch.
        """
        where = self._current()
        c = torch.empty_strided(self._size, self._strides, **self._how)
        parts, at = None, 0
        if self._parts is not None or self._kept:
            parts = self._room(where)
            at = parts.data_ptr()
        key = a.data_ptr(), b.data_ptr(), c.data_ptr(), at, where
        launches = self._written.get(key)
        if launches is None:
            check_tensor(
                "a", a, "MK", {}, dtypes=(a.dtype,), device=a.device
            )  # another GPU may be current by now
            check_address("a", a)
            check_address("b", b)
            if len(self._written) >= KEPT:
                self._written.clear()
            launches = self._written[key] = self._write(a, b, c, parts)
        for launch in launches:
            error = launch.go()
            if error:
                raise launch.of.refused(error, launch.grid)
        return c


def sizes_of(a: torch.Tensor, b: torch.Tensor, transposed: bool = False) -> tuple[int, int, int]:
    """M, N, K of a product that the copy engine brings; `transposed`: b is the transpose of a contiguous (N, K).

    Raises:
        TypeError: a is neither bfloat16 nor float16, or b is of another type than a.
        ValueError: shapes that do not fit each other or are too long, not contiguous, not on the current GPU; K or N
            no multiple of 8, an address none of 16 bytes.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=SIXTEEN_BITS)
    if transposed:
        check_tensor("b.t()", b.t(), "NK", sizes, dtypes=(a.dtype,), device=a.device)
    else:
        check_tensor("b", b, "KN", sizes, dtypes=(a.dtype,), device=a.device)
    for name, letter in (("a", "M"), ("a", "K"), ("b", "N")):
        check_size(name, letter, sizes[letter], MAX_SIZE)
    for letter in "KN":
        if sizes[letter] % EIGHT:
            raise ValueError(
                f"{letter}: expected a multiple of {EIGHT}, for the copy engine, got {sizes[letter]}"
            )
    check_address("a", a)
    check_address("b", b)
    return sizes["M"], sizes["N"], sizes["K"]


_READY: dict[Hashable, Ready] = {}


def multiply(
    kernel: Hashable, a: torch.Tensor, b: torch.Tensor, make: Callable[[torch.Tensor, torch.Tensor], Ready]
) -> torch.Tensor:
    """Multiply a @ b by what `make(a, b)` returned when tensors like these came for the first time.

    Args:
        kernel: what else the answer of `make` depends on.
        a, b: the factors.
        make: checks them, and refuses in one line what it cannot take.
    """
    try:
        key = (
            kernel,
            a.shape,
            a.is_contiguous(),
            a.dtype,
            a.get_device(),
            b.shape,
            b.stride(),
            b.dtype,
            b.get_device(),
        )
    except AttributeError:  # no tensors
        return make(a, b)(a, b)
    ready = _READY.get(key)
    if ready is None:
        if len(_READY) >= KEPT:
            _READY.clear()
        ready = _READY[key] = make(a, b)
    return ready(a, b)


def forget() -> None:
    """Forget every prepared launch."""
    _READY.clear()
