"""Pages that measure nothing: executed as part of the build, on any machine, without torch and without a GPU.

Their records lie in .cache/executed/ and in no repository. One is used again while it is fresh, just as the record of
a page that measures; and executed again, too, when a file of the course is new or gone, for a page may list folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from course_site.pages.page import Page
from course_site.records import opened_files, renames
from course_site.records.digest import file_digest
from course_site.records.execute import PageFailed, cell_failed, process_died, published, refuse_typed_numbers
from course_site.records.manifest import project_files
from course_site.records.record import Record, RecordError, build_record, stale_reasons

FOLDER = Path(".cache") / "executed"
SOURCES = ("src/course_kernels", "src/course_models", "src/course_judge", "src/course_labs", "labs")


def computed(pages: Sequence[Page], root: Path) -> dict[str, Record | PageFailed]:
    """Return the record of every page, by its id, or why it has none; only what is not fresh is executed."""
    root = root.resolve()
    known = _listing(root)
    found: dict[str, Record | PageFailed] = {}
    for page in pages:
        with contextlib.suppress(RecordError):
            record = Record.load(_cached(root, page))
            if record.meta["provenance"].get("listing") == known and not stale_reasons(page, record, root):
                found[page.id] = record
    left = [page for page in pages if page.id not in found]
    return found | (_execute(left, root, known) if left else {})


def _cached(root: Path, page: Page) -> Path:
    return root / FOLDER / page.path.with_suffix(".ipynb")


def _listing(root: Path) -> str:
    """Return a hash of which files the course has."""
    names = []
    for folder, folders, files in (step for source in SOURCES for step in os.walk(root / source)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        names += [os.path.join(folder, name).removeprefix(str(root)) for name in sorted(files)]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def _execute(pages: list[Page], root: Path, known: str) -> dict[str, Record | PageFailed]:
    scratch = Path(tempfile.mkdtemp(prefix="course-"))
    began = time.time()
    try:
        places = [scratch / str(number) for number in range(len(pages))]
        request = {
            "root": str(root),
            "jobs": os.cpu_count() or 1,
            "pages": [_request(page, root, place) for page, place in zip(pages, places, strict=True)],
        }
        done = subprocess.run(
            [sys.executable, "--check-hash-based-pycs", "always", "-m", "course_site.records.cpu_worker"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            cwd=root,
            env=_environment(root, scratch),
        )
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["it failed without a word"])[-1]
            return {page.id: PageFailed(f"{page.path}: cannot be executed: {why}") for page in pages}
        statuses = json.loads(done.stdout.splitlines()[-1])["statuses"]
        found: dict[str, Record | PageFailed] = {}
        for page, place, status in zip(pages, places, statuses, strict=True):
            try:
                found[page.id] = _record(page, root, place, status, known, began)
            except PageFailed as error:
                found[page.id] = error
        return found
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _request(page: Page, root: Path, place: Path) -> dict[str, Any]:
    watched = opened_files.door_for_children(place / "watch", place / "opened", root)
    watched["PYTHONPATH"] = os.pathsep.join([watched["PYTHONPATH"], str(root / "src")])
    return {
        "cells": [cell.source for cell in page.code],
        "folder": str(place),
        "environment": watched,
    }


def _environment(root: Path, scratch: Path) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    ours = str(Path(__file__).resolve().parents[2])
    paths = [str(root / "src"), ours, environment.get("PYTHONPATH", "")]
    return environment | {
        "CUDA_VISIBLE_DEVICES": "-1",  # what measures nothing is the same with a GPU
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONSAFEPATH": "1",
        "IPYTHONDIR": str(scratch / "ipython"),
    }


def _record(page: Page, root: Path, place: Path, status: int, known: str, began: float) -> Record:
    try:
        answer = json.loads((place / "answer").read_text(encoding="utf-8"))
    except FileNotFoundError:
        begun = place / "cell"
        last = int(begun.read_text(encoding="utf-8")) if begun.exists() else 0
        raise process_died(page, last, status, place / "log") from None
    if answer["error"]:
        raise cell_failed(page, len(answer["outputs"]), None, *answer["error"])
    outputs = [published(cell) for cell in answer["outputs"]]
    for number, cell in enumerate(outputs, start=1):
        refuse_typed_numbers(page, number, cell)
    try:
        files = project_files(opened_files.read(place / "opened"), root, page)
        manifest = {file: file_digest(root, file) for file in files}
        names = renames.load(root)
        record = build_record(page, outputs, answer["seconds"], manifest, _provenance(known), names=names)
    except ValueError as error:
        raise PageFailed(f"{page.path}: {error}") from error
    read = [root / page.path, *(root / file for file in files)]
    if all(file.stat().st_mtime <= began for file in read):  # else it is executed again at the next build
        record.save(_cached(root, page))
    return record


def _provenance(known: str) -> dict[str, Any]:
    """Provenance as of a page that measures, without what only a GPU has; the commit is the site's."""
    nothing = ("gpu", "slug", "driver", "cuda", "torch", "triton", "commit")
    return dict.fromkeys(nothing) | {
        "count": 0,
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "dirty": False,
        "listing": known,
    }
