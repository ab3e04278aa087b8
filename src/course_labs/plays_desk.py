"""Where the questions of a play are answered, in the process that runs a student's file."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

from course_judge.channel import Channel
from course_judge.watch import Watch
from course_labs import desk

BANNED = ("torch", "triton")  # NumPy is open to it: whoever imports it is given arrays
_NUMPY = re.compile(rb"^\s*(?:import|from)[ \t]+numpy\b", re.MULTILINE)


def takes_arrays(file: Path) -> bool:
    """True for a file that imports NumPy."""
    return file.is_file() and bool(_NUMPY.search(file.read_bytes()))


class Desk(desk.Desk):
    """Loads a student's file, calls its functions, and keeps the object that a play has made."""

    def __init__(self, task: dict[str, Any], channel: Channel) -> None:
        super().__init__(task, channel)
        self.watch = Watch(self._file, True, self.lab.refuse, BANNED)
        self._made: Any = None
        self._arrays = takes_arrays(self._file)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message asks for."""
        if "play" not in message:
            return super().answer(message)
        asked = message["play"]
        given = [copy.deepcopy(value) for value in asked["given"]]
        if self._arrays:
            import numpy as np

            for place in range(asked.get("arrays", 0)):
                given[place] = np.array(given[place])
        if "make" in asked:
            with self.watch.watching():
                self._made = getattr(self._module, asked["make"])(*given)
            return {}
        if "do" in asked:
            return self._done(asked, given)
        return self._called(asked, given)

    def _called(self, asked: dict[str, Any], given: list[Any]) -> dict[str, Any]:
        taken = 0
        pages = list(asked["take"] or ())

        def take() -> int | None:
            nonlocal taken
            taken += 1
            return pages.pop(0) if pages else None

        more = [] if asked["take"] is None else [take]
        with self.watch.watching():
            got = getattr(self._module, asked["call"])(*given, *more)
        return {**told(got), "after": [told(value).get("got") for value in given], "taken": taken}

    def _done(self, asked: dict[str, Any], given: list[Any]) -> dict[str, Any]:
        try:
            with self.watch.watching():
                got = getattr(self._made, asked["do"])(*given)
        except Exception as error:
            if asked["may"] not in {kind.__name__ for kind in type(error).__mro__}:
                raise
            return {"raised": asked["may"]}
        return told(got)


class Strange(TypeError):
    """Neither a number nor a text, nor a list of them."""


def told(got: Any) -> dict[str, Any]:
    """What a function returned, as a message."""
    try:
        return {"got": plain(got)}
    except Strange:
        return {"strange": repr(got)[:60]}


def plain(value: Any) -> Any:
    """A value without classes of its own; a tuple, and an array, as a list.

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
