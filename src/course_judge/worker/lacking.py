"""Exceptions that are no fault of the file: it asks for what a machine without a card, or an interpreter, lacks.

It is told by where an exception comes from, and not by its words alone: a file that says the same words has said them
itself.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_judge.protocol.errors import Rejected
from course_judge.worker.error_report import line_of

CARD = "a card"
NOT_JUDGED = "needs a card"
# Where on a disk the code lies that asks for a card.
OF_A_CARD = (
    "/torch/cuda/",
    "/torch/backends/cuda/",
    "/triton/runtime/driver.py",
    "/triton/backends/",
    "/cuda/core/",
    "/cuda/bindings/",
    "/cuda/pathfinder/",
    "/cupy/",
    "/numba/cuda/",
    "/pycuda/",
)
PACKAGES = ("cuda", "cupy", "cutlass", "numba", "pycuda")  # that are of no use without one
INTERPRETER = "/triton/runtime/interpreter.py"
# What the compiled part of torch says, with no frame of its own.
SAID = re.compile(r"compiled with(out)? CUDA|requires CUDA|dummy base class|No CUDA GPUs|no NVIDIA driver")
# A condition on where a tensor lies.
ON_A_CARD = re.compile(r"\bis_cuda\b|cuda\.is_available|\.device\b.*cuda|cuda.*\.device\b|get_device\(\)")
THE_INPUTS = "take the device of an input: device=x.device"


@dataclass(frozen=True)
class Lack:
    """Something that is not here.

    Attributes:
        line: the line of the file that asks for it; None where none is known.
        what: what it asks for.
        instead: what to write in its place; empty where nothing is known.
    """

    line: int | None
    what: str
    instead: str = ""

    @property
    def text(self) -> str:
        """Text that names the line, and what it asks for."""
        return f"{f'line {self.line}' if self.line else 'it'} asks for {self.what}"


class Absent(Exception):
    """Error: a kernel calls a function that the interpreter has by name only."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(what)
        self.what, self.instead = what, instead


@contextlib.contextmanager
def lacking_reported(file: Path, *, apart: bool = False) -> Iterator[None]:
    """Reject a file that asks for what is not here as one that is not judged.

    Args:
        apart: what to write instead is advice, and no part of the reason.
    """
    try:
        yield
    except Exception as error:
        lack = None if isinstance(error, Rejected) else lacking(error, file)
        if lack is None:
            raise
        why = lack.text if apart or not lack.instead else f"{lack.text}; {lack.instead}"
        raise Rejected(NOT_JUDGED, why, lack.instead if apart else "") from None


def lacking(error: BaseException, file: Path) -> Lack | None:
    """Return what an exception says is not here; None where it says nothing of the kind."""
    chain: list[BaseException] = []
    behind: BaseException | None = error
    while behind is not None and len(chain) < 8:
        chain.append(behind)
        behind = behind.__cause__ or behind.__context__
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    line = next(filter(None, (line_of(one, file) for one in chain)), None)
    for one in reversed(chain):  # what it came from says more than what it was wrapped in
        if found := _missing(one, file, text):
            return Lack(line_of(one, file) or line, *found)
    if line and _is_guard(text, line):
        return Lack(line, CARD, "leave that check out")
    return None


def _missing(error: BaseException, file: Path, text: str) -> tuple[str, str] | None:
    """Return what an exception says is not here, and what to write instead."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame.filename.replace("\\", "/") for frame in frames]
    said, last = str(error)[:2000], places[-1] if places else ""
    if isinstance(error, Absent):
        return error.what, error.instead
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in PACKAGES:
        return f"the package {error.name}, which is for a card", ""
    if last.endswith("/torch/utils/cpp_extension.py"):
        return "CUDA's compiler", ""
    if any(place in last for place in OF_A_CARD):
        if "gluon" in text and "active drivers" in said:
            return "Gluon, which Triton's interpreter lacks", ""
        asks = [frame.line or "" for frame in frames if frame.filename == str(file)]
        return CARD, THE_INPUTS if asks and re.search(
            r"torch_device|current_device|device\s*=|\.cuda\(", asks[-1]
        ) else ""
    if (
        isinstance(error, RuntimeError | AssertionError)
        and SAID.search(said)
        and not _is_raised(frames, file)
    ):
        return CARD, ""
    if any(place.endswith(INTERPRETER) for place in places):
        return _of_the_interpreter(error, frames, said, file)
    return None


def _of_the_interpreter(
    error: BaseException, frames: traceback.StackSummary, said: str, file: Path
) -> tuple[str, str] | None:
    """Return what an exception in a kernel says that the interpreter lacks."""
    lacks = "which Triton's interpreter lacks"
    functions = {frame.name for frame in frames}
    if isinstance(error, NotImplementedError) and frames[-1].filename.endswith(INTERPRETER):
        return f"{said.split(' not supported')[0].replace('_', ' ').replace('asm', 'assembly')}, {lacks}", ""
    if "dot_scaled" in functions:
        return f"tl.dot_scaled, {lacks}", ""
    # What it makes has such a name; grid_idx, which it has not, is of a kernel that was called without a grid.
    if made := re.search(r"'InterpreterBuilder' object has no attribute '(?:create_|get_)(\w+)'", said):
        return f"{made[1]}, {lacks}", ""
    if "Unsupported data type" in said and any(name.startswith("create_atomic") for name in functions):
        return f"an atomic on numbers of this type, {lacks}", ""
    if "`_semantic` argument must be provided" in said and frames[-1].filename != str(file):
        return f"a function of triton.language.extra, {lacks}", ""
    if (
        isinstance(error, AttributeError)
        and "has no attribute 'to'" in said
        and frames[-1].filename == str(file)
    ):
        return f"`.to` of a constant, {lacks}", "write the constant as it is"
    return None


def _is_raised(frames: traceback.StackSummary, file: Path) -> bool:
    """Return True for an exception that the file raises itself."""
    last = frames[-1] if frames else None
    return last is not None and last.filename == str(file) and (last.line or "").startswith("raise")


def _is_guard(text: str, line: int) -> bool:
    """Return True for a line of an assert, a raise or a check that only tensors on a card get past."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        asked: ast.AST | None = None
        if isinstance(node, ast.Assert) or (
            isinstance(node, ast.If)
            and any(
                isinstance(one, ast.Raise) and one.lineno <= line <= (one.end_lineno or 0)
                for one in [*node.body, *node.orelse]
            )
        ):
            asked = node.test
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
            asked = node.value.args[0] if "_check" in ast.unparse(node.value.func) else None
        if asked is not None and ON_A_CARD.search(ast.unparse(asked)):
            return True
    return False


def absent_functions() -> list[tuple[Any, str, Any]]:
    """Functions of libdevice, which the interpreter has by name and which do nothing: each with one that says so."""
    import triton.language as tl
    from triton.language.extra import libdevice

    def absent(name: str) -> Any:
        instead = (
            f"tl.math has {name}" if hasattr(tl.math, name) else "tl.math has erf, exp, log, sqrt and others"
        )

        @functools.wraps(getattr(libdevice, name))
        def function(*_: Any, **__: Any) -> Any:
            raise Absent("libdevice, which Triton's interpreter lacks", instead)

        return function

    names = [
        name for name in vars(libdevice) if not name.startswith("_") and callable(getattr(libdevice, name))
    ]
    return [(libdevice, name, absent(name)) for name in names]
