"""The multiply of 8-bit numbers on Hopper's own instructions, on the CPU's stand-in: right, refusals, machine code."""

import re
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.gemm_fp8 import k02_hopper
from course_kernels.gemm_fp8.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept


def full_of_nan(*size, **how):
    return torch.full(size[0] if isinstance(size[0], tuple) else size, float("nan"), **how)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(*inputs, text=..., exact=...) -> the product, its memory full of NaN before."""
    built = {}

    def run(*inputs, text=None, **options):
        def prepare(path, name, **how):
            key = text, str(how)
            if key not in built:
                built[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return built[key]

        k02_hopper._prepared.cache_clear()
        k02_hopper._multiprocessors.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
            patch.setattr(k02_hopper, "prepare", prepare)
            patch.setattr(k02_hopper, "tensor_map", tensor_map)
            patch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
            patch.setattr(
                torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=3)
            )
            patch.setattr(torch, "empty", full_of_nan)
            return k02_hopper.gemm_fp8(*inputs, **options)

    return run


def inputs(M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


@pytest.mark.parametrize(("M", "N", "K"), [(1, 8, 16), (130, 392, 656), (300, 200, 144)])
@pytest.mark.parametrize("exact", [True, False])
def test_the_product_is_right(run, exact, M, N, K):
    w, tensors = inputs(M, N, K)

    assert k02_hopper.supports(w)
    assert worst_error(run(*tensors, exact=exact), PROBLEM.reference(*tensors)) <= 2.0**-8


FAULTS = {
    "the parts before are forgotten": (r"step \? whole\[i\] \+ part\[i\] : part\[i\]", "part[i]"),
    "a part counts twice": (r"EXACT \? k > 0 : step \+ k > 0", "step + k > 0"),
    "both blocks bring the same columns": (r"tile.n \+ rank \* \(BN / 2\)", "tile.n"),
    "no scale": (r"\* scale;", ";"),
    "a stage given back before it was read": (
        r"(wgmma_wait<0>\(part\);)(\s+)(if \(thread < CLUSTER\)[^;]*;)",
        r"\3\2\1",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(run, fault):
    text, count = re.subn(*FAULTS[fault], k02_hopper.SOURCE.read_text())
    assert count == 1
    _, tensors = inputs(130, 392, 656)
    try:
        wrong = not worst_error(run(*tensors, text=text), PROBLEM.reference(*tensors)) <= 0.1
    except RuntimeError:
        wrong = True

    assert wrong


def test_what_is_refused(run):
    _, (a, b, scale_a, scale_b) = inputs(8, 16, 32)
    for error, line, *wrong in (
        (TypeError, "a: expected float8_e4m3fn, got bfloat16", a.bfloat16(), b, scale_a, scale_b),
        (ValueError, "b: expected (N, K) with K=32, got (16, 16)", a, b[:, :16], scale_a, scale_b),
        (ValueError, "K: expected a multiple of 16, for the copy engine, got 24", a[:, :24].contiguous(),
         b[:, :24].contiguous(), scale_a, scale_b),
        (ValueError, "N: expected a multiple of 8, for the copy engine, got 12", a, b[:12], scale_a, scale_b),
    ):  # fmt: skip
        with pytest.raises(error, match=re.escape(line)):
            run(*wrong)


@pytest.mark.parametrize("exact", [True, False])
def test_nothing_spills_and_the_instructions_are_hopper_s(exact):
    pytest.importorskip("cuda.core")
    text = sass(compile_cubin(k02_hopper.SOURCE, "sm_90a", {"EXACT": int(exact)}))

    assert len(re.findall(rf"QGMMA\.64x{k02_hopper.BN[exact]}x32\.F32\.E4M3\.E4M3", text)) == 4
    assert "UTMALDG.2D.MULTICAST" in text
    assert "UTMASTG.2D" in text
    assert not re.search(r"\b(LDL|STL)\b", text)
