"""The rungs in cuTile, compiled for a Hopper without a card and read; by hand, where cuda-tile[tileiras] is."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter

import pytest
import torch

pytest.importorskip("cuda.tile")

from course_kernels import cutile_compiler as cutile
from course_kernels.attention import in_cutile as attention_rung
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import in_cutile as gemm_rung
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, NotInstalled

INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?\S+\s+)?([A-Z0-9]+)", re.MULTILINE)


def counted(compiled):
    return Counter(INSTRUCTION.findall(sass(compiled.cubin)))


def gemm_of(M, N, K, dtype="bfloat16"):
    return Workload.of(dtype, M=M, N=N, K=K)


LARGE = gemm_of(4096, 4096, 4096)


@pytest.mark.parametrize("name", gemm_rung.TILES)
def test_the_multiply_has_roles_tma_and_wgmma_and_spills_nothing(name):
    made = gemm_rung.compiled(LARGE, tile=gemm_rung.TILES[name])
    found = counted(made)
    assert min(found[n] for n in ("HGMMA", "UTMALDG", "UTMASTG", "SYNCS", "USETMAXREG")) > 0
    assert not {"HMMA", "LDGSTS", "LDG", "STG", "LDL", "STL"} & set(found)
    assert made.shared_bytes <= 227 * 1024
    assert "wgmma.mma_async" in made.ptx
    assert ("multicast" in made.ptx) == (gemm_rung.TILES[name].ctas > 1)


def test_without_the_hint_the_sums_spill():
    # Why the hint is there. Where this fails, the compiler has learnt it, and the hint can go.
    ct = cutile.language()
    kernel = ct.kernel(gemm_rung._kernel(gemm_rung.BEST)._pyfunc)
    arrays = [cutile.array_like("bfloat16", (4096, 4096))] * 3
    found = counted(cutile.compile_for("sm_90a", kernel, (*arrays, *gemm_rung._constants(gemm_rung.BEST))))
    assert min(found["LDL"], found["STL"]) > 100


@pytest.mark.parametrize("sizes", [(1000, 1000, 1000), (1, 8, 8), (127, 136, 72), (1024, 14336, 4096)])
def test_any_rows_of_whole_vectors_come_by_tma(sizes):
    found = counted(gemm_rung.compiled(gemm_of(*sizes)))
    assert min(found["HGMMA"], found["UTMALDG"], found["UTMASTG"]) > 0
    assert found["LDG"] == found["HMMA"] == 0


@pytest.mark.parametrize("sizes", [(33, 65, 17), (1, 1, 1), (1023, 1023, 1023), (4097, 4097, 4097)])
def test_other_rows_come_by_elements_and_multiply_with_wgmma_all_the_same(sizes):
    found = counted(gemm_rung.compiled(gemm_of(*sizes)))
    assert min(found["HGMMA"], found["LDG"], found["STG"]) > 0
    assert not {"HMMA", "UTMALDG", "UTMASTG", "LDL", "STL"} & set(found)


def test_each_array_comes_by_what_its_own_rows_allow():
    found = counted(gemm_rung.compiled(gemm_of(127, 129, 136)))  # K is a multiple of 8, N is not
    assert min(found["HGMMA"], found["UTMALDG"], found["LDG"], found["STG"]) > 0
    assert found["UTMASTG"] == found["HMMA"] == 0


@pytest.mark.parametrize("arch", ["sm_90a", "sm_90"])
def test_the_letter_of_an_arch_is_the_compilers_own(arch):
    assert ".target sm_90a" in gemm_rung.compiled(LARGE, arch).ptx


@pytest.mark.parametrize("arch", ["90", "hopper", "sm_90ab"])
def test_an_arch_that_is_none_is_refused(arch):
    with pytest.raises(ValueError, match="arch: expected one such as sm_90a, got"):
        gemm_rung.compiled(LARGE, arch)


def test_float16_is_a_kernel_of_its_own():
    assert ".f32.f16.f16" in gemm_rung.compiled(gemm_of(64, 64, 64, "float16")).ptx


def test_what_the_rung_takes():
    assert gemm_rung.supports(LARGE)
    assert gemm_rung.supports(gemm_of(1, 1, 1, "float16"))
    assert not gemm_rung.supports(gemm_of(64, 64, 64, "float32"))


def test_without_the_language_one_line_says_what_to_install(monkeypatch):
    cutile.language.cache_clear()
    gemm_rung._kernel.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.tile", None)
    with pytest.raises(NotInstalled, match=rf"^cuTile: not installed here: {re.escape(INSTALL)}"):
        gemm_rung.compiled(LARGE)
    monkeypatch.undo()
    cutile.language.cache_clear()


def test_without_its_compiler_too():
    code = """
        import importlib.metadata
        import cuda.tile._compile as found
        def missing(): raise FileNotFoundError("no tileiras")
        found._find_compiler_bin = missing
        from course_kernels.gemm.in_cutile import compiled
        from course_kernels.problem import Workload
        from course_kernels.rungs import NotInstalled
        try:
            compiled(Workload.of("bfloat16", M=8, N=8, K=8))
        except NotInstalled as error:
            print(error)
    """
    assert ran(code).startswith("cuTile: not installed here")


# --- the very kernel that a launch would make -------------------------------

# As much of a driver as a launch asks for. It says which kernel it was handed, and how many blocks.
DRIVER = r"""
#include <stdio.h>
#include <string.h>
static long thing = 1;
static int nothing() { return 0; }
static int context(void **c) { *c = &thing; return 0; }
static int number(int *n) { *n = 0; return 0; }
static int one(int *n) { *n = 1; return 0; }
static int version(int *v) { *v = 13000; return 0; }
static int attribute(int *v, int a, int d) { *v = a == 75 ? 9 : a == 76 ? 0 : 65535; return 0; }
static int load(void **l, const void *code) { *l = &thing; return 0; }
static int kernel(void **k, void *l, const char *name) { *k = &thing; puts(name); fflush(stdout); return 0; }
static int pointer(void *d, int a, unsigned long long p) { *(int *)d = 0; return 0; }
static int id(void *s, unsigned long long *n) { *n = 1; return 0; }
static int capturing(void *s, int *n) { *n = 0; return 0; }
static int of_stream(void *s, void **c) { *c = &thing; return 0; }
int cuGetProcAddress_v2(const char *name, void **f, int v, unsigned long long flags, void *status) {
    struct { const char *name; void *f; } known[] = {
        {"cuCtxGetCurrent", context}, {"cuCtxPopCurrent", context}, {"cuCtxGetDevice", number},
        {"cuDriverGetVersion", version}, {"cuDeviceGetAttribute", attribute}, {"cuLibraryLoadData", load},
        {"cuLibraryGetKernel", kernel}, {"cuPointerGetAttribute", pointer}, {"cuCtxGetId", id},
        {"cuStreamGetId", id}, {"cuStreamIsCapturing", capturing}, {"cuStreamGetCtx", of_stream},
        {"cuDevicePrimaryCtxRetain", context}, {"cuKernelGetFunction", context}, {"cuDeviceGetCount", one}};
    *f = nothing;
    for (int i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) *f = known[i].f;
    return 0;
}
"""

ARRAY = """
    class Array:
        def __init__(self, *shape):
            data = (1 << 20, False)
            self.__cuda_array_interface__ = dict(typestr="<f2", shape=shape, data=data, strides=None, version=3)
