"""Attention in CuTe-DSL, read without a card: what its compiler made of it, and what it refuses."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter

import pytest
import torch

from course_kernels.attention import in_cute_dsl
from course_kernels.attention.in_cute_dsl import BEST, TILES, attention, compiled, supports
from course_kernels.cuda.disassemble import sass
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, Compiled, NotInstalled


def heads(D: int = 128, causal: bool = False, dtype: str = "bfloat16") -> Workload:
    return Workload.of(dtype, B=1, H=16, N=16384, D=D, causal=causal)


@functools.cache
def made(name: str = "", D: int = 128, causal: bool = False, dtype: str = "bfloat16") -> Compiled:
    return compiled(heads(D, causal, dtype), tile=TILES[name] if name else None)


@functools.cache
def code(*which: object) -> str:
    return sass(made(*which).cubin)


def counted(listing: str) -> Counter[str]:
    """How often an instruction stands in the code, by its name without what follows a dot."""
    return Counter(re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)", listing))


def words(listing: str) -> list[str]:
    """The waits, exponentials and products of a listing in their order; equal neighbours once."""
    found = re.findall(r"HGMMA|MUFU\.EX2|gsb0, 0x[01]|BAR\.SYNC|BAR\.ARV", listing)
    return [one for one, before in zip(found, [None, *found], strict=False) if one != before]


@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("causal", [False, True])
def test_products_are_by_wgmma_and_tiles_come_and_go_by_tma(name: str, causal: bool) -> None:
    tile = TILES[name]
    listing = code(name, 128, causal)
    found = counted(listing)
    # Scores: 8 steps of 16 along D, in the first tile and in both loops. Values: block_n / 16 steps in both loops, and
    # at the end.
    assert found["HGMMA"] == 3 * (8 + tile.block_n // 16)
    assert set(re.findall(r"HGMMA\.\w+", listing)) == {f"HGMMA.64x{tile.block_n}x16", "HGMMA.64x128x16"}
    assert found["HMMA"] == 0
    # Boxes of 64 columns: Q of each consumer, the first tile of K, the loop's two tiles, and the last one of V.
    assert found["UTMALDG"] == 2 * (tile.consumers + 4)
    assert found["UTMASTG"] == 2
    assert found["STSM"] == 128 // 16
    assert found["USETMAXREG"] == 2
    for absent in ("LDGSTS", "LDG", "STG", "LDL", "STL", "LDS", "STS"):
        assert found[absent] == 0, absent


@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("causal", [False, True])
def test_the_softmax_runs_beside_the_product_of_the_tile_before(name: str, causal: bool) -> None:
    """Scores and values are begun, the scores waited for, and the values only when the exponentials are made."""
    step = ["BAR.SYNC", "HGMMA", "BAR.ARV", "gsb0, 0x1", "MUFU.EX2", "gsb0, 0x0"]
    first = ["BAR.ARV", "HGMMA", "gsb0, 0x0", "MUFU.EX2"]
    last = ["HGMMA", "gsb0, 0x0", "BAR.SYNC"]
    assert words(code(name, 128, causal)) == ["BAR.SYNC", *first, *step, *step, *last]


def test_the_weights_are_multiplied_from_registers() -> None:
    a_of = re.findall(r"HGMMA\.64x(\d+)x16\.F32\.BF16 R\d+, (R\d+|gdesc)", code("176 keys"))
    assert {kind[0] for n, kind in a_of if n == "176"} == {"g"}
    assert {kind[0] for n, kind in a_of if n == "128"} == {"R"}
    # They are rounded once, by twos, and never wait as 32-bit numbers.
    assert counted(code("176 keys"))["F2FP"] == 3 * 176 // 4 + 128 // 4


def test_most_tiles_are_not_masked() -> None:
    """Minus infinity is chosen in the first tile and in the second loop, not in the first."""
    for causal in (False, True):
        assert counted(code("128 keys", 128, causal))["FSEL"] == 2 * 64


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("D", BEST)
def test_each_head_size_type_and_mask_has_its_kernel(D: int, dtype: str, causal: bool) -> None:
    listing = code("", D, causal, dtype)
    found = counted(listing)
    assert found["HGMMA"] == 3 * (D // 16 + BEST[D].block_n // 16)
    assert ("BF16" in listing) == (dtype == "bfloat16")
    assert found["LDL"] == found["STL"] == 0
    assert re.findall(r"gsb0, (0x\w+)", listing) == ["0x0", "0x1", "0x0", "0x1", "0x0", "0x0"]


def test_the_number_of_heads_and_the_length_are_arguments() -> None:
    small = compiled(Workload.of("bfloat16", B=3, H=1, N=1, D=128, causal=True), tile=TILES["128 keys"])
    assert small.cubin == made("128 keys", 128, True).cubin


def test_rows_and_columns_of_a_thread_are_where_the_mask_looks_for_them() -> None:
    """CuTe's own layouts of wgmma, for scores and for weights from registers: index i of thread t."""
    import cutlass
    from cutlass import cute
    from cutlass.cute.nvgpu import OperandMajorMode, warpgroup
    from cutlass.utils import hopper_helpers as hopper

    found = {}

    @cute.jit
    def run() -> None:
        by_k, dtype = OperandMajorMode.K, cutlass.BFloat16
        mma = hopper.make_trivial_tiled_mma(
            dtype, dtype, by_k, OperandMajorMode.MN, cutlass.Float32, (1, 1, 1), (64, 128),
            warpgroup.OperandSource.RMEM,
        )  # fmt: skip
        found["scores"], found["weights"] = str(mma.tv_layout_C), str(mma.tv_layout_A)

    cute.compile(run, options="--gpu-arch sm_90a")
    # A place is row + 64 * column. Threads: two columns on, a row down, 16 rows down. Numbers: a column on, 8 rows
    # down, 8 columns on; so both count in the same order.
    assert found["scores"] == "((4,8,4),(2,2,16)):((128,1,16),(64,8,512))"
    assert found["weights"] == "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"


