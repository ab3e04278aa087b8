"""Competitor made of a `Subject`, to be checked, timed and counted. Only ever in a process of its own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_judge.protocol.errors import Rejected
from course_judge.worker.load import load as load_python
from course_kernels.cuda.signature import Kernel, kernels_of
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import MATHS, Problem, Workload
from course_labs.lab import load_file
from course_labs.worker.file import constants_of
from course_profile.errors import Unusable
from course_profile.formula import value
from course_profile.subject import Subject

# What starts a kernel: (grid, block, *arguments, shared_bytes=0).
Starts = Callable[..., None]
MATH_OF = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def problem_of(subject: Subject) -> Problem:
    """Problem that it must compute.

    Raises:
        Unusable: its table does not fit together.
    """
    if subject.problem:
        found: Problem = importlib.import_module(f"course_kernels.{subject.problem}.problem").PROBLEM
        return found
    return _own(subject)


def workload_of(subject: Subject, problem: Problem) -> Workload:
    """Return the size that is profiled.

    Raises:
        Unusable: no such size.
    """
    if not subject.size:
        return problem.time_on[0]
    try:
        workload = Workload.parse(subject.size)
    except (TypeError, ValueError) as error:
        raise Unusable(str(error)) from None
    names = {tuple(w.dims) for w in problem.time_on + problem.check_on}
    if tuple(workload.dims) not in names:
        wanted = " or ".join(", ".join(one) for one in sorted(names))
        raise Unusable(f"size {subject.size!r}: {problem.name} has {wanted}")
    return workload


def competitor_of(
    subject: Subject, problem: Problem, workload: Workload, starts: Starts | None = None
) -> Competitor:
    """Return the kernel, as the house measures one.

    Args:
        workload: what it is called for; a table's formulas are over its sizes.
        starts: what starts a `.cu`; without it the card does.
    Raises:
        Unusable: it cannot be loaded.
    """
    if not subject.is_cuda:
        try:
            function = getattr(load_python(subject.file), subject.function, None)
        except Rejected as error:
            raise Unusable(f"{subject.file.name}: {error}") from None
        if not callable(function):
            raise Unusable(f"{subject.file.name} defines no function {subject.function}")
        return Competitor(subject.name, problem, function)
    starts = starts or _on_the_card(subject)
    if subject.launcher:
        return Competitor(subject.name, problem, _as_the_lab(subject, starts))
    return Competitor(subject.name, problem, _as_the_table(subject, problem, workload, starts))


def _on_the_card(subject: Subject) -> Starts:
    from course_kernels.cuda.launch import launch, load_kernel
    from course_kernels.cuda.shared_memory import allow_shared_memory

    def starts(grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
        kernel = load_kernel(subject.file, subject.function)
        if shared_bytes > 48 * 1024:
            allow_shared_memory(kernel, shared_bytes)
        launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)

    return starts


def _as_the_lab(subject: Subject, starts: Starts) -> Callable[..., Any]:
    starts.constants = constants_of(subject.file)  # type: ignore[attr-defined]
    launcher = load_file(Path(subject.launcher), "lab_launch")

    def function(*inputs: Any, **options: Any) -> Any:
        return launcher.launch(starts, *inputs, **options)

    return function


# --- a kernel whose table says how it is launched -----------------------------------------------


def _as_the_table(
    subject: Subject, problem: Problem, workload: Workload, starts: Starts
) -> Callable[..., Any]:
    # All that can be worked out is worked out here: what a call costs the host is measured.
    table, sizes = subject.table, _dims(workload)
    where = f'["{subject.file.name}"]'

    def values(key: str) -> tuple[int, ...]:
        return tuple(value(part, sizes, f"{where} {key}") for part in table[key])

    grid, block = values("grid"), values("block")
    shapes = [[value(part, sizes, f"{where} outputs") for part in shape] for shape in table["outputs"]]
    shared = value(table.get("shared_bytes", 0), sizes, f"{where} shared_bytes")
    make = torch.zeros if table.get("zero", False) else torch.empty
    kernel = _signature(subject)
    numbers = _numbers(kernel, subject, {**sizes, **problem.options(workload)})

    def function(*inputs: torch.Tensor, **options: Any) -> Any:
        outputs = tuple(make(shape, dtype=inputs[0].dtype, device=inputs[0].device) for shape in shapes)
        tensors = [*inputs, *outputs]
        if len(tensors) != numbers.count(None):
            raise Unusable(
                f"{subject.file.name}: {kernel.name} takes {numbers.count(None)} addresses, and there are "
                f"{len(tensors)} tensors: the inputs, and then the outputs"
            )
        left = iter(tensors)
        arguments = [next(left) if number is None else number for number in numbers]
        starts(grid, block, *arguments, shared_bytes=shared)
        return outputs if len(outputs) > 1 else outputs[0]

    return function


def _signature(subject: Subject) -> Kernel:
    text = subject.file.read_text(encoding="utf-8")
    found = [kernel for kernel in kernels_of(text) if kernel.name == subject.function]
    if not found:
        raise Unusable(f"{subject.file.name} has no kernel {subject.function}")
    return found[-1]


def _numbers(kernel: Kernel, subject: Subject, given: Mapping[str, Any]) -> list[Any]:
    """Return a number for each parameter of a kernel, a size or an option of its name; None for an address."""
    found: list[Any] = []
    for parameter in kernel.parameters:
        if not parameter.pointer and (parameter.name not in given or not hasattr(np, parameter.number)):
            raise Unusable(
                f"{subject.file.name}: {kernel.name}: nothing is called {parameter.name}; there are {', '.join(given)}"
            )
        found.append(None if parameter.pointer else getattr(np, parameter.number)(given[parameter.name]))
    return found


# --- a problem that profile.toml describes ------------------------------------------------------


def _own(subject: Subject) -> Problem:
    table, where = subject.table, f'["{subject.file.name}"]'
    workload = Workload.parse(table["size"])
    file, _, name = table["reference"].partition(":")
    path = subject.file.parent / file
    if not path.is_file() or not name:
        raise Unusable(
            f"{where} reference: expected FILE:function beside the kernel, got {table['reference']!r}"
        )
    truth = getattr(load_python(path), name, None)
    if not callable(truth):
        raise Unusable(f"{where} reference: {file} defines no function {name}")
    math = table.get("math", MATH_OF.get(workload.dtype, "fp32"))
    if math not in MATHS:
        raise Unusable(f"{where} math: expected one of {', '.join(MATHS)}, got {math!r}")

    def numbers(shapes: list[list[Any]], w: Workload) -> int:
        total = 0
        for shape in shapes:
            count = 1
            for part in shape:
                count *= value(part, _dims(w), f"{where} shapes")
            total += count
        return total

    def counted(key: str, shapes: str) -> Callable[[Workload], int]:
        return lambda w: (
            value(table[key], _dims(w), f"{where} {key}")
            if key in table
            else numbers(table[shapes], w) * w.element_bytes
        )

    def make_inputs(w: Workload, generator: Any, device: Any) -> tuple[torch.Tensor, ...]:
        # Where nothing is held, none of the values counts, and this is the one that is quick to begin with.
        draw = torch.rand if device == "meta" else torch.randn
        return tuple(
            draw(
                [value(part, _dims(w), f"{where} inputs") for part in shape],
                generator=generator,
                dtype=w.torch_dtype,
                device=device,
            )
            for shape in table["inputs"]
        )

    return Problem(
        name=subject.function,
        formula=table["reference"],
        make_inputs=make_inputs,
        reference=truth,
        reads_bytes=counted("reads_bytes", "inputs"),
        writes_bytes=counted("writes_bytes", "outputs"),
        flops=lambda w: value(table.get("flops", 0), _dims(w), f"{where} flops"),
        math=lambda w: math,
        max_error=lambda w: table["max_error"],
        check_on=(workload,),
        time_on=(workload,),
        hard=lambda w: (),
    )


def _dims(w: Workload) -> dict[str, int]:
    return {name: int(size) for name, size in w.dims.items()}
