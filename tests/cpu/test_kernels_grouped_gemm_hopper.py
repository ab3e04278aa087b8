"""The grouped multiply on Hopper's own instructions, on the CPU's stand-in: right, planted faults, machine code."""

import re
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.grouped_gemm import k02_promoted
from course_kernels.grouped_gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept


def full_of_nan(*size, **how):
    return torch.full(size[0] if isinstance(size[0], tuple) else size, float("nan"), **how)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(*inputs, text=..., out=...) -> the product, its memory full of NaN before."""
    built = {}

    def run(*inputs, text=None, **options):
        def prepare(path, name, **how):
            key = text, str(how)
            if key not in built:
                built[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return built[key]

        k02_promoted._prepared.cache_clear()
        k02_promoted._multiprocessors.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
            patch.setattr(k02_promoted, "prepare", prepare)
            patch.setattr(k02_promoted, "tensor_map", tensor_map)
            patch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
            patch.setattr(
                torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=5)
            )
            patch.setattr(torch, "empty", full_of_nan)
            return k02_promoted.grouped_gemm(*inputs, **options)

    return run


def inputs(G, M, N, K, **flags):
    w = Workload.of("bfloat16", G=G, M=M, N=N, K=K, **flags)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


SIZES = [
    (1, 1, 8, 128, False),
    (3, 131, 72, 384, False),  # an empty group, one row, and a tile that has two rows
    (4, 260, 392, 256, False),  # more pairs of tiles than clusters
    (1, 4, 16, 128, True),
    (4, 33, 392, 256, True),
    (2, 193, 200, 640, True),  # three tiles of a group: 128 rows, then 64
]


@pytest.mark.parametrize(("G", "M", "N", "K", "masked"), SIZES)
def test_the_product_is_right(run, G, M, N, K, masked):
    w, tensors = inputs(G, M, N, K, masked=masked)

    assert k02_promoted.supports(w)
    error = worst_error(run(*tensors), PROBLEM.reference(*tensors), rows_apart=True)
    print(error)
    assert error <= 2.0**-8
