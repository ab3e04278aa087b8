"""What is noticed of kernels in the interpreter: nothing of right ones, and of a wrong one its fault, with its line."""

import importlib
import importlib.util
import inspect
import math
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter

from course_judge.worker.interpreter import (
    ORDER,
    OVERWRITTEN,
    READ_OUTSIDE,
    STORED_OUTSIDE,
    Few,
    watched_memory,
)
from course_kernels.attention import k03_flash
from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.bias_gelu import k02_triton as bias_gelu
from course_kernels.bias_gelu.problem import PROBLEM as BIAS_GELU
from course_kernels.gemm import k05_triton as gemm
from course_kernels.gemm.problem import PROBLEM as GEMM
from course_kernels.gemm_fp8 import k01_triton as gemm_fp8
from course_kernels.gemm_fp8.problem import PROBLEM as GEMM_FP8
from course_kernels.grey import k02_triton as grey
from course_kernels.grey.problem import PROBLEM as GREY
from course_kernels.problem import Workload, worst_error
from course_kernels.reduction import k05_triton as reduction
from course_kernels.reduction.problem import PROBLEM as REDUCTION
from course_kernels.vector_add import k02_triton as vector_add
from course_kernels.vector_add.problem import PROBLEM as VECTOR_ADD
from course_labs.lab import find_labs

LABS = find_labs(Path(__file__).parents[2])
ORDERS = pytest.mark.parametrize("shuffle", [None, 1], ids=["in order", "shuffled"])


def line_of(kernel, marker):
    """The line of a kernel of this file that has a comment."""
    lines, first = inspect.getsourcelines(kernel.fn)
    (at,) = [number for number, line in enumerate(lines) if f"# {marker}" in line]
    return first + at


def said(memory, kernel=None):
    """Each finding, its line by the comment that stands there."""
    lines, first = inspect.getsourcelines(kernel.fn) if kernel else ([], 0)
    return [
        (found.kind, lines[found.line - first].partition("# ")[2].strip(), found.text)
        for found in memory.findings
    ]


def rand(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --- right kernels --------------------------------------------------------------------------


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    y = tl.load(y_ptr + i, mask=i < N)
    tl.store(z_ptr + i, x + y, mask=i < N)


@triton.jit
def sum_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr, tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0)))


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bin_of = tl.load(x_ptr + i, mask=i < N, other=0)
    tl.atomic_add(counts_ptr + bin_of, 1, mask=i < N)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, TILE: tl.constexpr):
    m = tl.program_id(1) * TILE + tl.arange(0, TILE)
    n = tl.program_id(0) * TILE + tl.arange(0, TILE)
    sums = tl.zeros([TILE, TILE], dtype=tl.float32)
    for first in range(0, K, TILE):
        k = first + tl.arange(0, TILE)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        sums += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * N + n[None, :], sums, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0) * N
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i, mask=i < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(y_ptr + row + i, e / tl.sum(e), mask=i < N)


@triton.jit
def block_pointer_kernel(x_ptr, y_ptr, M, N, TILE: tl.constexpr):
    m, n = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    x = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (m, n), (TILE, TILE), (1, 0))
    y = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (m, n), (TILE, TILE), (1, 0))
    tl.store(y, 2.0 * tl.load(x, boundary_check=(0, 1)), boundary_check=(0, 1))


@triton.jit
def descriptor_kernel(x_ptr, y_ptr, M, N, TILE: tl.constexpr):
    m, n = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [TILE, TILE])
    y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [TILE, TILE])
    y.store([m, n], 2.0 * x.load([m, n]))


@triton.jit
def double_kernel(x_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(x_ptr + i, 2 * x, mask=i < N)


@triton.jit
def last_adds_kernel(x_ptr, parts_ptr, done_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0)))
    if tl.atomic_add(done_ptr, 1) == tl.num_programs(0) - 1:
        p = tl.arange(0, BLOCK)
        tl.store(y_ptr, tl.sum(tl.load(parts_ptr + p, mask=p < tl.num_programs(0), other=0.0)))


@triton.jit
def lock_kernel(x_ptr, lock_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr, tl.load(y_ptr) + part)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def same_value_kernel(y_ptr, N):
    tl.store(y_ptr, N)