@pytest.mark.parametrize("tile", [*TILES.values(), *BEST.values()])
def test_a_block_has_room(tile: in_cute_dsl.Tile) -> None:
    assert in_cute_dsl.shared_bytes(tile, 128) <= 227 * 1024
    threads = 128 * (
        in_cute_dsl.PRODUCER_REGISTERS[tile.consumers]
        + tile.consumers * in_cute_dsl.REGISTERS[tile.consumers]
    )
    assert threads <= 65536
    assert tile.block_n % 16 == 0


def test_refusals() -> None:
    q = torch.ones(1, 1, 8, 128, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match=r"^q: expected bfloat16 or float16, got float32$"):
        attention(q.float(), q.float(), q.float())
    with pytest.raises(ValueError, match=r"^q: expected a tensor on a GPU, got cpu$"):
        attention(q, q, q)
    narrow = Workload.of("bfloat16", B=1, H=1, N=8, D=96)
    assert not supports(narrow)
    assert not supports(Workload.of("float32", B=1, H=1, N=8, D=128))
    assert supports(heads())
    with pytest.raises(ValueError, match="D = 64 or 128"):
        compiled(narrow)
    with pytest.raises(ValueError, match="expected sm_90a, for wgmma, got sm_100a"):
        compiled(heads(), "sm_100a")


def test_an_address_between_vectors_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: True)  # tensors on the CPU pass
    q = torch.zeros(64 * 64 + 1, dtype=torch.bfloat16)[1:].view(1, 1, 64, 64)
    with pytest.raises(ValueError, match=r"^q: expected an address"):
        attention(q, q, q)


def test_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cutlass", None)
    in_cute_dsl._program.cache_clear()
    in_cute_dsl._compiled.cache_clear()
    with pytest.raises(NotInstalled, match=rf"^CuTe-DSL: not installed here: {re.escape(INSTALL)}$"):
        compiled(heads())
    in_cute_dsl._program.cache_clear()
