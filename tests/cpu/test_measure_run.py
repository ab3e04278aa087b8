"""Measure, compare, refuse, record and the command, with a made-up clock in place of a GPU."""

from __future__ import annotations

import dataclasses
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_kernels.measure import __main__ as command
from course_kernels.measure import run
from course_kernels.measure.check import WrongResult
from course_kernels.measure.clock import Timing
from course_kernels.measure.competitor import Competitor
from course_kernels.measure.leaves import Counted
from course_kernels.measure.machine import machine_for
from course_kernels.measure.recording import MIME, quantity, record, text, trace
from course_kernels.measure.roofline import FasterThanFloor, floor_us
from course_kernels.measure.run import compare, measure, refusal
from course_kernels.problem import Workload
from course_kernels.refusals import cheats
from course_kernels.refusals.problem import PROBLEM

W = Workload.of("float32", M=32, N=32)
H200 = machine_for("NVIDIA H200")
STATE = {
    "sm_mhz": 1000,
    "memory_mhz": 2000,
    "power_w": 100.0,
    "temperature_c": 30,
    "throttle": ["power limit"],
}


class MadeUpClock:
    """Runs every call once and says each took `us`."""

    def __init__(self, us=1000.0, rounds=20):
        self.us, self.rounds = us, rounds

    def time(self, calls, seconds):
        self.seconds = seconds
        self.inputs = {name: call.args for name, call in calls.items()}
        for call in calls.values():
            call()
        ramp = np.linspace(1, 1.1, self.rounds)
        return Timing({name: self.us * ramp * (1 + i) for i, name in enumerate(calls)}, STATE, STATE)


def on_cpu(**how):
    return {"device": "cpu", "timer": MadeUpClock(), "machine": H200, **how}


def test_measure():
    found = measure(cheats.honest, W, **on_cpu())

    assert found.kernel == "refusals/cheats.honest"
    assert found.workload == {"dtype": "float32", "dims": {"M": 32, "N": 32}}
    assert found.n == found.rounds == 20
    assert found.median_us == pytest.approx(1050)
    assert found.reads_bytes == 4 * (32 * 32 + 32)
    assert 0 < found.error <= found.allowed
    assert found.before == STATE


def test_compare_shares_group_rounds_and_inputs():
    timer = MadeUpClock()

    found = compare(
        {"a": cheats.honest, "b": cheats.faster_than_floor}, W, **on_cpu(timer=timer), seconds=0.5
    )

    assert list(found) == ["a", "b"]
    assert found["a"].group == found["b"].group
    assert timer.inputs["a"] == timer.inputs["b"]
    assert timer.seconds == 0.5
    assert found["b"].kernel == "refusals/cheats.faster_than_floor"


def test_two_groups_have_two_ids():
    assert measure(cheats.honest, W, **on_cpu()).group != measure(cheats.honest, W, **on_cpu()).group


def test_inputs_are_fresh_every_time():
    first, second = MadeUpClock(), MadeUpClock()

    measure(cheats.honest, W, **on_cpu(timer=first))
    measure(cheats.honest, W, **on_cpu(timer=second))

    assert not torch.equal(first.inputs["it"][0], second.inputs["it"][0])


def test_nothing_is_timed_before_every_answer_is_right():
    timer = MadeUpClock()

    with pytest.raises(WrongResult, match=r"refusals/cheats.wrong_axis on M32-N32-float32: wrong: "):
        compare({"good": cheats.honest, "bad": cheats.wrong_axis}, W, **on_cpu(timer=timer))

    assert not hasattr(timer, "inputs")


def test_faster_than_the_floor_is_refused():
    floor = floor_us(measure(cheats.honest, W, **on_cpu()), H200)

    line = refusal(cheats.faster_than_floor, W, **on_cpu(timer=MadeUpClock(floor / 2)))

    assert line.startswith("refusals/cheats.faster_than_floor on M32-N32-float32: faster than the floor: ")
    assert "\n" not in line
    with pytest.raises(FasterThanFloor):
        measure(cheats.honest, W, **on_cpu(timer=MadeUpClock(floor / 2)))


def test_a_card_without_a_data_sheet_has_no_floor():
    assert measure(cheats.honest, W, **on_cpu(machine=None, timer=MadeUpClock(1e-9))).n == 20


def test_a_refusal_that_does_not_come_is_an_error():
    with pytest.raises(AssertionError, match=r"refusals/cheats.honest was measured without objection"):
        refusal(cheats.honest, W, **on_cpu())


def test_competitors_of_two_problems_are_not_compared():
    other = Competitor("other/k01", dataclasses.replace(PROBLEM, name="other"), cheats.honest)

    with pytest.raises(ValueError, match="expected one problem for all, got other, refusals"):
        compare({"a": cheats.honest, "b": other}, W, **on_cpu())


