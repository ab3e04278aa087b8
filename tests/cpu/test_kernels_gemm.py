"""The matrix multiplies on tensor cores, lane by lane on the CPU: right at every edge, wrong with a fault planted."""

import re
from dataclasses import asdict
from math import nan
from types import SimpleNamespace

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.gemm import by_tiles, k01_cuda_cores, k02_wmma, k03_mma_sync, library
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

SHAPES = {
    "one warp": k03_mma_sync.Shape(BM=64, BN=32, BK=32, WM=64, WN=32, STAGES=3, GROUP=2),
    "narrow warps": k03_mma_sync.Shape(BM=64, BN=128, BK=64, WM=32, WN=32, STAGES=2, GROUP=3),
    "the card's": k03_mma_sync.SHAPES[9, 0],
    "elsewhere": k03_mma_sync.ELSEWHERE,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(kernel module, a, b, text=..., **options) -> a @ b, its memory full of NaN before."""
    built = {}

    def run(module, a, b, text=None, **options):
        def load_kernel(source, name, defines=None):
            key = name, tuple((defines or {}).items()), text
            if key not in built:
                built[key] = build(tmp_path_factory.mktemp(name), source, name, defines, text)
            return built[key]

        def launch(kernel, grid, block, *args, shared_bytes=0):
            kernel(grid, block, *args, shared_bytes=shared_bytes)

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
            launcher = module if hasattr(module, "launch") else by_tiles
            patch.setattr(launcher, "load_kernel", load_kernel)
            patch.setattr(launcher, "launch", launch)
            patch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
            patch.setattr(torch.cuda, "current_device", lambda: 0)
            patch.setattr(
                torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=3)
            )
            patch.setattr(torch, "empty", lambda *size, **how: torch.full(*size, nan, **how))
            if hasattr(module, "allow_shared_memory"):
                patch.setattr(module, "allow_shared_memory", lambda kernel, n_bytes: None)
            return module.gemm(a, b, **options)

    return run


def error_of(run, module, w, **options):
    a, b = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    return worst_error(run(module, a, b, **options), PROBLEM.reference(a, b))


SIZES = [(1, 1, 1), (3, 3, 3), (64, 64, 128), (130, 200, 136), (72, 136, 40), (127, 127, 127), (33, 65, 17)]


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kernel", [k01_cuda_cores, k02_wmma, k03_mma_sync], ids=lambda k: k.__name__[-8:])
def test_a_kernel_is_right(run, kernel, dtype, M, N, K):
    w = Workload.of(dtype, M=M, N=N, K=K)

    assert kernel.supports(w)
    assert error_of(run, kernel, w) <= PROBLEM.max_error(w)


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_mma_sync_is_right(run, shape, M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)

    assert error_of(run, k03_mma_sync, w, shape=shape) <= PROBLEM.max_error(w)


FAULTS = {
    "k01: tiles read before they are complete": (
        k01_cuda_cores,
        "__syncthreads();  // the tiles are complete",
        "",
    ),
    "k01: tiles written while they are read": (k01_cuda_cores, "__syncthreads();  // nobody reads", "//"),
    "k01: a column of A in the wrong row": (
        k01_cuda_cores,
        "a_tile[a_column + i]",
        "a_tile[a_column + 7 - i]",
    ),
    "k02: tiles read before they are complete": (k02_wmma, "__syncthreads();  // the tiles are complete", ""),
    "k02: rows that are not as long as they are": (k02_wmma, "[k], BK + PAD)", "[k], BK)"),
    "k02: a fragment one step off": (
        k02_wmma,
        "&b_tile[k][warp_n + j * F]",
        "&b_tile[k][warp_n + (j ^ 1) * F]",
    ),
    "k02: a square read before it is complete": (
        k02_wmma,
        "mem_row_major);\n      __syncwarp();",
        "mem_row_major);",
    ),
    "k03: nobody waits for the first tiles": (
        k03_mma_sync,
        "wait_for_all_but<STAGES - 2>();\n  __syncthreads();",
        "__syncthreads();",
    ),
    "k03: one group more may be late": (
        k03_mma_sync,
        "wait_for_all_but<STAGES - 2>();\n          __syncthreads();",
        "wait_for_all_but<STAGES - 1>();\n          __syncthreads();",
    ),
    "k03: no barrier behind the wait": (k03_mma_sync, "__syncthreads();  // it is filled", "//"),
    "k03: read without the swizzle": (k03_mma_sync, "(a_lane ^ step * 32)", "(a_lane + step * 32)"),
    "k03: B is not transposed": (k03_mma_sync, "load_matrices_transposed(", "load_matrices("),
    "k03: sums begin with those of the tile before": (
        k03_mma_sync,
        "[i % 4] = 0.0f",
        "[i % 4] *= tile < 3 ? 0 : 1",
    ),
    "k03: rows of a strip change places": (k03_mma_sync, "to + 8 * PITCH", "to + 4 * PITCH"),
    "k03: the last tile of k reaches too far": (k03_mma_sync, "< k_left - b_row ?", "< k_left - b_row + 8 ?"),
}


@pytest.mark.parametrize(("kernel", "right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, kernel, right, wrong):
    text = kernel.SOURCE.read_text()
    assert text.count(right) == 1
    w = Workload.of("bfloat16", M=136, N=264, K=200)
    b_and_more = torch.full((208, 264), nan, dtype=torch.bfloat16)  # what lies behind B is no zero
    a, b = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    b_and_more[:200] = b
    broken = text.replace(right, wrong)
    try:
        error = worst_error(run(kernel, a, b_and_more[:200], text=broken), PROBLEM.reference(a, b))
    except RuntimeError:  # threads that wait for ever, an address between two vectors
        error = nan

    assert not error <= PROBLEM.max_error(w)


def test_rows_that_begin_between_two_vectors(run):
    for kernel in (k01_cuda_cores, k02_wmma, k03_mma_sync):
        w = Workload.of("bfloat16", M=40, N=64, K=48)
        a, b = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
        shifted = torch.zeros(a.numel() + 1, dtype=a.dtype)[1:].view(a.shape)
        shifted.copy_(a)

        assert shifted.data_ptr() % 16 == 2
        assert worst_error(run(kernel, shifted, b), PROBLEM.reference(a, b)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", [k01_cuda_cores, k02_wmma, k03_mma_sync], ids=lambda k: k.__name__[-8:])
def test_what_is_refused(run, kernel):
    a = torch.zeros(8, 8, dtype=torch.bfloat16)

    assert not kernel.supports(Workload.of("float32", M=8, N=8, K=8))
    for wrong, b, line in (
        (TypeError, a.float(), "b: expected bfloat16, got float32"),
        (TypeError, a.half(), "b: expected bfloat16, got float16"),
        (ValueError, a[:7], "b: expected (K, N) with K=8, got (7, 8)"),
        (ValueError, a.t(), "b: expected contiguous (K, N), got strides (1, 8)"),
        (ValueError, a[0], "b: expected (K, N) with no empty dimension, got (8,)"),
    ):
        with pytest.raises(wrong, match=re.escape(line)):
            run(kernel, a, b)
    with pytest.raises(TypeError, match="a: expected bfloat16 or float16, got float32"):
        run(kernel, a.float(), a)


# --- shared memory and machine code -------------------------------------------------------------------


def banks_met_twice(addresses):
    """Whether vectors of 16 bytes, read eight at a time, ask one bank twice."""
    return any(
        len({address // 16 % 8 for address in addresses[i : i + 8]}) < 8 for i in range(0, len(addresses), 8)
    )


def swizzled(row_bytes, row, column):
    """As in k03_mma_sync.cu."""
    vectors = min(row_bytes // 16, 8)
    return row * row_bytes + (column ^ (row * vectors // 8 % vectors)) * 16


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_ldmatrix_meets_no_bank_twice(shape):
    for row_bytes, first in ((shape.BK * 2, 0), (shape.BN * 2, 8)):
        lanes = [swizzled(row_bytes, 16 + lane % 16, first + lane // 16) for lane in range(32)]
        rows = range(2 * shape.BK)
        columns = range(row_bytes // 16)

        assert not banks_met_twice(lanes)
        assert sorted(swizzled(row_bytes, r, c) for r in rows for c in columns) == [
            16 * i for i in range(len(rows) * len(columns))
        ]
    without = [(16 + lane % 16) * shape.BN * 2 + lane // 16 * 16 for lane in range(32)]
    assert banks_met_twice(without)


def test_padded_fragments_meet_no_bank_twice():
    for row_bytes in (80, 272):  # BK + PAD and BN + PAD of k02_wmma, in bytes
        assert not banks_met_twice([row * row_bytes for row in range(8)])
    assert banks_met_twice([row * 64 for row in range(8)])


def instructions_of(kernel, arch="sm_90a", **defines):
    pytest.importorskip("cuda.core")
    return sass(compile_cubin(kernel.SOURCE, arch, defines))


def count(name, instructions):
    return len(re.findall(rf"\b{name}\b", instructions))


@pytest.mark.parametrize("capability", [*k03_mma_sync.SHAPES, (8, 6)])
def test_mma_sync_keeps_everything_in_registers(capability):
    shape = k03_mma_sync.SHAPES.get(capability, k03_mma_sync.ELSEWHERE)
    text = instructions_of(k03_mma_sync, TYPE="Bf16", WHOLE=1, **asdict(shape))
    fragments = shape.BK // 16

    assert count(r"LDL(?:\.\w+)*|STL(?:\.\w+)*", text) == 0
    assert count(r"HMMA\.16816\.F32\.BF16", text) == fragments * (shape.WM // 16) * (shape.WN // 8)
    assert count(r"LDSM\.16\.M88\.4", text) == (fragments + 1) * (shape.WM // 16)
    assert count(r"LDSM\.16\.MT88\.4", text) == (fragments + 1) * (shape.WN // 16)


def test_only_the_cuda_cores_kernel_has_no_tensor_core_instruction():
    cuda_cores = instructions_of(k01_cuda_cores, TYPE="__nv_bfloat16", WHOLE=1)

    assert count("HMMA", cuda_cores) == 0
    assert count("FFMA", cuda_cores) == 16 * 8 * 8
    assert count(r"HMMA\.16816\.F32\.BF16", instructions_of(k02_wmma, TYPE="__nv_bfloat16", WHOLE=1)) == 32
    assert count(r"HMMA\.16816\.F32", instructions_of(k02_wmma, TYPE="__half", WHOLE=1)) == 32


# --- the library --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_cublaslt_leaves_the_callers_library_alone(monkeypatch, fails):
    chosen = ["cublas"]

    def prefer(which=None):
        if which is not None:
            chosen.append(which)
        return chosen[-1]

    def mm(a, b):
        assert chosen[-1] == "cublaslt"
        if fails:
            raise RuntimeError("out of memory")
        return a

    monkeypatch.setattr(torch.backends.cuda, "preferred_blas_library", prefer)
    monkeypatch.setattr(torch, "mm", mm)
    x = torch.zeros(2, 2, dtype=torch.bfloat16)
    if fails:
        with pytest.raises(RuntimeError, match="out of memory"):
            library.cublaslt(x, x)
    else:
        assert library.cublaslt(x, x) is x
    assert chosen == ["cublas", "cublaslt", "cublas"]
