"""Run one page on one GPU and make its record.

The page runs in a Python process of its own (a Jupyter kernel over Unix sockets: no network, not even the
loopback), and which project files it and its children open is watched (see `opened_files`). Two cells are added around
it and leave no trace in the record: the first says where to import from, the last hands back the provenance. The first
error ends the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from course_labs.wrong_answers import FOLDER as WRONG
from course_labs.wrong_answers import TABLE as EDITS
from course_site.lint.lint import lint_output
from course_site.pages.page import Cell, Page
from course_site.records import artifacts, opened_files, renames
from course_site.records.digest import file_digest
from course_site.records.environments import environment_on_gpu
from course_site.records.gpus import Gpu
from course_site.records.manifest import project_files
from course_site.records.record import MIME, Record, build_record

REPORT = "application/vnd.course.report+json"

FIRST_CELL = """
def _course_first():
    import os, sys
    # The folder a page runs in is not a place to import from: a file there would shadow a library.
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) not in ({root!r}, {source!r})]
    sys.path.insert(0, {source!r})
_course_first()
del _course_first
"""

LAST_CELL = """
def _course_last():
    from IPython.display import display
    provenance = None
    if {real!r}:
        from course_kernels.measure.provenance import provenance as describe
        provenance = describe()
    display({{{mime!r}: {{"provenance": provenance}}}}, raw=True)
_course_last()
"""


class PageFailed(RuntimeError):
    """A page that did not run to its end: str() is one line; ``detail`` is the tail of what it printed."""

    def __init__(self, line: str, detail: str = "") -> None:
        super().__init__(line)
        self.detail = detail


@dataclass
class Progress:
    """Progress of a running page, which updates it itself."""

    page: Page
    gpu: Gpu
    expected_s: float | None = None
    cell: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the page began."""
        return time.monotonic() - self.started


def execute(page: Page, root: Path, gpu: Gpu, progress: Callable[[Progress], None] | None = None) -> Record:
    """Run a page on one GPU and return its record; nothing is written.

    Raises:
        PageFailed: a cell raised, the process died, the GPU ran out of memory, a performance number was
            printed, or a source file changed while the page ran.
    """
    return asyncio.run(execute_async(page, root, Progress(page, gpu), progress))


async def execute_async(
    page: Page, root: Path, state: Progress, progress: Callable[[Progress], None] | None = None
) -> Record:
    """``execute`` for a caller with an event loop; cancelling it ends the page's process.

    Raises:
        PageFailed: as ``execute``.
    """
    import nbformat

    root = root.resolve()
    began = time.time()
    real = not os.environ.get("COURSE_FAKE_GPUS")
    source = [
        FIRST_CELL.format(root=str(root), source=str(root / "src")),
        *(cell.source for cell in page.code),
        LAST_CELL.format(real=real, mime=REPORT),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in source])
    seconds, opened, files = await _run(page, root, notebook, state, progress)
    report = next(
        output["data"][REPORT] for output in notebook.cells[-1].outputs if REPORT in output.get("data", {})
    )
    outputs = [published(cell.outputs) for cell in notebook.cells[1:-1]]
    for number, cell_outputs in enumerate(outputs, start=1):
        refuse_typed_numbers(page, number, cell_outputs)
    try:
        sources = project_files(opened, root, page)
    except ValueError as error:
        raise PageFailed(f"{page.path}: {error}") from None
    for file in sources:
        if (root / file).stat().st_mtime > began:
            raise PageFailed(f"{page.path}: {file} changed while the page ran: run the page again")
    provenance = report["provenance"] or fake_provenance(state.gpu)
    if provenance["gpu"] is None:
        raise PageFailed(
            f"{page.path}: torch sees no GPU here, the driver does: install a CUDA build of torch"
        )
    if provenance["slug"] != state.gpu.slug:
        raise PageFailed(
            f"{page.path}: ran on {provenance['gpu']}, but GPU {state.gpu.index} is {state.gpu.name}: "
            "is CUDA_DEVICE_ORDER set?"
        )
    provenance = {**provenance, **revision(root, [page.path.as_posix(), *sources])}
    try:
        manifest = {file: file_digest(root, file) for file in sources}
        return build_record(page, outputs, seconds, manifest, provenance, files, renames.load(root))
    except ValueError as error:
        raise PageFailed(f"{page.path}: {error}") from error


