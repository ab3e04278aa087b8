"""The multiply in Gluon, read without a card: what its compiler made of it, and what it refuses."""

import re
from collections import Counter

import pytest
import torch

from course_kernels.cuda.disassemble import sass
from course_kernels.gemm.in_gluon import TILES, compiled, gemm, supports
from course_kernels.problem import Workload

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
    # 64 x block_n by 16 an instruction; both consumers have a loop of their own.
    assert found["HGMMA"] == 2 * (64 // 16) * tile.block_m // 128
    assert set(re.findall(r"HGMMA\.\w+", code)) == {f"HGMMA.64x{tile.block_n}x16"}
    assert found["HMMA"] == 0
    assert found["UTMALDG"] == 1 + tile.block_n // 64  # boxes of 64 columns; A's tile is one of them
    strips = 2 * tile.block_n // tile.strip
    assert found["UTMASTG"] == strips
    assert found["STSM"] == 2 * tile.block_n // 16 * tile.block_m // 128  # 16 columns an instruction
    assert found["SYNCS"] > 0
    for absent in ("LDGSTS", "LDG", "STG", "LDL", "STL"):
        assert found[absent] == 0, absent
    assert found["LDS"] + found["STS"] <= 3  # what the warps tell each other of their roles
    assert made.shared_bytes <= 227 * 1024
    assert (
        tile.block_n // tile.strip % 2 == 0
    )  # two places of C take turns; a tile ends where the next begins


def test_one_product_runs_while_the_next_is_begun():
    waits = re.findall(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x\w+)", sass(compiled(LARGE).cubin))
    assert waits == ["0x1", "0x0"] * 2  # in the loop, and before the sums are read; two consumers


def test_all_threads_wait_before_a_place_of_c_is_written_anew():
    # The thread that gave it to the copy engine waits for that; then a barrier, and only then the others write.
    code = re.findall(r"\b(?:cp\.async\.bulk\.wait_group\.read|bar\.sync|stmatrix)\b", compiled(LARGE).ptx)
    waits = [i for i, what in enumerate(code) if what.startswith("cp")]
    assert len(waits) == 2 * (256 // 64 + 1)
    assert all(code[i + 1] == "bar.sync" for i in waits)


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