@triton.jit
def maximum_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_max(y_ptr, tl.max(tl.load(x_ptr + i, mask=i < N, other=-float("inf"))))


def run_add(x, y):
    z = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, z, x.numel(), BLOCK=64)
    return z


def run_of_parts(kernel, x, *between):
    """A kernel that leaves a sum or a maximum in its last tensor."""
    y = torch.zeros(1)
    kernel[(triton.cdiv(x.numel(), 64),)](x, *between, y, x.numel(), BLOCK=64)
    return y


def run_histogram(x):
    counts = torch.zeros(10, dtype=torch.int32)
    histogram_kernel[(triton.cdiv(x.numel(), 64),)](x, counts, x.numel(), BLOCK=64)
    return counts


def run_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N)
    matmul_kernel[(triton.cdiv(N, 16), triton.cdiv(M, 16))](a, b, c, M, N, K, TILE=16)
    return c


def run_softmax(x):
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)
    return y


def run_twice(kernel, x):
    M, N = x.shape
    y = torch.empty_like(x)
    kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, y, M, N, TILE=16)
    return y


def run_in_place(x):
    x = x.clone()
    for _ in range(2):  # the second launch stores over the first one's
        double_kernel[(triton.cdiv(x.numel(), 64),)](x, x.numel(), BLOCK=64)
    return x


def run_same_value(n):
    y = torch.zeros(1, dtype=torch.int32)
    same_value_kernel[(5,)](y, n)
    return int(y)


NUMBERS = torch.arange(300, dtype=torch.int64) % 10
RIGHT = {
    "vector add": (lambda: run_add(rand(300), rand(300, seed=1)), rand(300) + rand(300, seed=1)),
    "a view": (lambda: run_add(rand(300)[7:207], rand(200)), rand(300)[7:207] + rand(200)),
    "half": (lambda: run_add(rand(300).half(), rand(300).half()), 2 * rand(300).half()),
    "atomic sum": (lambda: run_of_parts(sum_kernel, rand(300)), rand(300).sum(0, keepdim=True)),
    "atomic maximum": (lambda: run_of_parts(maximum_kernel, rand(300)), rand(300).max().reshape(1)),
    "histogram": (lambda: run_histogram(NUMBERS), torch.full((10,), 30, dtype=torch.int32)),
    "matmul": (lambda: run_matmul(rand(33, 20), rand(20, 40)), rand(33, 20) @ rand(20, 40)),
    "softmax": (lambda: run_softmax(rand(7, 50)), rand(7, 50).softmax(1)),
    "block pointers": (lambda: run_twice(block_pointer_kernel, rand(33, 20)), 2 * rand(33, 20)),
    "descriptors": (lambda: run_twice(descriptor_kernel, rand(33, 20)), 2 * rand(33, 20)),
    "in place": (lambda: run_in_place(rand(300)), 4 * rand(300)),
    "the last one adds up": (
        lambda: run_of_parts(last_adds_kernel, rand(300), torch.empty(5), torch.zeros(1, dtype=torch.int32)),
        rand(300).sum(0, keepdim=True),
    ),
    "a lock": (
        lambda: run_of_parts(lock_kernel, rand(300), torch.zeros(1, dtype=torch.int32)),
        rand(300).sum(0, keepdim=True),
    ),
    "the same value": (lambda: run_same_value(7), 7),
}


@ORDERS
@pytest.mark.parametrize(("run", "expected"), RIGHT.values(), ids=RIGHT)
def test_a_right_kernel_has_no_finding_and_the_same_result(run, expected, shuffle):
    with watched_memory(shuffle=shuffle) as memory:
        result = run()

    assert memory.findings == []
    torch.testing.assert_close(result, expected)