async def _run(
    page: Page,
    root: Path,
    notebook: Any,
    state: Progress,
    progress: Callable[[Progress], None] | None,
) -> tuple[list[float], list[str], dict[str, bytes]]:
    """Execute the cells of ``notebook`` in place; the seconds of every cell, the files opened, the artifacts made."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    class ThisPython(KernelSpecManager):
        """Always this interpreter, whatever kernels a user has installed under the name python3."""

        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=argv, display_name="Python 3", language="python", env={}, metadata={})

    silent = logging.getLogger("course_site.kernel")
    silent.addHandler(logging.NullHandler())
    silent.propagate = False
    scratch = Path(_scratch_folder())
    seconds: list[float] = []
    try:
        with (scratch / "log").open("wb") as log:
            manager = AsyncKernelManager(
                kernel_name="python3",
                kernel_spec_manager=ThisPython(),
                transport="ipc",
                connection_file=str(scratch / "k.json"),  # the sockets lie beside it
                log=silent,
            )
            client = NotebookClient(notebook, km=manager, record_timing=False, coalesce_streams=True)
            client.log = silent
            try:
                await client.async_start_new_kernel(
                    cwd=str(root), env=_environment(root, state.gpu, scratch), stdout=log, stderr=log
                )
                await client.async_start_new_kernel_client()
                for index, cell in enumerate(notebook.cells):
                    if 0 < index <= len(page.code):
                        state.cell = index
                        if progress:
                            progress(state)
                    start = time.monotonic()
                    await client.async_execute_cell(cell, index)
                    if 0 < index < len(notebook.cells) - 1:
                        seconds.append(time.monotonic() - start)
            except CellExecutionError as error:
                raise cell_failed(
                    page, index, state.gpu, error.ename, error.evalue, error.traceback
                ) from None
            except (DeadKernelError, RuntimeError) as error:
                task = asyncio.current_task()
                if (
                    task is not None and task.cancelling()
                ):  # nbclient takes a cancelled task for a dead kernel
                    raise asyncio.CancelledError from None
                status = await manager.provisioner.poll() if manager.provisioner else None
                log.flush()
                raise process_died(page, state.cell, status, scratch / "log", error) from None
            finally:
                await _end(client, manager)
        try:
            return seconds, opened_files.read(scratch / "opened"), artifacts.collected(scratch / "artifacts")
        except ValueError as error:
            raise PageFailed(f"{page.path}: {error}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _end(client: Any, manager: Any) -> None:
    """End the page's process and every child of it, now."""
    process = getattr(manager.provisioner, "process", None)
    group = getattr(manager.provisioner, "pgid", None)
    if manager.has_kernel:
        await manager.shutdown_kernel(now=True)
    if group and process is not None and group != os.getpgrp():
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)  # children outlive a process that died by itself
    if client.kc is not None:
        client.kc.stop_channels()


def _scratch_folder() -> str:
    """Return a folder for sockets; their path must stay under 108 bytes, which a long TMPDIR breaks."""
    folder = tempfile.mkdtemp(prefix="course-")
    if len(folder) > 80:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="course-", dir="/tmp")
    return folder


