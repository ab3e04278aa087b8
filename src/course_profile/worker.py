"""The process that runs a student's file: checks it, times it, and makes the one call that the profiler looks at.

`look` needs no profiler; `call` is started by ncu. Both read a request and write an answer, as files. A request may
hold several kernels: to load torch takes longer than most of what is asked here.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_judge.worker.card_arithmetic import as_on_a_card
from course_judge.worker.error_report import report
from course_judge.worker.lacking import lacking
from course_kernels.measure.check import Check, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.measure.errors import Refused
from course_kernels.problem import Problem, Workload
from course_profile.competitor import competitor_of, problem_of, workload_of
from course_profile.errors import Unusable
from course_profile.occupancy import resources
from course_profile.subject import Subject

WITHOUT_A_CARD = "sm_90a"  # what a `.cu` is compiled for: the card that this course is measured on


def main(verb: str, request: Path, answer: Path) -> int:
    """Do what is asked; write to `answer` how it went."""
    asked = json.loads(request.read_text())
    told: dict[str, Any] = {"each": []}
    subjects = [Subject.from_json(one) for one in asked["subjects"]]
    for subject in subjects:
        try:
            told["each"].append(VERBS[verb](subject, asked))
        except Unusable as error:
            told = {"unusable": str(error)}
        except Refused as refused:
            told = {"refused": str(refused)}
        except BaseException as error:  # exit() included: whatever it is, it was the student's file
            told = {"unusable": f"{subject.file.name}: {report(error, subject.file).why}"}
        if "each" not in told:
            break
    temporary = answer.with_suffix(".part")
    temporary.write_text(json.dumps(told))
    os.replace(temporary, answer)
    return 0


def look(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    """Look at all that needs no profiler.

    Returns:
        problem and workload with their least costs; launch (grid, block, shared bytes) and resources of a `.cu`;
        on a card gpu, sms and a measurement; without one, on which sizes the answer is right.
    """
    import torch

    on_the_card = bool(asked["gpu"])
    if on_the_card and not torch.cuda.is_available():
        raise Unusable(
            "this machine has a GPU, but torch cannot use it; CUDA_VISIBLE_DEVICES=-1 profiles without"
        )
    problem = problem_of(subject)
    workload = workload_of(subject, problem)
    told: dict[str, Any] = {
        "formula": problem.formula,
        "workload": workload.as_json(),
        "reads_bytes": int(problem.reads_bytes(workload)),
        "writes_bytes": int(problem.writes_bytes(workload)),
        "flops": int(problem.flops(workload)),
        "math": problem.math(workload),
        "allowed": float(problem.max_error(workload)),
    }
    if subject.is_cuda:
        told |= _of_cuda(subject, problem, workload, on_the_card)
    if on_the_card:
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        told |= {"gpu": torch.cuda.get_device_name(), "sms": properties.multi_processor_count}
        competitor = competitor_of(subject, problem, workload)
        told["measurement"] = _timed(competitor, workload, asked["seconds"])
        told["host_us"] = _ordered(competitor, workload)
    elif not subject.is_cuda:
        try:
            told["right_on"] = _checked(subject, problem)
        except (Refused, Unusable):
            raise
        except Exception as error:
            lack = lacking(error, subject.file)
            told["not_run" if lack else "crashed"] = lack.text if lack else report(error, subject.file).why
    return told


def _timed(competitor: Competitor, workload: Workload, seconds: float) -> dict[str, Any]:
    from course_kernels.measure import SensorsUnavailable, measure

    try:
        return measure(competitor, workload, seconds=seconds).as_json()
    except SensorsUnavailable as error:
        raise Unusable(str(error)) from None


CALLS = (
    8  # in a row, without a wait: few enough that the card's queue does not fill, and the host waits for it
)


def _ordered(competitor: Competitor, workload: Workload) -> float:
    """Cost of one call for the host, in microseconds, while the card is busy with the one before."""
    import torch

    from course_kernels.measure import stopwatch

    inputs = competitor.problem.make_inputs(workload, torch.Generator(device="cuda").manual_seed(1), "cuda")
    options = competitor.problem.options(workload)

    def calls() -> None:
        for _ in range(CALLS):
            competitor.function(*inputs, **options)

    with torch.no_grad():
        return float(stopwatch({"it": calls}, n=20, per=CALLS, wait=False)["it"].quantiles["0.5"])


def _checked(subject: Subject, problem: Problem) -> list[str]:
    """Sizes on which a `.py` is right without a card."""
    import torch

    from course_judge.hidden_sizes import small

    arithmetic: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if os.environ.get("TRITON_INTERPRET") == "1":
        with contextlib.suppress(ImportError):
            from course_judge.worker.interpreter import take_the_first_configuration

            take_the_first_configuration()
            arithmetic = as_on_a_card()
    sizes = small(problem)
    with torch.no_grad(), arithmetic:
        for workload in sizes:
            competitor = competitor_of(subject, problem, workload)
            Check({"it": competitor}, workload, 0, "cpu").before()
    return [workload.label for workload in sizes]


def _of_cuda(subject: Subject, problem: Problem, workload: Workload, on_the_card: bool) -> dict[str, Any]:
    """Compiled resources of a `.cu`, and its launch."""
    import torch

    from course_kernels.cuda.architecture import arch_of
    from course_kernels.cuda.compile import CompileError, compile_cubin
    from course_kernels.cuda.headers import CudaMissingError

    arch = arch_of(torch.cuda.get_device_capability()) if on_the_card else WITHOUT_A_CARD
    try:
        found = resources(compile_cubin(subject.file, arch), subject.function)
    except CompileError as error:
        raise Refused(f"{subject.file.name} does not compile: {_first_error(str(error))}") from None
    except CudaMissingError as error:
        if on_the_card:
            raise Unusable(str(error)) from None
        return {"launch": _launch(subject, problem, workload), "not_compiled": str(error)}
    told = {"arch": arch, "launch": _launch(subject, problem, workload)}
    if found:
        told["resources"] = [found.registers, found.shared_bytes, found.local_bytes]
    return told


def _first_error(log: str) -> str:
    from course_labs.worker.file import first_error

    return first_error(log)


def _launch(subject: Subject, problem: Problem, workload: Workload) -> list[Any] | None:
    """Grid, block and dynamic shared memory of its first launch; None where inputs without memory do not do."""
    seen: list[Any] = []

    def starts(grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
        seen.append([_three(grid), _three(block), int(shared_bytes)])

    competitor = competitor_of(subject, problem, workload, starts)
    try:
        inputs = _without_memory(subject, problem, workload)
    except Exception:  # a problem whose inputs are more than random numbers
        return None
    competitor.function(*inputs, **problem.options(workload))
    return seen[0] if seen else None


def _without_memory(subject: Subject, problem: Problem, workload: Workload) -> list[Any]:
    """Return inputs that hold nothing; small ones, where a table says the sizes and their shapes do not count."""
    import torch

    if subject.launcher or not subject.problem:
        return list(problem.make_inputs(workload, None, "meta"))
    small = min(problem.check_on, key=problem.reads_bytes)
    return [x.to("meta") for x in problem.make_inputs(small, torch.Generator().manual_seed(0), "cpu")]


def _three(size: Any) -> list[int]:
    parts = list(size) if isinstance(size, tuple | list) else [size]
    return [int(part) for part in (*parts, 1, 1)[:3]]


def call(subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
    """Make one call behind a marker, for the profiler, on inputs like those that the answer was checked on."""
    import torch

    from course_kernels.measure.marker import mark

    problem = problem_of(subject)
    workload = workload_of(subject, problem)
    competitor = competitor_of(subject, problem, workload)
    checked_error(competitor, workload)  # and everything is compiled and warm after it
    torch.cuda.empty_cache()
    number = torch.zeros(1, dtype=torch.int32, device="cuda")
    mark(number)
    inputs = problem.make_inputs(workload, torch.Generator(device="cuda").manual_seed(1), "cuda")
    with torch.no_grad():
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        mark(number)
        result = competitor.function(*inputs, **problem.options(workload))
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
    del result
    return {"done": True}


VERBS: dict[str, Callable[[Subject, dict[str, Any]], dict[str, Any]]] = {"look": look, "call": call}

if __name__ == "__main__":
    sys.stdout = sys.stderr  # ncu writes its table to the same standard output
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