LIBRARY = {
    "vector add": (vector_add.vector_add, VECTOR_ADD, "dtype=float32,N=3001"),
    "reduction": (reduction.reduction, REDUCTION, "dtype=float32,N=100003"),
    "grey": (grey.grey, GREY, "dtype=float32,H=40,W=33"),
    "bias gelu": (bias_gelu.bias_gelu, BIAS_GELU, "dtype=float32,M=3,N=2056"),
    "gemm": (gemm.gemm, GEMM, "dtype=float16,M=33,N=65,K=17"),
    "gemm by TMA": (
        lambda a, b: gemm.gemm(a, b, tile=gemm.Tile(32, 64, 16, 4, 3, strips=1, group_m=2, persistent=True)),
        GEMM,
        "dtype=float32,M=200,N=72,K=40",
    ),
    "gemm fp8": (gemm_fp8.gemm_fp8, GEMM_FP8, "dtype=bfloat16,M=33,N=65,K=17"),
    "attention": (
        lambda q, k, v: k03_flash.attention_with_lse(
            q, k, v, tile=k03_flash.Tile(64, 64, warps=4, stages=2, tma=False)
        )[0],
        ATTENTION,
        "dtype=float16,B=1,H=2,N=129,D=64,causal=false",
    ),
    "attention by TMA": (
        lambda q, k, v: k03_flash.attention_with_lse(
            q, k, v, causal=True, tile=k03_flash.Tile(64, 32, warps=4, stages=2, tma=True)
        )[0],
        ATTENTION,
        "dtype=float32,B=1,H=2,N=129,D=64,causal=true",
    ),
}


@ORDERS
@pytest.mark.parametrize(("function", "problem", "workload"), LIBRARY.values(), ids=LIBRARY)
def test_the_librarys_kernels_have_no_finding(function, problem, workload, shuffle):
    w = Workload.parse(workload)
    inputs = problem.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    with watched_memory(shuffle=shuffle) as memory:
        output = function(*inputs)

    assert memory.findings == []
    if w.dtype != "bfloat16":  # wrong in the interpreter by design
        reference = problem.reference(*inputs, **problem.options(w))
        assert worst_error(output, reference) <= problem.max_error(w)


def module_at(path):
    spec = importlib.util.spec_from_file_location(f"judged_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lab_tasks():
    """(lab, problem, the function's name, workload) of the right answers in Triton."""
    for lab in LABS.values():
        if "triton" in lab.doors:
            own = importlib.import_module(f"course_kernels.{lab.problem}.problem").PROBLEM
            alone = module_at(lab.folder / "alone.py").PROBLEM
            for task, problem in ((lab, own), (lab.alone, alone)):
                for text in task.tries:
                    if math.prod(Workload.parse(text).dims.values()) < 10**6:
                        yield pytest.param(lab, problem, task.entry[0], text, id=f"{task.entry[0]} {text}")


@ORDERS
@pytest.mark.parametrize(("lab", "problem", "entry", "workload"), list(lab_tasks()))
def test_the_labs_answers_have_no_finding(lab, problem, entry, workload, shuffle):
    w = Workload.parse(workload)
    inputs = problem.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    function = getattr(module_at(lab.solution("triton")), entry)
    with watched_memory({f"input {n}": x for n, x in enumerate(inputs, 1)}, shuffle=shuffle) as memory:
        output = function(*inputs)

    assert memory.findings == []
    assert worst_error(output, problem.reference(*inputs)) <= problem.max_error(w)


# --- past an end ----------------------------------------------------------------------------


@triton.jit
def no_mask_on_load_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # here
    tl.store(y_ptr + i, x, mask=i < N)


@triton.jit
def no_mask_on_store_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(y_ptr + i, x)  # here


@triton.jit
def one_too_many_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i <= N)  # load
    tl.store(
        y_ptr + i,
        x,
        mask=i <= N,
    )


@triton.jit
def left_neighbour_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N) - tl.load(x_ptr + i - 1, mask=i < N)  # here
    tl.store(y_ptr + i, x, mask=i < N)


@triton.jit
def wrong_stride_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + i, mask=i < N)  # here
    tl.store(y_ptr + row * N + i, x, mask=i < N)


@triton.jit
def far_away_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    x = tl.load(x_ptr + i * 10_000_000_000, mask=i < 2)  # load
    tl.store(y_ptr + i - 10_000_000_000, x, mask=i < N)  # store


@triton.jit
def both_ends_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i - 2)  # here
    tl.store(y_ptr + i, x, mask=i < N)


@triton.jit
def atomic_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i <= N)  # add
    tl.atomic_cas(y_ptr + N, 0.0, 1.0)  # swap


@triton.jit
def no_boundary_check_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (N,), (1,), (tl.program_id(0) * BLOCK,), (BLOCK,), (0,))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x), mask=i < N)  # here


@triton.jit
def piece(x_ptr, i):
    return tl.load(x_ptr + i)  # helper


