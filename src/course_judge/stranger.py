"""The process that runs a stranger's file. Started by `host.Host`; nothing that the judge keeps secret is in it.

    python -m course_judge.stranger FILE_NUMBER

The process that is started loads what all strangers need (torch takes seconds), then makes a copy of itself for each
stranger, so that none finds what another has left in memory. It is the parent of everything they leave behind, and
ends that.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import gc
import importlib
import importlib.util
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from course_judge import limits, processes
from course_judge.channel import Channel, Gone
from course_judge.unfit import Unfit
from course_judge.watch import Watch, hook

SWEEP_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    """Wait for strangers, one at a time, until nobody is left to ask for one."""
    control = Channel(socket.socket(fileno=int(arguments[0])))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the judge's affair: it ends us
    limits.adopt_orphans()
    folder = ""
    try:
        while True:
            message, files = control.receive()
            if "import" in message:
                control.send(_import(message["import"]))
            elif "start" in message:
                folder = message["start"]["folder"]
                gc.collect()
                gc.freeze()  # the copy must not touch, and so duplicate, every page that holds an object
                process = os.fork()
                if not process:
                    control.close()
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


def _import(names: list[str]) -> dict[str, Any]:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return {"missing": name, "why": str(error)}
    return {}


def _sweep(process: int | None) -> dict[str, Any]:
    """End a stranger and all it has started; says how it ended, and how many others there were."""
    status, left, until = None, set(), time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            while True:
                ended, how = os.waitpid(-1, os.WNOHANG)
                if not ended:
                    break
                if ended == process:
                    status = os.waitstatus_to_exitcode(how)
        alive = set(processes.children().get(os.getpid(), ()))
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


class Stranger:
    """Answers the judge's questions with a stranger's function."""

    def __init__(self, channel: Channel, task: dict[str, Any]) -> None:
        self._channel, self._task = channel, task
        self._file = Path(task["file"])
        self._call: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self._watch: Watch | None = None
        self._open = contextlib.ExitStack()  # what stays switched on until the end

    def serve(self) -> None:
        """Answer until there are no more questions."""
        while True:
            message, files = self._channel.receive()
            if "end" in message:
                return
            try:
                answer = self._answer(message, files)
            except BaseException as error:  # exit() included: whatever it is, it was the stranger's file
                if isinstance(error, Gone):
                    raise
                answer = crash(error, self._file)
            if self._watch and self._watch.found:
                found, why = self._watch.found[0]
                answer = {"failed": found, "why": why}
            self._channel.send({"of": message["of"], **answer})

    def _answer(self, message: dict[str, Any], files: list[int]) -> dict[str, Any]:
        if "load" in message:
            self._load()
            return {}
        if self._call is None:
            raise RuntimeError("asked before its file was loaded")
        return self._call(message | {"files": files})

    def _load(self) -> None:
        from course_judge.tensors import Answers

        if self._task["own"]:
            from course_judge import operators

            hook()
            self._watch = Watch(self._file, by_hand=False)
            self._open.enter_context(self._watch.installed())
            with self._watch.watching():
                plain = load(self._file, self._task["function"])
            if triton := importlib.util.find_spec("triton"):
                operators.trust(Path(str(triton.origin)).parent, guarded=False)
            zones = operators.Zones()
            function = operators.watched(plain, self._watch, zones, (), ())
        else:
            plain = function = load(self._file, self._task["function"])
            zones = None
        self._call = Answers(function, plain, self._channel, zones).answer


def load(file: Path, name: str) -> Callable[..., Any]:
    """The function that a file defines; the file is run as a module.

    Raises:
        Unfit: it cannot be read, or lacks the function.
    """
    try:
        # As bytes: Python itself then sees to a mark of the byte order, and to an encoding named in a comment.
        code = compile(ast.parse(file.read_bytes(), str(file)), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        said = f"{f'line {line}: ' if line else ''}{getattr(error, 'msg', error)}"
        raise Unfit("syntax error", said) from None
    except OSError as error:
        raise Unfit("function missing", f"the file cannot be read: {error.strerror}") from None
    module = ModuleType(f"stranger_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.parent))
    try:
        exec(code, module.__dict__)
    finally:
        sys.path.remove(str(file.parent))
    if not callable(getattr(module, name, None)):
        raise Unfit("function missing", f"the file defines no function {name}")
    return getattr(module, name)


def crash(error: BaseException, file: Path) -> dict[str, Any]:
    """What went wrong in a stranger's file, with its own line."""
    if isinstance(error, Unfit):
        return {"failed": error.found, "why": str(error)}
    if isinstance(error, SystemExit):
        return {"failed": "died", "why": f"the file ended the process itself: exit({error.code!r})"}
    while type(error).__module__.startswith("triton") and error.__cause__ is not None:
        error = error.__cause__  # the interpreter, and the compiler, wrap what happened
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)
    ]
    said = (str(error).strip().splitlines() or [""])[0]
    what = f"{f'line {lines[-1]}: ' if lines else ''}{type(error).__name__}{f': {said}' if said else ''}"
    found = "crashed"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        found = "out of memory"
    elif isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.ENOSPC, errno.EDQUOT):
        found = "out of room"
    return {"failed": found, "why": what[:2000]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
