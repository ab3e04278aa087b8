"""Every .cu file compiles for every kind of card, and nothing spills where it matters. No GPU, no nvcc."""

import importlib
import json
import re
import sys
from pathlib import Path

import compiled
import pytest
from compiled import decides, known

import course_kernels
from course_kernels.attention import k02_teaching
from course_kernels.blackwell import decode, scaled
from course_kernels.bytes_in_flight import k01_limited
from course_kernels.cuda import disassemble
from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import CompileError, compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.cuda.headers import CudaMissingError
from course_kernels.cuda.includes import SHARED, sources_of
from course_kernels.decode_attention import k04_cluster
from course_kernels.decode_linear import k01_stream, k02_even, stream_w4
from course_kernels.decode_linear.arguments import ADD, GATE, NOTHING, ROPE
from course_kernels.decode_linear.by_tma import Kind
from course_kernels.gemv_fp4 import bare_read
from course_kernels.microbenchmarks import tensor
from course_kernels.sgemm import k10_tuned, k11_register_banks, k12_persistent, tiles
from course_kernels.skinny_gemm_fp4 import k02_fragments as fragments_fp4
from course_kernels.skinny_gemm_fp4 import k03_cluster as clusters_fp4
from course_kernels.skinny_gemm_w4 import k02_fragments
from course_kernels.softmax import k01_online

pytest.importorskip("cuda.core")

ROOT = Path(course_kernels.__file__).parent
LABS = Path(__file__).parents[2] / "labs"
ARCHES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120")
TILES = [shape.defines for shape in {*tiles.BY_CAPABILITY.values(), tiles.OTHERWISE}]
DEFINES = {
    k02_teaching.SOURCE: [{"D": D} for D in k02_teaching.HEAD_SIZES],
    k01_limited.SOURCE: [{"VECTORS": V} for V in k01_limited.VECTORS],
    **{
        source: list({str(w.defines): w.defines for w in bare_read.WAYS if w.kernel == name}.values())
        for name, source in bare_read.SOURCES.items()
    },
    **{kernel.SOURCE: TILES for kernel in (k10_tuned, k11_register_banks, k12_persistent)},
    tensor.SOURCE: [
        tensor.defines("mma", "bf16"),
        tensor.defines("wgmma", "bf16"),
        tensor.defines("wgmma", "e4m3"),
    ],
    k01_stream.SOURCE: [
        k01_stream.defines_of(float16, eights, (4, 3, room.held, room.resident), norm, behind, 128)
        for float16, (eights, room), (norm, behind) in zip(
            (False, True, False, True),
            (*k01_stream.ROOM.items(), *k01_stream.ROOM.items()),
            (
                (True, ROPE),
                (True, GATE),
                (False, ADD),
                (True, NOTHING),
            ),
            strict=False,
        )
    ],
    k02_even.SOURCE: [
        Kind(False, 16, True, ROPE, 64).defines(12),
        Kind(True, 32, False, ADD, 128).defines(10),
    ],
    stream_w4.SOURCE: [
        stream_w4.defines_of(float16, eights, (4, 3, room.held, room.resident), norm, behind, head)
        for (eights, room), (float16, norm, behind, head) in zip(
            (*stream_w4.ROOM.items(), *stream_w4.ROOM.items()),
            (
                (False, True, ROPE, 128),
                (True, True, GATE, 128),
                (False, False, ADD, 128),
                (True, True, NOTHING, 128),
                (False, False, ROPE, 64),
                (True, False, GATE, 128),
            ),
            strict=True,
        )
    ],
    scaled.SOURCE: [{"EIGHT_BITS": 0}, {"EIGHT_BITS": 1}],
    decode.SOURCE: [{"IN_HARDWARE": 0}, {"IN_HARDWARE": 1}],
    k04_cluster.SOURCE: [
        k04_cluster.defines_of(False, 64, 4, 1, False),
        k04_cluster.defines_of(True, 128, 16, 8, True),
    ],
    fragments_fp4.SOURCE: [fragments_fp4.ROOM[eights].defines(eights, 4, 3) for eights in (1, 4)],
    clusters_fp4.SOURCE: [
        clusters_fp4.cut_of(28672, 4096, 1, 132).defines(1, True),
        clusters_fp4.cut_of(4096, 14336, 2, 132).defines(2, False),
    ],
    k02_fragments.SOURCE: [
        {"WEIGHTS": weights, "EIGHTS": eights, "WARPS": 4, "STAGES": 3, "HELD": room.held}
        for weights, (eights, room) in zip(
            k02_fragments.WEIGHTS.values(), k02_fragments.ROOM.items(), strict=False
        )
    ],
}
# What uses instructions that came with compute capability 8.0: bfloat16 arithmetic, larger multiplies of the tensor
# cores, or asynchronous copies.
SINCE_8_0 = {
    "bias_gelu/k01_fused",
    "gemm/k02_wmma",
    "gemm/k03_mma_sync",
    "gemm/one_instruction",
    "gemv_fp4/bare_read_ring",
    "gemv_fp4/k12_ring",
    "microbenchmarks/tensor",
    "sgemm/k09_asynchronous",
    "sgemm/k10_tuned",
    "sgemm/k11_register_banks",
    "sgemm/k12_persistent",
    "skinny_gemm_fp4/k02_fragments",
    "skinny_gemm_w4/k02_fragments",
}
# A lab that begins with a prediction compiles once its numbers are there.
PREDICT_FIRST = {LABS / "fp4_gemv/cuda/starter.cu", LABS / "register_tile/cuda/starter.cu"}
# What a lab's stages add to each other is in its last one, and that is compiled for every card. A tile made for one
# kind of card is asked of that kind alone.
OLDEST_AND_OURS = ("sm_75", "sm_90a")
# What students type uses nothing that only one kind between these has.
OF_A_LAB = ("sm_75", "sm_80", "sm_90a", "sm_120")
ONE_KIND = [(shape.defines, arch_of(capability)) for capability, shape in tiles.BY_CAPABILITY.items()]


