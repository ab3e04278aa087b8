"""Host of workers: starts a process for each stranger's file, asks it, and ends it with all that it has started.

What runs in a worker is not imported here: the process that workers are copies of is started by its name.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from course_judge.protocol.channel import Channel, Gone, OutOfTurn, TimedOut
from course_judge.protocol.limits import GIB, Limits
from course_judge.protocol.messages import (
    Answer,
    Confined,
    End,
    Failed,
    Import,
    Imported,
    Malformed,
    Question,
    Start,
    Started,
    Sweep,
    Swept,
    read,
    shown,
)
from course_judge.protocol.processes import is_running, tree
from course_judge.protocol.verdict import PROPERTIES, escaped
from course_judge.working_clock import Clock

WORKER = "course_judge.worker.process"
SOURCES = Path(__file__).resolve().parents[1]
START_SECONDS = 300.0  # to load torch, on a machine that is busy
MIB = 2**20
SHOWN_BYTES = 16 * 2**10  # of what a stranger prints
# How often a stranger's memory and folder are looked at while it works, and how soon again at the end of a limit:
# while it sleeps, what is left of that does not go by.
LOOK_SECONDS, LEAST_LOOK_SECONDS = 0.05, 0.005


A = TypeVar("A", bound=Answer)


class CannotJudge(RuntimeError):
    """Error: judging could not begin, through no fault of the stranger's file; one line.

    Attributes:
        missing: the module that is not installed; empty where it was something else.
    """

    def __init__(self, why: str, missing: str = "") -> None:
        super().__init__(why)
        self.missing = missing


class Broken(Exception):
    """Error: a stranger's process did not answer as it should.

    Attributes:
        found, why: as in a `Verdict`.
        next: what to try, where the usual advice does not fit.
    """

    def __init__(self, found: str, why: str, next: str = "") -> None:
        super().__init__(why)
        self.found, self.why, self.next = found, why, next


@dataclass(frozen=True)
class Asked(Generic[A]):
    """A question that was sent: the mark that its answer must have, and the answer's class."""

    mark: str
    answer: type[A]


@dataclass(frozen=True)
class Task:
    """A worker's task; nothing in it is secret.

    Attributes:
        file: the stranger's file, run where it lies.
        function: the name of the function that is asked.
        own: the work must be the file's own: neither torch's operators nor the course's kernels may do it.
        worker: the name of the module whose `Worker` answers.
        more: what that worker needs to know besides; plain data.
        by_work: its limits are in working seconds. Where a card is used they are the wall's: what a kernel takes there
            is no time of the CPU's.
    """

    file: Path
    function: str
    own: bool = False
    limits: Limits = field(default_factory=Limits)
    worker: str = "course_judge.worker.torch_function"
    more: Mapping[str, Any] = field(default_factory=dict)
    by_work: bool = False