def test_no_gpu_is_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(RuntimeError, match=r"^no GPU: "):
        measure(cheats.honest, W)


# --- recording ---------------------------------------------------------------------------------


@pytest.fixture
def displayed(monkeypatch):
    shown = []
    display = SimpleNamespace(display=lambda bundle, raw: shown.append((bundle, raw)))
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: object(), display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_record_displays_one_output(displayed):
    found = measure(cheats.honest, W, **on_cpu())

    record(
        flash={"full": found, "other": {"n512": found}},
        size=quantity(3, "B", "counted"),
        line=text("refused"),
        limit=trace({"t_s": [0, 1], "power_w": [2, 3]}),
        traffic=Counted("k", W.as_json(), 1.0, 2.0, []),
    )

    ((bundle, raw),) = displayed
    names = bundle[MIME]["names"]
    assert raw is True
    assert bundle["text/plain"] == "recorded: flash, size, line, limit, traffic"
    assert names["flash"]["other"]["n512"] == found.as_json()
    assert names["size"] == {"kind": "quantity", "value": 3, "unit": "B", "how": "counted"}
    assert names["line"] == {"kind": "text", "value": "refused"}
    assert names["limit"] == {"kind": "trace", "columns": {"t_s": [0.0, 1.0], "power_w": [2.0, 3.0]}}
    assert names["traffic"]["read_bytes"] == 1.0
    json.dumps(bundle, allow_nan=False)


def test_record_outside_a_page_prints_the_names(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    record(size=quantity(3))

    assert capsys.readouterr().out == "recorded: size\n"


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        ({"a": 3}, TypeError, "record: a: expected a measurement"),
        ({"a": {"b": [1]}}, TypeError, "record: a.b: expected a measurement"),
        ({"a": {}}, ValueError, "record: a is empty"),
        ({"a": {512: quantity(1)}}, ValueError, "got 512"),
        ({"a": {"n-512": quantity(1)}}, ValueError, "got 'n-512'"),
        ({"a": {"kind": quantity(1)}}, ValueError, "got 'kind'"),
    ],
)
def test_what_cannot_be_recorded(names, error, words):
    with pytest.raises(error) as refused:
        record(**names)

    assert words in str(refused.value)


def test_a_quantity_is_a_finite_number():
    assert quantity(np.float32(1.5)).value == 1.5
    assert quantity(torch.tensor(2)).value == 2
    for value, error in (
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("3", TypeError),
        (True, TypeError),
    ):
        with pytest.raises(error, match=r"^quantity: expected a "):
            quantity(value)
    with pytest.raises(ValueError, match="expected how to be one of counted, computed, device, given"):
        quantity(1, how="guessed")


def test_a_trace_has_columns_of_one_length():
    for columns in ({}, {"t_s": []}, {"t_s": [1, 2], "power_w": [1]}):
        with pytest.raises(ValueError, match="expected columns of one length above 0"):
            trace(columns)


def test_a_text_is_a_str():
    with pytest.raises(TypeError, match="text: expected a str, got 3"):
        text(3)


# --- the command ---------------------------------------------------------------------------------


def test_command_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(
        run, "compare", lambda field, w, seconds: compare(field, w, seconds=seconds, **on_cpu())
    )

    code = command.main(["refusals/cheats.honest", "--workload", W.as_text()])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0] == "NVIDIA H200, M32-N32-float32"
    assert lines[1].split() == ["kernel", "µs", "TFLOP/s", "GB/s", "of", "peak", "spread", "n", "error"]
    assert lines[2].split()[0] == "refusals/cheats.honest"
    assert lines[3] == "before: 1000 MHz SM, 2000 MHz memory, 100 W, 30 °C, power limit"


@pytest.mark.parametrize(
    ("kernel", "workload", "words"),
    [
        ("refusals/k99", "dtype=float32,M=8,N=8", "no file src/course_kernels/refusals/k99.py"),
        ("refusals/cheats.honest", "M=8", "expected a dtype"),
        ("refusals/cheats.honest", "dtype=float32,M=8", "no dimension N"),
        (
            "refusals/cheats.wrong_axis",
            "dtype=float32,M=8,N=8",
            "refusals/cheats.wrong_axis on M8-N8-float32",
        ),
    ],
)
def test_command_refuses_in_one_line(monkeypatch, capsys, kernel, workload, words):
    monkeypatch.setattr(
        run, "compare", lambda field, w, seconds: compare(field, w, seconds=seconds, **on_cpu())
    )

    code = command.main([kernel, "--workload", workload])

    error = capsys.readouterr().err
    assert code == 2
    assert error.startswith("not measured: ")
    assert words in error
    assert error.count("\n") == 1


def test_command_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    assert command.main(["refusals/cheats.honest", "--workload", W.as_text()]) == 2
    assert capsys.readouterr().err.startswith("not measured: RuntimeError: no GPU: ")
