"""The multiply in CUTLASS C++: what nvcc made of it, and what it refuses. Compiles for minutes, once; no GPU."""

import ctypes
import re
import subprocess
from dataclasses import replace

import pytest
import torch

from course_kernels.cuda import headers, nvcc
from course_kernels.cuda.compile import CompileError
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import by_tma, in_cutlass
from course_kernels.gemm.in_cutlass import BEST, CONFIGS, built, compiled, gemm, supports
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, NotInstalled

W = Workload.of("bfloat16", M=4096, N=4096, K=4096)
ONCE_EACH = [
    name for name in CONFIGS if name != "wide in rows"
]  # that one is another order of the same kernel
NAMES = [
    "HGMMA", "UTMALDG", "UTMASTG", "LDGSTS", "LDG", "STG", "STSM", "SYNCS",
    "HMMA", "WARPGROUP.DEPBAR", "CALL", "LDL", "STL", "USETMAXREG",
]  # fmt: skip


def counted(cubin):
    """How often an instruction occurs, and the shapes of the products."""
    code = sass(cubin)
    assert code.count(".text.") >= 1
    return {name: len(re.findall(rf"\b{re.escape(name)}\b(?!S)", code)) for name in NAMES}, set(
        re.findall(r"HGMMA\.(64x\d+x16\.F32(?:\.BF16)?)", code)
    )


@pytest.mark.parametrize("tile", ONCE_EACH)
def test_wgmma_multiplies_and_tma_brings_and_takes(tile):
    made, config = compiled(W, tile=tile), CONFIGS[tile]
    found, shapes = counted(made.cubin)
    print(tile, found, shapes, made.shared_bytes)
    assert shapes == {f"64x{config.BN}x16.F32.BF16"}
    # A consumer's rows, 64 at a time, over K in sixteens: written for the first tile of K, and for the others.
    assert found["HGMMA"] == 2 * (config.BM // (64 if config.PINGPONG else 128)) * (config.BK // 16)
    assert found["HMMA"] == found["LDGSTS"] == found["STG"] == 0
    assert found["UTMALDG"] > 0
    assert found["UTMASTG"] > 0
    assert found["STSM"] > 0
    assert found["SYNCS"] > 0
    assert found["USETMAXREG"] == 2  # registers go from those who copy to those who multiply
    assert found["LDL"] == found["STL"] == 0  # nothing is spilled


@pytest.mark.parametrize("tile", ONCE_EACH)
def test_no_product_waits_for_the_one_before_it(tile):
    library = built(CONFIGS[tile])
    found, _ = counted(library.cubin)
    assert "C7510" not in library.log
    assert found["CALL"] == 0
    assert found["WARPGROUP.DEPBAR"] < found["HGMMA"]


def test_asserts_would_make_every_product_wait(tmp_path, monkeypatch):
    """The fault that NDEBUG keeps away, planted."""
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path))
    real = nvcc.compile_library

    def with_asserts(source, arch, defines, *args, **more):
        return real(source, arch, {k: v for k, v in defines.items() if k != "NDEBUG"}, *args, **more)

    monkeypatch.setattr(in_cutlass, "compile_library", with_asserts)
    library = built.__wrapped__(CONFIGS[BEST])
    found, _ = counted(library.cubin)
    assert "C7510" in library.log
    assert found["WARPGROUP.DEPBAR"] >= found["HGMMA"]


def test_pairs_share_what_they_have_in_common():
    shared = {
        tile: "UTMALDG" in (code := sass(compiled(W, tile=tile).cubin)) and ".MULTICAST" in code
        for tile in (BEST, "wide, alone")
    }
    assert shared == {BEST: True, "wide, alone": False}


def test_float16_multiplies_float16():
    made = compiled(Workload.of("float16", M=64, N=64, K=64))
    assert counted(made.cubin)[1] == {"64x256x16.F32"}
    assert ".f32.f16.f16" in made.ptx
    assert ".bf16" not in made.ptx


def test_the_launcher_is_told_what_a_block_asks_for():
    made = compiled(W)
    stages = in_cutlass._loaded(CONFIGS[BEST], False).stages()
    assert stages == 4
    assert stages * (128 + 256) * 128 < made.shared_bytes <= 227 * 1024
    assert made.cubin[:4] == b"\x7fELF"
    assert ".target sm_90a" in made.ptx


@pytest.mark.skipif(torch.cuda.is_available(), reason="a card would open the addresses")
@pytest.mark.parametrize(
    ("sizes", "words"),
    [((128, 129, 136), "Invalid status"), ((128, 136, 65), "Invalid status"),  # refused, and no more said
     ((128, 136, 64), "Error Internal"), ((1, 8, 8), "Error Internal")],  # taken: there is no driver to go on with
)  # fmt: skip
def test_cutlass_itself_refuses_what_tma_cannot_take(sizes, words):
    library = in_cutlass._loaded(CONFIGS[BEST], False)
    status = library.multiply(None, None, None, *sizes, 0, 132, 8, None)
    assert library.words_of(status).decode() == words


def test_a_kept_library_is_found_again(monkeypatch):
    def no_compiler(*args):
        raise AssertionError("compiled again")

    first = built(CONFIGS[BEST])
    monkeypatch.setattr(nvcc, "_compile", no_compiler)
    assert built.__wrapped__(CONFIGS[BEST]) == first
    assert built.__wrapped__(CONFIGS["wide in rows"]) == first
    assert ctypes.CDLL(str(first.library)).multiply
    with pytest.raises(AssertionError, match="compiled again"):
        built.__wrapped__(replace(CONFIGS[BEST], BK=32))


# --- refusals ----------------------------------------------------------------


