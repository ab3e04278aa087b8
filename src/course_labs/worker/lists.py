"""A student's function over nested lists, asked with numbers in shared memory. Needs nothing but Python."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from course_judge.protocol.errors import Rejected
from course_judge.protocol.layout import Place
from course_judge.protocol.messages import Answer, Memory, Output, Question
from course_judge.protocol.shared_memory import taken
from course_judge.worker.forbidden_calls import Watch
from course_labs.protocol.messages import ArrayCall, ArrayOutputs, shown

FORMATS = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}


class ListAnswers:
    """Answers of a function over lists."""

    def __init__(self, function: Callable[..., Any], watch: Watch) -> None:
        self._function, self._watch = function, watch
        self._memory: mmap.mmap | None = None

    def answer(self, question: Question[Any], files: Sequence[int]) -> Answer:
        """Work in other memory, or call the function."""
        if isinstance(question, Memory):
            (file,) = files
            self._memory = taken(file, question.size)
            return Answer()
        assert isinstance(question, ArrayCall)
        given = [self._list(place) for place in question.inputs]
        before = repr(given)  # as text: a NaN differs from itself, and 0 equals -0
        with self._watch.watching():
            result = self._function(*given, **question.options)
        if repr(given) != before:
            raise Rejected("input modified", "a list you were given has changed")
        try:
            shape, numbers = shape_of(result), [float(number) for number in _flat(result)]
        except (TypeError, ValueError, OverflowError):
            why = f"expected a list of numbers, every row as long as the others, got {shown(result)}"
            raise Rejected("wrong result", why) from None
        packed, at = struct.pack(f"<{len(numbers)}d", *numbers), -1
        if self._memory is not None and question.room + len(packed) <= len(self._memory):
            at = question.room
            self._memory[at : at + len(packed)] = packed
        return ArrayOutputs((Output("ndarray", plain=True, dtype="<f8", shape=tuple(shape), at=at),))

    def _list(self, place: Place) -> Any:
        assert self._memory is not None
        one = memoryview(self._memory)[place.at : place.at + place.bytes]
        return one.cast(FORMATS[place.dtype], place.shape).tolist()  # type: ignore[call-overload,no-any-return]


def shape_of(result: Any) -> list[int]:
    """Return the lengths along each axis of nested lists.

    Raises:
        TypeError: something in it is no number.
        ValueError: a row is longer than another.
    """
    if not isinstance(result, list | tuple):
        if not isinstance(result, int | float):
            raise TypeError
        return []
    shapes = [shape_of(part) for part in result]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError
    return [len(shapes), *(shapes[0] if shapes else [])]


def _flat(result: Any) -> Iterator[Any]:
    if isinstance(result, list | tuple):
        for part in result:
            yield from _flat(part)
    else:
        yield result
