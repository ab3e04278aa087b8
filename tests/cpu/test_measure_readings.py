"""Readings that are no time of a checked kernel: taken, stored, read back and used in sentences."""

import time

import numpy as np
import pytest

from course_kernels.measure import samples, stopwatch
from course_kernels.measure.record_types import Samples, leaf_from_json
from course_kernels.measure.recording import record
from course_site.charts import data as chart_data
from course_site.records import changes
from course_site.site import ledger
from course_site.values.claims import judge
from course_site.values.values import BadExpression, Scope, UnknownName, evaluate


def test_samples_keep_the_median_of_all_readings():
    taken = samples(range(1000), "cycles")

    assert taken.n == 1000
    assert len(taken.samples) == 200
    assert taken.quantiles["0.5"] == 499.5
    assert leaf_from_json(taken.as_json()) == taken


@pytest.mark.parametrize(
    ("readings", "how", "said"),
    [
        ([], "counted", "at least one number"),
        ([1.0, float("nan")], "counted", "finite numbers, got nan"),
        ([1.0], "guessed", "expected how to be one of"),
    ],
)
def test_what_is_no_reading_is_refused(readings, how, said):
    with pytest.raises(ValueError, match=said):
        samples(readings, "cycles", how)


def test_the_stopwatch_takes_turns_and_divides():
    order = []
    taken = stopwatch(
        {"a": lambda: order.append("a"), "b": lambda: (order.append("b"), time.sleep(0.002))},
        n=4,
        per=2,
        warm_up=0,
    )

    assert sorted(order[:2]) == sorted(order[2:4]) == sorted(order[-2:]) == ["a", "b"]
    assert len(order) == 8
    assert taken["a"].group == taken["b"].group
    assert taken["b"].how == "timed"
    assert taken["b"].quantiles["0.5"] >= 1000 > taken["a"].quantiles["0.5"]  # 2 ms over two repetitions


def test_the_stopwatch_draws_the_order_of_every_round():
    order = []
    stopwatch({name: lambda name=name: order.append(name) for name in "abcd"}, n=40, warm_up=0)

    rounds = {"".join(order[i : i + 4]) for i in range(0, len(order), 4)}
    assert all(sorted(turn) == list("abcd") for turn in rounds)
    assert len(rounds) > 10  # of 24; rotation knows 4


def test_samples_have_blocks_of_consecutive_readings():
    assert samples([1.0, 2.0], "cycles").blocks == [1.0, 2.0]
    assert samples(range(600), "cycles").blocks == [49.5, 149.5, 249.5, 349.5, 449.5, 549.5]


def test_the_stopwatch_warms_up_unless_told_not_to():
    calls = []
    stopwatch({"a": lambda: calls.append(1)}, n=1)
    assert len(calls) == 3

    with pytest.raises(ValueError, match="expected work"):
        stopwatch({}, n=1)


def test_samples_are_recorded(capsys):
    record(chase=samples([1.0, 2.0], "cycles"))

    assert capsys.readouterr().out == "recorded: chase\n"


# --- in sentences ---------------------------------------------------------------------------------

RNG = np.random.default_rng(0)


def leaf(middle, unit="cycles", group="g1", spread=0.01):
    values = middle * (1 + spread * RNG.normal(size=200))
    return samples(values, unit).as_json() | {"group": group}


def scope(**names):
    return Scope("l3", names, None)


def test_the_value_is_the_median():
    page = scope(l1=leaf(40.0), wait=leaf(2000.0, "µs"))

    assert evaluate("l1", page).value == pytest.approx(40.0, rel=0.01)
    assert evaluate("l1", page).unit == "cycles"
    assert evaluate("l1.n", page).value == 200
    assert 0 < evaluate("l1.spread", page).value < 0.1
    assert evaluate("wait.ms", page).value == pytest.approx(2.0, rel=0.01)
    assert evaluate("wait.ms", page).unit == "ms"


def test_a_cycle_is_no_time():
    with pytest.raises(UnknownName, match="samples have n, spread"):
        evaluate("l1.ms", scope(l1=leaf(40.0)))


def test_a_claim_over_samples_is_judged_by_their_resamples():
    page = scope(l1=leaf(40.0), l2=leaf(260.0), close=leaf(40.05, spread=0.3, group="g2"))

    assert judge("l2 > 5 * l1", page).holds
    assert not judge("l1 > l2", page).holds
    assert not judge("close > 0.99 * l1", page).holds  # true of the medians, not of the readings


def test_a_line_takes_its_place_from_the_name():
    page = scope(chase={f"n{n}": leaf(float(n), group=f"g{n}") for n in (4096, 65536)}, other=leaf(1.0))
    settings = {
        "title": "t", "alt": "a", "x": "name", "y": "value", "x_label": "bytes", "y_label": "cycles",
        "series": [{"name": "chase.*", "label": "chase"}],
    }  # fmt: skip
    chart = chart_data.draw("lines", settings, page, "k")

    assert "<td class=num>4,096</td>" in chart.table_html
    with pytest.raises(BadExpression, match="end its name in a number"):
        chart_data.draw("lines", settings | {"series": [{"name": "other", "label": "o"}]}, page, "k")


def test_the_ledger_and_what_moved_know_samples():
    row = ledger._leaf_entry("l3.l1", leaf(40.0), {"page": "p", "command": "c"}, {})

    assert row["kind"] == "counted"
    assert row["unit"] == "cycles"
    assert row["n"] == 200
    assert row["low"] < row["median"] == row["value"] < row["high"]
    assert changes._number(leaf(40.0))[1] == "cycles"


@pytest.mark.parametrize(
    ("kernel", "command"),
    [
        ("copy/k01", "PYTHONPATH=src python -m course_kernels.measure copy/k01 --workload dtype=float32,N=4"),
        ("wide", "the page's"),  # a competitor that a cell made: no command can name it
    ],
)
def test_the_ledger_gives_a_command_that_can_be_run(kernel, command):
    measured = {
        "kind": "measurement", "kernel": kernel, "workload": {"dtype": "float32", "dims": {"N": 4}}, "n": 12,
        "quantiles_us": {"0.05": 1.0, "0.5": 1.0, "0.95": 1.0}, "group": "g", "error": 0.0, "blocks_us": [1.0] * 6,
        "host_us": {"0.5": 5.0}, "host_bound": 0, "seed": 1, "every": 1, "running": [],
    }  # fmt: skip

    assert (
        ledger._leaf_entry("p.it", measured, {"command": "the page's"}, {"g": [kernel]})["command"] == command
    )


def test_samples_are_a_leaf():
    assert isinstance(leaf_from_json(leaf(1.0)), Samples)
