"""Worker for interactive cases, in the process that runs a student's file."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Sequence
from types import CodeType
from typing import Any

from course_judge.protocol.messages import Answer, Question, Start
from course_judge.worker.connection import Connection
from course_judge.worker.forbidden_calls import Watch
from course_labs.protocol.messages import Do, Drive, Make, PlayCall, Played
from course_labs.protocol.source_text import takes_arrays
from course_labs.worker import file

BANNED = ("torch", "triton")  # NumPy is open to it: whoever imports it is given arrays


class Worker(file.Worker):
    """Worker that also keeps the objects that a play has made."""

    asks = (*file.Worker.asks, PlayCall, Make, Do, Drive)

    def __init__(self, task: Start, connection: Connection) -> None:
        super().__init__(task, connection)
        self.watch = Watch(self._file, True, self.lab.refuse, BANNED)
        self._made: dict[int, Any] = {}
        self._arrays = takes_arrays(self._file)

    def answer(self, question: Question[Any], files: Sequence[int]) -> Answer:
        """Do what is asked, one of `asks`."""
        if isinstance(question, PlayCall):
            return self._called(question)
        if isinstance(question, Do):
            return self._done(question)
        if isinstance(question, Drive):
            return self._driven(question)
        if isinstance(question, Make):
            with self.watch.watching():
                made = getattr(self._module, question.name)(*copy.deepcopy(question.given))
            self._made[question.at] = made
            return Answer()
        return super().answer(question, files)

    def _called(self, asked: PlayCall) -> Played:
        given = [copy.deepcopy(value) for value in asked.given]
        if self._arrays:
            import numpy as np

            for place in range(asked.arrays):
                given[place] = np.array(given[place])
        taken = 0
        pages = list(asked.take or ())

        def take() -> int | None:
            nonlocal taken
            taken += 1
            return pages.pop(0) if pages else None

        more = [] if asked.take is None else [take]
        with self.watch.watching():
            got = getattr(self._module, asked.call)(*given, *more)
        after = tuple(told(value).value for value in given)
        return dataclasses.replace(told(got), after=after, taken=taken)

    def _driven(self, asked: Drive) -> Played:
        names: dict[str, Any] = {"__name__": "drive"}
        exec(_compiled(asked.text), names)
        functions = [getattr(self._module, name) for name in asked.names]
        with self.watch.watching():
            got = names["drive"](functions, *copy.deepcopy(asked.given))
        return told(got)

    def _done(self, asked: Do) -> Played:
        try:
            with self.watch.watching():
                got = getattr(self._made[asked.at], asked.name)(*copy.deepcopy(asked.given))
        except Exception as error:
            if asked.may not in {kind.__name__ for kind in type(error).__mro__}:
                raise
            return Played(raised=asked.may)
        return told(got)


@functools.cache
def _compiled(text: str) -> CodeType:
    """Return a text of the grader's as code: it asks with the same one many times."""
    return compile(text, "<grader>", "exec")


class Strange(TypeError):
    """Error: a value is neither a number nor a text, nor a list of them."""


def told(got: Any) -> Played:
    """Message with what a function returned."""
    try:
        return Played(plain(got))
    except Strange:
        return Played(strange=repr(got)[:60])


def plain(value: Any) -> Any:
    """Return a value without classes of its own; a tuple, and an array, as a list.

    Raises:
        Strange: there is more to it.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    raise Strange
