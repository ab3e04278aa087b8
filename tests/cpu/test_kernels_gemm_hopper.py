"""The GEMM ladder on Hopper, on the CPU's stand-in: right at every edge, faults are seen, the SASS is Hopper's."""

import re
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import (
    by_tma,
    k06_tma,
    k07_wide,
    k08_roles,
    k09_registers,
    k10_persistent,
    k11_cluster,
    k12_stored,
)
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

RUNGS = [k06_tma, k07_wide, k08_roles, k09_registers, k10_persistent, k11_cluster, k12_stored]
# Less than a tile and than a step; ragged tiles each way, and more steps than stages.
SIZES = [(1, 8, 8), (130, 264, 328)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(function, a, b, text=...) -> a @ b, its memory full of NaN before."""
    built = {}

    def run(function, a, b, text=None):
        def prepare(path, name, **how):
            key = name, text, str(sorted(how.items(), key=str))
            if key not in built:
                built[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return built[key]

        by_tma._prepared.cache_clear()
        by_tma.multiprocessors.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
            patch.setattr(by_tma, "prepare", prepare)
            patch.setattr(by_tma, "tensor_map", tensor_map)
            patch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
            patch.setattr(
                torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=3)
            )
            patch.setattr(torch, "empty", lambda *size, **how: torch.full(*size, float("nan"), **how))
            return function(a, b)

    return run


def inputs(M, N, K, dtype="bfloat16"):
    w = Workload.of(dtype, M=M, N=N, K=K)
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


def error_of(c, a, b):
    return worst_error(c, PROBLEM.reference(a, b))


def name_of(x):
    return x.__name__.rpartition(".")[2] if hasattr(x, "__name__") else None


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize("kernel", RUNGS, ids=name_of)
def test_a_rung_is_right(run, kernel, M, N, K):
    assert kernel.supports(Workload.of("bfloat16", M=M, N=N, K=K))
    a, b = inputs(M, N, K)

    assert error_of(run(kernel.gemm, a, b), a, b) <= 2.0**-8
