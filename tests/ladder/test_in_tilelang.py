"""The rungs in TileLang: what their machine code is made of, and what they refuse. Needs TileLang and nvcc, no GPU."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter

import pytest
import torch

from course_kernels import tilelang_compiler
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import in_tilelang as gemm
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled, NotInstalled

SHARED = 227 * 1024  # the most that a block of a Hopper may ask for
LARGE = Workload.of("bfloat16", M=8192, N=8192, K=8192)
UGLY = Workload.of("bfloat16", M=33, N=65, K=17)


def counted(made: Compiled) -> Counter[str]:
    """How often each instruction stands in the machine code, by its first word."""
    found = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z0-9]+)", sass(made.cubin), re.MULTILINE)
    return Counter(found)


@functools.cache
def gemm_made(w: Workload, name: str = "") -> Compiled:
    return gemm.compiled(w, tile=gemm.TILES[name] if name else None)


def by_wgmma_alone(count: Counter[str]) -> bool:
    return count["HGMMA"] > 0 and count["HMMA"] == 0


def kept_in_registers(count: Counter[str]) -> bool:
    return count["LDL"] == count["STL"] == 0


@pytest.mark.parametrize("name", gemm.TILES)
def test_a_multiply_of_whole_vectors_is_copied_by_the_copy_engine_both_ways(name: str) -> None:
    made = gemm_made(LARGE, name)
    count = counted(made)
    assert by_wgmma_alone(count) and kept_in_registers(count)
    assert count["UTMALDG"] > 0 and count["UTMASTG"] > 0 and count["SYNCS"] > 0
    assert count["STSM"] > 0  # C goes through shared memory
    assert count["LDG"] == count["LDGSTS"] == count["STG"] == 0
    assert 0 < made.shared_bytes <= SHARED - 1024  # the barriers take the rest


@pytest.mark.parametrize("name", gemm.TILES)
def test_registers_move_to_who_multiplies_where_a_block_has_one_tile(name: str) -> None:
    # Of a persistent block the compiler leaves them as they are; 156 a thread are enough there.
    assert (counted(gemm_made(LARGE, name))["USETMAXREG"] > 0) != gemm.TILES[name].persistent


def test_a_multiply_of_odd_rows_is_copied_by_threads() -> None:
    count = counted(gemm_made(UGLY))
    assert by_wgmma_alone(count) and kept_in_registers(count)
    assert count["UTMALDG"] == count["UTMASTG"] == 0
    assert count["LDG"] > 0 and count["STG"] > 0


def test_one_compile_serves_all_sizes() -> None:
    source = gemm_made(LARGE).source
    assert source == gemm.compiled(Workload.of("bfloat16", M=1, N=8, K=8)).source
    assert re.search(r"int K, int M, int N\)", source)


def test_who_multiplies_float16_multiplies_float16() -> None:
    made = gemm.compiled(Workload.of("float16", M=8, N=8, K=8))
    assert "kFloat16, tl::DataType::kFloat16, tl::DataType::kFloat32" in made.source
    assert "f32.f16.f16" in made.ptx


def test_what_is_looked_at_is_what_is_launched() -> None:
    found = gemm_made(LARGE, "persistent")
    tile = gemm.TILES["persistent"]
    launched = gemm._ready(tile, "bfloat16", True, gemm.MULTIPROCESSORS)
    assert launched.get_kernel_source() == found.source


def test_a_multiply_refuses() -> None:
    a, b = torch.ones(8, 8, dtype=torch.bfloat16), torch.ones(8, 8, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match="a: expected bfloat16 or float16, got float32"):
        gemm.gemm(a.float(), b.float())
    with pytest.raises(ValueError, match="a: expected a tensor on a GPU, got cpu"):
        gemm.gemm(a, b)
    wide = Workload.of("bfloat16", M=1, N=gemm.MAX_N + 1, K=1)
    assert not gemm.supports(wide) and not gemm.supports(Workload.of("float32", M=8, N=8, K=8))
    assert gemm.supports(UGLY) and gemm.supports(LARGE)
    with pytest.raises(ValueError, match="N <= 8388480"):
        gemm.compiled(wide)


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    tilelang_compiler.tilelang.cache_clear()
    monkeypatch.setitem(sys.modules, "tilelang", None)
    a = torch.ones(8, 8, dtype=torch.bfloat16)
    for call in (lambda: gemm.gemm(a, a), lambda: gemm.compiled(LARGE)):
        with pytest.raises(
            NotInstalled, match=r"^tilelang: not installed here; pip install \"percent-of-peak"
        ):
            call()
    monkeypatch.undo()
    tilelang_compiler.tilelang.cache_clear()