@triton.jit
def by_helper_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, piece(x_ptr, i), mask=i < N)


@triton.jit
def two_axes_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # here
    tl.store(y_ptr + i, x, mask=(i < N) & (tl.program_id(0) == 0))


def run_wrong(kernel, x, size=None, grid=None, N=None, BLOCK=64, shuffle=None):
    """(findings by `said`, y)."""
    N = x.numel() if N is None else N
    y = torch.zeros(size or x.numel(), dtype=x.dtype)
    with watched_memory({"input 1": x, "an output": y}, shuffle=shuffle) as memory:
        kernel[grid or (triton.cdiv(N, BLOCK),)](x, y, N, BLOCK=BLOCK)
    return said(memory, kernel), y


def test_a_load_without_a_mask_is_seen_and_reads_nan():
    found, y = run_wrong(no_mask_on_load_kernel, rand(100))

    assert found == [
        (
            READ_OUTSIDE,
            "here",
            "program 1 reads 28 elements past the end of input 1 (x_ptr), which has 100 elements; "
            "the load has no mask",
        )
    ]
    assert torch.equal(y, rand(100))


def test_a_store_without_a_mask_is_seen_and_dropped():
    room = torch.zeros(128)
    with watched_memory({"input 1": (x := rand(100)), "an output": room[:100]}) as memory:
        no_mask_on_store_kernel[(2,)](x, room, 100, BLOCK=64)

    assert said(memory, no_mask_on_store_kernel) == [
        (
            STORED_OUTSIDE,
            "here",
            "program 1 stores 28 elements past the end of an output (y_ptr), which has 100 elements; "
            "the store has no mask",
        )
    ]
    assert torch.equal(room, torch.cat([x, torch.zeros(28)]))


def test_one_too_many_is_seen():
    found, _ = run_wrong(one_too_many_kernel, rand(100))

    assert [(kind, text) for kind, _, text in found] == [
        (
            READ_OUTSIDE,
            "program 1 reads 1 element past the end of input 1 (x_ptr), which has 100 elements",
        ),
        (
            STORED_OUTSIDE,
            "program 1 stores 1 element past the end of an output (y_ptr), which has 100 elements",
        ),
    ]
    assert found[0][1] == "load"


def test_a_call_over_several_lines_is_found_by_its_first():
    x, y = rand(100), torch.zeros(100)
    with watched_memory({"input 1": x, "an output": y}) as memory:
        one_too_many_kernel[(2,)](x, y, 100, BLOCK=64)
    loaded, stored = memory.findings

    assert loaded.line == line_of(one_too_many_kernel, "load")
    assert stored.line == loaded.line + 1


