"""The check's whole round over the kernels that run on a CPU: NaN, infinities and zeros go in and come out."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import test_kernels_bias_gelu
import torch
import triton.language as tl
from cuda_on_cpu import build
from hopper_on_cpu import prepare_in

import course_kernels
from course_judge.worker.card_arithmetic import as_on_a_card
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import competitor_of
from course_kernels.problem import NAN, Workload

ROOT = Path(course_kernels.__file__).parent
ODD = {"M": 33, "N": 65, "K": 17}  # nothing divides anything
LOW = {"M": 1, "N": 129, "K": 40}  # one row takes all hard values
EVEN = {"M": 132, "N": 136, "K": 136}  # whole vectors
WORKLOADS = {
    "add_norm": [Workload.of("float32", M=5, N=97)],
    "attention": [Workload.of("float32", B=1, H=2, N=70, D=64, causal=causal) for causal in (False, True)],
    "attention_backward": [
        Workload.of("float32", B=1, H=1, N=40, D=64, causal=causal) for causal in (False, True)
    ],
    "attention_fp8": [
        Workload.of("bfloat16", B=1, H=2, N=70, D=64, causal=causal) for causal in (False, True)
    ],
    "attention_general": [Workload.of("float32", B=5, H=2, KV=1, N=20, D=64, causal=True, W=7)],
    "bank_conflicts": [Workload.of("float32", N=1025, S=7)],
    "bias_gelu": [Workload.of(dtype, M=5, N=40) for dtype in ("float32", "bfloat16")],
    "bytes_in_flight": [Workload.of("float32", N=5003, V=4, R=2)],
    "conv2d": [
        Workload.of("float32", B=2, C=2, H=9, W=8, K=5, R=3, S=2, STRIDE=2, PAD=1, **more)
        for more in ({}, {"tf32": True})
    ],
    "copy": [Workload.of("float16", N=5003)],
    "decode_attention": [
        Workload.of(dtype, B=3, H=3, KV=1, N=140, D=D) for dtype, D in (("float32", 64), ("float16", 128))
    ],
    "divergence": [Workload.of("float32", N=1025, W=8)],
    "fused_multiply_add": [Workload.of("float32", N=129, C=4, K=37)],
    "gemm": [Workload.of(dtype, **size) for dtype in ("bfloat16", "float16") for size in (ODD, EVEN)],
    "gemm_fp8": [Workload.of("bfloat16", **ODD)],
    "gemv_fp4": [Workload.of("float16", L=2, M=19, K=K) for K in (96, 256)],
    "grey": [Workload.of("float32", H=33, W=65)],
    "grouped_gemm": [
        Workload.of("bfloat16", G=2, M=20, N=65, K=128, masked=masked) for masked in (False, True)
    ],
    "layer_norm": [Workload.of("float32", M=3, N=97, offset=offset) for offset in (False, True)],
    "moe": [Workload.of("float16", T=3, D=12, F=9, E=3, TOP_K=2)],
    "qkv_rope": [
        Workload.of(dtype, B=3, H=1, KV=1, D=64, W=W, P=9) for dtype, W in (("float32", 90), ("float16", 40))
    ],
    "reduction": [Workload.of("float32", N=20_011)],
    "rms_norm": [
        Workload.of(dtype, M=5, N=97, plain=plain)
        for dtype in ("float32", "float16")
        for plain in (False, True)
    ],
    "mla_decode": [Workload.of("float16", B=3, H=2, N=70)],
    "paged_attention": [Workload.of("float16", B=3, H=3, KV=1, N=140, PAGE=16, D=D) for D in (64, 128)],
    "sampling": [Workload.of("int64", B=4, V=50, **more) for more in ({}, {"filtered": True, "bf16": True})],
    "sgemm": [Workload.of("float32", **size) for size in (ODD, EVEN, LOW)],
    "speculative_sampling": [
        Workload.of("int32", B=7, K=3, V=50, **more) for more in ({}, {"mixed": True}, {"greedy": True})
    ],
    "silu": [Workload.of(dtype, N=3001) for dtype in ("float32", "float16")],
    "softmax": [Workload.of("float32", M=13, N=781)],
    "sparse_attention": [
        Workload.of("float16", B=2, H=3, H_I=5, N=70, TOP=9, **more) for more in ({}, {"peaked": True})
    ],
    "swiglu": [
        Workload.of(dtype, M=5, F=97, merged=merged)
        for dtype in ("float32", "float16")
        for merged in (False, True)
    ],
    "strided_read": [Workload.of("float32", N=3003, S=3)],
    "transpose": [Workload.of("float32", M=37, N=70)],
    "skinny_gemm": [Workload.of("float16", M=3, N=65, K=40)],
    "skinny_gemm_fp4": [Workload.of("bfloat16", M=3, N=48, K=384)],
    "skinny_gemm_fp8": [Workload.of("bfloat16", M=3, N=65, K=40)],
    "skinny_gemm_w4": [Workload.of(dtype, M=3, N=48, K=384) for dtype in ("float16", "bfloat16")],
    "vector_add": [Workload.of("float32", N=5003)],
}
# What a CPU cannot be made to do in this way: Hopper's own instructions, which tests/gpu runs, and of kernels with
# cuda/hopper/ the tests beside; naps, fences and constant memory, for which test_kernels_stall_demos has stand-ins.
NOT_HERE = {"gemm/k04_wgmma", "attention/k04_specialised", "stall_demos/k01_one_reason"} | {
    f"{path.parent.name}/{path.stem}"
    for path in ROOT.glob("*/k[0-9][0-9]_*.cu")
    if '#include "hopper/' in path.read_text()
}
KERNELS = {
    name: import_module(f"course_kernels.{name.replace('/', '.')}")
    for path in sorted(ROOT.glob("*/k[0-9][0-9]_*.py"))
    if (name := f"{path.parent.name}/{path.stem}") not in NOT_HERE
}
# Triton's interpreter multiplies no bfloat16, cuts where a card rounds to it, and reads the NaN of 8 bits as 480.
NOT_INTERPRETED = {"gemm/k05_triton": "bfloat16", "skinny_gemm_w4/k01_triton": "bfloat16"}


def _of_8_bits(*hard):
    return lambda problem: dataclasses.replace(
        problem, max_error=lambda w: problem.max_error(w) + 2.0**-8, hard=lambda w: hard
    )


INTERPRETED = {
    "gemm_fp8/k01_triton": _of_8_bits({0: (0.0, -0.0)}),
    "grouped_gemm/k01_triton": _of_8_bits({0: (0.0, -0.0)}),
    "skinny_gemm_fp8/k01_one_program": _of_8_bits({0: (0.0, -0.0)}, {2: (NAN,)}, {3: (NAN,)}),
    "skinny_gemm_fp8/k02_shares": _of_8_bits({0: (0.0, -0.0)}, {2: (NAN,)}, {3: (NAN,)}),
}
# It rounds to 8 bits itself, which the interpreter does in a way of its own.
LIKE_A_CARD = {"attention_fp8/k01_triton"}
CARD = SimpleNamespace(multi_processor_count=3, name="CPU", major=9, minor=0)


by_the_problem = pytest.mark.kept(
    of=lambda kernel, **_: [ROOT / kernel.partition("/")[0]], but=["src/course_kernels/*"]
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """load_kernel for the CPU; every kernel is built once."""
    found = {}

    def load_kernel(source, name, defines=None, **how):
        key = source, name, str(defines)
        if key not in found:
            text = source.read_text()
            if source.parent.name == "bias_gelu":
                for cuda, plain in test_kernels_bias_gelu.STAND_INS.items():
                    text = text.replace(cuda, plain)
                text = test_kernels_bias_gelu.HEAD + text
            found[key] = build(tmp_path_factory.mktemp(name), source, name, defines, text)
        return found[key]

    return load_kernel


@pytest.fixture
def on_cpu(built, tmp_path, monkeypatch):
    """Launchers as they are, over stand-ins of the card and of the driver."""

    def prepare(problem):
        for path in ROOT.joinpath(problem).glob("*.py"):
            module = import_module(f"course_kernels.{problem}.{path.stem}")
            for name, stand_in in {
                "load_kernel": built,
                "prepare": prepare_in(tmp_path),
                "launch": lambda kernel, grid, block, *args, shared_bytes=0: kernel(
                    grid, block, *args, shared_bytes=shared_bytes
                ),
                "allow_shared_memory": lambda *args, **how: None,
                "places": lambda kernel, threads: 3,
                "MULTIPLIED": tl.float32,  # weights that the interpreter could not multiply in bfloat16
                "limits": lambda V, R: {"shared_bytes": 0, "blocks": R, "multiprocessors": 1},
            }.items():
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, stand_in)
            forget(module)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *device: (9, 0))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *device: CARD)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)

    yield prepare
    for module in KERNELS.values():
        forget(module)


def forget(module):
    """Empty the caches of a launcher: what it kept belongs to another card."""
    for function in vars(module).values():
        getattr(function, "cache_clear", lambda: None)()


@by_the_problem
@pytest.mark.parametrize("kernel", KERNELS)
def test_hard_values_come_out_as_they_must(on_cpu, kernel):
    folder = kernel.partition("/")[0]
    module = KERNELS[kernel]
    on_cpu(folder)
    takes = getattr(module, "supports", lambda w: True)
    workloads = [w for w in WORKLOADS[folder] if takes(w) and w.dtype != NOT_INTERPRETED.get(kernel)]
    competitor = competitor_of(module)
    problem = INTERPRETED.get(kernel, lambda problem: problem)(competitor.problem)

    assert workloads
    with as_on_a_card() if kernel in LIKE_A_CARD else nullcontext():
        for w in workloads:
            for seed in range(2):
                checked_error(dataclasses.replace(competitor, problem=problem), w, seed, device="cpu")


@by_the_problem
@pytest.mark.parametrize(
    ("kernel", "clamp"),
    [
        ("sgemm/k01_naive", torch.nan_to_num),
        ("reduction/k03_shuffle", lambda y: y.clamp(max=3e38)),
        ("softmax/k01_online", lambda y: y.clamp(0, 1).nan_to_num(0.5)),
        ("grey/k02_triton", lambda y: torch.where(y.isnan(), 0.0, y)),
    ],
)
def test_what_a_kernel_clamps_away_is_missed(on_cpu, kernel, clamp):
    problem = kernel.partition("/")[0]
    on_cpu(problem)
    right = competitor_of(KERNELS[kernel])
    wrong = dataclasses.replace(
        right, function=lambda *inputs, **options: clamp(right.function(*inputs, **options))
    )

    with pytest.raises(WrongResult, match=r": (NaN|infinity) lost: .*, where \w+ holds "):
        checked_error(wrong, WORKLOADS[problem][0], device="cpu")
