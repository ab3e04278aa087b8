"""Further cases of the labs: what each must vary, whatever the seed, and how a case changes a problem."""

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from course_kernels.problem import Workload
from course_labs.check import WrongArray, check
from course_labs.further_cases import MOST_ERROR, Further, further_of, scaled, twins
from course_labs.interactive_cases import Play, PlaysGrader
from course_labs.lab import find_labs, load_file
from course_labs.numpy_reference import Truth

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)
TRUTH = Truth(
    make_inputs=lambda w, generator: (generator.standard_normal((w.M, w.N), dtype="float32"),),
    reference=lambda x, *, negate=False: -x.astype(float) if negate else x.astype(float),
    max_error=lambda w: 2.0**-20,
    options=lambda w: {"negate": True},
)
W = Workload.of("float32", M=3, N=5)


def drawn(name, door, slow, seed, alone=False):
    lab = LABS[name].alone if alone else LABS[name]
    return further_of(lab, door, slow)(random.Random(seed))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("door", "slow"), [("numpy", False), ("triton", True), ("triton", False)])
def test_attention_varies_every_dimension_and_flag(door, slow, seed):
    cases = drawn("plain_attention", door, slow, seed)
    sizes = [Workload.parse(case.size).dims for case in cases]

    assert any(dims["B"] > dims["H"] for dims in sizes)
    assert any(dims["H"] > dims["B"] for dims in sizes)
    assert len({dims["D"] for dims in sizes}) > 2
    of_two = [dims["D"] & dims["D"] - 1 == 0 for dims in sizes]
    assert all(of_two) is (door != "numpy")  # a kernel has a range of D places
    assert max(dims["D"] for dims in sizes) >= 64
    assert max(dims["B"] * dims["H"] for dims in sizes) > (64 if slow else 1024)
    assert max(dims["N"] for dims in sizes) > 1040
    assert [case.said for case in cases if case.without] == [", causal not given"]
    assert [case.said for case in cases if case.times > 1] == [", inputs times 256"]
    groups = {
        Workload.parse(c.size).dims["KV"] for c in drawn("plain_attention", door, slow, seed, alone=True)
    }
    assert len(groups) > 2


@pytest.mark.parametrize("seed", range(20))
def test_norms_vary_rows_lengths_and_values(seed):
    for door, slow, alone in (("numpy", False, False), ("triton", True, False), ("cuda", False, True)):
        cases = drawn("add_rmsnorm", door, slow, seed, alone)
        sizes = [Workload.parse(case.size).dims for case in cases]
        assert max(dims["M"] for dims in sizes) > 128
        assert 8192 < max(dims["N"] for dims in sizes) <= 16384
        assert any("all zeros" in case.told for case in cases) is not alone
        (large,) = (case for case in cases if " is " in case.told)
        w = Workload.parse(large.size)
        truth = load_file(LABS["add_rmsnorm"].folder / "truth.py", "truth").TRUTH
        x, g, r = large.of(truth).make_inputs(w, np.random.default_rng(seed))
        assert 33_000 < np.abs(truth.reference(x, g, r)[1]).max() <= 65_504


@pytest.mark.parametrize(
    "one", load_file(ROOT / "labs/bottleneck/truth.py", "truth").SUSPECTS, ids=lambda s: s.name
)
def test_every_kernel_of_the_bottleneck_has_longer_sizes(one):
    announced = [Workload.parse(text).dims for text in one.tries]
    for seed in range(10):
        cases = one.further(random.Random(seed))
        sizes = [Workload.parse(case if isinstance(case, str) else case.size).dims for case in cases]
        for name in announced[0]:
            assert max(dims[name] for dims in sizes) > max(dims[name] for dims in announced)


def test_a_case_changes_inputs_options_and_what_is_allowed():
    def no_row(x):
        x[1] = 0

    case = Further("dtype=float32,M=3,N=5", "row 1 all zeros", times=16, change=no_row, without=("negate",))
    changed = case.of(TRUTH)
    (x,) = changed.make_inputs(W, np.random.default_rng(1))
    (plain,) = TRUTH.make_inputs(W, np.random.default_rng(1))

    assert case.said == ", row 1 all zeros, negate not given, inputs times 16"
    np.testing.assert_array_equal(x[[0, 2]], 16 * plain[[0, 2]])
    assert not x[1].any()
    assert (changed.options(W), TRUTH.options(W)) == ({}, {"negate": True})
    assert changed.max_error(W) == 2.0**-12
    assert Further(case.size, times=2**12).of(TRUTH).max_error(W) == MOST_ERROR
    assert Further(case.size).of(TRUTH).max_error(W) == TRUTH.max_error(W)


def test_what_is_asked_once_is_called_once():
    calls = []

    def negated(x, negate):
        calls.append(negate)
        return -x

    check(TRUTH, W, negated, once=True)
    assert calls == [True]
    with pytest.raises(WrongArray, match=r"^wrong: "):
        check(TRUTH, W, lambda x, negate: x + 0, once=True)


def test_a_long_play_is_played_once_and_the_others_again():
    played = []
    grader = object.__new__(PlaysGrader)
    grader.cases = [
        Play("plain", lambda asked, draw: played.append(("plain", draw.random()))),
        Play("chance", lambda asked, draw: played.append(("chance", draw.random())), again=2),
        Play("long", lambda asked, draw: played.append(("long", draw.random())), long=True),
    ]
    assert grader._by_hand(SimpleNamespace()).why.startswith("correct in all 3 cases")
    names = [name for name, _ in played]
    assert names == ["plain", "chance", "chance", "chance", "long"]
    assert len({number for _, number in played[1:]}) == 4


