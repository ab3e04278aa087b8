"""The multiply in CuTe-DSL, read without a card: what its compiler made of it, and what it refuses."""

import re
import sys
from collections import Counter

import pytest
import torch

from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import in_cute_dsl
from course_kernels.gemm.in_cute_dsl import TILES, compiled, gemm, supports
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, NotInstalled

LARGE = Workload.of("bfloat16", M=8192, N=8192, K=8192)


def counted(code):
    """Return how often an instruction stands in the code, by its name without what follows a dot."""
    return Counter(re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)", code))


@pytest.mark.parametrize("name", TILES)
def test_each_tile_is_multiplied_by_wgmma_and_comes_and_goes_by_tma(name):
    tile = TILES[name]
    made = compiled(LARGE, tile=tile)
    code = sass(made.cubin)
    found = counted(code)
    # 64 x block_n by 16 an instruction; the first step of a tile stands apart from the loop.
    assert found["HGMMA"] == 2 * (64 // 16) * tile.block_m // 128
    assert set(re.findall(r"HGMMA\.\w+", code)) == {f"HGMMA.64x{tile.block_n}x16"}
    assert found["HMMA"] == 0
    assert found["UTMALDG"] == 1 + tile.block_n // 64  # boxes of 64 columns; A's tile is one of them
    shared = (tile.cluster_n > 1) + (tile.cluster_m > 1) * tile.block_n // 64
    assert len(re.findall(r"UTMALDG\.2D\.MULTICAST", code)) == shared
    strips = tile.block_m // 128 * tile.block_n // 64
    assert found["UTMASTG"] == strips
    assert found["STSM"] == 4 * strips
    assert found["SYNCS"] > 0
    for absent in ("LDGSTS", "LDG", "STG", "LDL", "STL", "LDS", "STS"):
        assert found[absent] == 0, absent
    assert found["USETMAXREG"] == 2


def test_one_product_runs_while_the_next_is_begun():
    waits = re.findall(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x\w+)", sass(compiled(LARGE).cubin))
    assert waits == ["0x1", "0x0"]  # in the loop, and before the sums are read


@pytest.mark.parametrize("name", TILES)
def test_a_block_has_room(name):
    tile = TILES[name]
    assert in_cute_dsl.shared_bytes(tile) <= 227 * 1024
    # The places of C take turns, and a tile must end where the next begins.
    assert tile.block_m // 128 * (tile.block_n // 64) % in_cute_dsl.STRIPS == 0


def test_the_shared_memory_is_what_the_compiler_lays_out():
    made = compiled(LARGE)
    second = max(
        map(int, re.findall(r"add\.s32 \s*%r\d+, %r\d+, (\d{6});", made.ptx))
    )  # the first consumer's
    strip = 2 * in_cute_dsl.STRIP**2
    assert made.shared_bytes == second + in_cute_dsl.STRIPS * strip + strip


def test_float16_has_its_own_kernel():
    code = sass(compiled(Workload.of("float16", M=64, N=64, K=64)).cubin)
    assert "HGMMA.64x256x16.F32 " in code
    assert "BF16" not in code


def test_another_architecture_is_refused():
    with pytest.raises(ValueError, match="expected sm_90a, for wgmma, got sm_100a"):
        compiled(LARGE, "sm_100a")


@pytest.mark.parametrize(("M", "N", "K"), [(127, 129, 136), (33, 65, 17), (8, 8, 4)])
def test_rows_that_the_copy_engine_does_not_take_are_refused(M, N, K, monkeypatch):
    monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: True)  # tensors on the CPU pass
    assert not supports(Workload.of("bfloat16", M=M, N=N, K=K))
    letter, size = ("K", K) if K % 8 else ("N", N)
    with pytest.raises(
        ValueError, match=f"^{letter}: expected a multiple of 8, for the copy engine, got {size}$"
    ):
        gemm(torch.zeros(M, K, dtype=torch.bfloat16), torch.zeros(K, N, dtype=torch.bfloat16))


def test_an_address_between_vectors_is_refused(monkeypatch):
    monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: True)
    a = torch.zeros(64 * 64 + 1, dtype=torch.bfloat16)[1:].view(64, 64)
    with pytest.raises(ValueError, match=r"^a: expected an address"):
        gemm(a, torch.zeros(64, 64, dtype=torch.bfloat16))


def test_other_types_are_refused():
    with pytest.raises(TypeError, match=r"^a: expected bfloat16 or float16, got float32$"):
        gemm(torch.zeros(8, 8), torch.zeros(8, 8))
    assert not supports(Workload.of("float32", M=8, N=8, K=8))


def test_a_tensor_on_the_cpu_is_refused():
    with pytest.raises(ValueError, match=r"^a: expected a tensor on a GPU, got cpu$"):
        gemm(torch.zeros(8, 8, dtype=torch.bfloat16), torch.zeros(8, 8, dtype=torch.bfloat16))


def test_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cutlass", None)
    in_cute_dsl._program.cache_clear()
    in_cute_dsl._compiled.cache_clear()
    with pytest.raises(NotInstalled, match=rf"^CuTe-DSL: not installed here: {re.escape(INSTALL)}$"):
        compiled(LARGE)
    in_cute_dsl._program.cache_clear()
