"""Machine code of a `Subject`, for the page on it: what compiles and reads it.

Started as a process of its own, as it runs a student's file: it reads a request and writes an answer, as files.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from course_judge.worker.error_report import report
from course_kernels.cuda.compile import CompileError
from course_kernels.cuda.headers import CudaMissingError
from course_kernels.cuda.includes import texts_of
from course_kernels.line_info import compile_with_lines, ptx_lines, sass_lines
from course_kernels.measure.errors import Refused
from course_kernels.rungs import Compiled, NotInstalled
from course_profile.errors import Unusable
from course_profile.machine_code import Kernel
from course_profile.occupancy import resources
from course_profile.subject import LIBRARY, ROOT, Subject

WITHOUT_A_CARD = "sm_90a"  # the card that this course is measured on
BELIEVED = (
    "no GPU: compiled for sm_90a as an H100 would launch it, and not run; an autotuned kernel takes its first "
    "configuration"
)
NO_TORCH = "this machine has a GPU, but torch cannot use it; CUDA_VISIBLE_DEVICES=-1 compiles without it"
NO_PTX = "its compiler shows no PTX"


def main(request: Path, answer: Path) -> int:
    """Do what is asked; write to `answer` how it went."""
    asked = json.loads(request.read_text())
    subject = Subject.from_json(asked["subject"])
    try:
        told = code(subject, on_the_card=bool(asked["gpu"]))
    except Unusable as error:
        told = {"unusable": str(error)}
    except Refused as refused:
        told = {"refused": str(refused)}
    except BaseException as error:  # exit() included: whatever it is, it was the student's file
        told = {"unusable": f"{subject.file.name}: {report(error, subject.file).why}"}
    temporary = answer.with_suffix(".part")
    temporary.write_text(json.dumps(told))
    os.replace(temporary, answer)
    return 0


def code(subject: Subject, *, on_the_card: bool) -> dict[str, Any]:
    """Compile a subject and return its kernels, and in a line each what could not be shown.

    Raises:
        Unusable, Refused: it cannot be compiled, or its file is wrong.
    """
    found, missing = _of_cuda(subject, on_the_card) if subject.is_cuda else _of_python(subject, on_the_card)
    if not found:
        raise Unusable(
            f"{subject.file.name}: {subject.function or 'it'} launches no Triton kernel; for a kernel in CUDA C++ "
            "give the .cu itself"
        )
    if not any(kernel.ptx for kernel in found):
        missing.append(NO_PTX)
    return {"kernels": [kernel.as_json() for kernel in found], "missing": missing}


def _of_cuda(subject: Subject, on_the_card: bool) -> tuple[list[Kernel], list[str]]:
    arch = WITHOUT_A_CARD
    if on_the_card:
        import torch

        from course_kernels.cuda.architecture import arch_of

        if not torch.cuda.is_available():
            raise Unusable(NO_TORCH)
        arch = arch_of(torch.cuda.get_device_capability())
    try:
        made = compile_with_lines(subject.file, arch)
    except CompileError as error:
        from course_labs.worker.file import first_error

        raise Refused(f"{subject.file.name} does not compile: {first_error(str(error))}") from None
    except CudaMissingError as error:
        raise Unusable(str(error)) from None
    asks_for_more = any("extern __shared__" in text for text in texts_of(subject.file).values())
    kernels = _kernels(Compiled(made.cubin, made.ptx), arch, asks_for_more)
    return [one for one in kernels if _is_called(one.name, subject.function)] or kernels, []


def _is_called(name: str, function: str) -> bool:
    """Return whether a kernel has a name in C++, where it may be mangled."""
    return not function or name == function or f"{len(function)}{function}" in name


def _of_python(subject: Subject, on_the_card: bool) -> tuple[list[Kernel], list[str]]:
    import torch

    from course_profile import launched
    from course_profile.competitor import competitor_of, problem_of, workload_of

    if on_the_card and not torch.cuda.is_available():
        raise Unusable(NO_TORCH)
    problem = problem_of(subject)
    workload = workload_of(subject, problem)
    launched.ready(on_the_card)
    competitor = competitor_of(subject, problem, workload)
    rung = getattr(competitor.function, "__globals__", {}).get("compiled")
    if callable(rung) and subject.file.is_relative_to(
        ROOT / LIBRARY
    ):  # it knows its compiler, and asks no card
        try:
            kernels = _kernels(rung(workload, WITHOUT_A_CARD), WITHOUT_A_CARD)
        except NotInstalled as error:
            raise Unusable(f"{subject.file.name}: {error}") from None
        return kernels, []
    if on_the_card:
        arch = "sm_{}{}a".format(*torch.cuda.get_device_capability())
        inputs = problem.make_inputs(workload, torch.Generator(device="cuda").manual_seed(1), "cuda")
        with torch.no_grad(), launched.noted(on_the_card) as seen:
            competitor.function(*inputs, **problem.options(workload))
    else:
        arch = WITHOUT_A_CARD
        with torch.no_grad(), launched.noted(on_the_card) as seen, launched.as_on_a_card():
            inputs = problem.make_inputs(workload, None, "cuda")
            competitor.function(*inputs, **problem.options(workload))
    made = list(seen.values())
    kernels = [kernel for one in made for kernel in _kernels(one, arch)]
    return kernels, [] if on_the_card else [BELIEVED]


def _kernels(made: Compiled, arch: str, asks_for_more: bool = False) -> list[Kernel]:
    try:
        sass = sass_lines(made.cubin)
    except (CudaMissingError, ValueError) as error:
        raise Unusable(str(error)) from None
    ptx = ptx_lines(made.ptx)
    found = []
    for name, lines in sass.items():
        room = resources(made.cubin, name)
        found.append(
            Kernel(
                name=name,
                arch=arch,
                registers=room.registers if room else 0,
                shared_bytes=max(made.shared_bytes, room.shared_bytes if room else 0),
                asks_for_more=asks_for_more,
                local_bytes=room.local_bytes if room else 0,
                sass=tuple(lines),
                ptx=tuple(ptx.get(name, ())),
            )
        )
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
