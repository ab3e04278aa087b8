"""Run a mishap in a child process, alone or under a tool, and hand back what was said.

A GPU error stays with the process that made it until that process ends, so the one who asks must be another.
Several children run at once: nothing here is timed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from course_kernels.error_demos.cases import BEGUN, CASES, HERE

SANITIZER = "compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
ABSENT = (
    f"{SANITIZER}: not on PATH: it comes with the CUDA toolkit, in its folder bin; "
    "see https://docs.nvidia.com/compute-sanitizer"
)
SOURCES = HERE.parents[1]
START_S = 120  # for loading, before a case's own time limit begins to count
AT_ONCE = max(2, min(8, (os.cpu_count() or 2) // 2))  # children; loading torch keeps two cores busy
RULER = "========="  # begins every line of the sanitizer
QUIET = ("--show-backtrace", "no", "--print-limit", "1")
# Python's own libraries ask the driver for things it may not have; each "no" would count as an error.
API_ERRORS = {"memcheck": ("--report-api-errors", "no")}


@dataclass(frozen=True)
class Run:
    """A run: a case, wrong or mended, alone or under one of `TOOLS`.

    Attributes:
        case: a name in `CASES`.
        tool: one of `TOOLS`, or "" for none.
        mended: the right kernel instead of the wrong one.
        blocking: CUDA_LAUNCH_BLOCKING=1, so that every launch waits for its kernel.
        own_memory: PYTORCH_NO_CUDA_MEMORY_CACHING=1, so that every tensor is an allocation of its own.
        limit_s: seconds after the case has begun.
    """

    case: str
    tool: str = ""
    mended: bool = False
    blocking: bool = False
    own_memory: bool = False
    limit_s: float = 60.0

    def __post_init__(self) -> None:
        if self.case not in CASES:
            raise ValueError(f"error_demos: no case {self.case!r}; there are {', '.join(CASES)}")
        if self.tool and self.tool not in TOOLS:
            raise ValueError(f"error_demos: no tool {self.tool!r}; there are {', '.join(TOOLS)}")

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables that make this run."""
        return {
            **({"CUDA_LAUNCH_BLOCKING": "1"} if self.blocking else {}),
            **({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if self.own_memory else {}),
        }

    @property
    def command(self) -> str:
        """The line for a terminal, in the folder of the course, that does the same."""
        words = ["PYTHONPATH=src", *(f"{name}={value}" for name, value in self.settings.items())]
        if self.tool:
            words += [SANITIZER, "--tool", self.tool, *QUIET, *API_ERRORS.get(self.tool, ())]
        words += ["python -m course_kernels.error_demos", self.case, *(["--mended"] if self.mended else [])]
        return " ".join(words)


@dataclass(frozen=True)
class Outcome:
    """Output of a child, and how it ended.

    Attributes:
        said: what the program printed, trimmed; see `trim`.
        tool_said: what the tool printed: its first finding and its count, trimmed; "" without a tool.
        status: the exit status; negative for the number of the signal that ended it.
        timed_out: it was ended at its time limit.
        seconds: from start to end.
    """

    said: str
    tool_said: str
    status: int
    timed_out: bool
    seconds: float


def show(case: str, tool: str = "", **how: bool | float) -> None:
    """Print what one run said, or its tool; waits for it if it has begun, begins it if it has not.

    Args:
        case, tool, how: as in `Run`.
    Raises:
        ValueError: no such case or tool.
        RuntimeError: the case itself failed, before its mishap could happen; the message is what it said.
    """
    run = Run(case, tool, **how)  # type: ignore[arg-type]
    outcome = play(run)
    if outcome.status == 1 and not tool:
        raise RuntimeError(f"error_demos: {case}: {outcome.said}")
    print(broken((outcome.tool_said or f"{SANITIZER} said nothing") if tool else outcome.said))
    if outcome.timed_out:
        print(f"(no end after {run.limit_s:g} s: ended from outside)")
    elif outcome.status and not tool:
        print(f"(exit status {outcome.status})")


def play(run: Run) -> Outcome:
    """Return the outcome of a run; the same run is made once in the life of this process."""
    begin(run)
    return _begun[run].result()


def begin(*runs: Run) -> None:
    """Start runs in the background, `AT_ONCE` at a time, for `play` and `show` to pick up."""
    for run in runs:
        if run not in _begun:
            _begun[run] = _workers.submit(execute, run)


_begun: dict[Run, Future[Outcome]] = {}
_workers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mishap")


def execute(run: Run) -> Outcome:
    """Make one run now, in a child process of its own."""
    tool = shutil.which(SANITIZER) if run.tool else None
    if run.tool and tool is None:
        return Outcome("", ABSENT, 0, False, 0.0)
    # Read here too: a page's record lists the files that its own process opened.
    for source in [*sorted(HERE.glob("*.cu")), HERE / "__main__.py"]:
        source.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="course-mishap-") as folder:
        begun, said, tool_said = (Path(folder, name) for name in ("begun", "said", "tool_said"))
        command = [sys.executable, "-m", "course_kernels.error_demos", run.case]
        command += [*(["--mended"] if run.mended else []), "--limit", str(int(START_S + run.limit_s))]
        if tool:
            command = [
                tool,
                "--tool",
                run.tool,
                *QUIET,
                *API_ERRORS.get(run.tool, ()),
                "--log-file",
                str(tool_said),
                *command,
            ]
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        paths = [str(SOURCES), environment.get("PYTHONPATH", "")]
        environment |= run.settings
        environment |= {BEGUN: str(begun), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        started = time.monotonic()
        status, timed_out = watch(command, environment, said, begun, run.limit_s)
        return Outcome(
            trim(said.read_text(encoding="utf-8", errors="replace")),
            trim(first_finding(_text(tool_said))) if tool else "",
            status,
            timed_out,
            time.monotonic() - started,
        )


def watch(
    command: Sequence[str], environment: dict[str, str], said: Path, begun: Path, limit_s: float
) -> tuple[int, bool]:
    """Run a command with its output in a file; end it and its children when its time is up.

    Args:
        command, environment: as for subprocess.
        said: the file for both output streams.
        begun: the file whose appearance starts the clock; `START_S` until then.
        limit_s: seconds from there.
    Returns:
        The exit status, and whether it had to be ended.
    """
    with open(said, "wb") as output:
        child = subprocess.Popen(
            list(command),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a group of its own, so that a tool's child ends with the tool
        )
    deadline, counting = time.monotonic() + START_S, False
    try:
        while child.poll() is None:
            if not counting and begun.exists():
                deadline, counting = time.monotonic() + limit_s, True
            if time.monotonic() > deadline:
                return _end(child), True
            time.sleep(0.02)
    finally:
        if child.poll() is None:
            _end(child)
    return child.returncode, False


def _end(child: subprocess.Popen[bytes]) -> int:
    os.killpg(child.pid, signal.SIGKILL)
    return child.wait()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


# --- what a tool printed, made readable ---------------------------------------------------------


def first_finding(output: str) -> str:
    """Return of compute-sanitizer's output its title, its first finding, and its count of all.

    Every line of it begins with a ruler. A finding is a line and the indented lines under it; the calls of
    the host program that led to it are left out, since for Python they are the interpreter's own.
    """
    kept: list[str] = []
    found = 0
    for line in output.splitlines():
        words = line.removeprefix(RULER)
        if words == line or not words.strip():
            continue
        indented = words.startswith("  ")
        if words.strip() == "COMPUTE-SANITIZER" or ("SUMMARY:" in words and "not printed" not in words):
            kept.append(line)
            continue
        found += not indented
        if found == 1 and not HOST_CALLS.search(words):
            kept.append(line)
    return "\n".join(kept)


HOST_CALLS = re.compile(r"Saved host backtrace|Host Frame|^\s+in \S+\.so")


def broken(text: str, width: int = 84) -> str:
    """Return text whose long lines are broken between words, the rest set in by four; a ruler begins each part."""
    lines = []
    for line in text.splitlines():
        head = re.match(rf"(?:{RULER})?\s*", line)[0]  # type: ignore[index]
        lines += textwrap.wrap(
            line, width, subsequent_indent=f"{head}    ", break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


def trim(text: str) -> str:
    """Return text without what differs from machine to machine: folders, addresses, offsets in machine code."""
    for folder in (HERE, SOURCES, Path(sys.prefix)):
        text = text.replace(f"{folder}/", "")
    text = re.sub(r"(?<![\w.:/])/(?:[\w.+-]+/)+(?=[\w.+-])", "", text)
    text = re.sub(r"0x[0-9a-fA-F]+", "0x…", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
