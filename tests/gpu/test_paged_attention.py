"""Attention over pages on the card: in a CUDA graph, pages and lengths of every kind, any number of parts; peers."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.paged_attention import k01_gather, k02_split, k03_even, k04_prefill, library
from course_kernels.paged_attention.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

GROUPS = ("paged_attention",)
KERNELS = (k01_gather, k02_split, k03_even, k04_prefill)


def workload(dtype="bfloat16", B=6, H=32, KV=8, N=3000, PAGE=16, D=128, **flags):
    return Workload.of(dtype, B=B, H=H, KV=KV, N=N, PAGE=PAGE, D=D, **flags)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


def test_torch_s_copy_is_right_where_the_cache_is_full():
    w = workload(B=3, N=1024, full=True)

    assert checked_error(
        library.sdpa_gathered, w, torch.Generator("cuda").manual_seed(0)
    ) <= PROBLEM.max_error(w)


def test_flashinfer_is_right_where_it_is_installed():
    """It compiles for minutes the first time; where it is not installed, one line says so."""
    w = workload(B=3, N=1024, full=True)
    for function in (library.flashinfer_decode, library.flashinfer_tensor_cores):
        if library.flashinfer_version():
            assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)
        else:
            with pytest.raises(RuntimeError, match=r"^flashinfer: not installed here: "):
                function(*inputs_of(w))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("B", "N", "PAGE"), [(1, 65536, 16), (7, 4096, 8), (60, 1030, 256)])
@pytest.mark.parametrize("fp8", [False, True])
def test_many_tokens_and_many_sequences(kernel, B, N, PAGE, fp8):
    w = workload(B=B, N=N, PAGE=PAGE, fp8=fp8)
    inputs = inputs_of(w)

    assert error(kernel.paged_attention(*inputs), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("splits", [1, 2, 5, 17, 49, 200])
@pytest.mark.parametrize(
    ("dtype", "H", "KV", "fp8"),
    [
        ("bfloat16", 8, 2, False),
        ("float16", 3, 1, False),
        ("bfloat16", 64, 1, False),
        ("bfloat16", 8, 2, True),
    ],
)
def test_any_number_of_parts_is_right(dtype, H, KV, fp8, splits):
    w = workload(dtype, B=5, H=H, KV=KV, N=8000, fp8=fp8)
    inputs = inputs_of(w)

    assert error(k02_split.paged_attention(*inputs, splits=splits), inputs) <= PROBLEM.max_error(w)
    assert error(k03_even.paged_attention(*inputs, programs=3 * splits), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", [k02_split, k03_even])
def test_the_same_call_gives_the_same_bits(kernel):
    inputs = inputs_of(workload(B=4, N=8000))
    tickets = torch.zeros(4 * 8, dtype=torch.int32, device="cuda")
    first = kernel.paged_attention(*inputs)
    for _ in range(300):
        assert torch.equal(kernel.paged_attention(*inputs, tickets=tickets), first)
    assert not tickets.any()


@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("own_tickets", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_graph_serves_pages_that_come_and_go(kernel, own_tickets, fp8):
    """Captured while every length is 1; each replay finds other lengths, other pages and other values."""
    w = workload(fp8=fp8)
    inputs = inputs_of(w)
    tickets = torch.zeros(6 * 8, dtype=torch.int32, device="cuda")
    options = {"tickets": tickets} if own_tickets and kernel in (k02_split, k03_even) else {}
    kernel.paged_attention(*inputs, **options)  # compiles
    inputs[4].fill_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.paged_attention(*inputs, **options)
    for seed in range(1, 5):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        assert error(out, inputs) <= PROBLEM.max_error(w)
    assert not tickets.any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_pool_of_more_than_2_to_the_31_numbers(kernel):
    """The pages at its end are reached: 2**31 numbers of keys are 4 GiB, and as many of values."""
    w = workload(B=2, H=8, KV=8, N=4096, full=True)
    q, k, v, table, lengths = inputs_of(w)
    pages = 2**31 // (8 * 16 * 128) + len(k)
    pool_k, pool_v = (torch.empty(pages, *k.shape[1:], dtype=k.dtype, device="cuda") for _ in range(2))
    pool_k[-len(k) :], pool_v[-len(k) :] = k, v
    far = kernel.paged_attention(q, pool_k, pool_v, table + (pages - len(k)), lengths)

    assert torch.equal(far, kernel.paged_attention(q, k, v, table, lengths))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_length_outside_of_the_room_reads_nothing_outside(kernel):
    q, k, v, table, lengths = inputs_of(workload(B=2, H=8, KV=2, N=96, D=64, full=True))
    out = kernel.paged_attention(
        q, k, v, table, torch.tensor([2**31 - 1, -5], dtype=torch.int32, device="cuda")
    )

    torch.testing.assert_close(out[0], kernel.paged_attention(q, k, v, table, lengths)[0])
    assert not out[1].any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_nan_of_8_bits_is_a_nan(kernel):
    """What the interpreter of the other tests cannot say: it reads the NaN of 8 bits as a number."""
    q, k, v, table, lengths, *scales = inputs_of(workload(B=1, N=100, fp8=True, full=True))
    v.view(torch.uint8)[table[0, 2], 1, 3, 7] = 0x7F
    out = kernel.paged_attention(q, k, v, table, lengths, *scales)

    assert torch.equal(out.isnan(), PROBLEM.reference(q, k, v, table, lengths, *scales).isnan())
    assert out[0, 4:8, 7].isnan().all()


@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize(("B", "M", "D"), [(3, 500, 128), (2, 33, 64), (1, 2048, 128)])
def test_many_new_tokens_see_what_lies_before_them(B, M, D, fp8):
    """Every new token as if it were the only one, with the length that it stands at."""
    w = workload(B=B, N=3000, D=D, fp8=fp8, full=True)
    _, k, v, table, lengths, *scales = inputs_of(w)
    q = torch.randn(B, M, w.H, D, dtype=torch.bfloat16, device="cuda")
    out = k04_prefill.paged_prefill(q, k, v, table, lengths, *scales)
    for m in sorted({0, 1, M // 2, M - 2, M - 1}):
        truth = PROBLEM.reference(q[:, m], k, v, table, lengths - M + m + 1, *scales)
        assert worst_error(out[:, m], truth, rows_apart=True) <= PROBLEM.max_error(w)
