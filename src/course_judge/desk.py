"""Where the judge's questions about a function over tensors are answered, in the stranger's process."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_judge import operators
from course_judge.channel import Channel
from course_judge.load import load
from course_judge.tensors import Answers
from course_judge.unfit import Unfit
from course_judge.watch import Watch, hook


class Desk:
    """Loads a stranger's file and calls its function.

    Attributes:
        watch: what notes the use of what is not the stranger's; None where everything is.
    """

    def __init__(self, task: dict[str, Any], channel: Channel) -> None:
        self._task, self._channel, self._file = task, channel, Path(task["file"])
        self.watch: Watch | None = None
        self._open = contextlib.ExitStack()  # what stays switched on until the end
        self._answers: Answers | None = None

    def load(self) -> None:
        """Run the file.

        Raises:
            Unfit: it cannot be read, or lacks the function.
        """
        if os.environ.get("TRITON_INTERPRET") == "1" and importlib.util.find_spec("triton"):
            from course_judge.interpreter import take_the_first_configuration

            take_the_first_configuration()
        if not self._task["own"]:
            function = self._function()
            self._answers = Answers(function, function, self._channel, None)
            return
        hook()
        self.watch = Watch(self._file, by_hand=False)
        self._open.enter_context(self.watch.installed())
        with self.watch.watching():
            plain = self._function()
        if triton := importlib.util.find_spec("triton"):
            operators.trust(Path(str(triton.origin)).parent, guarded=False)
        zones = operators.Zones()
        watched = operators.watched(plain, self.watch, zones, (), ())
        self._answers = Answers(watched, plain, self._channel, zones)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message asks for."""
        if self._answers is None:
            raise RuntimeError("asked before its file was loaded")
        return self._answers.answer(message)

    def _function(self) -> Callable[..., Any]:
        name = self._task["function"]
        function = getattr(load(self._file), name, None)
        if not callable(function):
            raise Unfit("function missing", f"the file defines no function {name}")
        return function  # type: ignore[no-any-return]
