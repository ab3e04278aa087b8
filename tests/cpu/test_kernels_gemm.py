"""The matrix multiplies on tensor cores, thread by thread on the CPU: right at every edge, wrong where a fault is planted."""

from math import nan

import pytest
import torch
from cuda_on_cpu import build

from course_kernels.gemm import k01_cuda_cores, k02_wmma, k03_mma_sync, library
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

SHAPES = {
    "one warp": k03_mma_sync.Shape(BM=64, BN=64, BK=32, WM=64, WN=64, STAGES=3, GROUP=2),
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
            patch.setattr(module, "load_kernel", load_kernel)
            patch.setattr(module, "launch", launch)
            patch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
            patch.setattr(torch.cuda, "current_device", lambda: 0)
            patch.setattr(torch, "empty", lambda *size, **how: torch.full(*size, nan, **how))
            if hasattr(module, "allow_shared_memory"):
                patch.setattr(module, "allow_shared_memory", lambda kernel, n_bytes: None)
                module._kernel.cache_clear()
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