class Host:
    """A process that has loaded what strangers need, and makes a copy of itself for each.

    Args:
        modules: what it loads.
        environment: variables over those of this process.
        wait: until all is loaded; otherwise `ready` does, or the first stranger.
        fresh: each stranger loads the modules itself, instead of being a copy that has them: slower, and needed where
            what is loaded does not work in a copy.
    Raises:
        CannotJudge: a module is missing, or it did not start.
    """

    def __init__(
        self,
        modules: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        wait: bool = True,
        fresh: bool = sys.platform == "darwin",
    ) -> None:
        ours, theirs = Channel.pair()
        path = [str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._control = ours
        number = theirs.socket.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", WORKER, str(number), *(["fresh"] if fresh else [])],
            stdin=subprocess.DEVNULL,
            pass_fds=(number,),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)} | dict(environment or {}),
            start_new_session=True,
        )
        theirs.close()
        self._is_ready = False
        self._send(Import(tuple(modules)))
        if wait:
            self.ready()

    def ready(self) -> None:
        """Wait until all is loaded.

        Raises:
            CannotJudge: a module is missing, or it did not start.
        """
        if self._is_ready:
            return
        loaded = self._listen(Imported)
        if loaded.missing:
            self.close()
            raise CannotJudge(f"{loaded.missing} is not installed here ({loaded.why})", loaded.missing)
        self._is_ready = True

    @contextmanager
    def stranger(self, task: Task) -> Iterator[Stranger]:
        """Yield a stranger's process, its file not yet loaded; it and its folder are gone afterwards."""
        self.ready()
        folder = Path(tempfile.mkdtemp(prefix="judge-"))
        ours, theirs = Channel.pair()
        reading, writing = os.pipe()
        printed = _Printed(reading)
        stranger = None
        try:
            start = Start(
                file=str(task.file.resolve()),
                function=task.function,
                own=task.own,
                worker=task.worker,
                folder=str(folder),
                environment=_caches(folder),
                limits=task.limits,
                more=dict(task.more),
            )
            self._send(start, [theirs.socket.fileno(), writing])
            process = self._listen(Started).process
            theirs.close()
            os.close(writing)
            stranger = Stranger(self, process, ours, folder, task, printed)
            yield stranger
        finally:
            if stranger:
                stranger.end()
            ours.close()
            printed.close()
            shutil.rmtree(folder, ignore_errors=True)

    def end(self, process: int) -> Swept:
        """End one worker, and all it has started: how it ended, and how many others were left."""
        self._send(Sweep(process))
        return self._listen(Swept)

    def _send(self, question: Question[Any], files: Sequence[int] = ()) -> None:
        with contextlib.suppress(Gone):  # its end is noticed when it is listened to
            self._control.send({question.key: question.body}, files)

    def _listen(self, kind: type[A]) -> A:
        try:
            return read(kind, self._control.receive(START_SECONDS)[0])
        except TimedOut:
            raise CannotJudge(
                f"the process that starts strangers did not answer within {START_SECONDS:g} s"
            ) from None
        except (Gone, OutOfTurn):
            raise CannotJudge("the process that starts strangers has ended; see above") from None
        except Malformed as error:
            raise CannotJudge(f"the process that starts strangers made no sense: {error}") from None

    def close(self) -> None:
        """End it; it ends what is left of its strangers first."""
        self._control.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _caches(folder: Path) -> dict[str, str]:
    """Cache folders of compilers, within the stranger's own: nothing is read that another has left."""
    return {
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "CUDA_CACHE_PATH": str(folder / "cuda"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # a pool of processes would be left behind
    }


class Stranger:
    """A stranger's process.

    Attributes:
        not_held: what the system could not hold it to.
        clock: the clock of its limits, and of all that the judge paces by it.
    """

    def __init__(
        self, host: Host, process: int, channel: Channel, folder: Path, task: Task, printed: _Printed
    ) -> None:
        self._host, self._process, self._channel, self._folder = host, process, channel, folder
        self._limits, self._printed = task.limits, printed
        self._ended: Swept | None = None
        self.clock = Clock()
        self._began = self.clock.moment()
        self._base = 0
        self.not_held = _read(Confined, self._receive(START_SECONDS)[0]).open
        if task.by_work:
            self.clock = Clock(process)
            self._began = self.clock.moment()
        self._base = _memory_of({process})

    @property
    def printed(self) -> str:
        """Its prints so far, escaped."""
        return self._printed.text

    def ask(self, question: Question[A], files: Sequence[int] = ()) -> A:
        """Ask, and wait for the answer.

        Raises:
            Broken: it answers something else, too late, or not at all; or what it says is what went wrong.
        """
        return self.listen(self.tell(question, files))

    def tell(self, question: Question[A], files: Sequence[int] = ()) -> Asked[A]:
        """Ask, and do not wait."""
        mark = secrets.token_hex(8)
        try:
            self._channel.send({question.key: question.body, "of": mark}, files)
        except Gone:
            raise self._gone() from None
        return Asked(mark, cast(type[A], question.answer))

    def listen(self, asked: Asked[A]) -> A:
        """Return the answer to a question."""
        answer, _ = self._receive(self._limits.seconds)
        if not isinstance(answer, dict) or answer.pop("of", None) != asked.mark:
            raise Broken("out of turn", f"it sent {escaped(shown(answer), 80)}")
        if "failed" in answer:
            failed = _read(Failed, answer)
            if failed.failed not in PROPERTIES:
                raise Broken("out of turn", f"it sent {escaped(shown(answer), 80)}")
            raise Broken(failed.failed, escaped(failed.why), escaped(failed.next))
        return _read(asked.answer, answer)

    def _receive(self, seconds: float) -> tuple[Any, list[int]]:
        began = self.clock.moment()
        each, all_ = (began, seconds), (self._began, self._limits.seconds_in_all)
        while True:
            left = min(self.clock.left(*each), self.clock.left(*all_))
            try:
                return self._channel.receive(max(LEAST_LOOK_SECONDS, min(LOOK_SECONDS, left)))
            except TimedOut:
                self._look()
                # Where one answer may take as long as all do, it is all that took too long: they began first.
                if past := self.clock.past(*all_, "all answers") or self.clock.past(*each, "one answer"):
                    raise Broken("timed out", f"{past}, and was ended") from None
            except OutOfTurn as error:
                raise Broken("out of turn", f"it sent {escaped(str(error), 80)}") from None
            except Gone:
                raise self._gone() from None

    def _look(self) -> None:
        """Refuse a process that is past its limits."""
        running = tree(self._process)
        self.clock.watch(running)
        if len(running) > self._limits.processes:
            raise Broken(
                "too many processes", f"it ran {len(running)}, and {self._limits.processes} is the limit"
            )
        if self._printed.bytes > self._limits.printed_bytes:
            raise Broken("out of room", f"it printed more than {self._limits.printed_bytes / MIB:.3g} MiB")
        if _memory_of(running) - self._base > self._limits.memory_bytes:
            raise Broken("out of memory", f"it took more than {self._limits.memory_bytes / GIB:.3g} GiB")
        self._look_at_the_folder()

    def _look_at_the_folder(self) -> None:
        if _size_of(self._folder) > self._limits.disk_bytes:
            raise Broken("out of room", f"it wrote more than {self._limits.disk_bytes / GIB:.3g} GiB")

    def _gone(self) -> Broken:
        status = self.end().status
        how = "and nobody knows how" if status is None else _how(status)
        return Broken("died", f"the process ended in the middle ({how})")

    def finish(self) -> None:
        """Tell it that there are no more questions, and wait for its end.

        Raises:
            Broken: it leaves something behind.
        """
        self._look_at_the_folder()
        with contextlib.suppress(Gone):
            self._channel.send({End.key: True, "of": ""})
        self._wait()
        left = self.end().left
        if left:
            raise Broken(
                "left behind",
                f"{left} process{'es' * (left > 1)} it had started still ran, and had to be ended",
            )

    def _wait(self) -> None:
        """Wait until it has ended by itself, which closes the connection unless somebody else has a copy of its end."""
        began = self.clock.moment()
        while self.clock.left(began, self._limits.seconds) > 0 and is_running(self._process):
            try:
                self._channel.receive(LOOK_SECONDS)
            except TimedOut:
                continue
            except (Gone, OutOfTurn):
                return

    def end(self) -> Swept:
        """End it, if it has not ended; how it did, and how many others were left."""
        if self._ended is None:
            self._ended = self._host.end(self._process)
        return self._ended


def _read(kind: type[A], answer: Any) -> A:
    """Return an answer of a worker's, which may have sent anything.

    Raises:
        Broken: it is of another form.
    """
    try:
        return read(kind, answer)
    except Malformed as error:
        raise Broken(
            "out of turn", f"what it answered has another form: {escaped(str(error), 200)}"
        ) from None


class _Printed:
    """Reader of what a stranger prints, so that it never waits for one; keeps the beginning.

    Attributes:
        bytes: how much it has printed.
    """

    def __init__(self, file: int) -> None:
        self._file, self._kept, self.bytes = file, b"", 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._file, 65536):
                self.bytes += len(data)
                self._kept += data[: SHOWN_BYTES - len(self._kept)]

    @property
    def text(self) -> str:
        lines = [escaped(line) for line in self._kept.decode(errors="replace").splitlines()]
        return "\n".join([*lines, *(["… and more"] if self.bytes > SHOWN_BYTES else [])])

    def close(self) -> None:
        self._thread.join(5)
        os.close(self._file)


def _how(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    import signal

    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _memory_of(processes: set[int]) -> int:
    """Return bytes that processes have written to, files apart; what several share counts once."""
    several = len(processes) > 1
    name, field = ("smaps_rollup", "Pss_Anon:") if several else ("status", "RssAnon:")
    total = 0
    for process in processes:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(f"/proc/{process}/{name}").read_text().splitlines():
                if line.startswith(field):
                    total += 1024 * int(line.split()[1])
    return total


def _size_of(folder: Path) -> int:
    total, folders = 0, [folder]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    else:
                        about = entry.stat(follow_symlinks=False)
                        total += about.st_blocks * 512
    return total