@pytest.fixture
def on_the_cpu(monkeypatch):
    """The checks of shapes and types, on tensors of the CPU."""
    monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: True)
    monkeypatch.setattr(by_tma, "multiprocessors", lambda device: 132)


def tensors(M, N, K, dtype=torch.bfloat16):
    return torch.zeros((M, K), dtype=dtype), torch.zeros((K, N), dtype=dtype)


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize(
    ("sizes", "says"),
    [((128, 129, 136), "N: expected a multiple of 8, for the copy engine, got 129"),
     ((33, 64, 17), "K: expected a multiple of 8, for the copy engine, got 17")],
)  # fmt: skip
def test_sizes_that_tma_cannot_take_are_refused_by_name(sizes, says):
    with pytest.raises(ValueError, match=rf"^{says}$"):
        gemm(*tensors(*sizes))
    M, N, K = sizes
    w = Workload.of("bfloat16", M=M, N=N, K=K)
    assert not supports(w)
    with pytest.raises(ValueError, match=r"^w: expected 16-bit types, K and N multiples of 8, got M"):
        compiled(w)


@pytest.mark.usefixtures("on_the_cpu")
def test_types_layouts_and_names_are_refused():
    with pytest.raises(TypeError, match=r"^a: expected bfloat16 or float16, got float32$"):
        gemm(*tensors(8, 8, 8, torch.float32))
    with pytest.raises(ValueError, match=r"^b: expected contiguous"):
        gemm(torch.zeros((8, 8), dtype=torch.bfloat16), torch.zeros((16, 8), dtype=torch.bfloat16).t())
    with pytest.raises(ValueError, match=r"^tile: expected one of 'wide', .*, got 'huge'$"):
        gemm(*tensors(8, 8, 8), tile="huge")
    with pytest.raises(ValueError, match=r"^arch: expected sm_90a, .* got sm_100a$"):
        compiled(W, "sm_100a")
    assert not supports(Workload.of("float32", M=8, N=8, K=8))
    assert supports(Workload.of("float16", M=1, N=8, K=8))


def test_a_tensor_of_the_cpu_is_refused():
    with pytest.raises(ValueError, match=r"^a: expected a tensor on a GPU, got cpu$"):
        gemm(*tensors(8, 8, 8))


@pytest.fixture
def nothing_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path))
    for cached in (built, in_cutlass._loaded, in_cutlass.cutlass_headers):
        cached.cache_clear()
    yield tmp_path
    for cached in (built, in_cutlass._loaded, in_cutlass.cutlass_headers):
        cached.cache_clear()


@pytest.mark.usefixtures("on_the_cpu", "nothing_kept")
def test_without_headers_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(in_cutlass.importlib.util, "find_spec", lambda name: None)
    for call in (lambda: gemm(*tensors(8, 8, 8)), lambda: compiled(W)):
        with pytest.raises(
            NotInstalled,
            match=rf"^CUTLASS: its headers are not .*: {re.escape(INSTALL)}.*$",
        ):
            call()


@pytest.mark.usefixtures("nothing_kept")
def test_without_nvcc_one_line_says_so(monkeypatch):
    in_cutlass.cutlass_headers()  # kept: the path is empty below
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(nvcc.shutil, "which", lambda name: None)
    monkeypatch.setattr(nvcc, "MACHINE", nvcc.Path("/nowhere"))
    monkeypatch.setattr(nvcc.sys, "path", [])
    with pytest.raises(
        headers.CudaMissingError, match=r"^nvcc: not found; install a CUDA toolkit, or pip install .*$"
    ):
        compiled(W)


@pytest.mark.usefixtures("nothing_kept")
def test_without_a_host_compiler_one_line_says_so(monkeypatch):
    real = nvcc.shutil.which
    monkeypatch.setattr(nvcc.shutil, "which", lambda name: None if name == "g++" else real(name))
    with pytest.raises(
        headers.CudaMissingError,
        match=r"^g\+\+: not found; nvcc compiles the host's part of in_cutlass.cu with it$",
    ):
        compiled(W)


def test_an_error_in_a_source_keeps_nothing(nothing_kept):
    file = nothing_kept / "wrong.cu"
    file.write_text("int f() { return nothing; }\n")
    with pytest.raises(CompileError, match=r"^wrong\.cu does not compile for sm_90a\n(.|\n)*nothing"):
        nvcc.compile_library(file, "sm_90a", {})
    assert list((nothing_kept / "percent-of-peak/cubins").iterdir()) == []


def test_where_nothing_can_be_written_the_library_is_for_this_process(nothing_kept):
    (nothing_kept / "percent-of-peak").write_text("a file where a folder would be")
    file = nothing_kept / "right.cu"
    file.write_text('extern "C" int f() { return 7; }\n__global__ void g() {}\n')
    made = nvcc.compile_library(file, "sm_90a", {})
    assert ctypes.CDLL(str(made.library)).f() == 7
    assert made.cubin[:4] == b"\x7fELF"


def test_two_that_compile_at_once_keep_one(nothing_kept, monkeypatch):
    file = nothing_kept / "right.cu"
    file.write_text('extern "C" int f() { return 7; }\n__global__ void g() {}\n')
    real = subprocess.run
    seen = []

    def run(command, **more):
        done = real(command, **more)
        if "-shared" in command and not seen:
            seen.append(1)
            seen.append(nvcc.compile_library(file, "sm_90a", {}))  # the other one is done in the meantime
        return done

    nvcc.version()
    monkeypatch.setattr(nvcc.subprocess, "run", run)
    made = nvcc.compile_library(file, "sm_90a", {})
    assert made == seen[1]
    assert len(list((nothing_kept / "percent-of-peak/cubins").iterdir())) == 1
