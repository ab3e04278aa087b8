"""Bursts and long runs: what is dropped, in which order, what is checked before and after."""

import itertools
from functools import partial

import pytest
import torch
from card_of_a_clock import Card

from course_kernels.gemm.problem import PROBLEM
from course_kernels.measure import bursts
from course_kernels.measure.bursts import Race
from course_kernels.measure.errors import Refused
from course_kernels.problem import Workload

W = Workload.of("bfloat16", M=24, N=16, K=40)
FLOPS = 2 * 24 * 16 * 40


@pytest.fixture
def card(monkeypatch):
    return Card(monkeypatch)


def test_a_burst_drops_its_first_launch_and_turns_its_order(card):
    calls = {
        "x": partial(card.kernel("x", 100.0, first_us=900.0), None, None),
        "y": partial(card.kernel("y", 50.0, first_us=900.0), None, None),
    }
    found = bursts.bursts(calls, rounds=4)

    for name, us in (("x", 100.0), ("y", 50.0)):
        assert found[name].us == pytest.approx([us] * 4 * (bursts.LAUNCHES - 1))
        assert found[name].host_us == pytest.approx(1.0)
    order = [name for name, _ in itertools.groupby(card.calls)]
    assert order == ["x", "y", "x", "y", "x"]  # y y and x x meet where a round is walked back
    assert card.host_s >= 8 * bursts.REST_S


def test_a_slow_host_has_no_say_in_a_burst(card):
    """All launches are enqueued before the first begins: a host of 90 µs a launch would hide a kernel of 20."""
    kernel = partial(card.kernel("x", 20.0, host_us=90.0), None, None)
    found = bursts.bursts({"x": kernel}, rounds=2)["x"]

    assert found.us == pytest.approx([20.0] * 2 * (bursts.LAUNCHES - 1))
    assert found.host_us == pytest.approx(90.0)


def test_alone_is_timed_over_its_last_second_and_on_inputs_in_turn(card):
    given = []
    kernel = card.kernel("x", 200.0)
    calls = [partial(lambda i: given.append(i) or kernel(None, None), i) for i in range(3)]
    block = bursts.alone(calls, about_us=100.0)

    assert block.us == pytest.approx([200.0] * len(block.us))
    assert 0.9e6 * bursts.TIMED_S < 50 * 200.0 * len(block.us) <= 1.02e6 * bursts.TIMED_S
    assert bursts.BLOCK_S * 1e6 <= card.card_us < 1.1e6 * bursts.BLOCK_S
    assert given[:7] == [0, 1, 2, 0, 1, 2, 0]
    assert block.state["power_w"] == 700.0


def race(card, **competitors):
    return Race(competitors, PROBLEM, W, seed=1, device="cpu")


def test_a_race_tells_rates_and_what_the_card_told(card):
    it = race(
        card,
        ours=card.kernel("ours", 100.0, answer=torch.mm),
        theirs=card.kernel("theirs", 200.0, answer=torch.mm),
    )
    burst = it.burst(rounds=2)
    assert it.fastest(("theirs", "ours")) == "ours"
    long = it.sustained(("ours", "theirs", "theirs", "ours"))

    assert burst["ours"].quantiles["0.5"] == pytest.approx(FLOPS / 100.0 / 1e6, rel=1e-4)
    assert burst["ours"].n == 2 * (bursts.LAUNCHES - 1)
    assert burst["ours"].of == "tensor:bf16"
    assert burst["ours"].group == burst["theirs"].group
    assert long["theirs"]["rate"].quantiles["0.5"] == pytest.approx(FLOPS / 200.0 / 1e6, rel=1e-4)
    assert long["theirs"]["mhz"].samples == [1500.0, 1500.0]
    assert long["ours"]["watts"].unit == "W"
    assert long["ours"]["why"].value == "power limit"
    assert it.host_us["ours"] == pytest.approx(1.0)
    assert 0 < it.errors["ours"] <= PROBLEM.max_error(W)


def test_inputs_may_lie_otherwise_and_are_the_same_numbers(card):
    seen, tick = [], card.kernel("ours", 100.0)

    def multiply(a, b):
        seen.append(b.stride())
        tick(a, b)
        return a @ b

    def turned(a, b):
        return a, b.t().contiguous().t()

    it = Race({"ours": multiply}, PROBLEM, W, lay=turned, seed=1, device="cpu")
    it.burst(rounds=1)

    assert set(seen) == {(1, 40)}


def test_what_is_bound_is_made_once_for_its_inputs(card):
    made, tick = [], card.kernel("way", 100.0, answer=torch.mm)

    def way(a, b):
        made.append(a)
        return partial(tick, a, b)

    it = Race({"way": way}, PROBLEM, W, bind=("way",), seed=1, device="cpu")
    made.clear()
    it.burst(rounds=3)

    assert len(made) == 1


def wrong(a, b):
    return a @ b + 1


def test_who_is_wrong_is_refused_and_who_is_optional_left_out(card):
    with pytest.raises(Refused, match="wrong"):
        race(card, wrong=wrong)

    def cannot(a, b):
        raise ValueError("K: expected less\nand more")

    field = {"right": torch.mm, "wrong": wrong, "cannot": cannot}
    it = Race(field, PROBLEM, W, optional=("wrong", "cannot"), seed=1, device="cpu")

    assert it.names == ["right"]
    assert "wrong" in it.left_out["wrong"]
    assert it.left_out["cannot"] == "K: expected less"


@pytest.mark.parametrize("clock", ["burst", "sustained"])
def test_who_keeps_an_old_answer_is_refused_after_the_timing(card, clock):
    tick, kept, timing = card.kernel("lazy", 1000.0), {}, []

    def lazy(a, b):
        tick(a, b)
        return kept.setdefault("c", a @ b).clone() if timing else a @ b

    it = race(card, lazy=lazy)
    timing.append("from here on")

    with pytest.raises(Refused, match=r"lazy on .*: right before the timing, wrong after it: error"):
        it.burst(rounds=1) if clock == "burst" else it.sustained(("lazy",))
