"""Run one page on one GPU and make its record.

The page runs in a Python process of its own (a Jupyter kernel over Unix sockets: no network, not even the
loopback). Two cells are added around it and leave no trace in the record: the first watches which project
files are opened, the last hands back that list and the provenance. The first error ends the page.
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
from pathlib import Path
from typing import Any

from course_site.digest import file_digest
from course_site.gpus import Gpu
from course_site.lint import lint_output
from course_site.pages import Cell, Page
from course_site.record import MIME, Record, build_record

REPORT = "application/vnd.course.report+json"

# What is derived after the samples exist, and so never makes a page stale.
DERIVED_FOLDER = "src/course_site/"
DERIVED_FILES = frozenset(
    f"src/course_kernels/measure/{name}.py"
    for name in ("__init__", "derive", "machine", "roofline", "provenance")
)
# Never sources: build products, caches, environments, records.
NOT_SOURCES = frozenset({"site", "build", "wheelhouse", "records"})

FIRST_CELL = """
def _course_first():
    import os, sys, types
    opened, join, isabs, getcwd = set(), os.path.join, os.path.isabs, os.getcwd
    writing = os.O_WRONLY | os.O_RDWR
    def watch(event, arguments):
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            if isinstance(path, str) and not (set(mode) & set("wax+") if mode else flags & writing):
                opened.add(path if isabs(path) else join(getcwd(), path))
    source = {source!r}
    if source in sys.path:
        sys.path.remove(source)
    sys.path.insert(0, source)
    sys.addaudithook(watch)
    module = types.ModuleType("_course_watch")
    module.opened = opened
    sys.modules[module.__name__] = module
_course_first()
del _course_first
"""

LAST_CELL = """
def _course_last():
    import os, sys
    from IPython.display import display
    files = set(sys.modules["_course_watch"].opened)
    for module in list(sys.modules.values()):
        try:
            file = vars(module).get("__file__")
        except TypeError:
            continue
        if isinstance(file, str):
            files.add(os.path.abspath(file))
    counters = sys.modules.get("course_kernels.measure.counters")
    if counters is not None:
        files.update(os.path.abspath(os.path.join({root!r}, file)) for file in counters.child_files())
    provenance = None
    if {real!r}:
        from course_kernels.measure.provenance import provenance as describe
        provenance = describe()
    display({{{mime!r}: {{"files": sorted(files), "provenance": provenance}}}}, raw=True)
_course_last()
"""


class PageFailed(RuntimeError):
    """A page that did not run to its end: str() is one line; ``detail`` is the tail of what it printed."""

    def __init__(self, line: str, detail: str = "") -> None:
        super().__init__(line)
        self.detail = detail


@dataclass
class Progress:
    """Where a running page is; the page itself updates it."""

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
        FIRST_CELL.format(source=str(root / "src")),
        *(cell.source for cell in page.code),
        LAST_CELL.format(root=str(root), real=real, mime=REPORT),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in source])
    seconds = await _run(page, root, notebook, state, progress)
    report = next(
        output["data"][REPORT] for output in notebook.cells[-1].outputs if REPORT in output.get("data", {})
    )
    outputs = [_published(cell.outputs) for cell in notebook.cells[1:-1]]
    for number, cell_outputs in enumerate(outputs, start=1):
        _refuse_typed_numbers(page, number, cell_outputs)
    files = project_files(report["files"], root, page)
    for file in files:
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
    provenance = {**provenance, **revision(root, [page.path.as_posix(), *files])}
    try:
        return build_record(
            page, outputs, seconds, {file: file_digest(root / file) for file in files}, provenance
        )
    except ValueError as error:
        raise PageFailed(f"{page.path}: {error}") from error


async def _run(
    page: Page,
    root: Path,
    notebook: Any,
    state: Progress,
    progress: Callable[[Progress], None] | None,
) -> list[float]:
    """Execute the cells of ``notebook`` in place; the seconds of every cell of the page."""
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
                raise _cell_failed(page, index, state.gpu, error) from None
            except (DeadKernelError, RuntimeError) as error:
                task = asyncio.current_task()
                if (
                    task is not None and task.cancelling()
                ):  # nbclient takes a cancelled task for a dead kernel
                    raise asyncio.CancelledError from None
                status = await manager.provisioner.poll() if manager.provisioner else None
                log.flush()
                raise _process_died(page, state, status, error, scratch / "log") from None
            finally:
                await _end(client, manager)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return seconds


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
    """A folder for sockets; their path must stay under 108 bytes, which a long TMPDIR breaks."""
    folder = tempfile.mkdtemp(prefix="course-")
    if len(folder) > 80:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="course-", dir="/tmp")
    return folder


def _environment(root: Path, gpu: Gpu, scratch: Path) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    paths = [str(root / "src"), environment.get("PYTHONPATH", "")]
    return environment | {
        "CUDA_VISIBLE_DEVICES": gpu.visible,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "IPYTHONDIR": str(scratch / "ipython"),  # nobody's start-up files take part in a measurement
        "JUPYTER_RUNTIME_DIR": str(scratch),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _cell_failed(page: Page, index: int, gpu: Gpu, error: Any) -> PageFailed:
    name, value = error.ename, _plain(error.evalue).strip()
    first = (value.splitlines() or [""])[0]
    if not 0 < index <= len(page.code):
        where = f"{page.path}: {'before its first' if index == 0 else 'after its last'} cell"
    else:
        where = f"{page.path}: {_place(index, page.code)}"
    detail = "\n".join(_plain(error.traceback).splitlines()[-25:])
    if name in ("OutOfMemoryError", "MemoryError") or "out of memory" in value.lower():
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


def _process_died(page: Page, state: Progress, status: int | None, error: Exception, log: Path) -> PageFailed:
    where = f"{page.path}: {_place(state.cell, page.code)}" if state.cell else f"{page.path}"
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


def _published(outputs: Iterable[Any]) -> list[dict[str, Any]]:
    """The outputs a record keeps: all but the error stream, without execution counts."""
    kept = []
    for output in json.loads(json.dumps(list(outputs))):
        if output["output_type"] == "stream" and output["name"] == "stderr":
            continue
        if "execution_count" in output:
            output["execution_count"] = None
        kept.append(output)
    return kept


def _refuse_typed_numbers(page: Page, number: int, outputs: list[dict[str, Any]]) -> None:
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


def project_files(files: Iterable[str], root: Path, page: Page) -> list[str]:
    """Of ``files`` (absolute paths) the sources of this project that make a page stale, repository-relative.

    Left out: what is derived after the samples exist, the page itself (its cells are hashed one by one),
    caches and build products, anything hidden, anything that no longer exists.
    """
    found = set()
    for file in files:
        path = Path(os.path.realpath(file))
        if not path.is_relative_to(root) or not path.is_file():
            continue
        relative = path.relative_to(root)
        name = relative.as_posix()
        hidden = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
        if (
            hidden
            or relative.parts[0] in NOT_SOURCES
            or name.startswith(DERIVED_FOLDER)
            or name in DERIVED_FILES
            or relative == page.path
        ):
            continue
        if path.suffix in (".pyc", ".so") or "site-packages" in relative.parts:
            continue
        found.add(name)
    return sorted(found)


def fake_provenance(gpu: Gpu) -> dict[str, Any]:
    """What stands in for a GPU's provenance where COURSE_FAKE_GPUS made the GPU up."""
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
    git = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
    if (root / ".git").exists() and shutil.which("git"):
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        status = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=all", "--", *files],
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


def blob_id(path: Path) -> str:
    """The name git gives a file's content, without git."""
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
