"""The rungs in TileLang: what their machine code is made of, and what they refuse. Needs TileLang and nvcc, no GPU."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter

import pytest
import torch

from course_kernels import tilelang_compiler
from course_kernels.attention import in_tilelang as attention
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import in_tilelang as gemm
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled, NotInstalled

SHARED = 227 * 1024  # the most that a block of a Hopper may ask for
LARGE = Workload.of("bfloat16", M=8192, N=8192, K=8192)
HEADS = Workload.of("bfloat16", B=1, H=16, N=16384, D=128, causal=False)
CAUSAL = Workload.of("bfloat16", B=1, H=16, N=16384, D=128, causal=True)
UGLY = Workload.of("bfloat16", M=33, N=65, K=17)


def counted(made: Compiled) -> Counter[str]:
    """How often each instruction stands in the machine code, by its first word."""
    found = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z0-9]+)", sass(made.cubin), re.MULTILINE)
    return Counter(found)


@functools.cache
def gemm_made(w: Workload, name: str = "") -> Compiled:
    return gemm.compiled(w, tile=gemm.TILES[name] if name else None)


@functools.cache
def attention_made(w: Workload, name: str = "") -> Compiled:
    return attention.compiled(w, tile=attention.TILES[name] if name else None)


def by_wgmma_alone(count: Counter[str]) -> bool:
    return count["HGMMA"] > 0 and count["HMMA"] == 0


def kept_in_registers(count: Counter[str]) -> bool:
    return count["LDL"] == count["STL"] == 0


@pytest.mark.parametrize("name", gemm.TILES)
def test_a_multiply_of_whole_vectors_is_copied_by_the_copy_engine_both_ways(name: str) -> None:
    made = gemm_made(LARGE, name)
    count = counted(made)
    assert by_wgmma_alone(count)
    assert kept_in_registers(count)
    assert count["UTMALDG"] > 0
    assert count["UTMASTG"] > 0
    assert count["SYNCS"] > 0
    assert count["STSM"] > 0  # C goes through shared memory
    assert count["LDG"] == count["LDGSTS"] == count["STG"] == 0
    assert 0 < made.shared_bytes <= SHARED - 1024  # the barriers take the rest


@pytest.mark.parametrize("name", gemm.TILES)
def test_registers_move_to_who_multiplies_where_a_block_has_one_tile(name: str) -> None:
    # Of a persistent block the compiler leaves them as they are; 156 a thread are enough there.
    assert (counted(gemm_made(LARGE, name))["USETMAXREG"] > 0) != gemm.TILES[name].persistent


def test_a_multiply_of_odd_rows_is_copied_by_threads() -> None:
    count = counted(gemm_made(UGLY))
    assert by_wgmma_alone(count)
    assert kept_in_registers(count)
    assert count["UTMALDG"] == count["UTMASTG"] == 0
    assert count["LDG"] > 0
    assert count["STG"] > 0


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


@pytest.mark.parametrize("name", attention.TILES)
@pytest.mark.parametrize("w", [HEADS, CAUSAL], ids=["full", "causal"])
def test_attention_is_copied_by_the_copy_engine_both_ways(w: Workload, name: str) -> None:
    made = attention_made(w, name)
    count = counted(made)
    assert by_wgmma_alone(count)
    assert kept_in_registers(count)
    assert count["UTMALDG"] > 0
    assert count["UTMASTG"] > 0
    assert count["USETMAXREG"] == 2
    assert count["LDG"] == count["LDGSTS"] == count["STG"] == 0
    assert 0 < made.shared_bytes <= SHARED - 1024
    # An exponential for each of 64 rows x keys / 128 threads, and one or two a row of a thread for the repair.
    assert count["MUFU"] >= attention.TILES[name].block_n // 2


def test_the_weights_are_multiplied_from_registers() -> None:
    source = attention_made(HEADS).source
    assert source.count("tl::wgmma_ss<") == source.count("tl::wgmma_rs<") == 1


def test_a_tile_is_masked_on_the_diagonal_or_at_the_end_only() -> None:
    # A test that no thread's number stands in, and under it the one place that brings in minus infinity by element.
    for w in (HEADS, CAUSAL):
        lines = attention_made(w).source.splitlines()
        (place,) = [i for i, line in enumerate(lines) if "condval = -CUDART_INF_F" in line]
        tests = [line.strip() for line in lines[place - 10 : place] if line.strip().startswith("if (")]
        whole, each = tests
        assert "threadIdx" not in whole
        assert re.search(r"\bj_1\b", whole)
        assert "threadIdx" in each


def test_a_half_row_is_half_of_the_tile() -> None:
    w = Workload.of("float16", B=1, H=2, N=1000, D=64, causal=True)
    count = counted(attention_made(w))
    assert by_wgmma_alone(count)
    assert attention_made(w).shared_bytes * 2 == attention_made(CAUSAL).shared_bytes


def test_attention_refuses() -> None:
    q = torch.ones(1, 1, 8, 128, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match="q: expected bfloat16 or float16, got float32"):
        attention.attention(q.float(), q.float(), q.float())
    with pytest.raises(ValueError, match="q: expected a tensor on a GPU, got cpu"):
        attention.attention(q, q, q)
    narrow = Workload.of("bfloat16", B=1, H=1, N=8, D=96)
    assert not attention.supports(narrow)
    assert attention.supports(CAUSAL)
    with pytest.raises(ValueError, match="D = 64 or 128"):
        attention.compiled(narrow)


def test_a_multiply_refuses() -> None:
    a, b = torch.ones(8, 8, dtype=torch.bfloat16), torch.ones(8, 8, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match="a: expected bfloat16 or float16, got float32"):
        gemm.gemm(a.float(), b.float())
    with pytest.raises(ValueError, match="a: expected a tensor on a GPU, got cpu"):
        gemm.gemm(a, b)
    wide = Workload.of("bfloat16", M=1, N=gemm.MAX_N + 1, K=1)
    assert not gemm.supports(wide)
    assert not gemm.supports(Workload.of("float32", M=8, N=8, K=8))
    assert gemm.supports(UGLY)
    assert gemm.supports(LARGE)
    with pytest.raises(ValueError, match="N <= 8388480"):
        gemm.compiled(wide)


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    tilelang_compiler.tilelang.cache_clear()
    monkeypatch.setitem(sys.modules, "tilelang", None)
    a = torch.ones(8, 8, dtype=torch.bfloat16)
    q = a.view(1, 1, 1, 64)
    calls = (
        lambda: gemm.gemm(a, a),
        lambda: gemm.compiled(LARGE),
        lambda: attention.attention(q, q, q),
        lambda: attention.compiled(CAUSAL),
    )
    for call in calls:
        with pytest.raises(NotInstalled, match=r"^TileLang: not installed here: pip install"):
            call()
    monkeypatch.undo()
    tilelang_compiler.tilelang.cache_clear()
