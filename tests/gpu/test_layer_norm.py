"""LayerNorm on the card: the published size and any parts, in a graph; torch, and the published kernels."""

import pytest
import torch

from course_kernels.layer_norm import k01_row_a_block, k02_row_split, k03_row_kept, k04_two_buffers, library
from course_kernels.layer_norm.problem import PROBLEM, PUBLISHED
from course_kernels.measure import count_many
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("layer_norm",)
KERNELS = (k01_row_a_block, k02_row_split)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


@pytest.mark.parametrize(
    "competitor", [k03_row_kept, k04_two_buffers, k04_two_buffers.without_buffers, library.torch_compile]
)
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize(("M", "N"), [(16384, 4096), (65536, 1024), (5000, 8192), (3001, 5000)])
def test_rows_that_are_kept_are_right(competitor, M, N, offset):
    w = Workload.of("float32", M=M, N=N, **({"offset": True} if offset else {}))

    assert checked_error(competitor, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", [k03_row_kept, k04_two_buffers])
def test_rows_that_are_kept_past_2_to_the_31_numbers(kernel):
    w = Workload.of("float32", M=2**31 // 8192 + 3, N=8192)
    x, g, b = inputs_of(w)
    last = x[-1:].clone()
    out = kernel.layer_norm(x, g, b)[-1:]

    assert error(out, (last, g, b)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("competitor", [*KERNELS, library.torch_eager, library.torch_compile])
@pytest.mark.parametrize("w", PROBLEM.time_on, ids=lambda w: w.label)
def test_the_sizes_that_are_timed_are_right(competitor, w):
    torch._dynamo.reset()  # what other tests compiled counts towards its limit for one function
    assert checked_error(competitor, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("M", "N"), [(3, 2**22), (100, 5000), (1, 10_000_019)])
def test_rows_far_from_0(kernel, M, N):
    w = Workload.of("float32", M=M, N=N, offset=True)

    assert checked_error(kernel, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("parts", [1, 2, 7, 66, 1000, 1024])
def test_any_number_of_parts_is_right(parts):
    w = Workload.of("float32", M=5, N=1_000_003)
    inputs = inputs_of(w)

    assert error(k02_row_split.layer_norm(*inputs, parts=parts), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_than_2_to_the_31_numbers(kernel):
    """The last row begins behind 2**31 numbers, and answers as it does alone."""
    w = Workload.of("float32", M=520, N=2**22)
    x, g, b = inputs_of(w)
    last = x[-1:].clone()
    out = kernel.layer_norm(x, g, b)[-1:]

    assert error(out, (last, g, b)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_call_gives_the_same_bits(kernel):
    inputs = inputs_of(Workload.of("float32", M=16, N=2**20))
    first = kernel.layer_norm(*inputs)
    for _ in range(50):
        assert torch.equal(kernel.layer_norm(*inputs), first)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_graph_serves_other_values(kernel):
    w = Workload.of("float32", M=16, N=300_000)
    inputs = inputs_of(w)
    kernel.layer_norm(*inputs)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.layer_norm(*inputs)
    for seed in range(1, 4):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        out.fill_(torch.nan)
        graph.replay()

        assert error(out, inputs) <= PROBLEM.max_error(w)


def test_x_is_read_twice_and_written_once():
    """At the published size nothing of a row is left in L2 when it is read again."""
    (counted,) = count_many([(k02_row_split, PUBLISHED)])
    x, columns = 4 * PUBLISHED.M * PUBLISHED.N, 4 * PUBLISHED.N

    assert 1.5 * x < counted.read_bytes < 2 * x + PUBLISHED.M * 2 * columns
    assert counted.write_bytes == pytest.approx(x, rel=0.1)


def test_a_row_that_is_kept_is_read_once():
    w = Workload.of("float32", M=16384, N=4096)
    x = 4 * w.M * w.N
    in_l2 = torch.cuda.get_device_properties(0).L2_cache_size  # what was written last need not have left it
    for counted in count_many([(k03_row_kept, w), (k04_two_buffers, w)]):
        assert counted.read_bytes == pytest.approx(x, rel=0.1)
        assert x - in_l2 <= counted.write_bytes < 1.1 * x


def test_the_published_kernels_where_they_are_at_hand():
    """Right near 0, at the size they were made for and beside it; far from 0 they are not, and say nothing."""
    if not library.CRFM.at_hand():
        with pytest.raises(RuntimeError, match=r"^LayerNorm/src\.py: not at hand: clone "):
            library.crfm(*inputs_of(Workload.of("float32", M=2, N=64)))
        return
    for w in (PUBLISHED, Workload.of("float32", M=37, N=1000), Workload.of("float32", M=16384, N=4096)):
        assert checked_error(library.crfm, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)
    with pytest.raises(WrongResult):
        checked_error(library.crfm, Workload.of("float32", M=16, N=65536, offset=True), 0)
