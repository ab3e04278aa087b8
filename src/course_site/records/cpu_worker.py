"""Run the cells of pages that measure nothing, one process each: `python -m course_site.records.cpu_worker < request`.

IPython is loaded once; every page is a fork of that, so that it finds no name and no module of another page. The
course itself is not loaded before the fork: what a page reads of it is watched.

The request is JSON: {"root": the project, "jobs": how many at once, "pages": [{"cells": [source, …], "folder": its
own, "environment": {…}}, …]}. In its folder a page leaves `opened` (see `opened_files`), `cell` (the number of the one
that runs), `log` (what went to the error stream) and `answer`: {"outputs": [[nbformat output, …], …],
"seconds": [s, …], "error": None or [name, value, traceback]}. A process that dies leaves no answer; printed is
{"statuses": [exit status, …]}.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course_site.records import opened_files

_outputs: list[dict[str, Any]] = []  # of the cell that runs


class _Stream(io.TextIOBase):
    """Standard output as a notebook keeps it: what is printed in a row is one output."""

    def write(self, text: str) -> int:
        last = _outputs[-1] if _outputs else {}
        if text and last.get("output_type") == "stream":
            last["text"] += text
        elif text:
            _outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        return len(text)


class _Published(DisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, source: Any = None, **more: Any) -> None:
        _outputs.append({"output_type": "display_data", "data": data, "metadata": metadata or {}})


class _Shown(DisplayHook):
    def __call__(self, result: Any = None) -> None:
        if result is not None:
            data, metadata = self.compute_format_data(result)
            output = {"output_type": "execute_result", "data": data, "metadata": metadata}
            _outputs.append({**output, "execution_count": None})


class _Shell(InteractiveShell):
    def _showtraceback(self, *what: Any) -> None:
        """Print nothing: the error is in the answer, nobody reads it here."""


def main() -> None:
    """Run the pages of the request on standard input."""
    request = json.load(sys.stdin)
    quiet = Config()
    quiet.HistoryManager.enabled = False
    quiet.InteractiveShell.colors = "nocolor"
    shell = _Shell.instance(config=quiet, displayhook_class=_Shown, display_pub_class=_Published)
    statuses = [0] * len(request["pages"])
    running: dict[int, int] = {}
    for number, page in enumerate(request["pages"]):
        if len(running) >= request["jobs"]:
            _wait(running, statuses)
        process = os.fork()
        if not process:
            _run(shell, page, request["root"])
        running[process] = number
    while running:
        _wait(running, statuses)
    print(json.dumps({"statuses": statuses}))


def _wait(running: dict[int, int], statuses: list[int]) -> None:
    process, status = os.wait()
    if process in running:
        statuses[running.pop(process)] = os.waitstatus_to_exitcode(status)


def _run(shell: InteractiveShell, page: dict[str, Any], root: str) -> None:
    code = 1
    try:
        os.chdir(page["folder"])
        log = os.open("log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)  # what a child of the page prints is no output of the page
        os.dup2(log, 2)
        os.environ.update(page["environment"])
        opened_files.start(os.path.abspath("opened"), root)
        folder = Path.cwd()
        os.chdir(root)
        answer = _answer(shell, page["cells"], folder / "cell")
        (folder / "part").write_text(json.dumps(answer), encoding="utf-8")
        os.replace(folder / "part", folder / "answer")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _answer(shell: InteractiveShell, cells: list[str], place: Path) -> dict[str, Any]:
    outputs, seconds, error = [], [], None
    sys.stdout = _Stream()
    for number, source in enumerate(cells, start=1):
        place.write_text(str(number), encoding="utf-8")
        _outputs.clear()
        start = time.monotonic()
        result = shell.run_cell(source)
        seconds.append(time.monotonic() - start)
        outputs.append(list(_outputs))
        raised = result.error_before_exec or result.error_in_exec
        if raised is not None:
            lines = traceback.format_exception(raised)
            error = [type(raised).__name__, str(raised), "".join(lines)]
            break
    return {"outputs": outputs, "seconds": seconds, "error": error}


if __name__ == "__main__":
    main()
