"""A competitor in a measurement: a kernel module, or a function of a module inside a problem folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from course_kernels.problem import Problem

PACKAGE = "course_kernels"


@dataclass(frozen=True)
class Competitor:
    """A way to compute a problem.

    Attributes:
        kernel: kernel id, "attention/k03_flash" or "attention/library.sdpa_flash".
        problem: what it must compute.
        function: called as function(*inputs, **options).
    """

    kernel: str
    problem: Problem
    function: Callable[..., Any]


def competitor_of(thing: Competitor | ModuleType | Callable[..., Any]) -> Competitor:
    """Return the competitor behind a kernel module or a function of a problem folder.

    Raises:
        TypeError: anything else, or a module without the function its problem asks for.
    """
    if isinstance(thing, Competitor):
        return thing
    if not isinstance(thing, ModuleType | FunctionType):
        raise TypeError(
            f"competitor: expected a kernel module or a function of a problem folder, got {thing!r}"
        )
    name = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    parts = name.split(".")
    if parts[0] != PACKAGE or len(parts) < 3:
        raise TypeError(
            f"competitor: {name} is not a module in a problem folder of {PACKAGE}; "
            f"for a function of your own take Competitor(name, PROBLEM, function)"
        )
    problem = _problem_of(".".join(parts[:-1]))
    path = "/".join(parts[1:])
    if isinstance(thing, FunctionType):
        main = thing.__name__ == problem.name
        return Competitor(path if main else f"{path}.{thing.__name__}", problem, thing)
    function = getattr(thing, problem.name, None)
    if not callable(function):
        raise TypeError(f"competitor: {name} has no function {problem.name}(); pass one of its functions")
    return Competitor(path, problem, function)


def competitor_named(kernel: str) -> Competitor:
    """Return the competitor with a kernel id such as "attention/k03_flash" or "attention/library.sdpa_flash".

    Raises:
        ValueError: there is no such module or function.
    """
    path, _, function_name = kernel.partition(".")
    module_name = ".".join([PACKAGE, *path.split("/")])
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and not module_name.startswith(error.name):
            raise  # something the kernel needs is missing, which is another fault
        raise ValueError(f"{kernel}: no file src/{module_name.replace('.', '/')}.py") from None
    if function_name and not hasattr(module, function_name):
        raise ValueError(f"{kernel}: {module_name} has no function {function_name}")
    try:
        return competitor_of(getattr(module, function_name) if function_name else module)
    except TypeError as error:
        raise ValueError(f"{kernel}: {error}") from None


def _problem_of(package: str) -> Problem:
    try:
        return import_module(f"{package}.problem").PROBLEM
    except (ModuleNotFoundError, AttributeError):
        raise TypeError(f"competitor: {package} has no problem.py with a PROBLEM") from None
