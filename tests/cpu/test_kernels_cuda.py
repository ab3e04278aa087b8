"""The CUDA C++ kernels, run on the CPU thread by thread: right on tiny sizes, wrong where a fault is planted.

The launchers run as they are; only `load_kernel` and `launch` are replaced by their CPU stand-ins.
"""

from math import nan

import numpy as np
import pytest
import torch
from cuda_on_cpu import build

from course_kernels.attention import k02_teaching
from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.copy import k01_vectorised
from course_kernels.copy.problem import PROBLEM as COPY
from course_kernels.problem import Workload, worst_error
from course_kernels.sgemm import k01_naive
from course_kernels.sgemm.problem import PROBLEM as SGEMM
from course_kernels.softmax import k01_online
from course_kernels.softmax.problem import PROBLEM as SOFTMAX
from course_kernels.vector_add import k01_cuda
from course_kernels.vector_add.problem import PROBLEM as VECTOR_ADD

pytestmark = pytest.mark.kept

CASES = [
    (COPY, k01_vectorised, Workload.of("float32", N=1)),
    (COPY, k01_vectorised, Workload.of("float16", N=7)),
    (COPY, k01_vectorised, Workload.of("float16", N=16384 + 15)),
    (VECTOR_ADD, k01_cuda, Workload.of("float32", N=1)),
    (VECTOR_ADD, k01_cuda, Workload.of("float32", N=1000)),
    (SGEMM, k01_naive, Workload.of("float32", M=1, N=1, K=1)),
    (SGEMM, k01_naive, Workload.of("float32", M=33, N=65, K=17)),
    (SOFTMAX, k01_online, Workload.of("float32", M=1, N=1)),
    (SOFTMAX, k01_online, Workload.of("float32", M=5, N=31)),
    (SOFTMAX, k01_online, Workload.of("float32", M=9, N=1000)),
    *(
        (ATTENTION, k02_teaching, Workload.of("float32", B=1, H=2, N=N, D=D, causal=causal))
        for D, N in ((64, 1), (64, 17), (64, 64), (128, 70))
        for causal in (False, True)
    ),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(problem, kernel module, workload, text=...) -> (answer, truth)."""
    built = {}

    def run(problem, module, w, text=None):
        def load_kernel(source, name, defines=None):
            key = (source, name, str(defines), text)
            if key not in built:
                built[key] = build(tmp_path_factory.mktemp(name), source, name, defines, text)
            return built[key]

        def launch(kernel, grid, block, *args):
            kernel(grid, block, *args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "load_kernel", load_kernel)
            patch.setattr(module, "launch", launch)
            patch.setattr(torch, "empty_like", lambda x: torch.full_like(x, nan))
            inputs = problem.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
            options = problem.options(w)
            return getattr(module, problem.name)(*inputs, **options), problem.reference(*inputs, **options)

    return run


@pytest.mark.parametrize(("problem", "module", "w"), CASES, ids=lambda c: getattr(c, "label", ""))
def test_kernel_is_right(run, problem, module, w):
    out, truth = run(problem, module, w)

    assert worst_error(out, truth) <= problem.max_error(w)


def test_first_causal_row_is_the_first_value(run):
    w = Workload.of("float32", B=1, H=2, N=20, D=64, causal=True)
    inputs = ATTENTION.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    out, _ = run(ATTENTION, k02_teaching, w)

    assert torch.equal(out[:, :, 0], inputs[2][:, :, 0])


ATTENTION_FAULTS = {
    "no barrier before the next tile": ("__syncthreads();  // nobody reads", "// nobody reads"),
    "no barrier before the scores": ("__syncthreads();  // the tile is complete", ""),
    "the sum is not repaired": ("l *= repair;", ""),
    "the answer is not repaired": ("acc[i] *= repair;", ""),
    "tiles are skipped, the diagonal is not masked": (
        "keys_of_row = causal ? min(N, row + 1) : N",
        "keys_of_row = N",
    ),
    "the short tile is not masked": ("s[j] = start + j < keys_of_row ? dot : NEVER;", "s[j] = dot;"),
    "heads share one K": ("K += head, ", ""),
    "no scale": ("* scale : 0.0f", ": 0.0f"),
}


@pytest.mark.parametrize(("right", "wrong"), ATTENTION_FAULTS.values(), ids=ATTENTION_FAULTS)
def test_planted_fault_is_seen(run, right, wrong):
    text = k02_teaching.SOURCE.read_text()
    assert text.count(right) == 1
    w = Workload.of("float32", B=1, H=2, N=70, D=64, causal=True)
    full = Workload.of("float32", B=1, H=2, N=70, D=64, causal=False)
    errors = [
        worst_error(*run(ATTENTION, k02_teaching, w, text=text.replace(right, wrong))) for w in (w, full)
    ]

    assert not max(errors) <= ATTENTION.max_error(w)


def test_merge_is_associative_and_has_a_neutral_part(tmp_path):
    """Any way to cut a row in two gives the row's own maximum and sum."""
    text = '#include "merge.cuh"\n' + (
        'extern "C" void merged(const float *x, int cut, int n, float *m, float *l) {\n'
        "  float m2 = LOWEST, l2 = 0.0f;\n"
        "  for (int i = 0; i < cut; i++) merge(*m, *l, x[i], 1.0f);\n"
        "  for (int i = cut; i < n; i++) merge(m2, l2, x[i], 1.0f);\n"
        "  merge(*m, *l, m2, l2);\n}\n"
    )
    merged = build(tmp_path, k01_online.SOURCE, "merged", text=text)
    x = torch.tensor([1.0, 3.0, 2.0, 5.0, -100.0, 5.0])
    for cut in range(7):
        m, l = torch.tensor([-3.402823466e38]), torch.zeros(1)
        merged(1, 1, x, np.int32(cut), np.int32(6), m, l)

        assert m.item() == 5.0
        assert l.item() == pytest.approx(torch.exp(x.double() - 5).sum().item(), rel=1e-6)
