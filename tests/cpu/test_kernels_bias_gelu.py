"""Bias + GELU: the CUDA C++ kernel thread by thread, the Triton kernel interpreted, and faults that must show."""

import re
from math import nan

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.bias_gelu import k01_fused, k02_triton, library
from course_kernels.bias_gelu.problem import PROBLEM
from course_kernels.cuda.compile import compile_cubin
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

# What the CPU has no word for: the special-function unit, and two bf16 numbers in a word.
STAND_INS = {
    'asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));': "y = 1.0f / x;",
    'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));': "y = exp2f(x);",
    'asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));': "both = both_of(high, low);",
}
HEAD = """
inline unsigned rounded(float x) {
  const unsigned bits = __float_as_uint(x);
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
inline unsigned both_of(float high, float low) { return rounded(high) << 16 | rounded(low); }
"""
SIZES = [(1, 8), (3, 8), (4, 2056), (9, 1000), (2, 4104)]


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    """on_cpu(x, b, right, wrong) -> y of k01_fused, with a fault in the source where one is given."""
    built = {}

    def run(x, b, right="", wrong=""):
        def load_kernel(source, name, defines=None):
            if (name, right) not in built:
                text = source.read_text()
                for cuda, plain in STAND_INS.items():
                    assert text.count(cuda) == 1
                    text = text.replace(cuda, plain)
                assert not right or text.count(right) == 1
                text = HEAD + (text.replace(right, wrong) if right else text)
                built[name, right] = build(tmp_path_factory.mktemp(name), source, name, text=text)
            return built[name, right]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k01_fused, "load_kernel", load_kernel)
            patch.setattr(k01_fused, "launch", lambda kernel, *args: kernel(*args))
            patch.setattr(torch, "empty_like", lambda t: torch.full_like(t, nan))
            return k01_fused.bias_gelu(x, b)

    return run


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("M", "N"), SIZES)
def test_the_cuda_kernel_is_right(on_cpu, dtype, M, N):
    w = Workload.of(dtype, M=M, N=N)
    x, b = inputs_of(w)

    assert worst_error(on_cpu(x, b), PROBLEM.reference(x, b)) <= PROBLEM.max_error(w) / 2


def test_the_formula_of_the_cuda_kernel_is_good_everywhere(on_cpu):
    x = torch.linspace(-40, 40, 80_000).reshape(10, 8000)
    y = on_cpu(x, torch.zeros(8000)).double()
    truth = torch.nn.functional.gelu(x.double())

    assert (y - truth).abs().max() < 4e-6  # a few units in the last place of 40
    assert ((y - truth).abs() < 3e-7 + truth.abs() * 2.0**-22).all()
    extremes = torch.tensor([[-1e30, -0.0, 0.0, 1e30, 3e38, -3e38, 1e-40, -1e-40]])
    assert on_cpu(extremes, torch.zeros(8)).isfinite().all()


FAULTS = {
    "the bias of another column": ("const uint4 bias = b[column];", "const uint4 bias = b[column / 2];"),
    "every row is the first": ("x[static_cast<long long>(first + r)", "x[static_cast<long long>(first)"),
    "the last rows are not written": ("if (first + r >= M) break;", "if (first + r >= M - 1) break;"),
    "half of the numbers have no bias": (" + __uint_as_float(b & 0xffff0000u)", ""),
    "the tail of erf has the wrong sign": ("- a * half_erfc", "+ a * half_erfc"),
    "a coefficient is off": ("0.7107069f", "0.7207069f"),
}  # fmt: skip


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(on_cpu, right, wrong):
    errors = []
    for dtype in ("float32", "bfloat16"):
        w = Workload.of(dtype, M=9, N=1000)
        x, b = inputs_of(w)
        errors.append(worst_error(on_cpu(x, b, right, wrong), PROBLEM.reference(x, b)) / PROBLEM.max_error(w))

    assert not max(errors) <= 1


@pytest.mark.parametrize(("M", "N"), [(1, 8), (9, 1000), (3, 2056)])
def test_triton_is_right(M, N):
    w = Workload.of("float32", M=M, N=N)  # the interpreter has no bf16
    x, b = inputs_of(w)

    assert worst_error(k02_triton.bias_gelu(x, b), PROBLEM.reference(x, b)) <= PROBLEM.max_error(w) / 2


def test_two_operators_are_right_and_round_twice():
    for dtype in ("float32", "bfloat16"):
        w = Workload.of(dtype, M=64, N=1000)
        x, b = inputs_of(w)
        two = worst_error(library.eager(x, b), PROBLEM.reference(x, b))
        one = worst_error(PROBLEM.reference(x, b).to(x.dtype), PROBLEM.reference(x, b))

        assert one < two <= PROBLEM.max_error(w) / 1.1


def test_the_tolerance_refuses_the_tanh_formula_in_fp32():
    w = Workload.of("float32", M=16, N=1000)
    x, b = inputs_of(w)
    rough = torch.nn.functional.gelu(x + b, approximate="tanh")

    assert not worst_error(rough, PROBLEM.reference(x, b)) <= PROBLEM.max_error(w) * 100


@pytest.mark.parametrize(
    ("x", "b", "error", "message"),
    [
        (torch.zeros(4, 8).half(), torch.zeros(8).half(), TypeError, "x: expected float32 or bfloat16, got float16"),
        (torch.zeros(4, 8), torch.zeros(8).bfloat16(), TypeError, "b: expected float32, got bfloat16"),
        (torch.zeros(4, 8), torch.zeros(16), ValueError, "b: expected (N,) with N=8, got (16,)"),
        (torch.zeros(4, 12), torch.zeros(12), ValueError, "x: expected (M, N) with N a multiple of 8, got N=12"),
        (torch.zeros(8, 4).T, torch.zeros(8), ValueError, "x: expected contiguous (M, N), got strides (1, 4)"),
        (torch.zeros(4, 8), torch.zeros(9)[1:], ValueError,
         "b: expected an address divisible by 16, got one 4 bytes past it"),
    ],
)  # fmt: skip
def test_the_launcher_refuses(monkeypatch, x, b, error, message):
    with pytest.raises(error, match=re.escape(message)):
        k01_fused.bias_gelu(x, b)


def test_the_cuda_kernel_moves_16_bytes_at_a_time_and_spills_nothing():
    pytest.importorskip("cuda.core")
    instructions = sass(compile_cubin(k01_fused.SOURCE, "sm_90a"))

    rows = 2 * k01_fused.ROWS  # of two kernels
    assert len(re.findall(r"LDG\.E\.128", instructions)) == rows + 2  # and the bias, once in each
    assert len(re.findall(r"STG\.E\.128", instructions)) == rows
    assert re.findall(r"\b(?:LDL|STL|LDG\.E(?!\.128)|STG\.E(?!\.128))\b", instructions) == []
