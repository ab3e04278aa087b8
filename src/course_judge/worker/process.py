"""Process that runs a stranger's file. The host starts it by name; nothing that the judge keeps secret is in it.

    python -m course_judge.worker.process FILE_NUMBER [fresh]

The process that is started loads what all strangers need (torch takes seconds), then makes a copy of itself for each
stranger, so that none finds what another has left in memory. It is the parent of everything they leave behind, and
ends that. Where a copy cannot be trusted with libraries that are loaded (on a Mac), each stranger begins `fresh`, and
loads them again.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from course_judge.protocol import processes
from course_judge.protocol.channel import Channel, Gone
from course_judge.protocol.messages import (
    Answer,
    Confined,
    End,
    Failed,
    Import,
    Imported,
    Load,
    Question,
    Start,
    Started,
    Sweep,
    Swept,
    plain,
    question_in,
    read,
)
from course_judge.worker import confinement
from course_judge.worker.connection import Connection
from course_judge.worker.error_report import report
from course_judge.worker.forbidden_calls import Watch

SWEEP_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    """Wait for strangers, one at a time, until nobody is left to ask for one."""
    if arguments[0] == "one":
        about = json.loads(arguments[1])
        _import(about["modules"])
        _be_worker(read(Start, about["start"]), about["files"])
    control, fresh = Channel(socket.socket(fileno=int(arguments[0]))), "fresh" in arguments[1:]
    modules: tuple[str, ...] = ()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the judge's affair: it ends us
    confinement.adopt_orphans()
    folder = ""
    try:
        while True:
            message, files = control.receive()
            question = question_in(message, (Import, Start, Sweep))
            if isinstance(question, Import):
                modules = question.modules
                answer: Answer = _import(modules)
            elif isinstance(question, Start):
                folder = question.folder
                gc.collect()
                gc.freeze()  # the copy must not touch, and so duplicate, every page that holds an object
                process = os.fork()
                if not process:
                    control.close()
                    if fresh:
                        _begin_again(modules, question, files)
                    _be_worker(question, files)
                for file in files:
                    os.close(file)
                answer = Started(process)
            else:
                assert isinstance(question, Sweep)
                answer = _sweep(question.process)
            control.send(plain(answer))
    except Gone:
        return 0
    finally:
        _sweep(None)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)  # a judge that was killed has not


def _begin_again(modules: Sequence[str], task: Start, files: list[int]) -> NoReturn:
    """Become a new program in this process, in which nothing is loaded yet."""
    for file in files:
        os.set_inheritable(file, True)
    about = json.dumps({"modules": modules, "start": plain(task), "files": files})
    os.execv(sys.executable, [sys.executable, "-m", "course_judge.worker.process", "one", about])


def _import(names: Sequence[str]) -> Imported:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return Imported(name, str(error))
    return Imported()


def _sweep(process: int | None) -> Swept:
    """End a worker and all it has started; says how it ended, and how many others there were."""
    status, left, gone, until = None, set(), False, time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < until:
        try:
            while True:
                ended, how = os.waitpid(-1, os.WNOHANG)
                if not ended:
                    break
                if ended == process:
                    status = os.waitstatus_to_exitcode(how)
        except ChildProcessError:
            gone = True  # there is no child any more
        alive = set(processes.children().get(os.getpid(), ()))
        if process is not None and status is None and not gone:
            alive.add(process)  # whatever the system can say of who there is
        if not alive:
            break
        left |= alive - {process}
        if process is not None:
            with contextlib.suppress(OSError):
                os.killpg(process, signal.SIGKILL)
        for one in alive:
            with contextlib.suppress(OSError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.002)
    return Swept(status, len(left))


def _be_worker(task: Start, files: list[int]) -> None:
    """Run one stranger's file until the judge has asked everything. Never returns."""
    channel_file, printed = files[:2]
    code = 1
    try:
        confinement.end_with_parent()
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.close(printed)
        os.chdir(task.folder)
        os.environ.update(task.environment, HOME=task.folder, TMPDIR=task.folder)
        tempfile.tempdir = None  # whoever looked for it earlier found another
        channel = Channel(socket.socket(fileno=channel_file))
        channel.send(plain(Confined(tuple(confinement.confine(task.limits, Path(task.folder))))))
        connection = Connection(channel)
        worker: Worker = importlib.import_module(task.worker).Worker(task, connection)
        _serve(worker, connection, Path(task.file))
        code = 0
    except Gone:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)  # nothing of the stranger's runs on the way out


class Worker(Protocol):
    """Side that answers the judge's questions; every kind of task has its own, and names its module.

    Attributes:
        asks: the kinds of questions that it answers.
        watch: what notes the use of what is not the stranger's; None where everything is.
    """

    asks: tuple[type[Question[Any]], ...]
    watch: Watch | None

    def load(self) -> None:
        """Run the stranger's file."""

    def answer(self, question: Question[Any], files: Sequence[int]) -> Answer:
        """Do what is asked, one of `asks`."""


def _serve(worker: Worker, connection: Connection, file: Path) -> None:
    """Answer with what a stranger's file defines, until there are no more questions."""
    while True:
        question, files = connection.hear((Load, End, *worker.asks))
        if isinstance(question, End):
            return
        answer = Answer()
        try:
            if isinstance(question, Load):
                worker.load()
            else:
                answer = worker.answer(question, files)
        except BaseException as error:  # exit() included: whatever it is, it was the stranger's file
            if isinstance(error, Gone):
                raise
            answer = report(error, file)
        if worker.watch and worker.watch.found:
            answer = Failed(*worker.watch.found[0])
        connection.say(answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
