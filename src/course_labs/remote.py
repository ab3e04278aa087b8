"""A student's function over arrays or lists, which runs in another process, as the grader calls it.

The numbers lie in memory that both processes see, so that the grader judges what it reads itself. Without torch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from course_judge.host import Broken, Stranger
from course_judge.protocol.layout import Layout, Place, span_of
from course_judge.protocol.messages import Memory, Output
from course_judge.protocol.shared_memory import made
from course_labs.protocol.array_memory import EVERY, array_at
from course_labs.protocol.messages import ArrayCall, ArrayOutputs

MOST_OUTPUTS, MOST_AXES = 64, 16  # of one call, and of one of them
DTYPE = re.compile(r"[<>=|][?a-zA-Z]\d{0,6}(\[\w+\])?")  # as NumPy writes one that is no record
ROOM_BYTES = 2**26  # for answers; a page that nobody writes to takes no memory


class RemoteArrays:
    """A student's function, called like any other: arrays in, arrays out.

    Args:
        lists: it takes and gives lists of numbers; what comes back has the type of the first input.
    """

    def __init__(self, stranger: Stranger, lists: bool = False) -> None:
        self._stranger, self._lists = stranger, lists
        self._memory: Any = None
        self._known: Any = None
        self._room = 0
        self._calls = 0
        self._first: list[np.ndarray] = []

    def begin(self) -> None:
        """Begin with another workload."""
        self._calls, self._first = 0, []

    def __call__(self, *inputs: np.ndarray, **options: Any) -> tuple[Any, ...]:
        """Hand the inputs over, ask, and take what comes back."""
        return self._asked(inputs, options)[0]

    def weigh(self, inputs: Sequence[np.ndarray], options: Mapping[str, Any]) -> tuple[tuple[Any, ...], int]:
        """Return the outputs of one call, and the most bytes held at once in it, by the other process's own account."""
        self.begin()
        outputs, told = self._asked(inputs, options, weigh=True)
        return outputs, told.held

    def with_programs(
        self, runs: str, inputs: Sequence[np.ndarray], options: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], int, bool]:
        """Make one call in which only some of its programs run.

        Args:
            runs: `EVERY`, `FIRST` for the first alone, or `OTHERS` for all but that one.
        Returns:
            The outputs, how many programs were started, -1 if the file has no function for them, and whether one gave
            something back.
        """
        self.begin()
        outputs, told = self._asked(inputs, options, runs=runs)
        return outputs, told.started, told.returned

    def _asked(
        self,
        inputs: Sequence[np.ndarray],
        options: Mapping[str, Any],
        weigh: bool = False,
        runs: str = EVERY,
    ) -> tuple[tuple[Any, ...], ArrayOutputs]:
        places = self._share(inputs)
        for place, array in zip(places, inputs, strict=True):
            self._at(place)[...] = array
        call = ArrayCall(tuple(places), dict(options), self._room, runs, keep=self._calls == 0, weigh=weigh)
        self._calls += 1
        answer = self._stranger.ask(call)
        for place, array in zip(places, inputs, strict=True):
            array[...] = self._at(place)  # as it is now: whoever calls looks whether it changed
        if len(answer.outputs) > MOST_OUTPUTS:
            raise Broken("out of turn", f"it answered with {len(answer.outputs)} outputs")
        try:
            outputs = [self._output(about, inputs) for about in answer.outputs]
        except (TypeError, ValueError, OverflowError, MemoryError):
            raise Broken("out of turn", "what it says of its outputs does not fit together") from None
        if self._calls == 1:
            self._first = [out for out in outputs if isinstance(out, np.ndarray)]
        return tuple(outputs), answer

    def _share(self, inputs: Sequence[np.ndarray]) -> list[Place]:
        kinds = tuple((array.shape, array.strides, array.dtype) for array in inputs)
        if self._known and self._known[0] == kinds:
            return list(self._known[1])
        layout = Layout()
        places = [
            layout.place(
                array.shape,
                [step // array.itemsize for step in array.strides],
                array.dtype.name,
                array.itemsize,
            )
            for array in inputs
        ]
        self._room = layout.room(ROOM_BYTES)
        self._memory, file = made(layout.bytes)
        try:
            self._stranger.ask(Memory(layout.bytes), [file])
        finally:
            os.close(file)
        self._known = kinds, places
        return places

    def _at(self, place: Place) -> np.ndarray:
        return array_at(self._memory, place)

    def _output(self, about: Output, inputs: Sequence[np.ndarray]) -> Any:
        kind = about.type[:60]
        if about.plain is None:
            return type(kind, (), {})()
        if not DTYPE.fullmatch(about.dtype):
            raise ValueError
        dtype, shape, at = np.dtype(about.dtype), list(about.shape), about.at
        if min(shape, default=0) < 0 or len(shape) > MOST_AXES:
            raise ValueError
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if at < 0 or dtype.hasobject:
            # More than there is room for, or no numbers: a wrong shape, or a wrong type.
            found = as_strided(np.zeros(1, dtype), shape, [0] * len(shape))
        elif at < self._room or at + size > self._room + ROOM_BYTES:
            raise ValueError
        else:
            found = np.frombuffer(self._memory, np.uint8, size, at).copy().view(dtype).reshape(shape)
        if self._lists:
            return found.astype(inputs[0].dtype) if inputs else found
        found = self._laid(found, list(about.strides))
        found = self._where(found, about, inputs)
        return found if about.plain else found.view(type(kind, (np.ndarray,), {}))

    def _laid(self, found: np.ndarray, strides: list[int]) -> np.ndarray:
        """Return the same numbers, laid out as they were in the other process."""
        if strides == [step // found.itemsize for step in found.strides] or not found.size:
            return found
        steps = [abs(step) for step in strides]
        span = span_of(found.shape, steps)
        if span > ROOM_BYTES // found.itemsize or len(steps) != found.ndim:
            raise ValueError
        laid = as_strided(np.empty(span, found.dtype), found.shape, [step * found.itemsize for step in steps])
        laid = laid[tuple(slice(None, None, -1 if step < 0 else 1) for step in strides)]
        laid[...] = found
        return laid

    def _where(self, found: np.ndarray, about: Output, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """Return an array in the memory of an input, or of the first answer, where the other process had it there."""
        if 0 <= about.shares < len(inputs) and inputs[about.shares].size:
            return _over(inputs[about.shares], found)
        if about.again and self._first and self._first[0].size:
            return _over(self._first[0], found)
        return found


def _over(array: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return an array with the kind and, where they fit, the numbers of another, in this one's memory."""
    if array.dtype == found.dtype and array.shape == found.shape and array.flags.c_contiguous:
        array[...] = found
        return array
    return as_strided(
        np.frombuffer(array, np.uint8)[: found.itemsize].view(found.dtype), found.shape, [0] * found.ndim
    )
