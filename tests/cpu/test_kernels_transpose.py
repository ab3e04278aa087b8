"""The transposes on the CPU, thread by thread: right at every edge, wrong where a fault is planted."""

import re
from math import nan

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass, stacks

from course_kernels.cuda.compile import compile_cubin
from course_kernels.problem import Workload
from course_kernels.transpose import by_tiles, k01_naive, k02_tiled, k03_padded, k04_swizzled, k05_vectorised
from course_kernels.transpose.library import torch_transpose

pytestmark = pytest.mark.kept

KERNELS = (k01_naive, k02_tiled, k03_padded, k04_swizzled, k05_vectorised)
SIZES = [(1, 1), (1, 70), (70, 1), (31, 33), (64, 64), (100, 36), (65, 68), (68, 65), (130, 129), (128, 192)]


def name_of(kernel):
    return kernel.__name__.rpartition(".")[2]


def launcher_of(kernel):
    """The module that launches: kernels 1 to 4 share one."""
    return kernel if kernel is k05_vectorised else by_tiles


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(kernel module, x, text=...) -> the transpose, its memory full of NaN before."""
    built, asked = {}, []

    def run(module, x, text=None):
        def load_kernel(source, name, defines=None):
            asked.append(name)
            if (name, text) not in built:
                built[name, text] = build(tmp_path_factory.mktemp(name), source, name, defines, text)
            return built[name, text]

        with pytest.MonkeyPatch.context() as patch:
            launcher = launcher_of(module)
            patch.setattr(launcher, "load_kernel", load_kernel)
            patch.setattr(launcher, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args))
            patch.setattr(torch, "empty", lambda *size, **how: torch.full(*size, nan, **how))
            return module.transpose(x)

    run.asked = asked
    return run


def matrix(M, N):
    return torch.randn(M, N, generator=torch.Generator().manual_seed(M * N))


@pytest.mark.parametrize(("M", "N"), SIZES)
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_the_transpose_is_exact(run, kernel, M, N):
    x = matrix(M, N)

    assert torch.equal(run(kernel, x), x.t())


@pytest.mark.parametrize(("M", "N"), [(1, 5), (5, 1), (3, 4)])
def test_the_library_gives_memory_of_its_own(M, N):
    x = matrix(M, N)
    y = torch_transpose(x)

    assert torch.equal(y, x.t())
    assert y.is_contiguous()
    assert y.data_ptr() != x.data_ptr()


def test_vectors_are_used_where_they_fit_and_only_there(run):
    unaligned = torch.zeros(64 * 64 + 1)[1:].view(64, 64)
    run.asked.clear()
    for x in (matrix(64, 64), matrix(4, 8), matrix(64, 65), matrix(65, 64), unaligned):
        run(k05_vectorised, x)

    assert run.asked == ["transpose_vectorised", "transpose_vectorised", *3 * ["transpose_any"]]


FAULTS = {
    "no barrier": (k04_swizzled, "__syncthreads();", ""),
    "no barrier between vectors": (k05_vectorised, "__syncthreads();", ""),
    "written without the swizzle": (k04_swizzled, "tile[row][threadIdx.x ^ row]", "tile[row][threadIdx.x]"),
    "the tile keeps its place": (
        k02_tiled,
        "m = first_m + threadIdx.x, n = first_n",
        "m = first_n + threadIdx.x, n = first_m",
    ),
    "two rows of a square change places": (k05_vectorised, "{r[0].y, r[1].y,", "{r[1].y, r[0].y,"),
    "a square is not turned": (k05_vectorised, "swizzled(n + 1, vector)] =", "swizzled(n + 2, vector)] ="),
}


@pytest.mark.parametrize(("kernel", "right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, kernel, right, wrong):
    text = kernel.SOURCE.read_text()
    assert text.count(right) == 1
    x = matrix(68, 68)
    y = run(kernel, x, text=text.replace(right, wrong))

    assert not torch.equal(y, x.t())


# --- banks --------------------------------------------------------------------------------------------


def turns(words):
    """How often 32 banks of 4 bytes must answer until each of the words was read once."""
    banks = [word % 32 for word in set(words)]
    return max(banks.count(bank) for bank in banks)


def test_what_a_column_of_each_tile_costs():
    lanes = range(32)

    assert turns(lane * 32 + 5 for lane in lanes) == 32  # k02
    assert turns(lane * 33 + 5 for lane in lanes) == 1  # k03
    assert turns(lane * 32 + (5 ^ lane) for lane in lanes) == 1  # k04, a column
    assert turns(5 * 32 + (lane ^ 5) for lane in lanes) == 1  # k04, a row


def test_vectors_meet_all_banks():
    """Eight threads share a turn, 16 bytes each: the shared accesses of k05, for every one of its threads."""
    across_m, across_n = k05_vectorised.TILE_M // 4, k05_vectorised.TILE_N // 4

    def swizzled(n, vector):
        return n * across_m + (vector ^ n // 4) % across_m

    def words(places):
        return [4 * place + word for place in places for word in range(4)]

    squares = k05_vectorised.TILE_M * k05_vectorised.TILE_N // 16
    for first in range(0, squares, 8):
        for i in range(4):
            written = [swizzled(s % across_n * 4 + i, s // across_n) for s in range(first, first + 8)]
            read = [divmod(p, across_m) for p in range(4 * first + 8 * i, 4 * first + 8 * i + 8)]

            assert turns(words(written)) == 1
            assert turns(words(swizzled(n, vector) for n, vector in read)) == 1


# --- machine code and refusals ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
def test_nothing_spills(kernel, arch):
    pytest.importorskip("cuda.core")

    assert not any(stacks(compile_cubin(kernel.SOURCE, arch)))


def test_the_best_moves_16_bytes_with_every_instruction():
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(k05_vectorised.SOURCE, "sm_90a"))
    whole = code.split(".section\t.text.transpose_vectorised")[1].split(".section\t.text.")[0]

    for instruction in ("LDG.E", "STG.E", "LDS", "STS"):
        found = re.findall(rf"\b{re.escape(instruction)}[.\w]*", whole)
        assert len(found) == 4
        assert all(".128" in name for name in found)


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_launchers_refuse(kernel, monkeypatch):
    with pytest.raises(TypeError, match=re.escape("x: expected float32, got float16")):
        kernel.transpose(torch.zeros(2, 3, dtype=torch.float16))
    with pytest.raises(ValueError, match=re.escape("x: expected (M, N) with no empty dimension, got (3,)")):
        kernel.transpose(torch.zeros(3))
    with pytest.raises(ValueError, match=re.escape("x: expected contiguous (M, N), got strides (1, 3)")):
        kernel.transpose(torch.zeros(4, 3).t())
    monkeypatch.setattr(by_tiles, "MAX_SIZE", 3)
    with pytest.raises(ValueError, match=re.escape("x: expected N <= 3, got N=4")):
        kernel.transpose(torch.zeros(1, 4))


def test_the_tiles_of_launcher_and_kernel_agree():
    for kernel in KERNELS:
        text = kernel.SOURCE.read_text()
        launcher = launcher_of(kernel)
        names = [n for n in ("TILE", "ROWS", "TILE_M", "TILE_N", "THREADS") if hasattr(launcher, n)]
        assert names
        for name in names:
            assert f"constexpr int {name} = {getattr(launcher, name)};" in text


def test_the_workload_to_time_is_past_every_cache():
    from course_kernels.transpose.problem import PROBLEM

    assert [PROBLEM.reads_bytes(w) for w in PROBLEM.time_on] == [2**30]
    assert PROBLEM.writes_bytes(Workload.of("float32", M=3, N=5)) == 60
