"""MLA decode on the card: lengths of every kind, pages that nobody has, parts, a CUDA graph; the libraries."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.mla_decode import k01_one_program, k02_split, k03_wgmma, library
from course_kernels.mla_decode.k03_wgmma import Ideas
from course_kernels.mla_decode.problem import MAX_ERROR, PAGE, PROBLEM
from course_kernels.problem import Workload, worst_error

GROUPS = ("mla_decode",)
KERNELS = (k01_one_program, k02_split, k03_wgmma)


def workload(dtype="bfloat16", B=6, H=128, N=3000, **flags):
    return Workload.of(dtype, B=B, H=H, N=N, **flags)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    """How far off, in units of what is allowed."""
    allowed = MAX_ERROR[str(out.dtype).removeprefix("torch.")]
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True) / allowed


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("B", "H", "N"),
    [(1, 128, 65536), (7, 128, 4096), (64, 128, 4096), (150, 128, 1030), (300, 16, 700), (9, 100, 2000), (2, 1, 1)],
)  # fmt: skip
def test_many_tokens_and_many_sequences(kernel, B, H, N):
    inputs = inputs_of(workload(B=B, H=H, N=N))

    assert error(kernel.mla_decode(*inputs), inputs) <= 1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", MAX_ERROR)
def test_either_type_in_a_cache_that_is_full(kernel, dtype):
    inputs = inputs_of(workload(dtype, B=8, N=1024, full=True))

    assert error(kernel.mla_decode(*inputs), inputs) <= 1


@pytest.mark.parametrize(
    "ideas", [Ideas(), Ideas(cluster=True), Ideas(slack=0), Ideas(once=True), Ideas(ahead=True)]
)
@pytest.mark.parametrize("groups", [1, 2, 13, 66, 200])
def test_any_number_of_groups_is_right(groups, ideas):
    """More of them than run at once, too."""
    inputs = inputs_of(workload(B=5, N=8000))

    assert error(k03_wgmma.mla_decode(*inputs, groups=groups, ideas=ideas), inputs) <= 1


@pytest.mark.parametrize("H", [16, 64])
@pytest.mark.parametrize("splits", [1, 2, 5, 40])
def test_any_number_of_parts_is_right(splits, H):
    inputs = inputs_of(workload(B=5, H=H, N=4000))

    assert error(k02_split.mla_decode(*inputs, splits=splits), inputs) <= 1


@pytest.mark.parametrize("kernel", [k02_split, k03_wgmma])
def test_the_same_call_gives_the_same_bits(kernel):
    inputs = inputs_of(workload(B=40, N=5000))
    first = kernel.mla_decode(*inputs)
    for _ in range(200):
        assert torch.equal(kernel.mla_decode(*inputs), first)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_graph_serves_a_cache_that_grows(kernel):
    """Captured while every length is 1; each replay finds other lengths, other pages and other values."""
    w = workload(B=30, N=3000)
    inputs = inputs_of(w)
    kernel.mla_decode(*inputs)  # compiles
    inputs[3].fill_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.mla_decode(*inputs)
    for seed in range(1, 5):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        assert error(out, inputs) <= 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_sequences_may_share_pages_and_nothing_is_written(kernel):
    q, cache, table, _ = inputs_of(workload(B=6, N=1000, full=True))
    table[1:, :9] = table[0, :9]
    lengths = torch.tensor([1000, 576, 575, 577, 1, 999], dtype=torch.int32, device="cuda")
    inputs = q, cache, table, lengths
    before = [x.clone() for x in inputs]
    out = kernel.mla_decode(*inputs)

    assert error(out, inputs) <= 1
    assert all(torch.equal(x.nan_to_num(7), y.nan_to_num(7)) for x, y in zip(inputs, before, strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_length_outside_of_the_room_reads_nothing_outside(kernel):
    q, cache, table, _ = inputs_of(workload(B=2, N=640, full=True))
    outside, inside = (
        torch.tensor(lengths, dtype=torch.int32, device="cuda") for lengths in ([10**6, -5], [640, 0])
    )
    out = kernel.mla_decode(q, cache, table, outside)

    assert error(out, (q, cache, table, inside)) <= 1
    assert torch.equal(out, kernel.mla_decode(q, cache, table, inside))
    assert not out[1].any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_that_grow_move_the_maximum_often(kernel):
    q, cache, table, n = inputs_of(workload(B=3, N=2000, full=True))
    q, cache = q.abs() / 4, cache.abs() / 4
    cache[table.long()] *= torch.linspace(1, 8, table.shape[1], device="cuda").bfloat16()[:, None, None]
    inputs = q, cache, table, n

    assert error(kernel.mla_decode(*inputs), inputs) <= 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_other_work_before_and_behind_it_on_another_stream(kernel):
    """Answers lie in memory that was just given back; the second kernel waits for the first, and the next for both."""
    inputs = inputs_of(workload(B=20, N=3000))
    alone = kernel.mla_decode(*inputs)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(50):
            torch.full((64, 2**20), torch.nan, device="cuda")
            assert torch.equal(kernel.mla_decode(*inputs), alone)
    torch.cuda.current_stream().wait_stream(stream)


def test_the_libraries_are_right_where_they_are_installed():
    """FlashInfer compiles for minutes the first time; where one is not installed, one line says so."""
    w = workload(B=4, N=16 * PAGE, full=True)
    generator = torch.Generator("cuda").manual_seed(0)
    assert checked_error(library.sdpa_gathered, w, generator) <= PROBLEM.max_error(w)
    for installed, function in (
        (library.flashinfer_version(), library.flashinfer_fa3),
        (library.flash_mla_version(), library.flash_mla),
    ):
        if installed:
            assert checked_error(function, w, generator) <= PROBLEM.max_error(w)
        else:
            with pytest.raises(RuntimeError, match=r"^\w+: not installed here: "):
                function(*inputs_of(w))


def test_what_is_refused_on_a_card():
    q, cache, table, n = inputs_of(workload(B=2, N=64))
    for kernel in KERNELS:
        with pytest.raises(ValueError, match=r"^cache: expected a tensor on cuda:0, got cpu$"):
            kernel.mla_decode(q, cache.cpu(), table, n)
        with pytest.raises(TypeError, match=r"^q: expected bfloat16 or float16, got float32$"):
            kernel.mla_decode(q.float(), cache, table, n)
