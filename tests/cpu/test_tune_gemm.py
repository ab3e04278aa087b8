"""What may be tuned fits and has a name of its own; cuBLASLt is asked as its header says; the clocks count right."""

import ctypes
import re
from types import SimpleNamespace

import pytest
import torch
from card_of_a_clock import Card
from compiled import seen

from course_kernels import tune_gemm as tune
from course_kernels.gemm import heuristics, k14_tuned
from course_kernels.gemm.plans import SHAPES, Plan, plan_of
from course_kernels.measure import bursts

pytestmark = pytest.mark.kept

SIZES = (512, 1000, 2048, 4096, 8192)


@pytest.mark.parametrize("N", SIZES)
def test_what_is_tuned_fits_and_has_a_name_of_its_own(N):
    plans = tune.plans_of(N, N, N, 132)
    names = [tune.name_of(plan) for plan in plans]

    assert plan_of(N, N, N, 132) in plans
    assert len(set(names)) == len(names)
    for plan in plans:
        assert plan.shape.shared_bytes <= 227 * 1024
        assert 0 < plan.grid <= 132
        assert plan.grid % plan.shape.cluster == 0
        turned = tune.switched(plan, N, N, N)
        assert len({tune.name_of(each) for each in turned}) == len(turned)


def of_two_kinds(code):
    return len(re.findall("LDL|STL", code.text)), code.text.count("HGMMA")


@pytest.mark.parametrize(
    "shape", tune.MORE_SHAPES, ids=lambda s: f"{s.BM}x{s.BN}x{s.CLUSTER_M}x{s.CLUSTER_N}"
)
def test_what_is_tuned_compiles_without_spilling(shape):
    pytest.importorskip("cuda.core")
    most = max(dict(plan.switches)["LATE"] for plan in tune.switched(Plan(shape, 1, 1, 2), 1, 1, 1))
    spilled, multiplied = seen(of_two_kinds, k14_tuned.SOURCE, "sm_90a", {**shape.defines, "LATE": most})

    assert spilled == 0
    assert multiplied > 0


def test_the_shapes_beside_those_in_use_are_others():
    every = [tuple(s.defines.items()) for s in (*SHAPES, *tune.MORE_SHAPES)]

    assert len(set(every)) == len(every)


# --- told -------------------------------------------------------------------------------------------------


def test_what_is_timed_comes_from_the_two_clocks(monkeypatch):
    card = Card(monkeypatch)
    field = [tune.candidate("x", card.kernel("x", 100.0)), tune.candidate("y", card.kernel("y", 50.0))]
    tune.burst(field, None, None, rounds=2)
    tune.burst(field, None, None, rounds=2)
    us, state = tune.sustained(field[0], [(torch.zeros(1), None)])

    assert [each.median_us for each in field] == pytest.approx([100.0, 50.0])
    assert [len(each.us) for each in field] == [4 * (bursts.LAUNCHES - 1)] * 2
    assert field[0].host_us == pytest.approx(1.0)
    assert us == pytest.approx(100.0)
    assert state["sm_mhz"] == 1500


def test_the_table_is_sorted_and_says_who_is_better_than_the_best_library():
    fast, slow, theirs = (tune.candidate(name, torch.mm) for name in ("ours", "ours too", "cuBLASLt, way 3"))
    for each, us in ((fast, 80.0), (slow, 125.0), (theirs, 100.0)):
        each.us = [us, us, 10 * us]
    lines = tune.table([slow, theirs, fast], flops=80_000_000)

    assert [line.split()[0] for line in lines] == ["1", "1", "1"]
    assert [line.rpartition("us  ")[2] for line in lines] == ["ours", "cuBLASLt, way 3", "ours too"]
    assert [line.split()[2] for line in lines] == ["1.250", "1.000", "0.800"]


def test_who_is_wrong_is_not_timed(capsys):
    a, b = torch.randn(8, 16).bfloat16(), torch.randn(16, 8).bfloat16()

    def refuses(a, b):
        raise ValueError("no")

    field = [
        tune.candidate("right", torch.mm),
        tune.candidate("wrong", lambda a, b: torch.mm(a, b) + 1),
        tune.candidate("not written", lambda a, b: torch.empty(8, 8, dtype=a.dtype)),
        tune.candidate("cannot", refuses),
    ]

    assert [each.name for each in tune.checked(field, a, b)] == ["right"]
    told = capsys.readouterr().out
    assert "WRONG, left out: wrong" in told
    assert "WRONG, left out: not written" in told
    assert "left out: cannot: no" in told


