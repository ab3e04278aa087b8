"""Compilation of a student's Triton kernels without a card: it refuses what the interpreter lets pass.

Triton decides at import whether it interprets or compiles, and does not do both: so a second process compiles.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course_judge.protocol.messages import Question, Start
from course_judge.worker.connection import Connection
from course_judge.worker.error_report import compiler_message
from course_judge.worker.forbidden_calls import Watch
from course_judge.worker.load import load
from course_labs.protocol.messages import Compile, Compiled, Launch

CAPABILITY = 90  # of the card that is compiled for; none is needed for that
MOST = 8  # launches of one file that are compiled, each other than the rest


def give_no_names_away() -> None:
    """Have Triton's interpreter keep its own imports to itself.

    Left to itself it puts them into the student's module, and `np` is there without any import.
    """
    from triton.runtime import interpreter

    rewrite = interpreter.FunctionRewriter._compile_and_exec
    if rewrite.__module__ == __name__:
        return

    def rewritten(self: Any, transformed: Any) -> Any:
        names = self.fn.__globals__
        before = set(names)
        try:
            return rewrite(self, transformed)
        finally:
            for name in set(names) - before - {"interpreter_semantic"}:  # the rewritten kernel calls this one
                del names[name]

    interpreter.FunctionRewriter._compile_and_exec = rewritten


class LaunchLog:
    """The kernels that a file launches in the interpreter, and with what; each way once."""

    def __init__(self) -> None:
        from triton.runtime.interpreter import InterpretedFunction

        self.seen: list[Launch] = []
        run = InterpretedFunction.run

        def noted(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            result = run(kernel, *args, grid=grid, warmup=warmup, **kwargs)
            launch = _launch(kernel, args, kwargs)
            if launch and launch not in self.seen:
                self.seen.append(launch)
            return result

        InterpretedFunction.run = noted


def _launch(kernel: Any, args: Any, kwargs: dict[str, Any]) -> Launch | None:
    """Return a launch as plain data; None for one with an argument that is neither a tensor nor a plain value."""
    from triton.runtime.jit import _normalize_ty

    own = {name: value for name, value in kwargs.items() if name in kernel.arg_names}
    types, constants = {}, {}
    for name, value in inspect.getcallargs(kernel.fn, *args, **own).items():
        constant = _normalize_ty(kernel.fn.__annotations__.get(name, "")) == "constexpr" or value is None
        if not constant and hasattr(value, "data_ptr"):
            types[name] = f"*{_short(value.dtype)}"
        elif constant and isinstance(value, int | float | str | None):
            types[name], constants[name] = "constexpr", value
        elif not isinstance(value, int | float):
            return None
        elif isinstance(value, bool):
            types[name] = "u1"
        else:
            types[name] = "fp32" if isinstance(value, float) else "i32" if abs(value) < 2**31 else "i64"
    options = {name: value for name, value in kwargs.items() if name in ("num_warps", "num_stages")}
    return Launch(kernel.fn.__name__, types, constants, options)


def _short(dtype: Any) -> str:
    from triton._utils import type_canonicalisation_dict

    return str(type_canonicalisation_dict[str(dtype).removeprefix("torch.")])


class Worker:
    """Worker that compiles a file's kernels for a card that is not here, in a process where Triton compiles."""

    asks: tuple[type[Question[Any]], ...] = (Compile,)

    def __init__(self, task: Start, connection: Connection) -> None:
        self._file = Path(task.file)
        self.watch: Watch | None = None

    def load(self) -> None:
        """Do nothing: the file is read when it is asked for."""

    def answer(self, question: Compile, files: Sequence[int]) -> Compiled:
        """Complaint of the compiler about the launches of a file, with its line; empty if it takes them."""
        return Compiled(_refused(self._file, question.launches[:MOST]))


def _refused(file: Path, launches: Sequence[Launch]) -> str:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.errors import CompilationError
    from triton.runtime import JITFunction

    try:
        module = load(file)
    except BaseException:
        return ""  # it was read without a complaint before: it asks where it runs
    for launch in launches:
        kernel = getattr(module, launch.kernel, None)
        while kernel is not None and not isinstance(kernel, JITFunction):
            kernel = getattr(kernel, "fn", None)  # inside of triton.autotune
        if kernel is None:
            continue
        places = {(kernel.arg_names.index(name),): value for name, value in launch.constants.items()}
        source = ASTSource(kernel, launch.types, places)
        try:
            triton.compile(source, target=GPUTarget("cuda", CAPABILITY, 32), options=launch.options)
        except CompilationError as error:
            return compiler_message(error, file)
        except Exception:
            continue  # a step behind Triton's own, such as an assembler that is not there
    return ""
