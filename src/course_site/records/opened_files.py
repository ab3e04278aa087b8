"""The project files that a Python process and its children open, logged while they run.

A hook on Python's own "open" event adds every file under the project's folder to a log, at once: a process that
crashes or is killed has told. A child of that process is watched through one of two doors: the folder that
`door_for_children` makes, first on PYTHONPATH, holds a `sitecustomize.py`; and where a command sets PYTHONPATH anew,
the packages of the course run that file, which COURSE_WATCH names. A child with a clean environment is not seen, nor
is one with `-I` or `-S` that imports no package of the course, nor what is no Python.

The text of this file runs in processes that are measured: it needs nothing but the standard library, and to open a
file outside of the project costs a few comparisons.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

VARIABLE = "COURSE_WATCH"  # the file that a child runs to be watched

_CHILD = """
start({log!r}, {root!r})
if __name__ == "sitecustomize":
    _hand_on()
"""


def start(log: str | os.PathLike[str], root: str | os.PathLike[str]) -> None:
    """Watch this process from now on; called again, the log changes and everything is told anew.

    Args:
        log: the file that gets the absolute path of every project file read, each with a zero byte behind it.
        root: the folder of the project.
    """
    # Kept on `sys`, because a child meets this text twice where both doors are open.
    state: dict[str, Any] | None = getattr(sys, "_course_watch", None)
    if state is not None:
        if state["log"] != os.fspath(log):
            state.update(log=os.fspath(log), file=None, seen=set())
        return
    state = {"log": os.fspath(log), "file": None, "seen": set()}
    sys._course_watch = state  # type: ignore[attr-defined]
    folder = os.path.realpath(root) + os.sep
    installed = {os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix)}
    inside = tuple(
        prefix for prefix in installed if prefix.startswith(folder)
    )  # an environment in the project
    outside = tuple(installed.difference(inside))
    writes = os.O_WRONLY | os.O_RDWR

    def watch(event: str, arguments: Any) -> None:
        if event != "open":
            return
        path, mode, flags = arguments
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or path.startswith(inside):
            return
        if not path.startswith(folder) and path.startswith(outside) and not sys.pycache_prefix:
            return
        if (set(mode) & set("wax+")) if mode else (flags & writes):
            return
        try:
            if path.endswith(".pyc"):
                path = importlib.util.source_from_cache(path)
            path = os.path.realpath(path)
        except (ValueError, OSError):  # a .pyc that has no source, a folder that is gone
            return
        if path.startswith(folder):
            _tell(state, path)

    # What was loaded before, the package among it whose import led here.
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        path = os.path.realpath(file) if isinstance(file, str) else ""
        if path.startswith(folder) and not path.startswith(inside):
            _tell(state, path)
    sys.addaudithook(watch)


def _tell(state: dict[str, Any], path: str) -> None:
    if path in state["seen"]:
        return
    state["seen"].add(path)
    # The number is kept, so that telling opens nothing; in a child that closed all it may be another file's.
    if state["file"] is None or not _is_still(*state["file"]):
        number = os.open(state["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        state["file"] = number, os.fstat(number)
    os.write(state["file"][0], os.fsencode(path) + b"\0")


def _is_still(number: int, was: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(number), was)
    except OSError:
        return False


def _hand_on() -> None:
    """Run the `sitecustomize` that this one stands before, if the machine has its own."""
    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def door_for_children(folder: Path, log: Path, root: Path) -> dict[str, str]:
    """Write what children are watched with into ``folder``; the environment they need, PYTHONPATH as a prefix.

    Returns:
        {"PYTHONPATH": the folder, COURSE_WATCH: the file in it}; what else PYTHONPATH holds goes behind it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "sitecustomize.py"
    text = Path(__file__).read_text(encoding="utf-8") + _CHILD.format(log=str(log), root=str(root))
    file.write_text(text, encoding="utf-8")
    return {"PYTHONPATH": str(folder), VARIABLE: str(file)}


def read(log: Path) -> list[str]:
    """Return the files a log names, absolute paths, each once, sorted; none where nothing was told."""
    try:
        told = log.read_bytes()
    except FileNotFoundError:
        return []
    return sorted({os.fsdecode(path) for path in told.split(b"\0") if path})
