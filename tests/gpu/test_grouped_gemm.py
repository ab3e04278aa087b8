"""The grouped multiply on the card: both forms, ugly groups, sums that leave in time, a graph for any counts, peers."""

import pytest
import torch

from course_kernels.grouped_gemm import k01_triton, k02_promoted, library
from course_kernels.grouped_gemm.problem import LARGEST, PROBLEM
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("grouped_gemm",)
KERNELS = pytest.mark.parametrize("kernel", [k01_triton, k02_promoted])
# Rounding C once, and what Hopper's tensor cores lose within 128 of K: less than the contract's bound by a third.
NEAR = 2.0**-8 + 2.0**-9


def workload(G, M, N, K, **flags):
    return Workload.of("bfloat16", G=G, M=M, N=N, K=K, **flags)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


@pytest.mark.parametrize(
    ("G", "M", "N", "K"),
    [
        (1, 1, 8, 128),
        (7, 1000, 1000, 1152),
        (3, 131, 392, 4096),
        (16, 5000, 264, 640),
        (33, 40, 200, 256),  # most groups have a row or none
    ],
)
@pytest.mark.parametrize("masked", [False, True])
@KERNELS
def test_ugly_groups_are_right(kernel, G, M, N, K, masked):
    w = workload(G, M, N, K, masked=masked)

    assert checked_error(kernel, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("w", PROBLEM.time_on, ids=lambda w: w.label)
@KERNELS
def test_the_layers_of_a_mixture(kernel, w):
    inputs = inputs_of(w)

    assert error(kernel.grouped_gemm(*inputs), inputs) <= NEAR


@KERNELS
def test_what_nobody_has(kernel):
    a, b, scale_a, scale_b, groups = inputs_of(workload(5, 300, 264, 384, masked=True))
    out = torch.full((*a.shape[:2], b.shape[1]), 3.0, dtype=torch.bfloat16, device="cuda")
    behind = torch.arange(a.shape[1], device="cuda") >= groups[:, None]
    assert kernel.grouped_gemm(a, b, scale_a, scale_b, groups, out=out) is out
    assert (out[behind] == 3.0).all()
    assert not (out[~behind] == 3.0).all()

    a, b, scale_a, scale_b, groups = inputs_of(workload(5, 300, 264, 384))
    c = kernel.grouped_gemm(a, b, scale_a, scale_b, groups)
    a.view(torch.uint8)[groups < 0] = 0x7F  # NaN
    scale_a[:, groups < 0] = torch.nan
    assert torch.equal(kernel.grouped_gemm(a, b, scale_a, scale_b, groups), c)
    assert (c[groups < 0] == 0).all()


def test_no_group_has_a_row():
    a, b, scale_a, scale_b, groups = inputs_of(workload(4, 100, 64, 256, masked=True))
    out = torch.full((*a.shape[:2], 64), 3.0, dtype=torch.bfloat16, device="cuda")
    k02_promoted.grouped_gemm(a, b, scale_a, scale_b, torch.zeros_like(groups), out=out)

    assert (out == 3.0).all()


@KERNELS
def test_sums_of_one_sign_leave_the_tensor_cores_in_time(kernel):
    """One sign, one scale, a long K: where sums stay in the tensor cores, what they cut adds up."""
    K = 16384
    numbers = torch.rand(2, 128, K, generator=torch.Generator("cuda").manual_seed(0), device="cuda")
    a, b = (LARGEST * numbers).to(torch.float8_e4m3fn)
    scales, scale_b = torch.ones(K // 128, 128, device="cuda"), torch.ones(1, 1, K // 128, device="cuda")
    inputs = a, b[None], scales, scale_b, torch.zeros(128, dtype=torch.int32, device="cuda")
    fast = torch._scaled_mm(
        a, b.t(), torch.ones(1, device="cuda"), torch.ones(1, device="cuda"),
        out_dtype=torch.bfloat16, use_fast_accum=True,
    )  # fmt: skip

    assert error(kernel.grouped_gemm(*inputs), inputs) <= NEAR
    assert (
        not error(fast, inputs) <= NEAR
    )  # all of K in the tensor cores: so the inputs do tell one from the other


@KERNELS
def test_a_graph_serves_other_groups(kernel):
    """One capture: the counts lie on the device, and grow and shrink."""
    w = workload(8, 8 * 96, 392, 512, masked=True, even=True)
    inputs = inputs_of(w)
    out = torch.zeros(8, 96, 392, dtype=torch.bfloat16, device="cuda")
    kernel.grouped_gemm(*inputs, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.grouped_gemm(*inputs, out=out)
    for counts in ([96, 0, 1, 63, 64, 65, 95, 7], [0] * 8, [1] * 8, [96] * 8):
        inputs[4].copy_(torch.tensor(counts, dtype=torch.int32))
        out.zero_()
        graph.replay()
        assert error(out, inputs) <= NEAR


@pytest.mark.parametrize("masked", [False, True])
def test_ten_thousand_launches_give_the_same_bits(masked):
    inputs = inputs_of(workload(5, 700, 520, 640, masked=masked))
    first = k02_promoted.grouped_gemm(*inputs)
    for n in range(10_000):
        last = k02_promoted.grouped_gemm(*inputs)
        if n % 100 == 0:
            assert torch.equal(last, first)
    torch.cuda.synchronize()

    assert torch.equal(last, first)


@pytest.mark.parametrize("w", [w for w in PROBLEM.time_on if library.supports(w)], ids=lambda w: w.label)
def test_cublaslt_is_right(w):
    inputs = inputs_of(w)

    assert error(library.cublaslt(*inputs), inputs) <= PROBLEM.max_error(w)
