"""A kernel of Triton with a fault: a copy of its file, in which one piece of text is another, interpreted."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Problem, Workload


def planted(folder: Path, module: ModuleType, right: str, wrong: str) -> ModuleType:
    """The module with `wrong` in the place of `right`, which stands in it once. Triton reads the copy in `folder`."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert text.count(right) == 1, f"{right!r} stands {text.count(right)} times in {module.__file__}"
    name = f"planted_{module.__name__.rpartition('.')[2]}"
    path = folder / f"{name}.py"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    copy = module_from_spec(spec)
    sys.modules[name] = copy  # where dataclasses and Triton look for it
    spec.loader.exec_module(copy)
    return copy


def seen(problem: Problem, function: object, *workloads: Workload) -> str:
    """What the check says of a faulty function on the first workload where it says anything."""
    for w in workloads:
        try:
            checked_error(Competitor("a fault", problem, function), w, device="cpu")  # type: ignore[arg-type]
        except WrongResult as wrong:
            return wrong.why
    return pytest.fail("the check saw nothing")
