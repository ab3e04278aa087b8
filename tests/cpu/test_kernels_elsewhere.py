"""Every launcher refuses a tensor on another GPU than the current one, before anything is compiled or started."""

import re
from importlib import import_module

import pytest
import torch
from test_problem_folders import KERNELS, PROBLEMS
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from course_kernels.arguments import check_tensor

SAYS = "expected a tensor on cuda:0, the current GPU, got one on cuda:1: call torch.cuda.set_device(1) first"


@pytest.fixture
def on_gpu(monkeypatch):
    """on_gpu(tensor, number) -> a tensor that says it lies on that GPU; the current one is number 0."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *device: (9, 0))
    monkeypatch.delenv("TRITON_INTERPRET")
    with FakeTensorMode():
        yield lambda x, number: torch.empty(x.shape, dtype=x.dtype, device=f"cuda:{number}")


def smallest(problem, supports):
    return min(filter(supports, problem.check_on), key=lambda w: problem.reads_bytes(w) + problem.flops(w))


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_tensor_on_another_gpu_is_refused(path, on_gpu, monkeypatch):
    name = path.parent.name
    module, problem = import_module(f"course_kernels.{name}.{path.stem}"), PROBLEMS[name]
    w = smallest(problem, getattr(module, "supports", lambda w: True))
    with unset_fake_temporarily():  # some inputs are drawn until they fit, which asks for their values
        inputs = problem.make_inputs(w, None, "cpu")
    here, there = ([on_gpu(x, number) for x in inputs] for number in (0, 1))
    for allocates in (
        "empty",
        "empty_like",
        "zeros",
    ):  # nothing is made, so nothing is compiled or started either
        monkeypatch.setattr(torch, allocates, lambda *how, **more: pytest.fail("not refused"))

    with pytest.raises(ValueError, match=f"^\\w+: {re.escape(SAYS)}$"):
        getattr(module, name)(*there, **problem.options(w))
    if len(inputs) > 1:  # the first one here, the others there
        with pytest.raises(ValueError, match=r"^\w+: expected a tensor on cuda:0, got cuda:1$"):
            getattr(module, name)(here[0], *there[1:], **problem.options(w))


def test_a_tensor_on_the_current_gpu_is_taken(on_gpu):
    sizes = {}
    check_tensor("x", on_gpu(torch.empty(3), 0), "N", sizes, dtypes=(torch.float32,))

    assert sizes == {"N": 3}
