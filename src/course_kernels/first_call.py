"""Time of a kernel's first call, compiler included, in a process that has compiled nothing yet.

python -m course_kernels.first_call gemm/in_tilelang dtype=bfloat16,M=4096,N=4096,K=4096

`all_timed` has two processes for each kernel: a cold one, for which every compiler's cache is an empty folder, and a
warm one, which finds what the cold one kept. All start together, and wait; then one at a time makes its call while the
others sleep, so that none is slow for what its neighbour compiles. Every cold call is made before the first warm one.
Neither process writes Python's bytecode: it would be in the cold time alone. Import a language once before you ask
for its time, so that its bytecode is there, and its files are in the host's memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Timer

from course_kernels.problem import Workload

# Where each compiler keeps what it made; what else one keeps lies below the home folder, which is moved as well.
CACHES = (
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TILELANG_CACHE_DIR",
    "CUTE_DSL_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "COURSE_CACHE_DIR",
)
LIMIT_SECONDS = 300.0
WAIT = "--wait"  # make the call when a line comes in
READY, TOOK = "first_call: ready", "first_call: seconds "


class NoFirstCall(RuntimeError):
    """Error: the call failed, or took too long; the message is one line."""


@dataclass(frozen=True)
class FirstCall:
    """Seconds of a kernel's first call in a process of its own.

    Attributes:
        cold_s: with no cache of any compiler; the import of the kernel and its language is part of it.
        warm_s: the same in a second process, with what the first one kept; the import is part of it, too.
    """

    cold_s: float
    warm_s: float


def prepared(kernel: str, workload: Workload) -> Callable[[], float]:
    """Return what imports a kernel and calls it once on this process's GPU: seconds by the wall clock.

    Args:
        kernel: folder and file, such as "gemm/in_tilelang".
        workload: what it is called on; the inputs lie on the card before the clock starts.
    """
    import torch

    problem = import_module(f"course_kernels.{kernel.partition('/')[0]}.problem").PROBLEM
    inputs = problem.make_inputs(workload, torch.Generator("cuda").manual_seed(0), "cuda")
    torch.cuda.synchronize()

    def call() -> float:
        began = time.perf_counter()
        module = import_module("course_kernels." + kernel.replace("/", "."))
        getattr(module, problem.name)(*inputs, **problem.options(workload))
        torch.cuda.synchronize()
        return time.perf_counter() - began

    return call


def all_timed(kernels: Mapping[str, str], workload: Workload) -> dict[str, FirstCall]:
    """Return the seconds of several kernels' first calls by name, without and with what compilers keep on disk.

    Raises:
        NoFirstCall: one failed, or took longer than LIMIT_SECONDS to start or to call.
    """
    with tempfile.TemporaryDirectory(prefix="first-call-") as folder:
        homes = {name: Path(folder, str(number)) for number, name in enumerate(kernels)}
        for home in homes.values():
            home.mkdir()
        cold, warm = (_in_turn(kernels, workload, homes) for _ in range(2))
    return {name: FirstCall(cold[name], warm[name]) for name in kernels}


def _in_turn(kernels: Mapping[str, str], workload: Workload, homes: Mapping[str, Path]) -> dict[str, float]:
    """Return the seconds of one call of each kernel: all processes are ready before the first begins."""
    with ExitStack() as running:
        waiting = {
            name: running.enter_context(_Process(kernel, workload, homes[name]))
            for name, kernel in kernels.items()
        }
        for process in waiting.values():
            process.line(READY)
        return {name: process.seconds() for name, process in waiting.items()}


def _environment(home: Path) -> dict[str, str]:
    caches = {name: str(home / name.lower()) for name in CACHES}
    moved = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **caches, **moved}


def _command(kernel: str, workload: Workload) -> list[str]:
    return [sys.executable, "-m", "course_kernels.first_call", kernel, workload.as_text(), WAIT]


class _Process:
    """One process that waits for its turn; it is ended with the block."""

    def __init__(self, kernel: str, workload: Workload, home: Path) -> None:
        self.kernel, self.log = kernel, home / "log.txt"
        with self.log.open("w") as log:  # a pipe that nobody empties would hold it up
            self.process = subprocess.Popen(
                _command(kernel, workload), env=_environment(home), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def seconds(self) -> float:
        """Give it its turn, and wait until it has ended: what it keeps on disk it may write last."""
        with suppress(BrokenPipeError):  # it has ended: `line` says why
            if self.process.stdin is not None:
                self.process.stdin.write("\n")
                self.process.stdin.flush()
        took = float(self.line(TOOK))
        self.end()
        return took

    def line(self, begins: str) -> str:
        """Return the rest of its next line that begins so; what a language prints besides is passed over.

        Raises:
            NoFirstCall: it ended without one, or took longer than LIMIT_SECONDS.
        """
        found, _ = self._read(begins)
        if found is None:
            raise self._failed()
        return found

    def end(self) -> None:
        """Wait until it has ended.

        Raises:
            NoFirstCall: it did not end well, or not within LIMIT_SECONDS.
        """
        _, code = self._read(None)
        if code:
            raise self._failed()

    def _read(self, begins: str | None) -> tuple[str | None, int | None]:
        """Return the rest of the next line that begins so, or None and the code with which it ended."""
        late: list[bool] = []

        def kill() -> None:
            late.append(True)
            self.process.kill()

        timer = Timer(LIMIT_SECONDS, kill)
        timer.start()
        try:
            for line in self.process.stdout or ():
                if begins is not None and line.startswith(begins):
                    return line.removeprefix(begins).strip(), None
            code = self.process.wait()
        finally:
            timer.cancel()
        if late:
            raise NoFirstCall(f"{self.kernel}: its first call took more than {LIMIT_SECONDS:g} s")
        return None, code

    def _failed(self) -> NoFirstCall:
        said = self.log.read_text(errors="replace").strip().splitlines() or ["it failed without a word"]
        return NoFirstCall(f"{self.kernel}: its first call failed: {said[-1]}")


def main(arguments: Sequence[str]) -> int:
    """Print the seconds of one first call; returns the exit code."""
    if len(arguments) not in (2, 3) or arguments[2:] not in ([], [WAIT]):
        print(
            "first_call: expected a kernel and a workload, such as gemm/k05_triton dtype=bfloat16,M=64,N=64,K=64"
        )
        return 2
    call = prepared(arguments[0], Workload.parse(arguments[1]))
    if arguments[2:]:
        print(READY, flush=True)
        if not sys.stdin.readline():  # whoever waited for it is gone
            return 1
    print(f"{TOOK}{call()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
