"""``python -m course_profile.code FILE[:function]``: what `nox -s profile -- FILE --code` runs.

A command of its own, as it times nothing and counts nothing: what the profiler says of a card does not depend on it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_kernels.cuda.signature import kernels_of
from course_kernels.measure.artifacts import write
from course_labs.lab import LabError
from course_profile import run, subject
from course_profile.code_page import page
from course_profile.errors import Unusable, Wrong
from course_profile.machine_code import Kernel
from course_profile.subject import Subject

REFUSED, USAGE = 1, 2


def main(arguments: list[str]) -> int:
    """Write the page on a kernel's machine code; the exit code: 0 done, 1 it does not compile, 2 it cannot be shown."""
    parser = argparse.ArgumentParser(
        prog="nox -s profile --",
        description="Write a page with a kernel's source, PTX and SASS in step, beside its file; nothing is timed.",
    )
    parser.add_argument("file", metavar="FILE[:function]", help="a .py or a .cu")
    parser.add_argument("--code", action="store_true", help="asks for this page")
    parser.add_argument("--problem", default="", help="of a .py: what it computes, such as vector_add")
    parser.add_argument("--size", default="", help='of a .py: such as "dtype=float32,N=1000000"')
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    options, others = parser.parse_known_intermixed_args(arguments)
    try:
        if others:
            raise Unusable(f"--code times nothing, and does not go with {others[0]}: run the two one by one")
        asked = take(options.file, options.problem, options.size)
        kernels, missing = machine_code(asked, gpu=options.gpu)
        path = asked.file.with_name(f"{asked.file.stem}_code.html")
        write(path.parent, path.name, page(asked.file, kernels, missing, subject.ROOT))
    except (Unusable, LabError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE
    except Wrong as wrong:
        print(f"refused: {wrong}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return 130
    for kernel in kernels:
        print(_summary(kernel))
    for line in missing:
        print(f"missing: {line}")
    print(f"the code: {path}")
    return 0


def take(text: str, problem: str = "", size: str = "", root: Path = subject.ROOT) -> Subject:
    """Return the kernel behind FILE[:function]; of a `.cu` nobody need say what it computes or how it is launched.

    Raises:
        Unusable: no such file or function; or a `.py`, and nobody says what it computes.
    """
    file, function = subject._split(text)
    beside, names = file.with_suffix(".cu"), subject._defined(file)
    is_launcher = file.suffix == ".py" and beside.is_file() and "compiled" not in names
    if is_launcher and "triton" not in subject._imported(file):
        file, function = beside, ""  # a launcher: the kernel lies beside it
    if file.suffix == ".py":
        return subject.take(text, problem, size, root)
    names = [kernel.name for kernel in kernels_of(file.read_text(encoding="utf-8"))]
    if function and function not in names:
        raise Unusable(f"{file.name} defines no {function}; it has {', '.join(names) or 'none'}")
    if not names:
        raise Unusable(f'{file.name}: no kernel in it; one begins with extern "C" __global__ void')
    return Subject(file=file, function=function, problem="")


def machine_code(asked: Subject, *, gpu: bool) -> tuple[list[Kernel], tuple[str, ...]]:
    """Return the machine code of a subject's kernels, with their lines, and what could not be shown, a line each.

    Raises:
        Unusable: it cannot be compiled here.
        Wrong: the compiler refuses it.
    """
    # Triton's interpreter makes no machine code; and what it keeps of a kernel names the file that had it first.
    variables = {"TRITON_INTERPRET": "0", "TRITON_ALWAYS_COMPILE": "1"}
    told = _ask(asked, gpu, variables | ({} if gpu else {"CUDA_VISIBLE_DEVICES": "-1"}))
    if "refused" in told:
        raise Wrong(told["refused"])
    if "unusable" in told:
        raise Unusable(told["unusable"])
    return [Kernel.from_json(one) for one in told["kernels"]], tuple(told["missing"])


def _ask(asked: Subject, gpu: bool, more: Mapping[str, str]) -> dict[str, Any]:
    """Answer of the process that loads the file and compiles."""
    with tempfile.TemporaryDirectory(prefix="course-code-") as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        request.write_text(json.dumps({"subject": asked.as_json(), "gpu": gpu}))
        path = os.pathsep.join(filter(None, [str(run.SOURCES), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "course_profile.code_worker", str(request), str(answer)]
        try:
            said = run._said_by(command, {**os.environ, **more, "PYTHONPATH": path}, run.LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Unusable(f"{asked.file.name}: it was not compiled within {run.LIMIT_S:.0f} s") from None
        if not answer.exists():
            last = next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
            raise Unusable(f"{asked.file.name}: its process ended in the middle: {last.strip()[:200]}")
        told: dict[str, Any] = json.loads(answer.read_text())
        return told


def _summary(kernel: Kernel) -> str:
    more = " and what its launch asks for" if kernel.asks_for_more else ""
    return (
        f"{kernel.name}: {sum(bool(line.name) for line in kernel.sass)} instructions for {kernel.arch}, "
        f"{kernel.registers} registers, {kernel.shared_bytes} bytes of shared memory{more}, "
        f"{kernel.local_bytes} bytes of local memory"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
