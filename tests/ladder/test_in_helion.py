"""The multiply in Helion: the Triton that it writes and what becomes of it, its answers on the CPU, its refusals."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import in_helion
from course_kernels.gemm.in_helion import BEST, CONFIGS, compiled, gemm, supports
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, NotInstalled

W = Workload.of("bfloat16", M=4096, N=4096, K=4096)
NAMES = [
    "HGMMA", "UTMALDG", "UTMASTG", "LDGSTS", "LDG", "STG", "STSM", "SYNCS",
    "HMMA", "WARPGROUP.DEPBAR", "LDL", "STL",
]  # fmt: skip


def counted(made):
    code = sass(made.cubin)
    return {name: len(re.findall(rf"\b{re.escape(name)}\b(?!S)", code)) for name in NAMES}


@pytest.mark.parametrize("tile", CONFIGS)
@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (1024, 14336, 4096), (1000, 1000, 1000)])
def test_wgmma_multiplies_and_tma_brings(tile, sizes):
    M, N, K = sizes
    made = compiled(Workload.of("bfloat16", M=M, N=N, K=K), tile=tile)
    found = counted(made)
    print(tile, sizes, found, made.shared_bytes)
    BM, _, BK = CONFIGS[tile]["block_sizes"]
    assert found["HGMMA"] == BM // 64 // (CONFIGS[tile]["num_warps"] // 4) * (BK // 16)
    assert found["HMMA"] == found["LDGSTS"] == found["LDG"] == found["LDL"] == found["STL"] == 0
    assert found["UTMALDG"] > 0
    by_threads = "C by threads" in tile
    assert (found["UTMASTG"] > 0) is not by_threads
    assert (found["STG"] > 0) is by_threads
    assert made.shared_bytes <= 227 * 1024


@pytest.mark.parametrize("tile", CONFIGS)
@pytest.mark.parametrize(
    "sizes", [(2, 2, 2), (33, 65, 17), (127, 129, 136), (130, 1000, 1000), (1, 8, 8), (5, 3000, 64)]
)
def test_other_sizes_fit_too(tile, sizes):
    M, N, K = sizes
    made = compiled(Workload.of("bfloat16", M=M, N=N, K=K), tile=tile)
    found = counted(made)
    assert made.shared_bytes <= 227 * 1024
    assert found["HGMMA"] + found["HMMA"] > 0
    assert found["LDL"] == found["STL"] == 0


def test_without_a_word_helion_falls_back_to_pointers():
    by = {
        N: counted(compiled(Workload.of("bfloat16", M=512, N=N, K=512)))["UTMALDG"] for N in (512, 504, 500)
    }
    assert by[512]
    assert by[504]
    assert by[500] < by[512]  # A alone


def test_what_it_writes_is_triton():
    made = compiled(W)
    assert made.source.count("tl.dot(") == 1
    assert made.source.count("tl.make_tensor_descriptor(") == 3
    assert "@triton.jit" in made.source
    assert "/tmp" not in made.source
    assert ".target sm_90a" in made.ptx
    assert made.cubin[:4] == b"\x7fELF"
    assert "m64n256k16.f32.bf16.bf16" in made.ptx
    assert "m64n256k16.f32.f16.f16" in compiled(Workload.of("float16", M=512, N=512, K=512)).ptx


def test_a_tensor_of_many_elements_is_addressed_by_64_bits():
    w = Workload.of("bfloat16", M=2**16, N=2**16, K=64)  # C alone is that long
    assert "tl.int64" in compiled(w).source
    assert "tl.int64" not in compiled(W).source


def test_the_answers_of_what_it_writes():
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("helion_on_cpu.py"))],
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) >= len(CONFIGS) * 14 + 2
    assert {name: error for name, error in found.items() if not error <= 2.0**-9} == {}


# --- refusals ----------------------------------------------------------------


@pytest.fixture
def on_the_cpu(monkeypatch):
    """The checks of shapes and types, on tensors of the CPU."""
    monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: True)


def tensors(M, N, K, dtype=torch.bfloat16):
    return torch.zeros((M, K), dtype=dtype), torch.zeros((K, N), dtype=dtype)


@pytest.mark.usefixtures("on_the_cpu")
def test_types_sizes_and_names_are_refused():
    with pytest.raises(TypeError, match=r"^a: expected bfloat16 or float16, got float32$"):
        gemm(*tensors(8, 8, 8, torch.float32))
    with pytest.raises(ValueError, match=r"^a, b: expected M \* N > 1, since .*, got M=N=1$"):
        gemm(*tensors(1, 1, 8))
    with pytest.raises(ValueError, match=r"^tile: expected one of 'wide', .*, got 'huge'$"):
        gemm(*tensors(8, 8, 8), tile="huge")
    with pytest.raises(ValueError, match=r"^b: expected contiguous"):
        gemm(torch.zeros((8, 8), dtype=torch.bfloat16), torch.zeros((16, 8), dtype=torch.bfloat16).t())
    moved = torch.zeros(65, dtype=torch.bfloat16)[1:].view(8, 8)
    with pytest.raises(
        ValueError, match=r"^a: expected an address divisible by 16, got one 2 bytes past it$"
    ):
        gemm(moved, tensors(8, 8, 8)[1])
    one = Workload.of("bfloat16", M=1, N=1, K=8)
    for w, arch, says in (
        (one, "sm_90a", "^w: expected"),
        (W, "sm_100a", "^arch: expected sm_90a, .* got sm_100a$"),
    ):
        with pytest.raises(ValueError, match=says):
            compiled(w, arch)
    assert not supports(one)
    assert not supports(Workload.of("float32", M=8, N=8, K=8))
    assert supports(Workload.of("float16", M=1, N=8, K=1))


def test_triton_refuses_what_helion_writes_for_one_element(monkeypatch):
    """The reason of the refusal above: where this passes no more, it can go."""
    monkeypatch.setattr(in_helion, "supports", lambda w: True)
    with pytest.raises(Exception, match="reshape"):
        compiled(Workload.of("bfloat16", M=1, N=1, K=8))


def test_a_tensor_of_the_cpu_is_refused():
    with pytest.raises(ValueError, match=r"^a: expected a tensor on a GPU, got cpu$"):
        gemm(*tensors(8, 8, 8))


@pytest.mark.parametrize("missing", ["helion", "packaging"])
@pytest.mark.usefixtures("on_the_cpu")
def test_without_helion_one_line_says_what_to_install(monkeypatch, missing):
    for name in [n for n in sys.modules if n.split(".")[0] in ("helion", missing)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    spec = importlib.util.find_spec("course_kernels.gemm.in_helion")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    says = rf"^Helion: not installed here, or not packaging, which it needs: {re.escape(INSTALL)}$"
    for call in (lambda: module.gemm(*tensors(8, 8, 8)), lambda: module.compiled(W)):
        with pytest.raises(NotInstalled, match=says):
            call()


def test_eight_configurations_and_one_of_them_is_the_best():
    assert len(CONFIGS) <= 8
    assert BEST in CONFIGS
