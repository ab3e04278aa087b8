"""Triton's kernels of a student's file where no card is: what the interpreter lets pass, and a compiler does not.

As a process of its own it compiles: Triton decides at import whether it interprets or compiles, and does not do both.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import select
import subprocess
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

CAPABILITY = 90  # of the card that is compiled for; none is needed for that
PATIENCE_S = 20
MOST = 8  # launches of one file that are compiled, each other than the rest
NEXT = "inside a kernel only tl. and plain arithmetic of numbers: NumPy's and Python's own functions are not there."


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


class Launches:
    """The kernels that a file launches in the interpreter, and with what; each way once."""

    def __init__(self) -> None:
        from triton.runtime.interpreter import InterpretedFunction

        self.seen: list[dict[str, Any]] = []
        run = InterpretedFunction.run

        def noted(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            result = run(kernel, *args, grid=grid, warmup=warmup, **kwargs)
            launch = _launch(kernel, args, kwargs)
            if launch and launch not in self.seen:
                self.seen.append(launch)
            return result

        InterpretedFunction.run = noted


def _launch(kernel: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """A launch as plain data; None for one with an argument that is neither a tensor nor a plain value."""
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
    return {"kernel": kernel.fn.__name__, "types": types, "constants": constants, "options": options}


def _short(dtype: Any) -> str:
    from triton._utils import type_canonicalisation_dict

    return str(type_canonicalisation_dict[str(dtype).removeprefix("torch.")])


class Compiler:
    """A process that compiles; it loads torch and Triton while the kernels are tried in this one."""

    def __init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "course_labs.kernels"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def refusal(self, file: Path, launches: list[dict[str, Any]]) -> str:
        """What the compiler refuses a file for, with its line; empty where it takes it, or where it does not answer."""
        pipe = self._process
        assert pipe.stdin is not None
        assert pipe.stdout is not None
        try:
            pipe.stdin.write(json.dumps([str(file), launches[:MOST]]).encode() + b"\n")
            pipe.stdin.flush()
            if select.select([pipe.stdout], [], [], PATIENCE_S)[0]:
                return str(json.loads(pipe.stdout.readline() or '""'))
        except (BrokenPipeError, ValueError):
            pass  # it is gone: then nothing was compiled
        return ""


def main() -> int:
    """Answer each line of standard input, a file and its launches, by a line of what is refused."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the student's file prints when it is read has been seen
    import torch  # noqa: F401
    import triton  # noqa: F401

    for line in sys.stdin:
        path, launches = json.loads(line)
        print(json.dumps(_refused(Path(path), launches)), file=answers, flush=True)
    return 0


def _refused(file: Path, launches: list[dict[str, Any]]) -> str:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.errors import CompilationError
    from triton.runtime import JITFunction

    module = ModuleType(f"student_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    code = compile(ast.parse(file.read_bytes(), str(file)), str(file), "exec", dont_inherit=True)
    try:
        exec(code, module.__dict__)
    except BaseException:
        return ""  # it was read without a complaint before: it asks where it runs
    for launch in launches:
        kernel = getattr(module, launch["kernel"], None)
        while kernel is not None and not isinstance(kernel, JITFunction):
            kernel = getattr(kernel, "fn", None)  # inside of triton.autotune
        if kernel is None:
            continue
        places = {(kernel.arg_names.index(name),): value for name, value in launch["constants"].items()}
        source = ASTSource(kernel, launch["types"], places)
        try:
            triton.compile(source, target=GPUTarget("cuda", CAPABILITY, 32), options=launch["options"])
        except CompilationError as error:
            return compiled_said(error, file)
        except Exception:
            continue  # a step behind Triton's own, such as an assembler that is not there
    return ""


def compiled_said(error: BaseException, file: Path) -> str:
    """What Triton's compiler says last, with its line in the file."""
    said = next((part for part in reversed(str(error).splitlines()) if part.strip()), "").strip()
    line = _compiled_line(error, file) or line_of(error, file)
    return f"{f'line {line}: ' if line else ''}{type(error).__name__}{f': {said}' if said else ''}"


def line_of(error: BaseException, file: Path) -> int | None:
    """The line of a file in which an exception came up; None where it did elsewhere."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return frames[-1].lineno if frames else None


def _compiled_line(error: Any, file: Path) -> int | None:
    """The line Triton's compiler stopped at, counted in the file; it counts within the function."""
    source, node = getattr(error, "src", None), getattr(error, "node", None)
    if not source or node is None or not hasattr(node, "lineno"):
        return None
    place = file.read_text(encoding="utf-8").find(source.strip().splitlines()[0])
    if place < 0:
        return None
    return file.read_text(encoding="utf-8").count("\n", 0, place) + node.lineno


if __name__ == "__main__":
    sys.exit(main())
