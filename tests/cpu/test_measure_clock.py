"""The clock on a made-up GPU whose time is a number: what it times, in which order, and when it stops."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from course_kernels.measure import clock as clock_module
from course_kernels.measure.clock import MAX_ROUNDS, MIN_ROUNDS, WARM_UP_S, Clock, enough

PASS_US = 60.0  # one pass over the buffer that empties the cache


class MadeUpTorch:
    """Stands in for torch: a host and a GPU with a clock each, in microseconds."""

    float32 = None

    def __init__(self):
        self.host = self.gpu = 0.0
        self.passes_before_next = 0
        torch = self

        class Event:
            def __init__(self, enable_timing=False):
                self.at = None

            def record(self):
                torch.host += 1
                self.at = torch.gpu = max(torch.gpu, torch.host)

            def query(self):
                return torch.host >= self.at

            def elapsed_time(self, end):
                return (end.at - self.at) / 1e3

        def synchronize():
            torch.host = max(torch.host, torch.gpu) + 5

        self.cuda = SimpleNamespace(
            Event=Event,
            synchronize=synchronize,
            current_device=lambda: 0,
            get_device_properties=lambda device: SimpleNamespace(L2_cache_size=2**20),
        )

    def ones(self, *shape, **how):
        return None

    empty = ones

    def sum(self, *arguments, **how):
        self.launch(gpu_us=PASS_US, host_us=4)

    def launch(self, gpu_us, host_us=5.0):
        self.host += host_us
        self.gpu = max(self.gpu, self.host) + gpu_us


@pytest.fixture
def torch(monkeypatch):
    made_up = MadeUpTorch()
    monkeypatch.setitem(sys.modules, "torch", made_up)
    monkeypatch.setattr(clock_module, "snapshot", lambda: {"sm_mhz": made_up.host})
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(perf_counter=lambda: made_up.host / 1e6))
    return made_up


def test_samples_are_the_gpus_time(torch):
    timing = Clock().time({"k": lambda: torch.launch(gpu_us=1000.0)}, seconds=0.1)

    assert timing.samples_us["k"] == pytest.approx(np.full(100, 1000.0), abs=2)


def test_a_slow_host_is_not_timed(torch):
    # The call keeps the host busy for 40 times as long as the GPU works.
    timing = Clock().time({"k": lambda: torch.launch(gpu_us=20.0, host_us=800.0)}, seconds=0.01)

    assert timing.samples_us["k"] == pytest.approx(np.full(len(timing.samples_us["k"]), 20.0), abs=2)


def test_a_host_that_is_slow_once_is_timed_again(torch):
    clock, calls = Clock(), []

    def call():
        calls.append(1)
        torch.launch(gpu_us=20.0, host_us=5000.0 if len(calls) % 7 == 0 else 5.0)

    clock._warm_up = lambda call: 2
    timing = clock.time({"k": call}, seconds=0.001)

    assert timing.samples_us["k"] == pytest.approx(np.full(len(timing.samples_us["k"]), 20.0), abs=2)


def test_a_call_that_waits_for_the_gpu_is_timed_as_its_caller_sees_it(torch):
    def call():
        torch.launch(gpu_us=500.0)
        torch.cuda.synchronize()
        torch.launch(gpu_us=500.0, host_us=300.0)

    timing = Clock().time({"k": call}, seconds=0.01)

    assert np.median(timing.samples_us["k"]) == pytest.approx(1305, abs=5)
    assert len(timing.samples_us["k"]) == MIN_ROUNDS


def test_competitors_take_turns_in_rotated_order(torch):
    ran = []

    def call(name):
        return lambda: (ran.append(name), torch.launch(gpu_us=100_000.0))

    timing = Clock().time({name: call(name) for name in "abc"}, seconds=0.1)

    rounds = "".join(ran[-3 * len(timing.samples_us["a"]) :])
    assert rounds == "abcbcacab" * 3 + "abc"


def test_warm_up_is_by_time_and_for_every_competitor(torch):
    ran = {"fast": 0, "slow": 0}
    sampled_from = {}

    def call(name, gpu_us):
        def run():
            ran[name] += 1
            torch.launch(gpu_us=gpu_us)

        return run

    clock = Clock()
    real = clock._warm_up

    def watched(run):
        began = torch.host
        passes = real(run)
        sampled_from[len(sampled_from)] = torch.host - began
        return passes

    clock._warm_up = watched
    timing = clock.time({"fast": call("fast", 10.0), "slow": call("slow", 300_000.0)}, seconds=0.1)

    assert all(spent >= WARM_UP_S * 1e6 for spent in sampled_from.values())
    assert ran["slow"] - len(timing.samples_us["slow"]) == 3
    assert len(timing.samples_us["slow"]) == MIN_ROUNDS


def test_state_is_read_after_the_warm_up_and_after_the_rounds(torch):
    timing = Clock().time({"k": lambda: torch.launch(gpu_us=1000.0)}, seconds=0.1)

    assert WARM_UP_S * 1e6 <= timing.before["sm_mhz"] < timing.after["sm_mhz"]


def test_results_are_dropped_at_once(torch):
    alive, most = set(), [0]

    class Output:
        def __init__(self):
            alive.add(id(self))
            most[0] = max(most[0], len(alive))

        def __del__(self):
            alive.discard(id(self))

    def call():
        torch.launch(gpu_us=10.0)
        return Output()

    Clock().time({"a": call, "b": call}, seconds=0.001)

    assert most == [1]


def rounds(count, **samples):
    return [samples] * count


@pytest.mark.parametrize(
    ("taken", "wall_s", "stop"),
    [
        (rounds(MIN_ROUNDS - 1, a=300_000.0), 99.0, False),  # never fewer than 10
        (rounds(MIN_ROUNDS, a=300_000.0), 3.0, True),
        (rounds(MIN_ROUNDS, a=1000.0), 0.01, False),
        (rounds(999, a=1000.0), 1.5, False),
        (rounds(1000, a=1000.0), 1.5, True),
        (rounds(999, a=1.0), 0.2, False),
        (rounds(MAX_ROUNDS, a=1.0), 0.2, True),  # never more than 1000
        (rounds(20, a=1000.0, b=99_000.0), 2.0, True),  # a second for each, on average
        (rounds(19, a=1000.0, b=99_000.0), 1.9, False),
        (rounds(50, a=10.0), 5.0, True),  # wall time
    ],
)
def test_enough(taken, wall_s, stop):
    assert enough(taken, wall_s, 1.0) is stop