def test_labs_without_such_a_file_have_none():
    assert list(further_of(LABS["roofline"], "python", False)(random.Random(1))) == []


OF_SIZES = ("first_kernel", "transpose", "grey", "reduction", "register_tile", "sgemm_tiles", "wmma")


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", OF_SIZES)
def test_every_size_is_long_once_beside_short_ones(name, alone):
    for seed in range(10):
        for door, slow in (("numpy", False), ("triton", True)):
            sizes = [Workload.parse(case.size).dims for case in drawn(name, door, slow, seed, alone)]
            for side in sizes[0]:
                short = [dims for dims in sizes if all(dims[other] <= 5 for other in dims if other != side)]
                # Rows of a matrix with M * M numbers, and what takes a program each, as far as there is time.
                assert max(dims[side] for dims in short) > (128 if slow else 1024)


@pytest.mark.parametrize("name", ["transpose", "grey", "register_tile", "sgemm_tiles", "wmma"])
def test_squares_are_asked(name):
    for seed in range(10):
        sizes = [Workload.parse(case.size).dims for case in drawn(name, "numpy", False, seed)]
        assert any(len(set(dims.values())) == 1 and min(dims.values()) > 1 for dims in sizes)


@pytest.mark.parametrize("alone", [False, True])
def test_sides_about_those_of_a_tile_are_asked(alone):
    def sizes(name, door, slow, seed):
        return [Workload.parse(case.size).dims for case in drawn(name, door, slow, seed, alone)]

    for seed in range(20):
        for door, slow in (("numpy", False), ("triton", True), ("cuda", True)):
            turned = {tuple(dims.values()) for dims in sizes("transpose", door, slow, seed)}
            assert {(side, side) for side in (63, 64, 65, 129)} <= turned
            for side in (0, 1):
                assert any(pair[side] % 128 == 1 < pair[side] for pair in turned if pair[0] != pair[1])
        products = sizes("wmma", "numpy", False, seed)
        for side in "MNK":
            assert {dims[side] % 32 for dims in products} == set(range(32))
            assert len({dims[side] for dims in products if dims[side] > 32}) > 2
        products = sizes("wmma", "cuda", True, seed)
        assert all({15, 17, 31} <= {dims[side] % 32 for dims in products} for side in "MN")


@pytest.mark.parametrize("seed", range(20))
def test_a_call_without_the_flag_comes_after_one_with_it(seed):
    for name, alone in (("plain_attention", False), ("plain_attention", True), ("flash_attention", False)):
        for slow in (False, True):
            cases = drawn(name, "cuda" if name == "flash_attention" else "triton", slow, seed, alone)
            (at,) = (number for number, case in enumerate(cases) if case.without)
            before, now = (Workload.parse(case.size).dims for case in cases[at - 1 : at + 1])
            assert before == {**now, "causal": True}
            assert not now["causal"]


def test_blocks_are_filled_but_for_one_and_one_more_is_left():
    for name, side in (("first_kernel", "N"), ("reduction", "N"), ("grey", "W")):
        sizes = {Workload.parse(case.size).dims[side] for case in drawn(name, "triton", True, 1)}
        assert {1023, 1024, 1025} <= sizes


def test_twins_differ_in_two_numbers_that_change_places():
    for seed in range(20):
        first, second = twins("dtype=float32,M=3,N=5", random.Random(seed))
        (x,), (y,) = (
            c.of(TRUTH).make_inputs(W, np.random.default_rng(n)) for n, c in enumerate((first, second))
        )
        assert (x != y).sum() == 2
        assert sorted(x.flat) == sorted(y.flat)
        assert (x[0, 0], x[-1, -1]) == (y[0, 0], y[-1, -1])


def test_a_scaled_case_allows_no_more_than_a_usual_one():
    case = scaled("dtype=float32,M=3,N=5", 2.0**-20)
    assert case.of(TRUTH).max_error(W) == TRUTH.max_error(W)
    (x,) = case.of(TRUTH).make_inputs(W, np.random.default_rng(1))
    assert 0 < np.abs(x).max() < 2.0**-17


def test_an_exact_case_hears_the_sign_of_a_zero():
    def zeros(x):
        x[...] = 0.0

    problem = Further("dtype=float32,M=3,N=5", change=zeros, exact=True).of(TRUTH)
    assert problem.max_error(W) == 0
    check(problem, W, lambda x, negate: -x, once=True, exact=True)
    check(problem, W, lambda x, negate: x + 0, once=True)
    with pytest.raises(WrongArray, match=r"^wrong: output\[0, 0\]: expected -0, got 0$"):
        check(problem, W, lambda x, negate: x + 0, once=True, exact=True)


def test_a_case_asked_once_may_be_infinite():
    def endless(x):
        x[0, 0] = np.inf

    problem = Further("dtype=float32,M=3,N=5", change=endless).of(TRUTH)
    check(problem, W, lambda x, negate: -x, once=True)
    with pytest.raises(WrongArray, match=r"^infinity lost: "):
        check(problem, W, lambda x, negate: -np.minimum(x, 1e9), once=True)
