"""The bare reads of FP4's bytes under compute-sanitizer, by the runner of `test_sanitizer.py` in a copy of its own."""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch

from course_kernels.gemv_fp4 import bare_read
from course_kernels.gemv_fp4.problem import PROBLEM
from course_kernels.problem import Workload

GROUPS = ("gemv_fp4",)


def _runner() -> ModuleType:
    spec = spec_from_file_location("sanitizer_of_bare_reads", Path(__file__).with_name("test_sanitizer.py"))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there for their own module
    spec.loader.exec_module(module)
    module.__file__ = __file__
    module.OTHERS.update(BODIES)
    return module


def _wrong_sums(kernel: str) -> float:
    """How many ways of a kernel add up something else than the words, on bytes that no round divides."""
    w = Workload.of("float16", L=2, M=41, K=1280)
    inputs = [x.cuda() for x in PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")]
    due = bare_read.words_of(*inputs)
    ways = [way for way in bare_read.WAYS if way.kernel == kernel]
    found = [bare_read.bare_read(*inputs, way=way).sum(dtype=torch.int64).item() for way in ways]
    return float(sum(sums % 2**32 != due for sums in found))


BODIES = {f"gemv_fp4/{kernel}": partial(_wrong_sums, kernel) for kernel in bare_read.SOURCES}
runner = _runner()


@pytest.mark.parametrize("kernel", BODIES)
@pytest.mark.parametrize("tool", runner.TOOLS)
def test_nothing_is_found(tool, kernel):
    report = runner.run_under(tool, [runner.Call(kernel, "", ())])
    if report.said == runner.ABSENT:
        pytest.fail(runner.ABSENT, pytrace=False)

    assert report.findings == {}
    assert report.ended, report.said
    assert report.ran.get(runner.Call(kernel, ""), torch.inf) < 1, report.said


if __name__ == "__main__":
    sys.exit(runner.main(Path(sys.argv[1])))
