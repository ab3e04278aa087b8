"""The first wgmma on the CPU: descriptors, swizzle, fragments and pipeline, held against the PTX ISA's tables."""

import re
from pathlib import Path

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.gemm import k04_wgmma
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

MODEL = Path(__file__).with_name("wgmma_on_cpu.h")
DESCRIPTOR = re.compile(
    r"^using Descriptor.*?;$|^__device__ inline Descriptor .*?^}$", re.MULTILINE | re.DOTALL
)
# Less than a tile, several tiles each way and along K, more of them along K than there are stages, and ragged edges.
SIZES = [(1, 8, 8), (128, 256, 64), (130, 264, 200), (64, 512, 456), (1, 1, 1), (33, 65, 17), (129, 257, 330)]
MODES = {"copies late": (1, 0), "products late": (0, 1)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(a, b, mode=..., kernel text=...) -> a @ b, its memory full of NaN before."""
    built = {}

    def text_for_the_cpu(text):
        descriptors = "\n".join(DESCRIPTOR.findall((k04_wgmma.SOURCE.parent / "wgmma.cuh").read_text()))
        text, count = re.subn(r'#include "asynchronous_copy.cuh"\n#include "wgmma.cuh"', "", text)
        assert count == 1
        text, count = re.subn(r"extern __shared__ char memory\[\];", "char *memory = model::begin();", text)
        assert count == 1
        return f'#include "{MODEL}"\n{descriptors}\n{text}'

    def run(a, b, mode="copies late", text=None):
        text = k04_wgmma.SOURCE.read_text() if text is None else text

        def load_kernel(source, name, defines):
            key = (name, mode, text, tuple(defines.items()))
            if key not in built:
                late_copies, late_products = MODES[mode]
                macros = {**defines, "LATE_COPIES": late_copies, "LATE_PRODUCTS": late_products}
                folder = tmp_path_factory.mktemp(name)
                built[key] = build(folder, source, name, macros, text_for_the_cpu(text))
            return built[key]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k04_wgmma, "load_kernel", load_kernel)
            patch.setattr(
                k04_wgmma,
                "launch",
                lambda kernel, grid, block, *args, shared_bytes: kernel(grid, block, *args),
            )
            patch.setattr(k04_wgmma, "allow_shared_memory", lambda kernel, n_bytes: None)
            patch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
            patch.setattr("course_kernels.arguments.interpreted", lambda: True)
            patch.setattr(torch, "empty", lambda *size, **how: torch.full(*size, float("nan"), **how))
            return k04_wgmma.gemm(a, b)

    return run


def inputs(M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


def error_of(c, a, b):
    return worst_error(c, PROBLEM.reference(a, b))


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize("mode", MODES)
def test_the_product_is_right(run, mode, M, N, K):
    a, b = inputs(M, N, K)

    assert error_of(run(a, b, mode), a, b) <= 2.0**-8


FAULTS = {
    "no fence before the tensor cores": (r"fence_for_tensor_cores\(\);", "", "copies late"),
    "the fence before the copies are there": (
        r"(wait_for_all_but<STAGES - 3>\(\);)(.*?)(fence_for_tensor_cores\(\);)",
        r"\3\2\1",
        "copies late",
    ),
    "one copy too few waited for": ("<STAGES - 3>", "<STAGES - 2>", "copies late"),
    "two products under way": ("wgmma_wait<1>", "wgmma_wait<2>", "products late"),
    "the last product not waited for": (r"wgmma_wait<0>\(d\);", "", "products late"),
    "the next tile over one in use": (
        r"bring\(tile \+ STAGES - 2\)",
        "bring(tile + STAGES - 1)",
        "products late",
    ),
    "no swizzle": (r"\(chunk \^ row % 8\)", "chunk", "copies late"),
    "steps exchanged": (r"PANEL_BYTES, 8 \* ROW_BYTES\)\);", "8 * ROW_BYTES, PANEL_BYTES));", "copies late"),
    "both warpgroups on the same rows": (r"warpgroup \* 64 \* ROW_BYTES", "0", "copies late"),
    "panels where they lie": (r"\(1024 - shared_address\(memory\) % 1024\) % 1024", "0", "copies late"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_shows(run, fault):
    pattern, replacement, mode = FAULTS[fault]
    text, count = re.subn(pattern, replacement, k04_wgmma.SOURCE.read_text(), flags=re.DOTALL)
    assert count == 1
    a, b = inputs(130, 264, 504)

    assert not error_of(run(a, b, mode, text), a, b) <= 0.1


@pytest.mark.parametrize("defines", [{}, {"FLOAT16": 1}, {"WHOLE": 0}])
def test_hopper_gets_its_own_instruction_and_waits_for_none_too_early(defines):
    text = sass(compile_cubin(k04_wgmma.SOURCE, "sm_90a", defines))

    assert len(re.findall(r"HGMMA\.64x256x16\.F32(?:\.BF16)? \S+, gdesc\[\S+\]\.tnspB", text)) == 4
    assert len(re.findall(r"WARPGROUP\.DEPBAR", text)) == 2  # else the compiler waits after every product
    assert ("LDGSTS" in text) == bool(defines.get("WHOLE", 1))
    assert not re.search(r"\b(LDL|STL)\b", text)


def test_only_hopper_is_served():
    a, b = inputs(8, 8, 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("course_kernels.arguments.interpreted", lambda: True)
        patch.setattr(torch.cuda, "get_device_capability", lambda device=None: (8, 0))

        with pytest.raises(ValueError, match=re.escape("capability 9.0 (Hopper, for wgmma), got 8.0")):
            k04_wgmma.gemm(a, b)
