"""Report of what went wrong in a stranger's file: one line, with the line of the file."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path
from typing import Any

from course_judge.protocol.errors import Rejected
from course_judge.protocol.messages import Failed

LONGEST = 2000  # characters


def report(error: BaseException, file: Path) -> Failed:
    """Return the property that failed and why, as a worker tells the judge."""
    if isinstance(error, Rejected):
        return Failed(error.found, str(error), error.next)
    while type(error).__module__.startswith("triton") and error.__cause__ is not None:
        error = error.__cause__  # the interpreter, and the compiler, wrap what happened
    line = line_of(error, file)
    where = f"line {line}: " if line else ""
    if isinstance(error, SystemExit):
        return Failed("died", f"{where}the file ended the process itself: exit({error.code!r})")
    if "CompilationError" in {kind.__name__ for kind in type(error).__mro__}:
        return Failed("crashed", compiler_message(error, file)[:LONGEST])
    said = (str(error).strip().splitlines() or [""])[0].strip()
    what = f"{where}{type(error).__name__}{f': {said}' if said else ''}"
    found = "crashed"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        found = "out of memory"
    elif isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.ENOSPC, errno.EDQUOT):
        found = "out of room"
    return Failed(found, what[:LONGEST])


def line_of(error: BaseException, file: Path) -> int | None:
    """Return the line of a file in which an exception came up; None where it did elsewhere."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return frames[-1].lineno if frames else None


def compiler_message(error: BaseException, file: Path) -> str:
    """Return the last line that Triton's compiler says, with its line in the file."""
    said = next((part for part in reversed(str(error).splitlines()) if part.strip()), "").strip()
    line = _compiled_line(error, file) or line_of(error, file)
    return f"{f'line {line}: ' if line else ''}{type(error).__name__}{f': {said}' if said else ''}"


def _compiled_line(error: Any, file: Path) -> int | None:
    """Return the line Triton's compiler stopped at, counted in the file; it counts within the function."""
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    if not source or node is None or not hasattr(node, "lineno"):
        return None
    text = file.read_text(encoding="utf-8")
    place = text.find(source.strip().splitlines()[0])
    return text.count("\n", 0, place) + node.lineno if place >= 0 else None
