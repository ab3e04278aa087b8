"""Every problem of the library: consistent with its folder, and with a tolerance that means something."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
import torch

import course_kernels
from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.problem import BYTES_OF, MATHS, Workload, worst_error
from course_kernels.sgemm.problem import PROBLEM as SGEMM
from course_kernels.softmax.problem import PROBLEM as SOFTMAX

ROOT = Path(course_kernels.__file__).parent
FOLDERS = sorted(p.parent.name for p in ROOT.glob("*/problem.py"))
PROBLEMS = {name: import_module(f"course_kernels.{name}.problem").PROBLEM for name in FOLDERS}
KERNELS = sorted(p for p in ROOT.glob("*/k[0-9][0-9]_*.py"))
HEAD = ("Contract", "Idea", "Source")
TYPES = {
    "attention_backward": {torch.bfloat16, torch.float32},
    "attention_fp8": {torch.float8_e4m3fn, torch.float32},
    "attention_general": {torch.bfloat16, torch.int32},
    "decode_attention": {torch.bfloat16, torch.int32},
    "gemm_fp8": {torch.float8_e4m3fn, torch.float32},
    "grouped_gemm": {torch.float8_e4m3fn, torch.float32, torch.int32},
    "mla_decode": {torch.bfloat16, torch.int32},
    "gemv_fp4": {torch.uint8, torch.float8_e4m3fn},
    "skinny_gemm_fp4": {torch.bfloat16, torch.int32, torch.uint8, torch.float32},
    "skinny_gemm_fp8": {torch.float8_e4m3fn, torch.float32},
    "skinny_gemm_w4": {torch.bfloat16, torch.int32},
    "qkv_rope": {torch.bfloat16, torch.int32, torch.float32},
    "paged_attention": {torch.bfloat16, torch.int32},
    "sampling": {torch.bfloat16, torch.float32, torch.int64, torch.int32},
    "sparse_attention": {torch.bfloat16, torch.float32},
    "speculative_sampling": {torch.float32, torch.int32},
}  # of inputs, where the workload names that of the answer
# Inputs that the least cost leaves out: where every token is chosen, nobody needs the index.
NOT_READ = {"sparse_attention": (0, 1, 2)}


def test_the_folders_are_found():
    assert {"attention", "copy", "sgemm", "softmax", "vector_add"} <= set(FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_problem_is_named_as_its_folder_and_sized_well(name):
    problem = PROBLEMS[name]

    assert problem.name == name
    for w in (*problem.check_on, *problem.time_on):
        assert problem.math(w) in MATHS
        assert problem.reads_bytes(w) > 0
        assert problem.writes_bytes(w) > 0
        assert problem.flops(w) >= 0
        assert 0 <= problem.max_error(w) < 0.1
    assert problem.check_on
    assert problem.time_on
    assert len(set(problem.check_on)) == len(problem.check_on)


@pytest.mark.parametrize("name", FOLDERS)
def test_inputs_and_truth_fit_the_declared_bytes(name):
    problem = PROBLEMS[name]
    w = min(problem.check_on, key=lambda w: problem.reads_bytes(w) + problem.flops(w))
    inputs = problem.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    again = problem.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    truths = problem.reference(*inputs, **problem.options(w))
    truths = truths if isinstance(truths, tuple) else (truths,)

    assert {x.dtype for x in inputs} == TYPES.get(name, {w.torch_dtype})
    assert all(torch.equal(x.float(), y.float()) for x, y in zip(inputs, again, strict=True))
    read = [x for number, x in enumerate(inputs) if number not in NOT_READ.get(name, ())]
    assert sum(x.numel() * x.element_size() for x in read) == problem.reads_bytes(w)
    assert {truth.dtype for truth in truths} == {torch.float64}
    assert sum(truth.numel() for truth in truths) * BYTES_OF[w.dtype] == problem.writes_bytes(w)


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_kernel_says_what_it_is_and_exports_its_problem(path):
    module = import_module(f"course_kernels.{path.parent.name}.{path.stem}")
    source = path.with_suffix(".cu") if path.with_suffix(".cu").exists() else path
    text = source.read_text()
    head = text.partition("\n\n")[0] if source.suffix == ".cu" else ast.get_docstring(ast.parse(text))

    assert callable(getattr(module, path.parent.name))
    assert getattr(module, path.parent.name).__doc__
    assert [word for word in HEAD if not re.search(rf"^(// )?{word}\s", head, re.MULTILINE)] == []


# --- tolerances that mean something -----------------------------------------------------------------


def rounded_to_tf32(x):
    """Round to 10 bits after the point, as the tensor cores do with an fp32 input."""
    bits = x.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("K", [257, 1024, 4096])
def test_sgemm_refuses_tf32_and_takes_fp32(K):
    w = Workload.of("float32", M=128, N=128, K=K)
    a, b = SGEMM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    truth = SGEMM.reference(a, b)
    one_sum = torch.zeros(128, 128)
    for k in range(K):  # the order of the naive kernel: one running sum
        one_sum += a[:, k, None] * b[k]

    assert worst_error(one_sum, truth) <= SGEMM.max_error(w) / 4
    assert not worst_error(rounded_to_tf32(a) @ rounded_to_tf32(b), truth) <= SGEMM.max_error(w) * 4


@pytest.mark.parametrize("causal", [False, True])
def test_attention_in_fp32_refuses_tf32(causal):
    w = Workload.of("float32", B=1, H=1, N=500, D=64, causal=causal)
    q, k, v = ATTENTION.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    truth = ATTENTION.reference(q, k, v, causal=causal)
    rough = ATTENTION.reference(rounded_to_tf32(q), rounded_to_tf32(k), rounded_to_tf32(v), causal=causal)

    assert not worst_error(rough, truth) <= ATTENTION.max_error(w) * 4


def test_the_truth_of_attention_is_torch_s_in_float64():
    for N, causal in ((5, False), (5, True), (1030, True), (1030, False)):  # 1030: two strips
        q, k, v = torch.randn(3, 2, 2, N, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(N))
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        torch.testing.assert_close(ATTENTION.reference(q, k, v, causal=causal), expected)


def test_causal_attention_counts_half_the_operations():
    full, causal = (Workload.of("bfloat16", B=2, H=3, N=64, D=128, causal=c) for c in (False, True))

    assert ATTENTION.flops(full) == 4 * 2 * 3 * 64 * 64 * 128
    assert ATTENTION.flops(causal) * 2 == ATTENTION.flops(full)
    assert ATTENTION.options(causal) == {"causal": True}
    assert ATTENTION.reads_bytes(full) == 3 * 2 * 3 * 64 * 128 * 2


def test_a_softmax_that_forgets_one_element_is_refused():
    w = Workload.of("float32", M=2, N=1000)
    (x,) = SOFTMAX.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    short = torch.softmax(torch.where(torch.arange(1000) == 500, -torch.inf, x), dim=-1)

    assert not worst_error(short, SOFTMAX.reference(x)) <= SOFTMAX.max_error(w)
    assert worst_error(torch.softmax(x, dim=-1), SOFTMAX.reference(x)) <= SOFTMAX.max_error(w)
