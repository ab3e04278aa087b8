"""Worker for a function over tensors: loads a stranger's file, and answers the judge's questions about it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from course_judge.protocol.errors import Rejected
from course_judge.protocol.messages import Answer, End, Load, Question, Start, make_ready
from course_judge.worker import dispatch_guard
from course_judge.worker.answers import Answers, memory_watch
from course_judge.worker.connection import Connection
from course_judge.worker.forbidden_calls import Watch, hook
from course_judge.worker.lacking import lacking_reported
from course_judge.worker.load import load, out_of_sight


class Worker:
    """Worker for a file with one function over tensors.

    Attributes:
        asks: the kinds of questions that it answers.
        watch: what notes the use of what is not the stranger's; None where everything is.
    """

    asks = Answers.asks

    def __init__(self, task: Start, connection: Connection) -> None:
        self._task, self._connection, self._file = task, connection, Path(task.file)
        self.watch: Watch | None = None
        self._open = contextlib.ExitStack()  # what stays switched on until the end
        self._answers: Answers | None = None
        self._on_the_card = os.environ.get("CUDA_VISIBLE_DEVICES") != "-1"

    def load(self) -> None:
        """Run the file.

        Raises:
            Rejected: it cannot be read, lacks the function, or asks for what this machine lacks.
        """
        with self._lacking_reported():
            self._load()

    def _load(self) -> None:
        if _is_interpreted():
            from course_judge.worker.card_arithmetic import as_on_a_card
            from course_judge.worker.interpreter import take_the_first_configuration

            take_the_first_configuration()
            self._open.enter_context(as_on_a_card())
        watch = memory_watch() if _is_interpreted() else None
        if not self._on_the_card:
            make_ready((*self.asks, Load, End))
            out_of_sight("course_judge")
        if not self._task.own:
            function = self._function()
            self._answers = Answers(function, function, self._connection, None, watch)
            return
        hook()
        self.watch = Watch(self._file, by_hand=False)
        self._open.enter_context(self.watch.installed())
        with self.watch.watching():
            plain = self._function()
        if triton := importlib.util.find_spec("triton"):
            dispatch_guard.trust(Path(str(triton.origin)).parent, guarded=False)
        zones = dispatch_guard.Zones()
        watched = dispatch_guard.watched(plain, self.watch, zones, (), ())
        self._answers = Answers(watched, plain, self._connection, zones, watch)

    def answer(self, question: Question[Any], files: Sequence[int]) -> Answer:
        """Do what is asked."""
        if self._answers is None:
            raise RuntimeError("asked before its file was loaded")
        with self._lacking_reported():
            return self._answers.answer(question, files)

    def _lacking_reported(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._on_the_card else lacking_reported(self._file)

    def _function(self) -> Callable[..., Any]:
        name = self._task.function
        function = getattr(load(self._file), name, None)
        if not callable(function):
            raise Rejected("function missing", f"the file defines no function {name}")
        return function  # type: ignore[no-any-return]


def _is_interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1" and importlib.util.find_spec("triton") is not None
