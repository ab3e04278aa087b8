"""The process that runs a stranger's file. Started by `host.Host`; nothing that the judge keeps secret is in it.

    python -m course_judge.stranger FILE_NUMBER [fresh]

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
from pathlib import Path
from typing import Any, NoReturn, Protocol

from course_judge import limits, processes
from course_judge.channel import Channel, Gone
from course_judge.crash import crash
from course_judge.watch import Watch

SWEEP_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    """Wait for strangers, one at a time, until nobody is left to ask for one."""
    if arguments[0] == "one":
        about = json.loads(arguments[1])
        _import(about["modules"])
        _be_stranger(about["start"], about["files"])
    control, fresh = Channel(socket.socket(fileno=int(arguments[0]))), "fresh" in arguments[1:]
    modules: list[str] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the judge's affair: it ends us
    limits.adopt_orphans()
    folder = ""
    try:
        while True:
            message, files = control.receive()
            if "import" in message:
                modules = message["import"]
                control.send(_import(modules))
            elif "start" in message:
                folder = message["start"]["folder"]
                gc.collect()
                gc.freeze()  # the copy must not touch, and so duplicate, every page that holds an object
                process = os.fork()
                if not process:
                    control.close()
                    if fresh:
                        _begin_again(modules, message["start"], files)
                    _be_stranger(message["start"], files)
                for file in files:
                    os.close(file)
                control.send({"process": process})
            else:
                control.send(_sweep(message["end"]))
    except Gone:
        return 0
    finally:
        _sweep(None)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)  # a judge that was killed has not


def _begin_again(modules: list[str], task: dict[str, Any], files: list[int]) -> NoReturn:
    """As a new program in this process, in which nothing is loaded yet."""
    for file in files:
        os.set_inheritable(file, True)
    about = json.dumps({"modules": modules, "start": task, "files": files})
    os.execv(sys.executable, [sys.executable, "-m", "course_judge.stranger", "one", about])


def _import(names: list[str]) -> dict[str, Any]:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return {"missing": name, "why": str(error)}
    return {}


def _sweep(process: int | None) -> dict[str, Any]:
    """End a stranger and all it has started; says how it ended, and how many others there were."""
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
    return {"status": status, "left": len(left)}


def _be_stranger(task: dict[str, Any], files: list[int]) -> None:
    """Run one stranger's file until the judge has asked everything. Never returns."""
    channel_file, printed = files[:2]
    code = 1
    try:
        limits.end_with_parent()
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.close(printed)
        os.chdir(task["folder"])
        os.environ.update(task["environment"], HOME=task["folder"], TMPDIR=task["folder"])
        tempfile.tempdir = None  # whoever looked for it earlier found another
        channel = Channel(socket.socket(fileno=channel_file))
        limit = limits.Limits(**task["limits"])
        channel.send({"open": limits.confine(limit, Path(task["folder"]))})
        Stranger(channel, task).serve()
        code = 0
    except Gone:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(code)  # nothing of the stranger's runs on the way out


class Desk(Protocol):
    """What answers the judge's questions; every kind of task has its own, and names its module.

    Attributes:
        watch: what notes the use of what is not the stranger's; None where everything is.
    """

    watch: Watch | None

    def load(self) -> None:
        """Run the stranger's file."""

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message asks for."""


class Stranger:
    """Answers the judge's questions with what a stranger's file defines."""

    def __init__(self, channel: Channel, task: dict[str, Any]) -> None:
        self._channel, self._file = channel, Path(task["file"])
        self._desk: Desk = importlib.import_module(task["desk"]).Desk(task, channel)

    def serve(self) -> None:
        """Answer until there are no more questions."""
        while True:
            message, files = self._channel.receive()
            if "end" in message:
                return
            try:
                if "load" in message:
                    self._desk.load()
                    answer: dict[str, Any] = {}
                else:
                    answer = self._desk.answer(message | {"files": files})
            except BaseException as error:  # exit() included: whatever it is, it was the stranger's file
                if isinstance(error, Gone):
                    raise
                answer = crash(error, self._file)
            if self._desk.watch and self._desk.watch.found:
                found, why = self._desk.watch.found[0]
                answer = {"failed": found, "why": why}
            self._channel.send({"of": message["of"], **answer})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
