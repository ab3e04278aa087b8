"""Measure, compare, refuse, record and the command, with a made-up clock in place of a GPU."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_kernels.measure import __main__ as command
from course_kernels.measure import run
from course_kernels.measure.check import WrongResult
from course_kernels.measure.clock import BLOCKS, Sampled, Timing
from course_kernels.measure.competitor import Competitor
from course_kernels.measure.machine import machine_for
from course_kernels.measure.record_types import Counted, leaf_from_json
from course_kernels.measure.recording import MIME, quantity, record, text, trace
from course_kernels.measure.roofline import FasterThanFloor, floor_us
from course_kernels.measure.run import compare, measure, refusal
from course_kernels.problem import Workload
from course_kernels.refusals import cheats
from course_kernels.refusals.problem import PROBLEM

W = Workload.of("float32", M=32, N=32)
H200 = machine_for("NVIDIA H200")
READING = {
    "sm_mhz": 1000,
    "memory_mhz": 2000,
    "power_w": 100.0,
    "temperature_c": 30,
    "throttle": ["power limit"],
}


class MadeUpClock:
    """Runs every call twice in every block, with a refill between the last two, and says each took `us`."""

    def __init__(self, us=1000.0):
        self.us, self.inputs = us, []

    def time(self, race, seconds, *, seed):
        self.seconds, self.seed = seconds, seed
        for block in range(BLOCKS):
            calls = race.block(block)
            self.inputs.append({name: call.args for name, call in calls.items()})
            for call in calls.values():
                call()
            if block == BLOCKS - 1:
                race.refill()
            for name, call in calls.items():
                result = call()
                if block == BLOCKS - 1:
                    race.keep(name, result)
        race.judge()
        for call in calls.values():  # as the clock does to read the card
            call()
        return Timing({name: self.sampled(1 + i) for i, name in enumerate(calls)}, 2 * BLOCKS)

    def sampled(self, factor):
        block = np.repeat(np.arange(BLOCKS), 2)
        us = self.us * factor * np.linspace(1, 1.1, 2 * BLOCKS)
        return Sampled(us, np.full(2 * BLOCKS, 44.0), block, np.arange(2 * BLOCKS), 3, 1, (READING,))


def on_cpu(**how):
    return {"device": "cpu", "timer": MadeUpClock(), "machine": H200, **how}


def test_measure():
    found = measure(cheats.honest, W, **on_cpu())

    assert found.kernel == "refusals/cheats.honest"
    assert found.workload == {"dtype": "float32", "dims": {"M": 32, "N": 32}}
    assert found.n == found.rounds == 12
    assert found.median_us == pytest.approx(1050)
    assert found.reads_bytes == 4 * (32 * 32 + 32)
    assert 0 < found.error <= found.allowed
    assert len(found.blocks_us) == BLOCKS
    assert found.blocks_us == sorted(found.blocks_us)
    assert found.host_us["0.5"] == 44.0
    assert (found.host_bound, found.every, found.running) == (3, 1, [READING])


def honest_too(x, s):
    return s[:, None] * x


def test_compare_shares_group_rounds_and_inputs():
    timer = MadeUpClock()
    field = {"a": cheats.honest, "b": Competitor("test/honest_too", PROBLEM, honest_too)}

    found = compare(field, W, **on_cpu(timer=timer), seconds=0.5)

    assert list(found) == ["a", "b"]
    assert found["a"].group == found["b"].group
    for block in timer.inputs:
        assert all(a is b for a, b in zip(block["a"], block["b"], strict=True))
    assert timer.seconds == 0.5
    assert found["b"].kernel == "test/honest_too"


def test_two_groups_have_two_ids():
    assert measure(cheats.honest, W, **on_cpu()).group != measure(cheats.honest, W, **on_cpu()).group


def test_a_seed_repeats_the_inputs_and_none_draws_one():
    def seed_and_inputs(seed=None):
        timer = MadeUpClock()
        found = measure(cheats.honest, W, **on_cpu(timer=timer), seed=seed)
        assert timer.seed == found.seed
        return found.seed, [block["it"][0] for block in timer.inputs]

    (drawn, first), (other, second), (same, again) = (
        seed_and_inputs(),
        seed_and_inputs(),
        seed_and_inputs(seed=7),
    )

    assert drawn != other
    assert not torch.equal(first[0], second[0])
    assert same == 7
    for a, b in zip(again, seed_and_inputs(seed=7)[1], strict=True):
        assert torch.equal(a, b)


def test_every_block_has_inputs_of_its_own_elsewhere_in_memory():
    timer = MadeUpClock()
    w = Workload.of("float32", M=512, N=512)  # 1 MiB
    measure(cheats.honest, w, **on_cpu(timer=timer))

    tensors = [block["it"][0] for block in timer.inputs]
    assert len({tensor.data_ptr() for tensor in tensors}) == BLOCKS
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise(tensors))


def test_spacers_have_random_sizes_for_every_pool_of_the_allocator():
    race = run._Race({}, None, 1, "cpu")
    sizes = [[spacer.numel() for spacer in race._space()] for _ in range(20)]

    mib = 2**20
    for small, middle, large in sizes:
        assert 512 <= small < mib < middle < 10 * mib < large <= 64 * mib
        assert small % 512 == middle % 512 == large % (2 * mib) == 0
    assert all(len(set(pool)) > 10 for pool in zip(*sizes, strict=True))


def test_without_room_for_old_and_new_inputs_the_old_ones_go_first(monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(list(race.inputs)))

    class Full:
        tries = 0

        def fresh_inputs(self):
            self.tries += 1
            if race.inputs:
                raise torch.OutOfMemoryError("full")
            return (torch.ones(1),), {}

    check = Full()
    race = run._Race({"k": Competitor("test/k", PROBLEM, cheats.honest)}, check, 1, "cpu")
    race.block(0)
    calls = race.block(1)

    assert check.tries == 3
    assert emptied == [[]]
    assert calls["k"].args == race.inputs

    def never():
        raise torch.OutOfMemoryError("full")

    check.fresh_inputs = never
    with pytest.raises(torch.OutOfMemoryError):
        race.block(2)


def test_nothing_is_timed_before_every_answer_is_right():
    timer = MadeUpClock()

    with pytest.raises(WrongResult, match=r"refusals/cheats.wrong_axis on M32-N32-float32: wrong: "):
        compare({"good": cheats.honest, "bad": cheats.wrong_axis}, W, **on_cpu(timer=timer))

    assert timer.inputs == []


def right_so_often(times):
    """A function that works so many times, and then gives its last answer again and again."""
    made = []

    def function(x, s):
        if len(made) < times:
            made.append(x * s[:, None])
        return made[-1].clone()

    return Competitor("test/lazy", PROBLEM, function)


@pytest.mark.parametrize("times", [6, 9, 12])
def test_right_so_often_and_then_the_old_result_is_refused(times):
    with pytest.raises(
        WrongResult, match=r"^test/lazy on M32-N32-float32: right before .*, wrong after it: "
    ):
        measure(right_so_often(times), W, **on_cpu(), seed=1)


def test_who_looks_at_every_new_tensor_once_is_refused():
    """Right for every new tensor, whatever the block; only the refill tells it from an honest one."""
    answers = {}

    def function(x, s):
        asked = counted["calls"] = counted["calls"] + 1
        if asked <= before:
            return x * s[:, None]
        if id(x) not in answers:
            answers[id(x)] = (x, x * s[:, None])  # the tensor stays alive, so its id stays its own
        return answers[id(x)][1].clone()

    counted, before = {"calls": 0}, 10**9
    measure(Competitor("test/honest", PROBLEM, function), W, **on_cpu(), seed=1)
    of_the_check = counted["calls"] - 2 * BLOCKS - 1  # the last one while the card is read
    counted, before = {"calls": 0}, of_the_check

    with pytest.raises(WrongResult, match="wrong after it: "):
        measure(Competitor("test/lazy", PROBLEM, function), W, **on_cpu(), seed=1)


def test_an_answer_that_is_mended_while_the_card_is_read_is_refused():
    made = []

    def function(x, s):
        for x_then, s_then, out in made[6:]:
            out.copy_(x_then * s_then[:, None])
        out = x * s[:, None] if len(made) < 6 else torch.zeros_like(x)
        made.append((x, s, out))
        return out

    with pytest.raises(WrongResult, match="wrong after it: "):
        measure(Competitor("test/late", PROBLEM, function), W, **on_cpu(), seed=1)


def test_a_late_wrong_answer_speaks_before_the_floor():
    with pytest.raises(WrongResult, match="wrong after it: "):
        measure(right_so_often(6), W, **on_cpu(timer=MadeUpClock(1e-9)), seed=1)


def test_faster_than_the_floor_is_refused():
    floor = floor_us(measure(cheats.honest, W, **on_cpu()), H200)

    line = refusal(cheats.honest, W, **on_cpu(timer=MadeUpClock(floor / 2)))

    assert line.startswith("refusals/cheats.honest on M32-N32-float32: faster than the floor: ")
    assert "\n" not in line
    with pytest.raises(FasterThanFloor):
        measure(cheats.honest, W, **on_cpu(timer=MadeUpClock(floor / 2)))


def test_a_card_without_a_data_sheet_has_no_floor():
    assert measure(cheats.honest, W, **on_cpu(machine=None, timer=MadeUpClock(1e-9))).n == 12


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
    assert names["size"] == quantity(3, "B", "counted").as_json()
    assert names["line"] == {"kind": "text", "value": "refused"}
    assert names["limit"]["columns"] == {"t_s": [0.0, 1.0], "power_w": [2.0, 3.0]}
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


@pytest.fixture
def a_card(monkeypatch):
    """The command on a made-up clock, and a card with a name."""
    how = {"gpu": "NVIDIA H200", "uuid": "GPU-1234"}
    monkeypatch.setattr(command, "provenance", lambda: how)
    monkeypatch.setattr(
        run,
        "compare",
        lambda field, w, seconds, seed: compare(field, w, seconds=seconds, seed=seed, **on_cpu()),
    )
    return how


def test_command_prints_a_table(a_card, capsys):
    code = command.main(["refusals/cheats.honest", "--workload", W.as_text(), "--seed", "5"])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0] == "NVIDIA H200 (GPU-1234), M32-N32-float32, seed 5"
    assert lines[1].split() == [
        "kernel", "µs", "TFLOP/s", "GB/s", "of", "peak", "host", "µs", "spread", "n", "error",
    ]  # fmt: skip
    assert lines[2].split()[0] == "refusals/cheats.honest"
    assert lines[2].split()[-4] == "44.0"
    assert lines[4] == (
        "refusals/cheats.honest: 1000 MHz SM, 2000 MHz memory, 100 W, 30 °C, power limit, "
        "3 of 12 samples timed the host"
    )


def test_a_line_says_what_is_unusual_about_the_samples():
    found = measure(cheats.honest, W, **on_cpu())
    odd = dataclasses.replace(found, every=7, host_bound=0, running=[{**READING, "sm_mhz": None}])

    assert command.report("card", W, {"it": odd}, None)[-1] == (
        "refusals/cheats.honest: 2000 MHz memory, 100 W, 30 °C, power limit, every 7th round"
    )


def test_command_writes_what_it_measured(a_card, tmp_path, capsys):
    file = tmp_path / "run.json"

    assert command.main(["refusals/cheats.honest", "--workload", W.as_text(), "--json", str(file)]) == 0

    found = json.loads(file.read_text())
    assert found["provenance"] == a_card
    leaf = leaf_from_json(found["measurements"]["refusals/cheats.honest"])
    assert leaf.kernel == "refusals/cheats.honest"
    assert f"seed {leaf.seed}" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


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
def test_command_refuses_in_one_line(a_card, capsys, kernel, workload, words):
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(
            (["--seconds", text], f"{text} is no time to sample; give more than 0 and at most 600")
            for text in ("0", "-1", "inf", "nan", "1e9", "soon")
        ),
        (
            ["--json", "nowhere/run.json"],
            "--json nowhere/run.json: there is no folder nowhere; make it first",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_before_it_is_asked_for(
    a_card, monkeypatch, tmp_path, capsys, arguments, said
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "compare", lambda *_, **__: pytest.fail("it was measured"))

    with pytest.raises(SystemExit):
        command.main(["refusals/cheats.honest", "--workload", W.as_text(), *arguments])

    assert capsys.readouterr().err.splitlines()[-1].endswith(said)