@pytest.mark.parametrize(
    ("kernel", "how", "text"),
    [
        (
            left_neighbour_kernel,
            {},
            "program 0 reads 1 element before the start of input 1 (x_ptr), which has 100 elements",
        ),
        (
            wrong_stride_kernel,
            {"N": 50, "grid": (2,)},
            "program 1 reads 14 elements past the end of input 1 (x_ptr), which has 100 elements",
        ),
        (
            both_ends_kernel,
            {"grid": (1,), "BLOCK": 128},
            "program 0 reads 2 elements before the start and 26 elements past the end of input 1 (x_ptr), "
            "which has 100 elements; the load has no mask",
        ),
        (
            no_boundary_check_kernel,
            {},
            "program 1 reads 28 elements past the end of input 1 (x_ptr), which has 100 elements",
        ),
        (
            two_axes_kernel,
            {"grid": (3, 2)},
            "program (0, 1) reads 28 elements past the end of input 1 (x_ptr), which has 100 elements; "
            "the load has no mask",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_load_outside_is_seen(kernel, how, text):
    found, _ = run_wrong(kernel, rand(100), **how)

    assert found == [(READ_OUTSIDE, "here", text)]


def test_what_lies_far_away_does_not_crash_and_is_told_from_its_neighbours():
    found, y = run_wrong(far_away_kernel, rand(100))

    assert [(kind, line) for kind, line, _ in found] == [(READ_OUTSIDE, "load"), (STORED_OUTSIDE, "store")]
    assert "1 element past the end of input 1 (x_ptr)" in found[0][2]
    assert "64 elements before the start of an output (y_ptr)" in found[1][2]
    assert not y.any()


def test_an_atomic_outside_is_seen_and_dropped():
    found, y = run_wrong(atomic_kernel, torch.ones(100))

    assert found == [
        (
            STORED_OUTSIDE,
            "swap",
            "program 0 updates 1 element past the end of an output (y_ptr), which has 100 elements",
        ),
        (
            STORED_OUTSIDE,
            "add",
            "program 1 updates 1 element past the end of an output (y_ptr), which has 100 elements",
        ),
    ]
    assert torch.equal(y, torch.ones(100))


@triton.jit
def given_back_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.atomic_add(x_ptr + i, 1.0))
    tl.store(y_ptr + BLOCK + i, tl.atomic_cas(x_ptr + i, 9.0, 9.0))


def test_an_atomic_outside_gives_back_nan():
    found, y = run_wrong(given_back_kernel, torch.ones(3), size=8, BLOCK=4)

    assert len(found) == 2
    torch.testing.assert_close(y, torch.tensor([1, 1, 1, math.nan, 2, 2, 2, math.nan]), equal_nan=True)


def test_the_line_is_the_helpers():
    x, y = rand(100), torch.zeros(100)
    with watched_memory({"x": x, "y": y}) as memory:
        by_helper_kernel[(2,)](x, y, 100, BLOCK=64)

    assert [found.line for found in memory.findings] == [line_of(piece, "helper")]


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2]
)
def test_what_is_read_outside_is_nan(dtype):
    x, y = torch.ones(3).to(dtype), torch.ones(4).to(dtype)
    with watched_memory() as memory:
        no_mask_on_load_kernel[(1,)](x, y, 4, BLOCK=4)

    assert len(memory.findings) == 1
    assert y.float().isnan().tolist() == [False, False, False, True]


def test_whole_numbers_read_outside_are_zero():
    _, y = run_wrong(no_mask_on_load_kernel, torch.full((3,), 5), size=4, N=4, BLOCK=4)

    assert y.tolist() == [5, 5, 5, 0]


def test_a_tensor_that_is_added_while_it_runs_is_known_by_its_name():
    room = torch.zeros(1000)
    with watched_memory() as memory:
        memory.add("an output", room[:100])
        no_mask_on_store_kernel[(2,)](rand(100), room, 100, BLOCK=64)

    assert [found.text.partition(" past")[2] for found in memory.findings] == [
        " the end of an output (y_ptr), which has 100 elements; the store has no mask"
    ]


def test_an_argument_that_nobody_added_is_known_by_its_parameter():
    with watched_memory() as memory:
        no_mask_on_store_kernel[(2,)](rand(100), torch.zeros(100), 100, BLOCK=64)

    assert [found.text.partition(" past")[2] for found in memory.findings] == [
        " the end of y_ptr, which has 100 elements; the store has no mask"
    ]


def test_storage_need_not_end_with_a_whole_element():
    room = torch.zeros(4 * 100 + 3, dtype=torch.uint8)
    with watched_memory() as memory:
        no_mask_on_store_kernel[(2,)](rand(100), room[:400].view(torch.float32), 100, BLOCK=64)

    assert [found.kind for found in memory.findings] == [STORED_OUTSIDE]
    assert torch.equal(room[:400].view(torch.float32), rand(100))


def test_an_empty_tensor_has_no_element():
    with watched_memory({"input 1": (x := rand(8))}) as memory:
        no_mask_on_load_kernel[(1,)](x[2:2], torch.zeros(4), 4, BLOCK=4)

    assert [found.text for found in memory.findings] == [
        "program 0 reads 4 elements past the end of an empty tensor, which has 0 elements; the load has no mask"
    ]


@triton.jit
def table_kernel(table_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in range(2):
        x_ptr = tl.load(table_ptr + row).to(tl.pointer_type(tl.float32))
        tl.store(y_ptr + row * BLOCK + i, tl.load(x_ptr + i))  # here


def test_a_table_of_addresses_leads_to_known_tensors_only():
    a, b, y = rand(4), rand(4, seed=1), torch.zeros(8)
    table = torch.tensor([a.data_ptr(), b.data_ptr()])
    with watched_memory({"a": a, "b": b}) as memory:
        table_kernel[(1,)](table, y, BLOCK=4)

    assert memory.findings == []
    assert torch.equal(y, torch.cat([a, b]))
    with watched_memory({"a": a}) as memory:
        table_kernel[(1,)](table, y, BLOCK=4)

    assert said(memory, table_kernel) == [
        (
            READ_OUTSIDE,
            "here",
            "program 0 reads 4 elements at an address in no tensor; the load has no mask",
        )
    ]


# --- over another program's, and out of order -----------------------------------------------


@triton.jit
def lost_sum_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0))
    tl.store(y_ptr, part)  # here


