"""The command behind ``nox -s worker``: one process for each GPU of this machine, for the coordinator at an address.

``nox -s worker -- tcp://127.0.0.1:8786`` or ``-- tls://HOST:8786 --tls FOLDER`` waits for a coordinator there, runs
pages and GPU tests of the tree that it is started in until the coordinator is done, and ends. A coordinator that is
lost is waited for again. Exit codes: 0 done, 2 refused or cannot start, 3 no coordinator came, 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import course_site
from course_site.records.environments import with_source
from course_site.records.fleet.address import Address, read_address
from course_site.records.fleet.processes import PROCESS, end_with_parent, kill_marked
from course_site.records.fleet.settings import WAIT_S
from course_site.records.gpus import Gpu, GpuUnusable, find_gpus, one_model
from course_site.records.plan import CannotStart

RESTARTS = 3  # of a worker that died: what kills more than that is wrong with the machine
POLL_S = 0.2


def main(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run the command with the options after ``--``; returns the exit code."""
    options = _parse(arguments)
    root = (root or Path.cwd()).resolve()
    try:
        address = read_address(options.address, options.tls)
        gpus = one_model(find_gpus(), said_by="worker")
        if not gpus:
            raise CannotStart("there is no GPU here: a worker has one")
        _require()
        if options.device:
            from course_site.records.fleet.serve import serve

            return serve(root, address, gpus, options.device, options.stand, options.wait)
        return _Stand(root, address, gpus[: options.gpus], options).run()
    except (CannotStart, GpuUnusable) as error:
        print(f"worker: {error}", file=sys.stderr)
        return 2


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s worker --", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add(
        "address",
        metavar="ADDRESS",
        help="where the coordinator listens: tcp://127.0.0.1:PORT, tls://HOST:PORT",
    )
    add("--tls", type=Path, metavar="FOLDER", help="folder with ca.pem, cert.pem and key.pem, for tls://")
    add("--gpus", type=int, metavar="N", help="use the first N GPUs of this machine (default: all)")
    add("--wait", type=float, default=WAIT_S, metavar="S", help="seconds to wait for the coordinator (600)")
    # Of a worker's own processes, and of whoever starts them.
    add("--stand", default="", help=argparse.SUPPRESS)
    add("--device", default="", help=argparse.SUPPRESS)
    # What dask-jobqueue adds to every command; --tls says more than its three, and one GPU is one thread.
    for name in ("name", "nthreads", "memory-limit", "protocol", "tls-ca-file", "tls-cert", "tls-key"):
        add(f"--{name}", help=argparse.SUPPRESS)
    add("--death-timeout", dest="wait", type=float, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.gpus is not None and options.gpus < 1:
        parser.error("--gpus must be at least 1")
    if not options.wait >= 0:
        parser.error("--wait must be 0 or more seconds")
    return options


def _require() -> None:
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError:
        raise CannotStart("missing packages: distributed: `pip install distributed`") from None


@dataclass
class _Child:
    gpu: Gpu
    process: subprocess.Popen[bytes]
    tag: str
    started_again: int = 0


class _Stand:
    """The workers of this machine's GPUs: started, started again when they die, ended together."""

    def __init__(
        self, root: Path, address: Address, gpus: Sequence[Gpu], options: argparse.Namespace
    ) -> None:
        self.root, self.address, self.gpus, self.options = root, address, gpus, options
        self.of_a_coordinator = bool(options.stand)
        self.stand = options.stand or uuid.uuid4().hex[:12]
        self.children: list[_Child] = []
        self.asked = 0  # the signal that asks to end

    def run(self) -> int:
        """Serve until all workers have ended; the worst of their exit codes."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        if self.of_a_coordinator:
            end_with_parent()
        codes: list[int] = []
        try:
            for gpu in self.gpus:
                self.children.append(self._start(gpu))
            while self.children and not self.asked:
                time.sleep(POLL_S)
                for child in list(self.children):
                    code = child.process.poll()
                    if code is None:
                        continue
                    self.children.remove(child)
                    kill_marked(child.tag)
                    if code in (0, 2, 3):
                        codes.append(code)
                    elif child.started_again < RESTARTS:
                        print(f"worker: GPU {child.gpu.index}: {_ended(code)}: started again", flush=True)
                        again = self._start(child.gpu)
                        again.started_again = child.started_again + 1
                        self.children.append(again)
                    else:
                        print(f"worker: GPU {child.gpu.index}: {_ended(code)}: given up", file=sys.stderr)
                        codes.append(1)
        finally:
            self._end()
        return 128 + self.asked if self.asked else max(codes, default=0)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.asked = number

    def _start(self, gpu: Gpu) -> _Child:
        tag = uuid.uuid4().hex
        package = str(Path(course_site.__file__).parents[1])  # the course itself, where the tree is a test's
        environment = with_source(self.root, os.environ) | {PROCESS: tag}
        environment["PYTHONPATH"] += os.pathsep + package
        command = [
            *(sys.executable, "-m", "course_site", "worker", str(self.address)),
            *(("--tls", str(self.address.tls)) if self.address.tls else ()),
            *("--stand", self.stand, "--device", gpu.visible, "--wait", str(self.options.wait)),
        ]
        # A session of its own: Ctrl-C reaches this process, which ends them in order.
        process = subprocess.Popen(command, cwd=self.root, env=environment, start_new_session=True)
        return _Child(gpu, process, tag)

    def _end(self) -> None:
        for child in self.children:
            child.process.terminate()
        until = time.monotonic() + 10
        for child in self.children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(max(0.0, until - time.monotonic()))
            if child.process.poll() is None:
                child.process.kill()
                child.process.wait()
            kill_marked(child.tag)


def _ended(code: int) -> str:
    return (
        f"its worker was ended by {signal.Signals(-code).name}"
        if code < 0
        else f"its worker ended with {code}"
    )
