"""Tasks of a worker: a page, or a group of GPU tests, by its name in the tree that the worker was started in.

`run_task` is the one function that is called here from outside, and its argument is text. It raises nothing: what went
wrong comes back in the parcel, so that no error has to be unpickled anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from course_site.pages.page import Page, PageError, read_page
from course_site.records import gpu_test_records, plan
from course_site.records.environments import environment_on_gpu, with_source
from course_site.records.execute import PageFailed, Progress, execute_async
from course_site.records.fleet.parcel import ARTIFACT, RECORD, Parcel
from course_site.records.gpus import Gpu
from course_site.records.record import Record

TESTS = "tests/gpu/"
TAIL_BYTES = 20_000  # of what the tests of a group say


@dataclass(frozen=True)
class Assignment:
    """Order to a worker.

    Attributes:
        task: path of a page, or "tests/gpu/GROUP".
        attempt: which try of it this is, of all runs of all coordinators.
        process: the worker that it is for; no other runs it, and that one only once.
        kind: "page", "tests", "alone".
        visible: cards of its host that it has to itself, as CUDA_VISIBLE_DEVICES names them.
        beside: how many workers share the host's cores.
    """

    task: str
    attempt: str
    process: str
    kind: str
    visible: tuple[str, ...]
    beside: int = 1

    def as_text(self) -> str:
        """Return it as it is sent."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Assignment:
        """Read what `as_text` wrote."""
        data = json.loads(text)
        return cls(**{**data, "visible": tuple(data["visible"])})


@dataclass
class Here:
    """The worker that this process is."""

    root: Path
    process: str
    gpus: list[Gpu]  # of this machine: other workers may lend theirs
    begun: set[str]


HERE: Here | None = None


async def run_task(text: str) -> bytes:
    """Run what an `Assignment` names, and return its parcel."""
    assignment = Assignment.of_text(text)
    began = time.monotonic()
    try:
        parcel = await _run(assignment)
    except PageFailed as error:
        parcel = _failed(assignment, str(error), error.detail)
    except (plan.CannotStart, PageError, ValueError, OSError) as error:
        parcel = _failed(assignment, f"{assignment.task}: {error}")
    except Exception as error:  # a fault of ours: it costs this task, and is said where it can be read
        line = f"{assignment.task}: {type(error).__name__}: {error}"
        parcel = _failed(assignment, line, traceback.format_exc())
    return replace(parcel, seconds=round(time.monotonic() - began, 3)).pack()


def _failed(assignment: Assignment, line: str, detail: str = "") -> Parcel:
    return Parcel(assignment.task, assignment.attempt, "failed", line=line, detail=detail)


async def _run(assignment: Assignment) -> Parcel:
    here = HERE
    if here is None or here.process != assignment.process:
        # Dask computes a lost result again by itself, wherever it may; where it runs is decided by the coordinator.
        raise ValueError("was sent to another worker than this one: not run")
    if assignment.attempt in here.begun:
        raise ValueError("was begun here before: not run twice")
    here.begun.add(assignment.attempt)
    by_name = {gpu.visible: gpu for gpu in here.gpus}
    if unknown := [name for name in assignment.visible if name not in by_name]:
        raise ValueError(f"there is no GPU {unknown[0]} here; there are {', '.join(by_name)}")
    gpus = [by_name[name] for name in assignment.visible]
    together = replace(gpus[0], visible=",".join(gpu.visible for gpu in gpus))
    if assignment.task.startswith(TESTS):
        return await _tests(here.root, assignment, together)
    page = _page(here.root, assignment.task)
    # Whether counters can be read is asked of the card, which takes seconds.
    if lacking := await asyncio.to_thread(plan.unmet, page, gpus):
        return Parcel(assignment.task, assignment.attempt, "lacking", line=lacking)
    record = await measure_page(here.root, page, together)
    return Parcel(assignment.task, assignment.attempt, "recorded", files=of_record(record))


def _page(root: Path, name: str) -> Page:
    """Read a page by its path in the tree.

    Raises:
        ValueError: it is none: a path that leads out of docs/ and handbook/, or to nothing.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] not in (("docs",), ("handbook",)):
        raise ValueError("is no page of this tree")
    if not (root / path).is_file():
        raise ValueError("is not in this worker's tree")
    return read_page(root / path, root)


async def measure_page(root: Path, page: Page, gpu: Gpu) -> Record:
    """Run a page here.

    Raises:
        PageFailed: it did not run to its end.
    """
    return await execute_async(page, root, Progress(page, gpu))


def of_record(record: Record) -> dict[str, bytes]:
    """Return the files of a page's parcel."""
    text = json.dumps(record.notebook, ensure_ascii=False).encode()
    return {RECORD: text} | {f"{ARTIFACT}{name}": data for name, data in record.files.items()}


async def _tests(root: Path, assignment: Assignment, gpu: Gpu) -> Parcel:
    """Run a group of GPU tests; its record comes back also where some failed."""
    group = assignment.task.removeprefix(TESTS)
    if group not in gpu_test_records.Project(root).groups:
        raise ValueError("is no group of GPU tests of this tree")
    with tempfile.TemporaryDirectory(prefix="course-") as folder:
        cores = os.cpu_count() or 1
        environment = with_source(root, environment_on_gpu(root)) | {
            "CUDA_VISIBLE_DEVICES": gpu.visible,
            "COURSE_RECORDS": folder,
        }
        if (
            assignment.kind != plan.ALONE
        ):  # each would take all cores for an answer that it works out without the card
            environment["OMP_NUM_THREADS"] = str(max(1, cores // assignment.beside))
        code, said = await run_pytest(root, group, environment)
        path = gpu_test_records.record_path(root, gpu.slug, group).relative_to(root / "records")
        file = Path(folder) / path
        files = {RECORD: file.read_bytes()} if file.is_file() else {}
    if code:
        line = f"{assignment.task}: pytest ended with {code}"
        return Parcel(assignment.task, assignment.attempt, "failed", line=line, detail=said, files=files)
    return Parcel(assignment.task, assignment.attempt, "recorded", detail=said, files=files)


async def run_pytest(root: Path, group: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run pytest on one group, in a process group of its own; its exit code, and the end of what it said."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "tests/gpu", "--group", group),
        cwd=root,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = await process.communicate()
    finally:  # also when this worker is told to end
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return process.returncode or 0, said[-TAIL_BYTES:].decode(errors="replace")