@triton.jit
def load_add_store_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0))
    so_far = tl.load(y_ptr)
    tl.store(y_ptr, so_far + part)  # here


@triton.jit
def running_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    before = tl.load(y_ptr + p - 1, mask=p > 0, other=0.0)  # here
    tl.store(y_ptr + p, before + tl.load(x_ptr + p))


@triton.jit
def shift_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < N, other=0.0)  # load
    tl.store(x_ptr + i, right, mask=i < N)  # store


@triton.jit
def first_clears_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(y_ptr, 0.0)
    tl.atomic_add(y_ptr, tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0)))  # here


@triton.jit
def last_clears_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(y_ptr, 0.0)  # here
    tl.atomic_add(y_ptr, tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0)))


@triton.jit
def no_sum_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + 0 * i, tl.load(x_ptr + i, mask=i < N))  # here


@triton.jit
def tiles_overlap_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * tl.program_id(0))  # here


@triton.jit
def in_place_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < N, other=0.0)
    left = tl.load(x_ptr + i)
    tl.store(x_ptr + i, left + right)  # here


@triton.jit
def first_stores_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0))
    if tl.program_id(0) == 0:
        tl.store(y_ptr, part)
    else:
        tl.store(y_ptr, tl.load(y_ptr) + part)  # here


@triton.jit
def atomic_too_early_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + 1, 1.0)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0)))  # here


@triton.jit
def relaxed_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    tl.store(y_ptr + 1 + p, tl.load(x_ptr + p))
    if tl.atomic_add(y_ptr, 1.0, sem="relaxed") == tl.num_programs(0) - 1:
        tl.store(y_ptr + 3, tl.load(y_ptr + 1) + tl.load(y_ptr + 1 + p))  # here