def _environment(root: Path, gpu: Gpu, scratch: Path) -> dict[str, str]:
    environment = environment_on_gpu(root)
    watched = opened_files.door_for_children(scratch / "watch", scratch / "opened", root)
    paths = [watched["PYTHONPATH"], str(root / "src"), environment.get("PYTHONPATH", "")]
    return (
        environment
        | watched
        | {
            "CUDA_VISIBLE_DEVICES": gpu.visible,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "PYTHONSAFEPATH": "1",  # what lies in the folder a child runs in is no library
            "IPYTHONDIR": str(scratch / "ipython"),  # nobody's start-up files take part in a measurement
            "JUPYTER_RUNTIME_DIR": str(scratch),
            artifacts.FOLDER: str(scratch / "artifacts"),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
    )


def cell_failed(page: Page, index: int, gpu: Gpu | None, name: str, value: str, traceback: str) -> PageFailed:
    """Build the error of a page of which a cell raised: the file, the cell and the cause.

    Args:
        index: the cell, from 1; below or above the page's own, a cell around them.
        gpu: the card it ran on, if any.
        name, value, traceback: of what was raised.
    """
    value = _plain(value).strip()
    first = (value.splitlines() or [""])[0]
    if not 0 < index <= len(page.code):
        where = f"{page.path}: {'before its first' if index == 0 else 'after its last'} cell"
    else:
        where = f"{page.path}: {_place(index, page.code)}"
    detail = "\n".join(_plain(traceback).splitlines()[-25:])
    if name in ("OutOfMemoryError", "MemoryError") or "out of memory" in value.lower():
        if gpu is None:
            return PageFailed(f"{where}: out of memory ({name}: {first})", detail)
        of = f"GPU {gpu.index}, {gpu.name}" if name != "MemoryError" else "the machine"
        return PageFailed(
            f"{where}: out of memory ({of}; {gpu.memory_bytes / 2**30:.0f} GiB on the card): "
            f"end other programs that use it, or measure this page on a larger card ({name}: {first})",
            detail,
        )
    if "CUDA error" in value or "CUDA_ERROR" in value:
        first = f"the GPU reports an error, and this page's CUDA context is lost: {first}"
    return PageFailed(f"{where}: {name}: {first}", detail)


def _place(number: int, code: list[Cell]) -> str:
    line = code[number - 1].source.strip().splitlines()[0]
    return f"code cell {number} of {len(code)} (`{line[:60]}`)"


def process_died(
    page: Page, cell: int, status: int | None, log: Path, error: Exception | None = None
) -> PageFailed:
    """Build the error of a page whose process ended.

    Args:
        cell: the cell that ran, from 1; 0 before the first.
        status: its exit status, negative for a signal; None while it lives and does not answer.
        log: what it printed past the notebook.
        error: why nobody listens to it any more.
    """
    where = f"{page.path}: {_place(cell, page.code)}" if cell else f"{page.path}"
    if status is not None and status < 0:
        name = signal.Signals(-status).name
        why = f"its Python process was ended by {name}"
        if name == "SIGKILL":
            why += ": the machine most likely ran out of memory"
        if name in ("SIGABRT", "SIGSEGV"):
            why += ": native code failed, a kernel that crashed the CUDA context for one"
    elif status is not None:
        why = f"its Python process ended by itself with exit code {status}"
    else:
        why = f"its Python process does not answer ({_plain(str(error)).strip().splitlines()[0]})"
    tail = log.read_text(errors="replace").splitlines()[-15:] if log.exists() else []
    return PageFailed(f"{where}: {why}", _plain("\n".join(tail)))


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def published(outputs: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the outputs a record keeps: all but the error stream, without execution counts."""
    kept = []
    for output in json.loads(json.dumps(list(outputs))):
        if output["output_type"] == "stream" and output["name"] == "stderr":
            continue
        if "execution_count" in output:
            output["execution_count"] = None
        kept.append(output)
    return kept


def refuse_typed_numbers(page: Page, number: int, outputs: list[dict[str, Any]]) -> None:
    """Refuse a cell that prints a performance number.

    Raises:
        PageFailed: it does.
    """
    for output in outputs:
        data = output.get("data", {})
        if MIME in data:
            continue
        texts = [output.get("text", "")] + [v for k, v in data.items() if k.startswith("text/")]
        for text in texts:
            for finding in lint_output("".join(text)):
                raise PageFailed(
                    f"{page.path}: {_place(number, page.code)}: prints a performance number, "
                    f"{finding.excerpt!r} ({finding.why}): record it by name and show it from the prose"
                )


def fake_provenance(gpu: Gpu) -> dict[str, Any]:
    """Provenance of a GPU that COURSE_FAKE_GPUS made up."""
    return {
        "gpu": gpu.name,
        "slug": gpu.slug,
        "count": 1,
        "driver": "0.0",
        "cuda": "13.0",
        "torch": "2.11.0",
        "triton": "3.6.0",
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "fake": True,
    }


def revision(root: Path, files: list[str]) -> dict[str, Any]:
    """Commit of the working tree, and whether one of ``files`` differs from it: {"commit", "dirty"}.

    Asked of git; where there is no git, of COURSE_REVISION (a commit; "-dirty" at its end says so) or of
    revision.txt, which ``nox -s wheelhouse`` writes. Where nothing knows: "unknown" and dirty.
    """
    files = sorted({_holder(root, file) for file in files})
    git = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
    if (root / ".git").exists() and shutil.which("git"):
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        status = subprocess.run(
            # What git ignores is in no commit either.
            [*git, "status", "--porcelain", "--untracked-files=all", "--ignored", "--", *files],
            capture_output=True,
            text=True,
        )
        if commit.returncode == 0 and status.returncode == 0:
            return {"commit": commit.stdout.strip(), "dirty": bool(status.stdout.strip())}
    named = os.environ.get("COURSE_REVISION", "").strip()
    if named:
        return {"commit": named.removesuffix("-dirty"), "dirty": named.endswith("-dirty")}
    for place in (root / "revision.txt", root / "wheelhouse" / "revision.txt"):
        if place.is_file():
            first, *lines = place.read_text(encoding="utf-8").splitlines()
            blobs = {path: blob for blob, path in (line.split(" ", 1) for line in lines)}
            dirty = any(blobs.get(file) != blob_id(root / file) for file in files)
            return {"commit": first.strip(), "dirty": dirty}
    return {"commit": "unknown", "dirty": True}


def _holder(root: Path, file: str) -> str:
    """Return the file that holds a lab's wrong answer that is written as an edit; of any other file itself."""
    path = PurePosixPath(file)
    is_edit = path.parent.name == WRONG and not (root / file).exists()
    return (path.parents[1] / EDITS).as_posix() if is_edit else file


def blob_id(path: Path) -> str:
    """Return the name git gives a file's content, without git."""
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
