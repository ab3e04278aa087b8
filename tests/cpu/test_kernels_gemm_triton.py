"""The Triton matrix multiply in the interpreter: tiles, edges, order. fp32 and fp16; bf16 is wrong there by design."""

import re

import pytest
import torch

from course_kernels.gemm import k05_triton
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

# Small stand-ins for the tables; group_m 2 and 3 leave a last group that is lower than the others.
TILES = [
    k05_triton.Tile(32, 64, 16, warps=4, stages=3, strips=1, group_m=2, persistent=True),
    k05_triton.Tile(64, 32, 32, warps=4, stages=3, strips=2, group_m=3, persistent=False),
]
SIZES = [(1, 1, 1), (3, 3, 3), (33, 65, 17), (127, 127, 127), (64, 128, 64), (200, 72, 40)]


def inputs(dtype, M, N, K):
    w = Workload.of(dtype, M=M, N=N, K=K)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_any_size_is_right(dtype, M, N, K):
    w, (a, b) = inputs(dtype, M, N, K)
    c = k05_triton.gemm(a, b)

    assert c.dtype is a.dtype
    assert worst_error(c, PROBLEM.reference(a, b)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize(("M", "N", "K"), [(64, 64, 64), (200, 72, 40), (33, 128, 24)])
@pytest.mark.parametrize("tile", TILES, ids=["persistent", "a tile a program"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_copy_engine_cuts_at_the_edges(dtype, tile, M, N, K):
    w, (a, b) = inputs(dtype, M, N, K)

    assert worst_error(k05_triton.gemm(a, b, tile=tile), PROBLEM.reference(a, b)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize(
    ("table", "element_bytes"), [(t, e) for t in ("HOPPER", "GENERIC") for e in (2, 4)], ids=str
)
def test_every_shipped_tile_is_right(table, element_bytes):
    tile = getattr(k05_triton, table)[element_bytes]
    w, (a, b) = inputs(
        {2: "float16", 4: "float32"}[element_bytes], 2 * tile.block_m + 8, tile.block_n + 8, 72
    )

    assert worst_error(k05_triton.gemm(a, b, tile=tile), PROBLEM.reference(a, b)) <= PROBLEM.max_error(w)


def test_the_copy_engine_is_asked_where_rows_begin_at_16_bytes(monkeypatch):
    class OnHopper(torch.Tensor):
        is_cuda = True

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))

    def asked(dtype, M, N, K, shift=0):
        a = torch.zeros(M * K + shift, dtype=dtype)[shift:].view(M, K).as_subclass(OnHopper)
        return k05_triton.by_copy_engine(a, torch.zeros(K, N, dtype=dtype))

    half, single = torch.float16, torch.float32
    assert [asked(half, 5, 8, 16), asked(single, 5, 4, 12)] == [True, True]
    assert [asked(half, 5, 8, 12), asked(half, 5, 9, 16), asked(single, 5, 6, 12)] == [False, False, False]
    assert not asked(half, 5, 8, 16, shift=1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (8, 0))
    assert not asked(half, 5, 8, 16)


def test_what_a_launcher_refuses():
    a, b = torch.zeros(4, 8), torch.zeros(8, 3)

    assert k05_triton.gemm(a, b).shape == (4, 3)
    with pytest.raises(TypeError, match=re.escape("a: expected bfloat16 or float16 or float32, got float64")):
        k05_triton.gemm(a.double(), b)
    with pytest.raises(TypeError, match="b: expected float32, got float16"):
        k05_triton.gemm(a, b.half())
    with pytest.raises(ValueError, match=re.escape("b: expected (K, N) with K=8, got (7, 3)")):
        k05_triton.gemm(a, b[:7])
    with pytest.raises(ValueError, match="a: expected contiguous"):
        k05_triton.gemm(torch.zeros(8, 4).t(), b)


def test_a_matrix_is_turned_by_more_squares_than_a_grids_second_dimension_has(monkeypatch):
    grids = {}

    class Recorder:
        def __init__(self, name):
            self.name = name

        def __getitem__(self, grid):
            grids[self.name] = grid
            return lambda *args, **how: None

    monkeypatch.setattr(k05_triton, "turn_kernel", Recorder("turn"))
    monkeypatch.setattr(k05_triton, "gemm_kernel", Recorder("gemm"))
    monkeypatch.setattr(k05_triton, "TURN", 1)
    k05_triton.gemm(torch.zeros(4, 8), torch.zeros(8, 70_000), tile=TILES[0])

    assert grids["turn"] == (8 * 70_000,)
