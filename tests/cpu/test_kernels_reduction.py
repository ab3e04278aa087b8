"""The sums on the CPU: CUDA thread by thread, Triton interpreted; and what one float32 total can hold."""

import re
from math import nan, sqrt

import numpy as np
import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass, stacks

from course_kernels.cuda.compile import compile_cubin
from course_kernels.problem import Workload, worst_error
from course_kernels.reduction import by_blocks, k01_atomics, k02_tree, k03_shuffle, k04_vectorised, k05_triton
from course_kernels.reduction.library import torch_sum
from course_kernels.reduction.problem import PROBLEM

pytestmark = pytest.mark.kept

CUDA = (k01_atomics, k02_tree, k03_shuffle, k04_vectorised)
SIZES = [1, 3, 4, 31, 33, 255, 256, 257, 1000, 1025, 4096, 4099, 20_011]


def name_of(kernel):
    return kernel.__name__.rpartition(".")[2]


def vector(N, seed=0):
    w = Workload.of("float32", N=N)
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")[0]


def error_of(y, x):
    return worst_error(y, PROBLEM.reference(x))


def allowed(N):
    return PROBLEM.max_error(Workload.of("float32", N=N))


def launcher_of(kernel):
    """The module that launches: kernels 1 to 3 share one."""
    return kernel if kernel is k04_vectorised else by_blocks


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(kernel module, x, text=..., blocks=...) -> the sum, its memory full of NaN before."""
    built = {}

    def run(module, x, text=None, blocks=32):
        def load_kernel(source, name, defines=None):
            if (name, text) not in built:
                built[name, text] = build(tmp_path_factory.mktemp(name), source, name, defines, text)
            return built[name, text]

        with pytest.MonkeyPatch.context() as patch:
            launcher = launcher_of(module)
            patch.setattr(launcher, "load_kernel", load_kernel)
            patch.setattr(launcher, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args))
            patch.setattr(module, "multiprocessors", lambda device: 1, raising=False)
            patch.setattr(module, "BLOCKS_PER_MULTIPROCESSOR", blocks, raising=False)
            patch.setattr(torch, "empty", lambda size, **how: torch.full((size,), nan, **how))
            return module.reduction(x)

    return run


@pytest.mark.parametrize("N", SIZES)
@pytest.mark.parametrize("kernel", CUDA, ids=name_of)
def test_the_sum_is_right(run, kernel, N):
    x = vector(N)
    y = run(kernel, x)

    assert y.shape == (1,)
    assert error_of(y, x) <= allowed(N)


@pytest.mark.parametrize("N", [*SIZES, 32_768, 32_769, 100_003])
def test_triton_sums_right(N):
    x = vector(N)

    assert error_of(k05_triton.reduction(x), x) <= allowed(N)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_a_block_strides_on_until_nothing_is_left(run, blocks):
    for N in (4096 * blocks, 20_011, 40_003):
        x = vector(N)

        assert error_of(run(k04_vectorised, x, blocks=blocks), x) <= allowed(N)


def test_many_partial_sums_round_less_than_one(run):
    x = vector(20_011)

    assert error_of(run(k04_vectorised, x), x) <= allowed(20_011) / 50
    assert error_of(torch_sum(x), x) <= allowed(20_011) / 50


FAULTS = {
    "no barrier in the tree": (k02_tree, "__syncthreads();", ""),
    "a step too few in the tree": (k02_tree, "half > 0", "half > 1"),
    "a step too few between lanes": (k03_shuffle, "step > 0", "step > 1"),
    "no barrier between warps": (k03_shuffle, "__syncthreads();", ""),
    "warps that are not there are added": (
        k03_shuffle,
        "lane < WARPS ? part[lane] : 0.0f",
        "part[lane % WARPS]",
    ),
    "the tail is left out": (k04_vectorised, "total += x[tail]", "total += 0.0f"),
    "the tail is added by everyone": (k04_vectorised, "blockIdx.x == 0 && tail", "tail"),
    "the last stride is left out": (k04_vectorised, "for (; i < n_vectors; i += THREADS)", "if (false)"),
    "one component is left out": (k04_vectorised, "sum.z += v.z;", ""),
}


@pytest.mark.parametrize(("kernel", "right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, kernel, right, wrong):
    text = kernel.SOURCE.read_text()
    assert text.count(right) == 1
    x = vector(20_011)
    y = run(kernel, x, text=text.replace(right, wrong), blocks=2)

    assert not error_of(y, x) <= allowed(20_011)


# --- the tolerance ------------------------------------------------------------------------------------


@pytest.mark.parametrize("N", [w.N for w in PROBLEM.check_on if 1 < w.N < 30_000])
def test_one_element_left_out_is_refused(N):
    x = vector(N)
    typical = x[(x - 0.5).abs().argmin()]
    rest = (PROBLEM.reference(x) - typical.double()).float()

    assert not error_of(rest, x) <= allowed(N)


def test_a_block_left_out_of_a_million_is_refused():
    x = vector(1_000_003)

    assert not error_of(PROBLEM.reference(x[256:]), x) <= allowed(1_000_003)


def one_running_sum(N):
    """What N additions to one float32 total give, one after the other, and the truth."""
    total, truth = np.float32(0), 0.0
    for seed in range(-(-N // 2**22)):
        part = vector(min(N, 2**22), seed).numpy()
        truth += float(part.sum(dtype=np.float64))
        total = np.add.accumulate(np.concatenate([[total], part]).astype(np.float32), dtype=np.float32)[-1]
    return torch.tensor([total]), torch.tensor([truth], dtype=torch.float64)


@pytest.mark.parametrize("N", [1000, 2**20, 2**24])
def test_one_total_is_good_enough_up_to_2_to_the_24(N):
    total, truth = one_running_sum(N)

    assert worst_error(total, truth) <= allowed(N)
    assert k01_atomics.supports(Workload.of("float32", N=N))


def test_one_total_stops_growing():
    """At 2**24 a float32 has no room for a number below one: it stays, whatever is added."""
    total, truth = one_running_sum(2**26)

    assert total.item() == 2**24
    assert not worst_error(total, truth) <= 100 * allowed(2**26)
    assert not k01_atomics.supports(Workload.of("float32", N=2**24 + 1))


def test_the_tolerance_is_six_deviations_of_that_walk():
    N = 2**14
    x = np.random.default_rng(0).random((200, N), dtype=np.float32)
    totals = np.add.accumulate(x, axis=1, dtype=np.float32)[:, -1]
    truths = x.sum(axis=1, dtype=np.float64)
    errors = (totals - truths) / (2 * truths)

    assert 0.3 < errors.std() / (sqrt(N) * 2**-24 / 6) < 1


# --- machine code and refusals ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", CUDA, ids=name_of)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
def test_nothing_spills(kernel, arch):
    pytest.importorskip("cuda.core")

    assert not any(stacks(compile_cubin(kernel.SOURCE, arch)))


def test_the_best_asks_for_all_its_vectors_before_it_adds():
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(k04_vectorised.SOURCE, "sm_90a"))
    order = re.findall(r"\b(?:LDG\.E\.128|FADD)\b", code)

    assert order[:5] == 4 * ["LDG.E.128"] + ["FADD"]


@pytest.mark.parametrize("kernel", [*CUDA, k05_triton], ids=name_of)
def test_launchers_refuse(kernel):
    with pytest.raises(TypeError, match=re.escape("x: expected float32, got float64")):
        kernel.reduction(torch.zeros(3, dtype=torch.float64))
    with pytest.raises(ValueError, match=re.escape("x: expected (N,) with no empty dimension, got (2, 3)")):
        kernel.reduction(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=re.escape("x: expected contiguous (N,), got strides (2,)")):
        kernel.reduction(torch.zeros(8)[::2])


def test_vectors_begin_at_multiples_of_16_bytes():
    with pytest.raises(
        ValueError, match=re.escape("x: expected an address divisible by 16, got one 4 bytes")
    ):
        k04_vectorised.reduction(torch.zeros(9)[1:])


def test_the_block_of_launcher_and_kernel_agree():
    for kernel in (k02_tree, k03_shuffle, k04_vectorised):
        assert f"constexpr int THREADS = {launcher_of(kernel).THREADS};" in kernel.SOURCE.read_text()
    vectors = int(re.search(r"constexpr int VECTORS = (\d+);", k04_vectorised.SOURCE.read_text())[1])
    assert k04_vectorised.THREADS * vectors * 4 == k04_vectorised.ELEMENTS
