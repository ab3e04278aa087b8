"""Starts a process for each stranger, asks it, and ends it with all that it has started."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from course_judge.channel import Channel, Gone, OutOfTurn, TimedOut
from course_judge.limits import GIB, Limits
from course_judge.processes import is_running, tree
from course_judge.verdict import PROPERTIES, escaped

SOURCES = Path(__file__).resolve().parents[1]
START_SECONDS = 300.0  # to load torch, on a machine that is busy
MIB = 2**20
SHOWN_BYTES = 16 * 2**10  # of what a stranger prints
LOOK_SECONDS = 0.05  # how often a stranger's memory and folder are looked at while it works


class CannotJudge(RuntimeError):
    """Judging could not begin, for a reason that is none of the stranger's doing; one line.

    Attributes:
        missing: the module that is not installed; empty where it was something else.
    """

    def __init__(self, why: str, missing: str = "") -> None:
        super().__init__(why)
        self.missing = missing


class Broken(Exception):
    """A stranger's process did not answer as it should.

    Attributes:
        found, why: as in a `Verdict`.
        next: what to try, where the usual advice does not fit.
    """

    def __init__(self, found: str, why: str, next: str = "") -> None:
        super().__init__(why)
        self.found, self.why, self.next = found, why, next


@dataclass(frozen=True)
class Task:
    """What a stranger's process is started with; nothing in it is secret.

    Attributes:
        file: the stranger's file, run where it lies.
        function: the name of the function that is asked.
        own: the work must be the file's own: neither torch's operators nor the course's kernels may do it.
        desk: the module whose `Desk` answers in the stranger's process.
        more: what that desk needs to know besides; plain data.
    """

    file: Path
    function: str
    own: bool = False
    limits: Limits = field(default_factory=Limits)
    desk: str = "course_judge.desk"
    more: Mapping[str, Any] = field(default_factory=dict)


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
            [sys.executable, "-m", "course_judge.stranger", str(number), *(["fresh"] if fresh else [])],
            stdin=subprocess.DEVNULL,
            pass_fds=(number,),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)} | dict(environment or {}),
            start_new_session=True,
        )
        theirs.close()
        self._is_ready = False
        with contextlib.suppress(Gone):  # its end is noticed when it is listened to
            self._control.send({"import": list(modules)})
        if wait:
            self.ready()

    def ready(self) -> None:
        """Wait until all is loaded.

        Raises:
            CannotJudge: a module is missing, or it did not start.
        """
        if self._is_ready:
            return
        answer = self._listen(START_SECONDS)
        if "missing" in answer:
            self.close()
            why = f"{answer['missing']} is not installed here ({answer['why']})"
            raise CannotJudge(why, answer["missing"])
        self._is_ready = True

    @contextmanager
    def stranger(self, task: Task) -> Iterator[Stranger]:
        """A stranger's process, its file not yet loaded; it and its folder are gone afterwards."""
        self.ready()
        folder = Path(tempfile.mkdtemp(prefix="judge-"))
        ours, theirs = Channel.pair()
        reading, writing = os.pipe()
        printed = _Printed(reading)
        stranger = None
        try:
            message = {
                "file": str(task.file.resolve()),
                "function": task.function,
                "own": task.own,
                "desk": task.desk,
                **task.more,
                "folder": str(folder),
                "environment": _caches(folder),
                "limits": asdict(task.limits),
            }
            process = self._tell({"start": message}, START_SECONDS, [theirs.socket.fileno(), writing])[
                "process"
            ]
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

    def end(self, process: int) -> dict[str, Any]:
        """End one stranger's process, and all it has started: how it ended, and how many others were left."""
        return self._tell({"end": process}, START_SECONDS)

    def _tell(self, message: dict[str, Any], seconds: float, files: Sequence[int] = ()) -> dict[str, Any]:
        with contextlib.suppress(Gone):
            self._control.send(message, files)
        return self._listen(seconds)

    def _listen(self, seconds: float) -> dict[str, Any]:
        try:
            answer, _ = self._control.receive(seconds)
        except TimedOut:
            raise CannotJudge(
                f"the process that starts strangers did not answer within {seconds:g} s"
            ) from None
        except (Gone, OutOfTurn):
            raise CannotJudge("the process that starts strangers has ended; see above") from None
        return dict(answer)

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
    """What compilers keep lies in the stranger's own folder: nothing is read that another has left."""
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
    """

    def __init__(
        self, host: Host, process: int, channel: Channel, folder: Path, task: Task, printed: _Printed
    ) -> None:
        self._host, self._process, self._channel, self._folder = host, process, channel, folder
        self._limits, self._printed = task.limits, printed
        self._ended: dict[str, Any] | None = None
        self._until = time.monotonic() + self._limits.seconds_in_all
        self._base = 0
        self.not_held: tuple[str, ...] = tuple(self._receive(START_SECONDS)[0].get("open", ()))
        self._base = _memory_of({process})

    @property
    def printed(self) -> str:
        """What it has printed so far, escaped."""
        return self._printed.text

    def ask(
        self, message: dict[str, Any], files: Sequence[int] = (), seconds: float | None = None
    ) -> dict[str, Any]:
        """Ask, and wait for the answer.

        Raises:
            Broken: it answers something else, too late, or not at all; or what it says is what went wrong.
        """
        return self.listen(self.tell(message, files), seconds)

    def tell(self, message: dict[str, Any], files: Sequence[int] = ()) -> str:
        """Ask, and do not wait; gives what the answer must be marked with."""
        mark = secrets.token_hex(8)
        try:
            self._channel.send({**message, "of": mark}, files)
        except Gone:
            raise self._gone() from None
        return mark

    def listen(self, mark: str, seconds: float | None = None) -> dict[str, Any]:
        """The answer to a question."""
        answer, _ = self._receive(seconds or self._limits.seconds)
        if not isinstance(answer, dict) or answer.get("of") != mark:
            raise Broken("out of turn", f"it sent {escaped(repr(answer), 80)}")
        if "failed" in answer:
            found, why, advice = answer["failed"], answer.get("why"), answer.get("next", "")
            if found not in PROPERTIES or not isinstance(why, str) or not isinstance(advice, str):
                raise Broken("out of turn", f"it sent {escaped(repr(answer), 80)}")
            raise Broken(found, escaped(why), escaped(advice))
        return answer

    def _receive(self, seconds: float) -> tuple[Any, list[int]]:
        until = time.monotonic() + seconds
        if self._until < until:
            until, seconds = self._until, self._limits.seconds_in_all
        while True:
            left = until - time.monotonic()
            try:
                return self._channel.receive(max(0.0, min(LOOK_SECONDS, left)))
            except TimedOut:
                self._look()
                if left <= 0:
                    raise Broken("timed out", f"it ran for {seconds:g} s and was ended") from None
            except OutOfTurn as error:
                raise Broken("out of turn", f"it sent {escaped(str(error), 80)}") from None
            except Gone:
                raise self._gone() from None

    def _look(self) -> None:
        """Does it keep to its limits?"""
        running = tree(self._process)
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
        status = self.end()["status"]
        how = "and nobody knows how" if status is None else _how(status)
        return Broken("died", f"the process ended in the middle ({how})")

    def finish(self) -> None:
        """There are no more questions.

        Raises:
            Broken: it leaves something behind.
        """
        self._look_at_the_folder()
        with contextlib.suppress(Gone):
            self._channel.send({"end": True})
        self._wait()
        left = self.end()["left"]
        if left:
            raise Broken(
                "left behind",
                f"{left} process{'es' * (left > 1)} it had started still ran, and had to be ended",
            )

    def _wait(self) -> None:
        """Until it has ended by itself: that closes the connection, where nobody else has kept a copy of its end."""
        until = time.monotonic() + self._limits.seconds
        while time.monotonic() < until and is_running(self._process):
            try:
                self._channel.receive(LOOK_SECONDS)
            except TimedOut:
                continue
            except (Gone, OutOfTurn):
                return

    def end(self) -> dict[str, Any]:
        """End it, if it has not ended; how it did, and how many others were left."""
        if self._ended is None:
            self._ended = self._host.end(self._process)
        return self._ended


class _Printed:
    """Reads what a stranger prints, so that it never waits for a reader; keeps the beginning.

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
    """Bytes that processes have written to, files apart; what several share counts once."""
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
