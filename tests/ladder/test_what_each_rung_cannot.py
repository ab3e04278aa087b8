"""What each rung could not be made to do, as W3's price list has it: a test fails on the day when its tool can.

And what the page says of each kernel's machine code, for the rungs that are packages of the extra `ladder`.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cpu"))

from who_does_it import PAGE, RUNGS, faults_of_counts, table_rows

from course_kernels.cuda.compile import CompileError, compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import (
    in_cute_dsl,
    in_cutile,
    in_cutlass,
    in_gluon,
    in_helion,
    in_tilelang,
    k05_triton,
    k14_tuned,
    listing,
)
from course_kernels.nvcc import compile_library
from course_kernels.problem import Workload

W = Workload.of("bfloat16", M=4096, N=4096, K=4096)
TEXT = PAGE.read_text(encoding="utf-8")
PACKAGES = {
    "helion": in_helion,
    "cutile": in_cutile,
    "tilelang": in_tilelang,
    "gluon": in_gluon,
    "cute_dsl": in_cute_dsl,
    "cutlass": in_cutlass,
}


def counted(cubin):
    """How often each instruction is in the machine code."""
    return Counter(one.stem for one in listing.instructions(sass(cubin)))


def changed(module, tmp_path, *edits):
    """A module whose text is changed, each edit in one place."""
    text = Path(module.__file__).read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = tmp_path / f"{module.__name__.rpartition('.')[2]}_changed.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    found = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = found
    spec.loader.exec_module(found)
    return found


def no_of(rung):
    """How the page says that a rung said no."""
    rows = {
        row[0].partition(",")[0].removesuffix(" C++"): row[2]
        for row in table_rows(TEXT, "| rung | we wanted")
    }
    return rows[RUNGS[rung][0].removesuffix(" C++")]


@pytest.mark.parametrize("rung", PACKAGES)
def test_the_machine_code_is_as_the_page_has_it(rung):
    counts = counted(PACKAGES[rung].compiled(W).cubin)
    assert faults_of_counts(TEXT, rung, counts) == []


def test_every_rung_said_no():
    assert [
        row[0].partition(",")[0].removesuffix(" C++") for row in table_rows(TEXT, "| rung | we wanted")[1:]
    ] == [name.removesuffix(" C++") for name, _ in RUNGS.values()]


def test_helion_has_no_cluster(monkeypatch):
    monkeypatch.setitem(in_helion.CONFIGS, "pair", in_helion.CONFIGS["wide"] | {"num_ctas": 2})
    words = "Unsupported config keys for backend 'triton'"
    assert words in no_of("helion")
    with pytest.raises(Exception, match=f"{words}: ..num_ctas"):
        in_helion.compiled(W, tile="pair")


def triton_made(module):
    """What Triton makes of its multiply."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    tile, kernel = module.HOPPER[2], module.gemm_kernel
    blocks = {"A": (tile.block_m, tile.block_k), "B": (tile.block_k, tile.block_n)}
    blocks["C"] = (tile.block_m, tile.block_n // tile.strips)
    types = {name: f"tensordesc<bf16[{rows}, {columns}]>" for name, (rows, columns) in blocks.items()}
    types |= dict.fromkeys("MNK", "i32")
    constants = {
        "BLOCK_M": tile.block_m,
        "BLOCK_N": tile.block_n,
        "BLOCK_K": tile.block_k,
        "GROUP_M": tile.group_m,
    }
    constants |= {"STRIPS": tile.strips, "DTYPE": tl.bfloat16, "TURNED": False, "TMA": True}
    source = ASTSource(
        kernel,
        {name: types.get(name, "constexpr") for name in kernel.arg_names},
        {(kernel.arg_names.index(name),): value for name, value in constants.items()},
    )
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return [(one.guard, one.name, one.rest) for one in listing.instructions(sass(made.asm["cubin"]))]


def test_triton_takes_the_wish_for_roles_and_does_nothing(tmp_path):
    loop = "for k in tl.range(0, K, BLOCK_K):"
    wish = changed(k05_triton, tmp_path, (loop, loop.replace("):", ", warp_specialize=True):")))
    plain, wished = triton_made(k05_triton), triton_made(wish)
    assert "USETMAXREG" not in {name.partition(".")[0] for _, name, _ in plain}
    assert wished == plain
    assert "`warp_specialize=True`" in no_of("triton")


def test_cutile_has_no_depth_of_the_ring_but_a_hint(tmp_path):
    ct = in_cutile.language()
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_stages'"):
        ct.kernel(in_cutile.gemm_kernel, num_stages=3)
    load = "padding_mode=ct.PaddingMode.ZERO)"
    text = Path(in_cutile.__file__).read_text()
    rooms, spills = {}, {}
    for latency in (1, 10):
        file = tmp_path / f"latency_{latency}.py"
        file.write_text(text.replace(load, load.replace(")", f", latency={latency})")))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = module.compiled(W)
        rooms[latency], spills[latency] = made.shared_bytes, counted(made.cubin)["LDL"]
    assert rooms[1] < in_cutile.compiled(W).shared_bytes
    assert spills[1] == 0
    assert spills[10] > 0
    assert all(f"`{word}`" in no_of("cutile") for word in ("num_stages", "latency"))
    assert " 10 " in no_of("cutile")


def test_tilelang_compiles_for_blackwell_in_silence_to_an_old_instruction(capfd):
    counts = counted(in_tilelang.compiled(W, "sm_100a").cubin)
    assert counts["HMMA"] > 0
    assert not [name for name in counts if name.startswith("UTC") and name.endswith("MMA")]
    assert "warn" not in "".join(capfd.readouterr()).lower()
    assert "sm_100a" in no_of("tilelang")


def test_gluon_has_no_name_for_a_thread():
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.language.nvidia import hopper

    names = {*dir(gl), *dir(gl.nvidia), *dir(hopper), *dir(hopper.mbarrier), *dir(hopper.tma)}
    assert {"program_id", "BlockedLayout", "warp_specialize"} <= names
    assert [name for name in names if re.search("thread|lane", name, re.IGNORECASE)] == []
    # A layout does know how many there are, and what each of them has.
    assert "threads_per_warp" in inspect.signature(gl.BlockedLayout).parameters


def test_cute_dsl_leaves_no_loop_early():
    import cutlass
    from cutlass import cute

    @cute.jit
    def search(n: cutlass.Int32):
        for i in cutlass.range(n):
            if i > 3:
                break
            cute.printf("{}", i)

    words = "Early exit (break) is not allowed"
    assert words in no_of("cute_dsl")
    with pytest.raises(Exception, match=re.escape(words)):
        cute.compile(search, 5, options="--gpu-arch sm_90a")


def test_cutlass_has_no_place_for_a_step_of_our_own(tmp_path):
    text = in_cutlass.SOURCE.read_text()
    ours = "struct Softmax : cutlass::epilogue::fusion::FusionOperation { using ElementOutput = Type; };\n"
    known = "cutlass::epilogue::fusion::ScaledAcc<Type, float>"
    assert text.count(known) == text.count("// region kernel") == 1
    file = tmp_path / "own.cu"
    file.write_text(text.replace("// region kernel", ours).replace(known, "Softmax"))
    config = in_cutlass.CONFIGS[in_cutlass.BEST]
    macros = {
        name: int(getattr(config, name)) for name in ("BM", "BN", "BK", "CLUSTER_M", "CLUSTER_N", "PINGPONG")
    }
    words = "Could not find a callbacks specialization"
    assert words in no_of("cutlass")
    with pytest.raises(CompileError, match=words):
        compile_library(
            file, in_cutlass.ARCH, macros | {"FLOAT16": 0, "NDEBUG": 1}, (in_cutlass.cutlass_headers(),)
        )


def test_cuda_does_not_cross_to_the_next_generation():
    words = "Instruction 'wgmma.fence' not supported"
    assert words in no_of("cuda")
    with pytest.raises(CompileError, match=f"{words} on .target 'sm_100a'"):
        compile_cubin(k14_tuned.SOURCE, "sm_100a")
