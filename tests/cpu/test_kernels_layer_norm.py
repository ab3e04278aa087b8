"""LayerNorm in the interpreter: rows in one part and in many, far from 0; planted faults; the peers; refusals."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from planted import planted, seen

from course_judge.worker.interpreter import watched_memory
from course_kernels.layer_norm import (
    k01_row_a_block,
    k02_row_split,
    k03_row_kept,
    k04_two_buffers,
    library,
    statistics,
)
from course_kernels.layer_norm.problem import EPSILON, OFFSET, PROBLEM, PUBLISHED
from course_kernels.measure.check import checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

KERNELS = [k01_row_a_block, k02_row_split, k03_row_kept, k04_two_buffers]
TAKES = {k03_row_kept: 16384, k04_two_buffers: 8192}  # numbers of a row, at most
FAR = Workload.of("float32", M=3, N=97, offset=True)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("M", "N", "offset"), [(1, 1, False), (3, 31, False), (2, 9001, False), (2, 8192, True)]
)
def test_rows_of_any_length_are_right(kernel, M, N, offset):
    w = Workload.of("float32", M=M, N=N, **({"offset": True} if offset else {}))
    inputs = inputs_of(w)
    if TAKES.get(kernel, N) < N:
        assert not kernel.supports(w)
        with pytest.raises(ValueError, match=rf"^x: expected N <= {TAKES[kernel]}, got N={N}$"):
            kernel.layer_norm(*inputs)
        return

    assert error(kernel.layer_norm(*inputs), inputs) <= PROBLEM.max_error(w) / 2


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_any_number_of_parts_is_right_and_nothing_outside_is_touched(parts):
    inputs = inputs_of(FAR)
    with watched_memory(shuffle=1) as memory:
        out = k02_row_split.layer_norm(*inputs, parts=parts)

    assert memory.findings == []
    assert error(out, inputs) <= PROBLEM.max_error(FAR) / 2


@pytest.mark.parametrize("function", [k04_two_buffers.layer_norm, k04_two_buffers.without_buffers])
@pytest.mark.parametrize("programs", [None, 1, 2, 3, 7])
def test_any_number_of_programs_that_stay_gives_the_same_bits(function, programs):
    inputs = inputs_of(FAR)
    with watched_memory(shuffle=1) as memory:
        out = function(*inputs, programs=programs)

    assert memory.findings == []
    assert torch.equal(out, k03_row_kept.layer_norm(*inputs))
    with pytest.raises(ValueError, match=r"^programs: expected at least 1, got -1$"):
        function(*inputs, programs=-1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_row_of_one_value_is_the_bias_to_the_last_bit(kernel):
    x, g, b = torch.full((1, 1000), 0.1), torch.full((1000,), 3.0), torch.linspace(-1, 1, 1000)

    assert torch.equal(kernel.layer_norm(x, g, b)[0], b)


@pytest.mark.parametrize("kernel", KERNELS)
def test_epsilon_is_the_caller_s_and_the_variance_is_over_n(kernel):
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    y = kernel.layer_norm(x, torch.ones(4), torch.zeros(4), eps=0.5)

    torch.testing.assert_close(y, (x - 3.0) / 2.0)  # squared distances 4, 1, 0, 9: their mean is 3.5


def test_the_truth_is_torch_s_in_float64():
    x, g, b = (t.double() for t in inputs_of(FAR))
    expected = torch.nn.functional.layer_norm(x, (97,), g, b, EPSILON)

    torch.testing.assert_close(PROBLEM.reference(x, g, b), expected)


# --- what is refused --------------------------------------------------------------------------------------


def by_squares(x, g, b):
    """The variance as the mean of the squares less the square of the mean."""
    mean = x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True) - mean * mean
    return (x - mean) * torch.rsqrt(variance + EPSILON) * g + b


def test_squares_less_a_square_pass_near_0_and_are_refused_far_from_it():
    near = Workload.of("float32", M=3, N=97)
    inputs = inputs_of(near)

    assert error(by_squares(*inputs), inputs) <= PROBLEM.max_error(near)
    assert seen(PROBLEM, by_squares, FAR)
    assert error(by_squares(*inputs_of(FAR)), inputs_of(FAR)) > 10 * PROBLEM.max_error(FAR)
    assert error(library.torch_eager(*inputs_of(FAR)), inputs_of(FAR)) <= PROBLEM.max_error(FAR)


@pytest.mark.parametrize("N", [97, 2**17])
def test_half_precision_is_refused_at_every_length(N):
    x, g, b = inputs_of(Workload.of("float32", M=2, N=N))

    for dtype in (torch.bfloat16, torch.float16):
        rough = PROBLEM.reference(x.to(dtype).float(), g, b)
        assert error(rough, (x, g, b)) > PROBLEM.max_error(
            PUBLISHED
        )  # which grows with N, and the error does not


NEAR = Workload.of("float32", M=2, N=300)
FAULTS = {
    "k01: epsilon is forgotten": (k01_row_a_block, "squares / N + epsilon", "squares / N", {}),
    "k01: the variance of a sample": (k01_row_a_block, "squares / N +", "squares / (N - 1) +", {}),
    "k03: zeros past the end are far from the mean": (
        k03_row_kept, "far = tl.where(there, x - mean, 0.0)", "far = x - mean", {},
    ),
    "k03: what the first sum has rounded away counts a row's room": (
        k03_row_kept, "tl.where(there, x - rough, 0.0)", "(x - rough)", {},
    ),
    "k03: the weights and the bias change places": (k03_row_kept, "* g + b", "* b + g", {}),
    "k04: every program begins with the first row": (
        k04_two_buffers, "tl.range(tl.program_id(0), M,", "tl.range(0 * tl.program_id(0), M,", {"programs": 2},
    ),
    "k04: half of the rows is left out": (k04_two_buffers, "tl.num_programs(0), num", "2, num", {"programs": 1}),
    "k02: the last part counts as a whole one": (
        k02_row_split, "tl.minimum(LENGTH, N - p * LENGTH)", "LENGTH", {"parts": 7},
    ),
    "k02: the weights of the first part": (k02_row_split, "g_ptr + first,", "g_ptr,", {"parts": 2}),
    "k02: the parts of the first row": (
        k02_row_split, "(row.to(tl.int64) * PARTS + p) * 2", "p * 2", {"parts": 2},
    ),
    "k02: a part reads past its end": (
        k02_row_split, "tl.minimum(LENGTH, N - first), BLOCK)", "N - first, BLOCK)", {"parts": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("module", "right", "wrong", "options"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(tmp_path, module, right, wrong, options):
    faulty = planted(tmp_path, module, right, wrong)

    assert seen(PROBLEM, lambda *inputs: faulty.layer_norm(*inputs, **options), NEAR)


FAULTS_OF_BOTH = {
    "distances between lanes are forgotten": ("tl.sum(squares + count * far * far)", "tl.sum(squares)"),
    "lanes weigh the same": ("tl.sum((mean - rough) * count)", "tl.sum(mean - rough)"),
    "the last numbers reach every lane": ("(n < left).to(tl.float32), mean", "1.0 + 0.0 * mean, mean"),
    "a step counts as the one before": ("far * (1.0 / (steps + 1.0))", "far * (1.0 / (steps + 0.5))"),
    "the old mean twice": ("        squares += far * (x - mean)", "        squares += far * far"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS_OF_BOTH.values(), ids=FAULTS_OF_BOTH)
def test_a_fault_in_the_statistics_is_seen(tmp_path, monkeypatch, right, wrong):
    faulty = planted(tmp_path, statistics, right, wrong)
    monkeypatch.setattr(k01_row_a_block, "of_numbers", faulty.of_numbers)
    monkeypatch.setattr(k01_row_a_block, "MOST", 128)  # so that a short row takes several steps

    assert seen(PROBLEM, k01_row_a_block.layer_norm, NEAR)


def test_the_check_s_whole_round_passes():
    for kernel, options in ((k01_row_a_block, {}), (k02_row_split, {"parts": 3})):
        function = lambda *inputs, kernel=kernel, options=options: kernel.layer_norm(*inputs, **options)  # noqa: E731
        checked_error(Competitor("right", PROBLEM, function), NEAR, device="cpu")


# --- the launchers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("M", "N", "parts", "length"),
    [
        (16, 2**22, 64, 2**16),  # the published size: 1024 programs on 132 multiprocessors
        (16384, 4096, 1, 4096),  # many short rows: nothing to split
        (1, 2**22, 256, 2**14),  # no part of fewer than four steps
        (1, 2**30, 1024, 2**20),
        (3, 100_000, 5, 20_480),
    ],
)
def test_how_a_row_is_split(M, N, parts, length):
    found = k02_row_split.parts_of(M, N, 132)

    assert found == (parts, length)
    assert (found[0] - 1) * found[1] < N <= found[0] * found[1]


@pytest.mark.parametrize(
    ("M", "N", "programs"), [(16384, 4096, 2 * 132), (16384, 8192, 132), (16384, 64, 16384), (7, 1, 7)]
)
def test_how_many_programs_stay(monkeypatch, M, N, programs):
    monkeypatch.setattr(k04_two_buffers, "interpreted", lambda: False)
    card = SimpleNamespace(multi_processor_count=132 if N > 64 else 10_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    k04_two_buffers.programs_for.cache_clear()
    block = 1 << (N - 1).bit_length()

    assert k04_two_buffers.programs_for(torch.device("cpu"), M, block) == programs
    k04_two_buffers.programs_for.cache_clear()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda x, g, b: (x.double(), g, b), TypeError, "x: expected float32, got float64"),
        (lambda x, g, b: (x, g.half(), b), TypeError, "g: expected float32, got float16"),
        (lambda x, g, b: (x, g, b[:-1]), ValueError, "b: expected (N,) with N=300, got (299,)"),
        (lambda x, g, b: (x.view(2, 3, 100), g, b), ValueError, "x: expected (M, N) with no empty dimension"),
        (lambda x, g, b: (x.t().contiguous().t(), g, b), ValueError, "x: expected contiguous (M, N)"),
    ],
)
def test_what_no_kernel_takes_is_refused(kernel, change, error, says):
    with pytest.raises(error, match=f"^{re.escape(says)}"):
        kernel.layer_norm(*change(*inputs_of(NEAR)))


@pytest.mark.parametrize("parts", [0, 1025])
def test_a_number_of_parts_that_is_none(parts):
    with pytest.raises(ValueError, match=rf"^parts: expected 1 to 1024, got {parts}$"):
        k02_row_split.layer_norm(*inputs_of(NEAR), parts=parts)


# --- the published kernels --------------------------------------------------------------------------------


@pytest.fixture
def launched(monkeypatch):
    """What `crfm` launches, in the place of running it."""
    calls = []
    monkeypatch.setattr(library, "CRFM", SimpleNamespace(source=lambda: Path("theirs.cu")))
    monkeypatch.setattr(library, "load_kernel", lambda path, name: name)
    monkeypatch.setattr(
        library, "launch", lambda kernel, grid, block, *args: calls.append((kernel, grid, block, args))
    )
    return calls


@pytest.mark.parametrize(("M", "N", "parts"), [(16, 65536, 32), (3, 512, 2), (2, 100, 1)])
def test_the_published_kernels_are_launched_as_published(launched, M, N, parts):
    library.crfm(*inputs_of(Workload.of("float32", M=M, N=N)))

    names = [f"layernorm_{name}_kernel" for name in ("partial_sum", "finalize", "apply")]
    assert [(kernel, grid, block) for kernel, grid, block, _ in launched] == [
        (names[0], M * parts, 256), (names[1], M, 1), (names[2], M * parts, 256),
    ]  # fmt: skip
    for *_, args in launched:
        assert np.int32(N) in [a for a in args if isinstance(a, np.int32)]
        assert np.int32(parts) in [a for a in args if isinstance(a, np.int32)]


def test_sizes_that_they_get_wrong_are_not_given_to_them(launched):
    with pytest.raises(
        ValueError, match=r"^x: expected N a multiple of 4 and M \* N < 2\*\*31, got M=2, N=30$"
    ):
        library.crfm(*inputs_of(Workload.of("float32", M=2, N=30)))
    assert launched == []
    assert library.supports(PUBLISHED)
    assert not library.supports(FAR)
    assert not library.supports(Workload.of("float32", M=512, N=2**22))


def test_the_published_size_is_sixty_four_channels_of_images():
    assert (PUBLISHED.M, PUBLISHED.N) == (16, 4194304)
    assert OFFSET**2 == 2**16  # fp32 keeps seven bits of it behind the point
    assert PROBLEM.reads_bytes(PUBLISHED) + PROBLEM.writes_bytes(PUBLISHED) == 4 * (2 * 2**26 + 2 * 2**22)
