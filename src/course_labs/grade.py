"""Grade a student's file: in a child process, with a time limit, whatever the file does.

The child says over a pipe what it is about to do, so that a file which never returns, or takes the process down
with it, still gets its verdict.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from course_labs.lab import Lab, LabError
from course_labs.verdict import Verdict

START_SECONDS = 300  # to load torch, on a machine that is busy
ENDED_ITSELF = "your file ended the process itself: look for an exit in it, and read what is printed above."


class CannotGrade(RuntimeError):
    """Grading could not begin, for a reason that is none of the student's doing; one line."""


def grade(
    lab: Lab,
    files: Sequence[Path],
    door: str = "",
    *,
    seconds: float | None = None,
    needs_gpu: bool = False,
    compile: bool = False,
    environment: dict[str, str] | None = None,
) -> list[Verdict]:
    """Grade files of one lab, one after the other; see `grade_all`.

    Args:
        door: the door the files belong to; by their names if empty.
    Raises:
        LabError: no such file, or one that fits no door.
        CannotGrade: something that grading needs is missing on this machine.
    """
    tasks = [(lab, _door(lab, file, door), file) for file in files]
    return grade_all(tasks, seconds=seconds, needs_gpu=needs_gpu, compile=compile, environment=environment)


def grade_all(
    tasks: Sequence[tuple[Lab, str, Path]],
    *,
    seconds: float | None = None,
    needs_gpu: bool = False,
    compile: bool = False,
    environment: dict[str, str] | None = None,
) -> list[Verdict]:
    """The verdicts of `grade_each`, all together."""
    return list(
        grade_each(tasks, seconds=seconds, needs_gpu=needs_gpu, compile=compile, environment=environment)
    )


def grade_each(
    tasks: Sequence[tuple[Lab, str, Path]],
    *,
    seconds: float | None = None,
    needs_gpu: bool = False,
    compile: bool = False,
    environment: dict[str, str] | None = None,
) -> Iterator[Verdict]:
    """Grade files of several labs; each verdict comes as soon as it is known.

    Args:
        tasks: (lab, door, file); they share a child process until one of them ends it.
        seconds: the limit for each file, instead of its lab's own.
        needs_gpu: refuse to begin where torch cannot use a GPU.
        compile: where Triton only interprets, compile the kernels of a right file too; it takes a second or two.
        environment: variables for the child, over those of this process.
    Returns:
        A verdict for every file, in order.
    Raises:
        CannotGrade: something that grading needs is missing on this machine.
    """
    done = 0
    while done < len(tasks):
        left = tasks[done:]
        job = {
            "needs_gpu": needs_gpu,
            "compile": compile,
            "tasks": [[str(lab.folder / "lab.toml"), door, str(file.resolve())] for lab, door, file in left],
        }
        limits = [seconds or lab.seconds for lab, _, _ in left]
        for verdict in _run_child(job, limits, environment or {}):
            done += 1
            yield verdict


def _door(lab: Lab, file: Path, door: str) -> str:
    if door and door not in lab.doors:
        raise LabError(f"{lab.name} has no door {door!r}; it has {', '.join(lab.doors)}")
    found = door or lab.door_of(file)
    if found is None:
        fitting = ", ".join(lab.student_file(one) for one in lab.doors)
        raise LabError(f"{file.name}: {lab.name} takes {fitting}")
    if not file.is_file():
        raise LabError(f"there is no file {file}; the starter: nox -s lab -- {lab.name} --door {found}")
    return found


def _run_child(
    job: dict[str, Any], limits: Sequence[float], environment: dict[str, str]
) -> Iterator[Verdict]:
    """The verdicts a child gives before it ends, and one for the file it ends on; never none."""
    path = [str(Path(__file__).resolve().parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "course_labs.child", str(writing), str(os.getpid())],
        stdin=subprocess.PIPE,
        pass_fds=(writing,),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)} | environment,
        start_new_session=True,  # a group of its own, so that what it starts ends with it
    )
    os.close(writing)
    try:
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is gone already; its end says more
            child.stdin.write(json.dumps(job).encode())
            child.stdin.close()
        yield from _listen(reading, child, limits)
    finally:
        os.close(reading)
        _end(child)


def _listen(pipe: int, child: subprocess.Popen[bytes], limits: Sequence[float]) -> Iterator[Verdict]:
    given, size, ready, rest = 0, "", False, b""
    so_far: Verdict | None = None  # of the lab itself, while its last task is graded
    deadline = time.monotonic() + START_SECONDS
    while given < len(limits):
        limit = limits[given]
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not ready:
                raise CannotGrade(f"torch was not loaded within {START_SECONDS} s")
            yield _after(so_far, Verdict("timed out", f"it ran for {limit:g} s and was ended", size))
            return
        data = os.read(pipe, 65536)
        if not data:
            yield _after(so_far, _died(child, size, ready))
            return
        *lines, rest = (rest + data).split(b"\n")
        for event in map(json.loads, lines):
            if "cannot" in event:
                raise CannotGrade(event["cannot"])
            if "begin" in event:
                ready, size, so_far = True, "", None
                deadline = time.monotonic() + limits[event["begin"]]
            size = event.get("size", size)
            if "so_far" in event:
                so_far = Verdict.from_json(event["so_far"])
            if "verdict" in event:
                given += 1
                yield Verdict.from_json(event["verdict"])
                deadline = time.monotonic() + START_SECONDS
            if event.get("broken"):
                return  # no later file would be judged fairly in this process


def _after(so_far: Verdict | None, found: Verdict) -> Verdict:
    """What is said of a file that ended its process: of the whole, or of its last task."""
    return dataclasses.replace(so_far, alone=found) if so_far else found


def _died(child: subprocess.Popen[bytes], size: str, ready: bool) -> Verdict:
    code = child.wait()
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    if not ready:
        raise CannotGrade(f"the grading process ended before it began ({how}); see above")
    advice = "" if code < 0 else ENDED_ITSELF
    return Verdict("died", f"the process ended in the middle ({how})", size, advice)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and all it started, and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