"""


def ran(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    subprocess.run(
        ["cc", "-w", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"], check=True
    )
    return str(folder)


def entry(compiled):
    return re.search(r"^\.visible \.entry (\w+)\(", compiled.ptx, re.MULTILINE)[1]


@pytest.mark.parametrize(
    "sizes", [(4096, 4096, 4096), (1000, 1000, 1000), (127, 129, 136), (1, 8, 8), (8, 1, 1)]
)
def test_a_launch_asks_for_the_kernel_that_was_compiled(sizes, driver):
    # The name of a kernel holds everything that a launch assumed of its arguments.
    M, N, K = sizes
    tile = gemm_rung.BEST if K % 8 == 0 and N % 8 == 0 else gemm_rung.PLAIN
    code = textwrap.dedent(ARRAY) + textwrap.dedent(f"""
        from course_kernels.cutile_compiler import launch
        from course_kernels.gemm.in_cutile import Tile, _constants, _kernel
        tile = {tile}
        launch(0, (7,), _kernel(tile), (Array({M}, {K}), Array({K}, {N}), Array({M}, {N}), *_constants(tile)))
    """)
    launched = ran(code, LD_LIBRARY_PATH=driver).split()
    assert launched == [entry(gemm_rung.compiled(gemm_of(*sizes, "float16")))]


# --- attention ---------------------------------------------------------------


def attention_of(N, D=128, causal=False, dtype="bfloat16", H=16):
    return Workload.of(dtype, B=1, H=H, N=N, D=D, causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("name", attention_rung.TILES)
def test_attention_has_roles_tma_and_wgmma_and_hardly_spills(name, D, causal):
    made = attention_rung.compiled(attention_of(4096, D, causal), tile=attention_rung.TILES[name])
    found = counted(made)
    assert min(found[n] for n in ("HGMMA", "UTMALDG", "UTMASTG", "SYNCS", "USETMAXREG")) > 0
    assert not {"HMMA", "LDGSTS", "LDG", "STG"} & set(found)
    assert found["LDL"] <= (2 if name == "tall" else 0)
    assert made.shared_bytes <= 227 * 1024
    assert ("multicast" in made.ptx) == (attention_rung.TILES[name].ctas > 1)


def test_the_compiler_makes_two_loops_of_one():
    # One with the mask and one without: each has its own products.
    found = counted(attention_rung.compiled(attention_of(4096), tile=attention_rung.TILES["square"]))
    one_loop = 128 // 16 + 128 // 16  # of QK over D, and of PV over the keys, 16 at a time
    assert found["HGMMA"] == 2 * one_loop


def test_every_product_is_waited_for_before_what_follows():
    # What the head of the file says. A wait that leaves one product running would be a wait_group of 1.
    for tile in attention_rung.TILES.values():
        ptx = attention_rung.compiled(attention_of(4096), tile=tile).ptx
        assert set(re.findall(r"wgmma\.wait_group\S*\s+(\d+)", ptx)) == {"0"}


@pytest.mark.parametrize("N", [1, 17, 129, 1000])
def test_lengths_that_fill_no_tile_still_come_by_tma(N):
    found = counted(attention_rung.compiled(attention_of(N, H=2, causal=True)))
    assert min(found["HGMMA"], found["UTMALDG"], found["UTMASTG"]) > 0
    assert not {"HMMA", "LDG", "STG", "LDL", "STL"} & set(found)


def test_what_the_attention_takes():
    assert attention_rung.supports(attention_of(1))
    assert attention_rung.supports(attention_of(1, D=64, dtype="float16"))
    assert not attention_rung.supports(attention_of(1, D=96))
    assert not attention_rung.supports(attention_of(1, dtype="float32"))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("H", "N", "D"), [(16, 4096, 128), (2, 1000, 64), (1, 1, 128), (2, 17, 128)])
def test_a_launch_asks_for_the_attention_that_was_compiled(H, N, D, causal, driver):
    code = textwrap.dedent(ARRAY) + textwrap.dedent(f"""
        from course_kernels.attention.in_cutile import BEST, _constants, _kernel
        from course_kernels.cutile_compiler import launch
        tile = BEST[{D}]
        launch(0, (7, {H}), _kernel(tile), (*[Array({H}, {N}, {D})] * 4, 0.1, *_constants(tile, {D}, {causal})))
    """)
    launched = ran(code, LD_LIBRARY_PATH=driver).split()
    assert launched == [entry(attention_rung.compiled(attention_of(N, D, causal, "float16", H)))]


# --- refusals of the launchers -----------------------------------------------


@pytest.mark.parametrize("refused", ["dtype", "sizes", "layout", "device"])
def test_launchers_refuse_by_name(refused):
    a = torch.empty(16, 8, dtype=torch.float32 if refused == "dtype" else torch.bfloat16)
    b = torch.empty(9 if refused == "sizes" else 8, 24, dtype=torch.bfloat16)
    q = torch.empty(1, 2, 3, 96 if refused == "sizes" else 64, dtype=a.dtype)
    if refused == "layout":
        a, q = torch.empty(8, 16, dtype=a.dtype).T, q.transpose(1, 2)
    error = TypeError if refused == "dtype" else ValueError
    with pytest.raises(error, match=r"^[ab]: expected"):
        gemm_rung.gemm(a, b)
    with pytest.raises(error, match=r"^q: expected"):
        attention_rung.attention(q, q, q)