# --- cuBLASLt ---------------------------------------------------------------------------------------------


class Lt:
    """Keeps what it was asked, read from the addresses that libcublasLt would get."""

    def __init__(self):
        self.made, self.products, self.desc, self.status = {}, [], {}, 0

    def __getattr__(self, name):
        def call(*args):
            return getattr(self, "_" + name)(*args) or self.status

        call.__name__ = name
        return call

    def _make(self, to, what):
        number = 100 + len(self.made)
        self.made[number] = what
        to._obj.value = number

    def _cublasLtCreate(self, to):
        self._make(to, "handle")

    def _cublasLtMatmulDescCreate(self, to, compute, scale):
        self._make(to, (compute, scale))

    def _cublasLtMatmulDescSetAttribute(self, desc, attribute, value, n):
        assert n == 4
        self.desc[attribute] = value._obj.value

    def _cublasLtMatrixLayoutCreate(self, to, kind, rows, columns, ld):
        self._make(to, (kind, rows.value, columns.value, ld.value))

    def _cublasLtMatmulPreferenceCreate(self, to):
        self._make(to, "preference")

    def _cublasLtMatmulPreferenceSetAttribute(self, preference, attribute, value, n):
        assert (self.made[preference.value], attribute, value._obj.value, n) == ("preference", 1, 2**25, 8)

    def _cublasLtMatmulAlgoGetHeuristic(self, handle, desc, a, b, c, d, preference, most, found, count):
        assert ctypes.sizeof(heuristics._Found) == 96
        for i in range(3):
            found[i].algorithm[0], found[i].state = 7 + i, 15 if i == 1 else 0
        count._obj.value = 3

    def _cublasLtMatmul(
        self, handle, desc, one, a, at, b, bt, nothing, c, ct, d, dt, found, space, n, stream
    ):
        assert (one._obj.value, nothing._obj.value, c.value, n.value, stream.value) == (
            1,
            0,
            d.value,
            2**25,
            5,
        )
        layouts = [self.made[x.value] for x in (at, bt, dt)]
        self.products.append((a.value, b.value, layouts, found._obj.algorithm[0]))


@pytest.fixture
def lt(monkeypatch):
    lt = Lt()
    monkeypatch.setattr(heuristics, "_library", lambda: lt)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=5))
    heuristics._handle.cache_clear()
    yield lt
    heuristics._handle.cache_clear()


@pytest.mark.parametrize("layout", ["NN", "NT"])
def test_cublaslt_is_asked_for_the_transposed_product(lt, layout):
    M, N, K = 3, 5, 7
    a, b = torch.zeros(M, K, dtype=torch.bfloat16), torch.zeros(K, N, dtype=torch.bfloat16)
    b = b if layout == "NN" else b.t().contiguous().t()
    ways = heuristics.ways(a, b)
    results = [way() for way in ways]

    first = (14, N, K, N) if layout == "NN" else (14, K, N, K)
    assert [algorithm for *_, algorithm in lt.products] == [7, 9]  # and not the one that cannot
    assert lt.products[0][:3] == (b.data_ptr(), a.data_ptr(), [first, (14, K, M, K), (14, N, M, N)])
    assert lt.desc == {3: int(layout == "NT")}
    assert (68, 0) in lt.made.values()
    assert [c.shape for c in results] == [(M, N)] * 2


def test_what_cublaslt_refuses_is_one_line(lt):
    lt.status = 15
    with pytest.raises(RuntimeError, match=r"^cublasLtMatmulDescCreate: cuBLASLt refused, status 15$"):
        heuristics.ways(torch.zeros(8, 8).half(), torch.zeros(8, 8).half())


def test_without_cublaslt_one_line_says_so():
    heuristics._library.cache_clear()
    if torch.version.cuda:
        pytest.skip("this torch has it")
    with pytest.raises(RuntimeError, match="it comes with a torch for CUDA"):
        heuristics._library()
