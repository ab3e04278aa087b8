"""Both GEMM ladders on the card: sizes that nothing divides, and arithmetic that is what the contract says."""

import math
from importlib import import_module
from pathlib import Path

import pytest
import torch

import course_kernels
from course_kernels.gemm import one_instruction
from course_kernels.gemm.problem import PROBLEM as GEMM
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload
from course_kernels.sgemm import library
from course_kernels.sgemm.problem import PROBLEM as SGEMM

GROUPS = ("gemm", "sgemm")
ROOT = Path(course_kernels.__file__).parent
SIZES = [
    *((N, N, N) for N in (1, 3, 127, 1000, 1023, 4095)),
    (1, 3, 127),
    (127, 1, 1000),
    (127, 1000, 3),
    (1000, 127, 1),
    (3, 1023, 4095),
    (4095, 3, 1023),
    (1023, 4095, 1000),
    (1000, 1024, 4096),  # vectors fit, the tiles of C do not
]
# Rounding once to nearest is off by this much of the number at most.
HALF_A_STEP = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def kernels_of(folder):
    return {
        path.stem: import_module(f"course_kernels.{folder}.{path.stem}")
        for path in sorted((ROOT / folder).glob("k[0-9][0-9]_*.py"))
    }


SGEMMS, GEMMS = kernels_of("sgemm"), kernels_of("gemm")


def name_of(size):
    return "x".join(map(str, size))


def generator():
    return torch.Generator("cuda").manual_seed(0)


@pytest.mark.group("sgemm")
@pytest.mark.parametrize("size", SIZES, ids=name_of)
@pytest.mark.parametrize("kernel", SGEMMS)
def test_sgemm_is_right(kernel, size):
    M, N, K = size
    w = Workload.of("float32", M=M, N=N, K=K)

    assert checked_error(SGEMMS[kernel], w, generator()) <= SGEMM.max_error(w)


def cases():
    for kernel, module in GEMMS.items():
        takes = getattr(module, "supports", lambda w: True)
        for dtype in dict.fromkeys(w.dtype for w in GEMM.check_on):
            every = [Workload.of(dtype, M=M, N=N, K=K) for M, N, K in SIZES]
            for w in filter(takes, every):
                yield pytest.param(kernel, w, id=f"{kernel}-{w.label}")


@pytest.mark.group("gemm")
@pytest.mark.parametrize(("kernel", "w"), list(cases()))
def test_gemm_is_right_and_rounds_once(kernel, w):
    error = checked_error(GEMMS[kernel], w, generator())

    # On top of rounding C once come the additions in float32. TF32 does not round C: there the problem says how much.
    allowed = HALF_A_STEP.get(w.dtype, GEMM.max_error(w)) + 8 * 2.0**-24 * math.sqrt(w.K)
    assert error <= allowed


@pytest.mark.group("gemm")
def test_every_gemm_takes_something():
    assert {case.values[0] for case in cases()} == set(GEMMS)


@pytest.mark.group("gemm")
@pytest.mark.parametrize("seed", range(4))
def test_a_matrix_multiply_in_one_instruction_is_exact(seed):
    assert one_instruction.is_exact(seed)


@pytest.mark.group("gemm")
def test_it_is_one_instruction():
    assert len(one_instruction.multiplications()) == 1


# --- no TF32 ----------------------------------------------------------------------------------------------

TIMED = Workload.of("float32", M=1024, N=1024, K=4096)


def tf32(a, b):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        return torch.mm(a, b)
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.group("sgemm")
def test_a_tf32_product_is_refused():
    with pytest.raises(WrongResult, match="wrong"):
        checked_error(Competitor("planted", SGEMM, tf32), TIMED, generator())


@pytest.mark.group("sgemm")
@pytest.mark.parametrize("kernel", [*SGEMMS, "library.cublas"])
def test_the_error_is_far_from_what_tf32_gives(kernel):
    a, b = SGEMM.make_inputs(TIMED, generator(), "cuda")
    truth = SGEMM.reference(a, b)
    function = library.cublas if kernel == "library.cublas" else SGEMMS[kernel].sgemm

    def rms_error(c):
        return float((c.double() - truth).square().mean().sqrt())

    assert rms_error(function(a, b)) * 30 < rms_error(tf32(a, b))


@pytest.mark.group("sgemm")
def test_the_library_keeps_off_tf32_where_the_caller_has_it_on():
    a, b = SGEMM.make_inputs(TIMED, generator(), "cuda")
    expected = library.cublas(a, b)
    torch.set_float32_matmul_precision("high")
    try:
        assert torch.equal(library.cublas(a, b), expected)
        assert not torch.equal(torch.mm(a, b), expected)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


# --- the launchers, where only a card can tell --------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "dtype"),
    [pytest.param(module, torch.float32, marks=pytest.mark.group("sgemm")) for module in SGEMMS.values()]
    + [
        pytest.param(module, dtype, marks=pytest.mark.group("gemm"))
        for module in GEMMS.values()
        for dtype in (torch.bfloat16, torch.float16)
        if getattr(module, "supports", lambda w: True)(
            Workload.of(str(dtype).removeprefix("torch."), M=64, N=64, K=64)
        )
    ],
    ids=lambda x: getattr(x, "__name__", str(x)).removeprefix("course_kernels."),
)
def test_an_address_between_vectors_is_right_or_refused(module, dtype):
    """A tensor that begins one element into its memory is contiguous, and no vector of 16 bytes fits it."""
    function = getattr(module, module.__name__.split(".")[1])
    M, N, K = 160, 192, 64
    a, b = (
        torch.randn(rows * columns + 1, device="cuda").to(dtype)[1:].view(rows, columns)
        for rows, columns in ((M, K), (K, N))
    )
    try:
        c = function(a, b)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
        torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=2.0**-7, atol=1e-2)

    assert refusal == "" or "divisible by 16" in refusal