def arches_for(path, defines):
    stages = sorted(path.parent.glob("stage*.cu"))
    if path in stages[:-1]:
        return OLDEST_AND_OURS
    if path.parent.name == "cuda":
        return OF_A_LAB
    if path.parent.name == "blackwell":
        return (*(ARCHES if path == decode.SOURCE else ("sm_90a", "sm_100a", "sm_120")), "sm_103a")
    if '#include "hopper/' in path.read_text(encoding="utf-8"):
        return ("sm_90a",)  # by its own words: TMA, roles and wgmma are that card's
    if DEFINES.get(path) is TILES:
        kinds = [arch for shape, arch in ONE_KIND if shape == defines]
        others = [arch for arch in ARCHES if arch not in {arch for _, arch in ONE_KIND}]
        return kinds + (others if defines == tiles.OTHERWISE.defines else [])
    return ARCHES


# A wrong answer is refused for what it is; whether it compiles the grader finds out.
OF_LABS = [path for path in LABS.glob("*/*/*.cu") if path.parent.name != "wrong"]
SOURCES = [
    pytest.param(path, defines, arch, id=f"{path.parent.name}/{path.stem}-{defines}-{arch}")
    for path in sorted((*ROOT.rglob("*.cu"), *OF_LABS))
    if not path.name.startswith("in_")  # nvcc compiles those: tests/ladder
    for defines in DEFINES.get(path, [{}])
    for arch in arches_for(path, defines)
]


@pytest.mark.parametrize(("path", "defines", "arch"), SOURCES)
def test_compiles_where_it_can(path, defines, arch):
    made = known([decides(path), arch, defines], lambda: what_comes_of(path, arch, defines))

    assert made == ("a cubin" if can_compile(path, defines, arch) else "an error")


def what_comes_of(path, arch, defines):
    try:
        cubin = compile_cubin(path, arch, defines)
    except CompileError:
        return "an error"
    return "a cubin" if cubin[:4] == b"\x7fELF" else "something else"


def can_compile(path, defines, arch):
    if path in PREDICT_FIRST:
        return False
    name = f"{path.parent.name}/{path.stem}"
    if path.parent.name == "blackwell" and (path != decode.SOURCE or defines["IN_HARDWARE"]):
        return arch in ("sm_100a", "sm_103a")  # an RTX 50 converts codes too, as sm_120a
    if name == "gemm/k04_wgmma" or (path == tensor.SOURCE and "MMA" not in defines):
        return arch == "sm_90a"
    return arch != "sm_75" or name not in SINCE_8_0


@pytest.mark.parametrize("D", k02_teaching.HEAD_SIZES)
def test_the_teaching_kernel_keeps_its_rows_in_registers(D):
    instructions = sass(compile_cubin(k02_teaching.SOURCE, "sm_90a", {"D": D}))

    assert "FFMA" in instructions
    assert re.findall(r"\b(?:LDL|STL)\b", instructions) == []


def test_the_copy_moves_16_bytes_at_a_time():
    instructions = sass(compile_cubin(ROOT / "copy/k01_vectorised.cu", "sm_90a"))

    assert len(re.findall(r"LDG\.E\.128", instructions)) == 4
    assert len(re.findall(r"STG\.E\.128", instructions)) == 4


