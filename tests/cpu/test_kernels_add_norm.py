"""Add and norm on the CPU, thread by thread: right at every edge, wrong where a fault is planted."""

import re
from math import nan

import pytest
import torch
from cuda_on_cpu import build
from machine_code import stacks

from course_kernels.add_norm import (
    by_rows,
    k01_thread_a_row,
    k02_warp_a_row,
    k03_row_on_chip,
    k04_row_in_registers,
    library,
)
from course_kernels.add_norm.problem import MAX_N, PROBLEM
from course_kernels.cuda.compile import compile_cubin
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

KERNELS = (k01_thread_a_row, k02_warp_a_row, k03_row_on_chip, k04_row_in_registers)
SIZES = ((1, 1), (3, 31), (9, 97), (2, 1000), (130, 5))


def name_of(kernel):
    return kernel.__name__.rpartition(".")[2]


def sized(M, N):
    w = Workload.of("float32", M=M, N=N)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(M * N), "cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(kernel module, inputs, text=...) -> the answer, its memory full of NaN before."""
    built = {}

    def run(module, inputs, text=None):
        def load_kernel(source, name):
            if (name, text) not in built:
                built[name, text] = build(tmp_path_factory.mktemp(name), source, name, None, text)
            return built[name, text]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(by_rows, "load_kernel", load_kernel)
            patch.setattr(by_rows, "allow_shared_memory", lambda *args: None)
            patch.setattr(
                by_rows,
                "launch",
                lambda kernel, grid, block, *args, shared_bytes: kernel(
                    grid, block, *args, shared_bytes=shared_bytes
                ),
            )
            patch.setattr(torch, "empty_like", lambda x: torch.full(x.shape, nan))
            return module.add_norm(*inputs)

    return run


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_every_row_is_right(run, kernel):
    for M, N in SIZES:
        w, inputs = sized(M, N)

        assert worst_error(run(kernel, inputs), PROBLEM.reference(*inputs)) <= PROBLEM.max_error(w)


def test_the_library_is_right():
    w, inputs = sized(9, 97)

    assert worst_error(library.eager(*inputs), PROBLEM.reference(*inputs)) <= PROBLEM.max_error(w)


FAULTS = {
    "no mean is taken off": (k01_thread_a_row, "float mean = sum / N;", "float mean = 0;"),
    "lanes keep their sums": (k02_warp_a_row, "sum_of_warp(sum) / N", "sum / N"),
    "no barrier": (k03_row_on_chip, "__syncthreads();", ""),
    "one room for both sums": (
        k03_row_on_chip,
        "sum_of_block(squared, parts[1])",
        "sum_of_block(squared, parts[0])",
    ),
    "no barrier between warps": (k04_row_in_registers, "__syncthreads();", ""),
    "what is past the end has a spread": (k04_row_in_registers, "if (i * THREADS < mine) squared", "squared"),
    "no epsilon": (k02_warp_a_row, "+ epsilon", ""),
}


@pytest.mark.parametrize(("kernel", "right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, kernel, right, wrong):
    text = kernel.SOURCE.read_text()
    assert text.count(right) == 1
    faulty = text.replace(right, wrong)
    seen = False
    for M, N in SIZES:
        w, inputs = sized(M, N)
        try:
            y = run(kernel, inputs, text=faulty)
        except RuntimeError:  # a race, by name
            seen = True
        else:
            seen |= not worst_error(y, PROBLEM.reference(*inputs)) <= PROBLEM.max_error(w)

    assert seen


# --- machine code and refusals ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_nothing_spills(kernel):
    pytest.importorskip("cuda.core")

    assert not any(stacks(compile_cubin(kernel.SOURCE, "sm_90a")))


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_launchers_refuse(kernel):
    x, g = torch.zeros(2, 3), torch.zeros(3)
    with pytest.raises(TypeError, match=re.escape("r: expected float32, got float16")):
        kernel.add_norm(x, x.half(), g)
    with pytest.raises(ValueError, match=re.escape("g: expected")):
        kernel.add_norm(x, x, torch.zeros(2))
    with pytest.raises(ValueError, match=re.escape("x: expected contiguous (M, N), got strides (1, 2)")):
        kernel.add_norm(torch.zeros(3, 2).t(), x, g)
    with pytest.raises(ValueError, match=re.escape(f"x: expected N <= {MAX_N}, got N={MAX_N + 1}")):
        kernel.add_norm(*(torch.zeros(1, MAX_N + 1),) * 2, torch.zeros(MAX_N + 1))


def test_launcher_and_kernel_agree():
    for kernel in KERNELS:
        name = "ROWS" if kernel is k02_warp_a_row else "THREADS"
        assert f"constexpr int {name} = {getattr(kernel, name)};" in kernel.SOURCE.read_text()
    assert f"MAX_N = {MAX_N};" in k04_row_in_registers.SOURCE.read_text()


def test_what_the_page_works_out_by_hand():
    """Sectors of a request, trips of a row, and how many rows a multiprocessor can hold."""
    w = PROBLEM.time_on[0]
    assert PROBLEM.reads_bytes(w) + PROBLEM.writes_bytes(w) == 4 * (3 * w.M * w.N + w.N)
    assert w.N == MAX_N
    assert (227 * 1024) // (4 * MAX_N + 1024 + 2 * 3 * 4) == 3
