"""Worker for a lab of several kernels, in the process that runs a student's file."""

from __future__ import annotations

import dataclasses

from course_judge.protocol.messages import Start
from course_judge.worker.connection import Connection
from course_judge.worker.forbidden_calls import Watch, hook
from course_labs.worker import file


class Worker(file.Worker):
    """Worker for one of the kernels, or for the last task."""

    def __init__(self, task: Start, connection: Connection) -> None:
        super().__init__(task, connection)
        if not self.lab.is_alone:
            # Of the problem no more is asked here than whether there is one.
            self.lab = dataclasses.replace(self.lab, problem=task.function, entry=(task.function,))
        # The file has kernels whatever is asked of it: torch and Triton are open to it, the course is not.
        self.watch = Watch(self._file, self.lab.is_alone, self.lab.refuse)

    def _load(self) -> None:
        """Run the file.

        Raises:
            Rejected: it cannot be read, or lacks a function.
        """
        if not self.lab.is_alone:
            super()._load()
            return
        hook()
        self._open.enter_context(self.watch.installed())
        self._prepare_triton()
        self._module = self._run()