def test_arch_of():
    named = [arch_of(c) for c in ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0))]

    assert named == ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120"]


# --- includes ---------------------------------------------------------------------------------------


def test_sources_of_a_kernel_with_a_header():
    assert [p.name for p in sources_of(k01_online.SOURCE)] == ["k01_online.cu", "merge.cuh"]


def test_sources_are_followed_once_each_and_in_order(tmp_path):
    (tmp_path / "a.cu").write_text('#include "b.cuh"\n#include <cuda_fp16.h>\n # include "c.cuh"\n')
    (tmp_path / "b.cuh").write_text('#pragma once\n#include "c.cuh"\n')
    (tmp_path / "c.cuh").write_text('#pragma once\n#include "b.cuh"\nconstexpr int FOUR = 4;\n')

    assert [p.name for p in sources_of(tmp_path / "a.cu")] == ["a.cu", "b.cuh", "c.cuh"]


def test_a_missing_include_names_both_files(tmp_path):
    (tmp_path / "a.cu").write_text('#include "nowhere.cuh"\n')
    with pytest.raises(FileNotFoundError) as caught:
        compile_cubin(tmp_path / "a.cu", "sm_90a")

    assert str(caught.value) == (
        f"{tmp_path / 'nowhere.cuh'}: no such file, included by a.cu, line 1; write it there or in cuda/,"
        " or <nowhere.cuh> for a header of the CUDA toolkit"
    )


def test_every_source_is_opened_by_python(tmp_path):
    """A record lists what was opened; NVRTC opens headers where nobody sees it, so we open them too."""
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    compile_cubin(k01_online.SOURCE, "sm_80")

    assert {str(p) for p in sources_of(k01_online.SOURCE)} <= set(opened)


def test_a_changed_header_is_compiled_again(tmp_path):
    (tmp_path / "a.cu").write_text(
        '#include "b.cuh"\nextern "C" __global__ void f(int *x) { x[0] = NUMBER; }'
    )
    (tmp_path / "b.cuh").write_text("constexpr int NUMBER = 1;")
    first = compile_cubin(tmp_path / "a.cu", "sm_90a")
    same = compile_cubin(tmp_path / "a.cu", "sm_90a")
    (tmp_path / "b.cuh").write_text("constexpr int NUMBER = 2;")

    assert same is first
    assert compile_cubin(tmp_path / "a.cu", "sm_90a") != first


# --- errors -----------------------------------------------------------------------------------------


def test_a_broken_source_shows_the_whole_log(tmp_path):
    (tmp_path / "broken.cu").write_text('extern "C" __global__ void f() {\n  one;\n  two;\n}')
    with pytest.raises(CompileError) as caught:
        compile_cubin(tmp_path / "broken.cu", "sm_90a")
    message = str(caught.value)

    assert message.splitlines()[0] == "broken.cu does not compile for sm_90a"
    assert 'broken.cu(2): error: identifier "one" is undefined' in message
    assert 'broken.cu(3): error: identifier "two" is undefined' in message


def test_an_architecture_nvrtc_does_not_know():
    with pytest.raises(CudaMissingError, match=r"k01_online.cu: NVRTC is missing, or does not know sm_999"):
        compile_cubin(k01_online.SOURCE, "sm_999")


def test_without_cuda_core_one_line_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "a.cu").write_text('extern "C" __global__ void only_here() {}')
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(CudaMissingError) as caught:
        compile_cubin(tmp_path / "a.cu", "sm_90a")

    assert re.fullmatch(r'cuda\.core: .*; pip install "cuda-core\[cu13\]>=1\.0"', str(caught.value))