@pytest.mark.parametrize(
    ("kernel", "how", "finding"),
    [
        (
            lost_sum_kernel,
            {"size": 1},
            (
                OVERWRITTEN,
                "here",
                "program 1 stores to 1 element of an output (y_ptr) where program 0 has stored another value",
            ),
        ),
        (
            load_add_store_kernel,
            {"size": 1},
            (
                OVERWRITTEN,
                "here",
                "program 1 reads, changes and stores 1 element of an output (y_ptr) where program 0 has stored: "
                "on a card both may do so at once, and one change is lost",
            ),
        ),
        (
            running_kernel,
            {"grid": (100,)},
            (
                ORDER,
                "here",
                "program 1 reads 1 element of an output (y_ptr) that program 0 has stored in the same launch: "
                "on a card nothing says which of the two comes first",
            ),
        ),
        (
            shift_kernel,
            {},
            (
                ORDER,
                "store",
                "program 1 stores another value in 1 element of input 1 (x_ptr) that program 0 has read in the "
                "same launch: on a card nothing says which of the two comes first",
            ),
        ),
        (
            in_place_kernel,
            {},
            (
                ORDER,
                "here",
                "program 1 stores another value in 1 element of input 1 (x_ptr) that another program has read in "
                "the same launch: on a card nothing says which of the two comes first",
            ),
        ),
        (
            first_stores_kernel,
            {"size": 1},
            (
                OVERWRITTEN,
                "here",
                "program 1 reads, changes and stores 1 element of an output (y_ptr) where program 0 has stored: "
                "on a card both may do so at once, and one change is lost",
            ),
        ),
        (
            atomic_too_early_kernel,
            {"size": 2},
            (
                OVERWRITTEN,
                "here",
                "program 1 stores to 1 element of an output (y_ptr) where program 0 has stored another value",
            ),
        ),
        (
            relaxed_kernel,
            {"size": 4, "grid": (2,)},
            (
                ORDER,
                "here",
                "program 1 reads 1 element of an output (y_ptr) that program 0 has stored in the same launch: "
                "on a card nothing says which of the two comes first",
            ),
        ),
        (
            first_clears_kernel,
            {"size": 1},
            (
                ORDER,
                "here",
                "program 1 updates 1 element of an output (y_ptr) by an atomic that program 0 has stored in the "
                "same launch: on a card nothing says which of the two comes first",
            ),
        ),
        (
            last_clears_kernel,
            {"size": 1},
            (
                OVERWRITTEN,
                "here",
                "program 1 stores to 1 element of an output (y_ptr) where program 0 has added by an atomic",
            ),
        ),
        (
            no_sum_kernel,
            {"size": 1, "grid": (1,)},
            (
                OVERWRITTEN,
                "here",
                "one store of program 0 puts several values in one place of an output (y_ptr): "
                "63 of 64 elements are lost",
            ),
        ),
        (
            tiles_overlap_kernel,
            {"size": 127, "grid": (2,)},
            (
                OVERWRITTEN,
                "here",
                "program 1 stores to 1 element of an output (y_ptr) where program 0 has stored another value",
            ),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_depends_on_the_order_of_programs_is_seen(kernel, how, finding):
    found, _ = run_wrong(kernel, rand(128 if kernel is not running_kernel else 100), **how)

    assert found == [finding]


def test_backwards_what_is_read_too_late_is_read_too_early():
    orders = [run_wrong(shift_kernel, rand(1000), shuffle=seed)[0] for seed in range(3)]

    assert all({kind for kind, *_ in found} == {ORDER} for found in orders)
    assert {line for found in orders for _, line, _ in found} == {"load", "store"}


def test_one_program_is_in_order_with_itself():
    found, y = run_wrong(load_add_store_kernel, rand(60), size=1)

    assert found == []
    torch.testing.assert_close(y, rand(60).sum(0, keepdim=True))


@triton.jit
def turned_kernel(x_ptr, y_ptr, BARRIER: tl.constexpr, TURN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i))
    if BARRIER == "barrier":
        tl.debug_barrier()
    elif BARRIER == "sum":
        tl.store(y_ptr + BLOCK, tl.sum(tl.load(x_ptr + i)))
    at = BLOCK - 1 - i if TURN else i
    z = tl.load(y_ptr + at)  # here
    tl.store(y_ptr + i, z)


@pytest.mark.parametrize("programs", [1, 2])
def test_a_lane_that_waits_for_no_other_reads_what_that_has_stored(programs):
    def found(barrier, turn):
        x, y = rand(64), torch.zeros(65)
        with watched_memory({"x": x, "y": y}) as memory:
            turned_kernel[(programs,)](x, y, barrier, turn, BLOCK=64)
        return [one for one in said(memory, turned_kernel) if "lanes" in one[2]]

    text = (
        "program 0 reads 64 elements of y (y_ptr) that other lanes of it have stored, and nothing makes them wait "
        "for each other: tl.debug_barrier() does"
    )
    assert found("", True) == [(ORDER, "here", text)]
    assert found("", False) == found("barrier", True) == found("sum", True) == []


def test_a_new_launch_starts_afresh():
    x, y = rand(128), torch.zeros(1)
    with watched_memory({"x": x, "y": y}) as memory:
        for part in (x[:64], x[64:]):
            load_add_store_kernel[(1,)](part, y, 64, BLOCK=64)
            lost_sum_kernel[(1,)](part, y, 64, BLOCK=64)
        for part in (x[:64], 2 * x[:64]):
            double_kernel[(4,)](part, 64, BLOCK=16)
            same_value_kernel[(4,)](y, 5.0)
            same_value_kernel[(4,)](y, 6.0)

    assert memory.findings == []


@triton.jit
def halves_kernel(x_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mine = tl.program_id(0) * BLOCK
    tl.store(x_ptr.to(tl.pointer_type(tl.int16)) + mine + i, (mine + i).to(tl.int16))  # here
    if N < 0:
        tl.store(x_ptr + mine // 2, N)


def test_places_are_told_apart_by_their_smallest_elements():
    x = torch.zeros(3, dtype=torch.int32)
    with watched_memory({"x": x}) as memory:
        halves_kernel[(2,)](x, 0, BLOCK=1)
        halves_kernel[(2,)](x, 0, BLOCK=2)
    assert memory.findings == []
    assert x.view(torch.int16).tolist() == [0, 1, 2, 3, 0, 0]
    with watched_memory({"x": x}) as memory:
        halves_kernel[(2,)](x, -1, BLOCK=1)
    assert [(kind, line) for kind, line, _ in said(memory, halves_kernel)] == [(OVERWRITTEN, "here")]


@triton.jit
def word_then_half_kernel(x_ptr, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(x_ptr + 1, 0x10002)
    else:
        tl.store(x_ptr.to(tl.pointer_type(tl.int16)) + 2, tl.full([], 2, tl.int16))
        tl.store(x_ptr.to(tl.pointer_type(tl.int16)) + 3, tl.full([], 2, tl.int16))  # here


def test_a_mark_on_a_large_element_is_one_on_each_of_its_small_ones():
    x = torch.zeros(3, dtype=torch.int32)
    with watched_memory({"x": x}) as memory:
        word_then_half_kernel[(2,)](x, BLOCK=1)

    assert [(kind, line) for kind, line, _ in said(memory, word_then_half_kernel)] == [(OVERWRITTEN, "here")]


# --- the watch itself -----------------------------------------------------------------------


@triton.jit
def turns_kernel(turn_ptr, y_ptr):
    tl.store(
        y_ptr + tl.program_id(0) * 6 + tl.program_id(1) * 2 + tl.program_id(2), tl.atomic_add(turn_ptr, 1)
    )


def test_a_seed_gives_every_program_one_turn():
    def turns(seed):
        y = torch.full((24,), -1, dtype=torch.int32)
        with watched_memory(shuffle=seed):
            turns_kernel[(4, 3, 2)](torch.zeros(1, dtype=torch.int32), y)
        return y.tolist()

    assert turns(None) == list(range(24))
    assert turns(5) == turns(5) != turns(6)
    assert sorted(turns(5)) == sorted(turns(6)) == list(range(24))


@triton.jit
def up_to_kernel(y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(0) + 1)


def test_few_programs_of_a_launch_are_run_and_tell_how_far_all_can_reach():
    y = torch.zeros(1000 * 8, dtype=torch.int32)
    with watched_memory({"y": y}) as memory:
        memory.few = few = Few(5)
        up_to_kernel[(1000,)](y, BLOCK=8)
    run = {row[0] for row in y.view(1000, 8).tolist() if any(row)}
    assert len(run) == 5
    assert {1, 1000} < run
    assert (few.run, few.programs, few.reach, few.updates, few.is_late) == (5, 1000, 8000, False, False)
    assert memory.findings == []

    y.zero_()
    with watched_memory({"y": y}) as memory:
        memory.few = few = Few(5)
        up_to_kernel[(3,)](y, BLOCK=8)
        up_to_kernel[(2,)](y, BLOCK=4)
    assert (few.run, few.programs, few.reach) == (5, 5, 3 * 8 + 2 * 4)
    assert memory.launches == 2


def test_few_programs_know_of_sums_and_of_time(monkeypatch):
    y = torch.zeros(1)
    with watched_memory() as memory:
        memory.few = few = Few(5)
        sum_kernel[(9,)](torch.ones(36), y, 36, BLOCK=4)
    assert (few.run, few.updates, y.item()) == (5, True, 20.0)

    monkeypatch.setattr("course_judge.worker.interpreter.FEW_SECONDS", 0.0)
    with watched_memory() as memory:
        memory.few = few = Few(5)
        run_add(rand(3), rand(3))
    assert few.is_late


def test_the_interpreter_is_left_as_it_was():
    owners = (interpreter, interpreter.GridExecutor, interpreter.InterpreterBuilder)
    before = [dict(vars(owner)) for owner in owners]
    with watched_memory():
        assert [dict(vars(owner)) for owner in owners] != before
        with pytest.raises(interpreter.InterpreterError):
            add_kernel[(1,)](rand(4), rand(4), None, 4, BLOCK=4)

    assert [dict(vars(owner)) for owner in owners] == before


def test_a_watch_is_not_watched():
    with watched_memory(), pytest.raises(RuntimeError, match="watched already"), watched_memory():
        pass
    with watched_memory() as memory:
        run_add(rand(3), rand(3))

    assert memory.findings == []
