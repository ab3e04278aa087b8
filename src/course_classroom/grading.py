"""Grading of many files at once: some processes side by side, each with a queue of its own kind of file.

One file harms none of the others: a process that ends, or that says nothing for too long, is replaced, the file it had
is tried once more, and then left ungraded with a line that says so. Whoever ran out of time beside others is asked once
more at the end, alone: a busy machine is nobody's fault.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_classroom.hand_ins import HandIn
from course_labs.lab import ON_THE_CPU, Lab, has_given_kernels

SOURCES = Path(__file__).resolve().parents[1]
LINE = "course_classroom.grading_line"
TRIES = 2
START_SECONDS = 300.0  # to load torch, on a busy machine
SLACK_SECONDS = 60.0
BUSY_KERNELS = 8  # in a lab of several kernels each has the limit


@dataclass(frozen=True)
class Settings:
    """Settings for grading a class.

    Attributes:
        lines: processes side by side; on a card it is one, since a time beside another is none.
        seconds: the limit for each file, instead of its lab's own.
        gpu: refuse to grade a kernel without a card.
    """

    lines: int
    seconds: float | None = None
    gpu: bool = False


def grade_all(
    hand_ins: Sequence[HandIn],
    labs: Mapping[str, Lab],
    settings: Settings,
    said: Callable[[HandIn, dict[str, Any]], None],
) -> list[dict[str, Any]]:
    """Grade every hand-in.

    Args:
        said: is called with each answer, once it is known.
    Returns:
        For each, in order, what `grading_line.answered` returns.
    """
    answers: list[dict[str, Any]] = [{} for _ in hand_ins]
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in sorted(range(len(hand_ins)), key=lambda number: _kind(labs, hand_ins[number])):
        waiting.put(number)
    again: list[int] = []
    telling = threading.Lock()
    stopped = threading.Event()

    def work(folder: Path) -> None:
        with _Line(folder) as line:
            while not stopped.is_set():
                try:
                    number = waiting.get_nowait()
                except queue.Empty:
                    return
                hand_in = hand_ins[number]
                answer = answers[number] = line.answer(hand_in, labs[hand_in.lab], settings)
                if len(workers) > 1 and _ran_out_of_time(answer):
                    again.append(number)
                    continue
                with telling:
                    said(hand_in, answer)

    with tempfile.TemporaryDirectory(prefix="class-") as room:
        folders = [Path(room, str(number)) for number in range(max(1, min(settings.lines, len(hand_ins))))]
        workers = [threading.Thread(target=work, args=(folder,)) for folder in folders]
        for worker, folder in zip(workers, folders, strict=True):
            folder.mkdir()
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except KeyboardInterrupt:
            stopped.set()
            for worker in workers:
                worker.join()
            raise
        with _Line(folders[0]) as line:
            for number in sorted(again):
                hand_in = hand_ins[number]
                answers[number] = line.answer(hand_in, labs[hand_in.lab], settings)
                said(hand_in, answers[number])
    return answers


def _ran_out_of_time(answer: Mapping[str, Any]) -> bool:
    verdicts = (answer, answer.get("alone") or {})
    return any(verdict.get("found") == "timed out" for verdict in verdicts)


def _kind(labs: Mapping[str, Lab], hand_in: HandIn) -> tuple[bool, str, str]:
    """Return what files are sorted by: those that need torch last, so that few processes load it at once."""
    heavy = hand_in.door not in ON_THE_CPU or has_given_kernels(labs[hand_in.lab])
    return (heavy, hand_in.lab, hand_in.door)


class _Line:
    """One process that grades; started when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._reading, self._rest = -1, b""

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def answer(self, hand_in: HandIn, lab: Lab, settings: Settings) -> dict[str, Any]:
        """Return what the grader says of one file, or that it could not be graded."""
        file = self._folder / hand_in.name
        file.write_bytes(hand_in.data)
        task = {
            "lab": lab.name,
            "door": hand_in.door,
            "file": str(file),
            "seconds": settings.seconds,
            "gpu": settings.gpu and (bool(lab.problem) or has_given_kernels(lab)),
        }
        limit = (settings.seconds or lab.seconds) * (BUSY_KERNELS if has_given_kernels(lab) else 2)
        why = ""
        try:
            for _ in range(TRIES):
                if self._process is None:
                    self._start()
                    wait = limit + SLACK_SECONDS + START_SECONDS
                else:
                    wait = limit + SLACK_SECONDS + START_SECONDS / 2
                said = self._ask(json.dumps(task).encode() + b"\n", wait)
                if isinstance(said, dict):
                    return said
                why = said
                self._end()
            return {"ungraded": why}
        finally:
            file.unlink(missing_ok=True)

    def _start(self) -> None:
        self._reading, writing = os.pipe()
        path = [str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", LINE, str(writing)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            cwd=SOURCES,  # no student's file lies where Python looks for modules
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
            start_new_session=True,
        )
        os.close(writing)
        self._rest = b""

    def _ask(self, task: bytes, seconds: float) -> dict[str, Any] | str:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        until = time.monotonic() + seconds
        try:
            process.stdin.write(task)
            process.stdin.flush()
        except OSError:
            return "the grader's process has ended"
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0:
                return f"the grader said nothing for {seconds:.0f} s"
            if not select.select([self._reading], [], [], min(left, 1.0))[0]:
                continue
            part = os.read(self._reading, 2**16)
            if not part:
                return "the grader's process has ended"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(self._reading)