def test_without_nvdisasm_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(disassemble.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(disassemble.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "path", [])
    disassemble.disassembler.cache_clear()
    try:
        with pytest.raises(CudaMissingError, match=r"nvdisasm: not found; pip install nvidia-cuda-nvdisasm"):
            sass(b"")
    finally:
        disassemble.disassembler.cache_clear()


def test_what_is_no_cubin_is_refused():
    with pytest.raises(ValueError, match="nvdisasm: "):
        sass(b"not a cubin")


def test_headers_shared_by_problems_live_in_cuda():
    assert importlib.import_module("course_kernels.cuda").__file__ == str(SHARED / "__init__.py")


# --- what is kept of it ------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Writes a file of its own, and says what of it is drawn."""
    monkeypatch.setattr(compiled, "FILE", tmp_path / "compiled.json")
    monkeypatch.delenv(compiled.ANEW, raising=False)
    monkeypatch.setattr(compiled, "kept", lambda: ({}, "none"))

    def write(drawn, **facts):
        keys = {}
        for name in facts:
            monkeypatch.setenv(compiled.ANEW, str(tmp_path / "new"))
            known(name, lambda: None)
            monkeypatch.delenv(compiled.ANEW)
            keys[name] = json.loads((tmp_path / "new").read_text().splitlines()[-1])[0]
        compiled.FILE.write_text(json.dumps({keys[name]: fact for name, fact in facts.items()}))
        monkeypatch.setattr(compiled, "kept", lambda: (json.loads(compiled.FILE.read_text()), drawn(keys)))

    return write


def never():
    raise AssertionError("it is compiled")


def test_what_is_known_is_not_compiled_and_what_is_not_known_is(file):
    file(lambda keys: "none", kernel="a cubin")

    assert known("kernel", never) == "a cubin"
    assert known("another", lambda: "an error") == "an error"


def test_what_is_drawn_is_held_against_the_compiler(file):
    file(lambda keys: keys["kernel"][0], kernel="a cubin")

    assert known("kernel", lambda: "a cubin") == "a cubin"
    with pytest.raises(AssertionError, match="has a cubin of what comes to an error"):
        known("kernel", lambda: "an error")


def test_some_of_what_is_kept_is_drawn_and_most_of_it_is_not():
    facts, drawn = compiled.kept()

    assert 20 < len([key for key in facts if key.startswith(drawn)]) < len(facts) / 8


def test_another_compiler_knows_nothing(file, monkeypatch):
    file(lambda keys: "none", kernel="a cubin")
    monkeypatch.setattr(compiled, "compilers", lambda: ["nvidia-cuda-nvrtc 99.0"])

    assert known("kernel", lambda: "an error") == "an error"


NUMBERS = "LDG|STG"


def loads(code, more=""):
    return len(re.findall(NUMBERS + more, code.text))


def stores(code, more=""):
    return len(re.findall("STG" + more, code.text))


def leans_on_another(code):
    return loads(code)


def imports(code):
    import string

    return string.digits


def test_what_has_been_seen_is_known_until_anything_that_decides_it_changes(tmp_path, monkeypatch):
    source, header = tmp_path / "a.cu", tmp_path / "b.cuh"
    source.write_text('#include "b.cuh"\nextern "C" __global__ void f(int *x) { x[threadIdx.x] += NUMBER; }')
    header.write_text("constexpr int NUMBER = 1;")
    facts = {}
    asked = []

    def known(given, make):
        key = json.dumps(given)
        asked.append(key in facts)
        return facts.setdefault(key, make())

    monkeypatch.setattr(compiled, "known", known)

    def again(look=loads, arch="sm_90a", defines=None, *more):
        found = compiled.seen(look, source, arch, defines, *more)
        return found, asked[-1]

    assert again() == (2, False)
    assert again() == (2, True)
    assert again(loads, "sm_90a", None, "|EXIT") == (3, False)
    assert again(loads, "sm_80") == (2, False)
    assert again(loads, "sm_90a", {"OTHER": 1}) == (2, False)
    assert again(stores) == (1, False)
    with monkeypatch.context() as other:
        asked_anew = tmp_path / "compile.py"
        text = compiled.ASKED[0].read_text(encoding="utf-8")
        other.setattr(compiled, "ASKED", (asked_anew, *compiled.ASKED[1:]))
        for planted, is_known in (("", False), ("# a comment\n", True), ("PLANTED = 1\n", False)):
            asked_anew.write_text(f'"""Another docstring."""\n{text}{planted}')
            compiled._meanings.cache_clear()
            assert again() == (2, is_known), planted
    header.write_text("constexpr int NUMBER = 2;")
    assert again() == (2, False)
    source.write_text(source.read_text().replace("+=", "="))
    assert again() == (1, False)
    compiled._whole.cache_clear()
    monkeypatch.setitem(loads.__globals__, "NUMBERS", "LDG")
    assert again() == (0, False)
    compiled._whole.cache_clear()
    monkeypatch.setattr(loads, "__defaults__", ("|EXIT",))
    assert again() == (1, False)
    compiled._whole.cache_clear()


def test_who_looks_is_whole_by_itself():
    outside = 1
    for look, said in {
        leans_on_another: "leans_on_another uses loads",
        imports: "imports: imports string",
        compiled.seen: "seen uses ",
    }.items():
        with pytest.raises(AssertionError, match=said):
            compiled.seen(look, k01_online.SOURCE, "sm_90a")
    with pytest.raises(AssertionError, match="reads what is outside"):
        compiled.seen(lambda code: outside, k01_online.SOURCE, "sm_90a")
