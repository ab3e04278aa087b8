"""The clock on a made-up GPU whose time is a number: what it times, in which order, where it reads, when it stops."""

from __future__ import annotations

import hashlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from course_kernels.measure import clock as clock_module
from course_kernels.measure.clock import (
    BLOCKS,
    BURST_S,
    MAX_EVERY,
    MAX_ROUNDS,
    MIN_ROUNDS,
    SETTLE_CALLS,
    WARM_UP_S,
    Clock,
    Sampled,
    every_of,
)
from course_kernels.measure.sensors import SensorsUnavailable

PASS_US = 60.0  # one pass over the buffer that empties the cache
READING_US = 200.0  # one reading of the card


class MadeUpTorch:
    """Stands in for torch: a host and a GPU with a clock each, in microseconds.

    Attributes:
        host, gpu: time of each; the GPU's is when all that is queued will be done.
        ran: what the GPU ran and will run: name, from, to.
    """

    float32 = None

    def __init__(self):
        self.host = self.gpu = 0.0
        self.ran = []
        self.readings = []
        self.made = []  # arrays: shape, kind, place
        self.l2_bytes = 2**20
        torch = self

        class Event:
            def __init__(self, enable_timing=False):
                self.at, self.timing = None, enable_timing

            def record(self):
                torch.host += 1
                self.at = torch.gpu = max(torch.gpu, torch.host)

            def query(self):
                torch.host += 0.5
                return torch.host >= self.at

            def synchronize(self):
                torch.host = max(torch.host, self.at) + 2

            def elapsed_time(self, end):
                assert self.timing
                assert end.timing
                return (end.at - self.at) / 1e3

        def synchronize():
            torch.host = max(torch.host, torch.gpu) + 5

        self.cuda = SimpleNamespace(
            Event=Event,
            synchronize=synchronize,
            current_device=lambda: 0,
            get_device_properties=lambda device: SimpleNamespace(L2_cache_size=torch.l2_bytes),
        )

    def ones(self, shape, dtype, device):
        self.made.append((shape, device))

    empty = ones

    def sum(self, buffer, *, dim, out):
        assert dim == 0  # of a buffer that has no other
        self.launch(gpu_us=PASS_US, host_us=4, name="pass")

    def launch(self, gpu_us, host_us=5.0, name="k"):
        self.host += host_us
        began = max(self.gpu, self.host)
        self.gpu = began + gpu_us
        self.ran.append((name, began, self.gpu))

    def running(self, at):
        """What the GPU runs at a moment; None when it has nothing to do."""
        return next((name for name, began, ended in self.ran if began <= at < ended), None)

    def snapshot(self):
        began = self.host
        self.host += READING_US
        self.readings.append((began, self.host))
        return {"sm_mhz": 1000, "power_w": began}


@pytest.fixture
def torch(monkeypatch):
    made_up = MadeUpTorch()
    monkeypatch.setitem(sys.modules, "torch", made_up)
    monkeypatch.setattr(clock_module, "snapshot", made_up.snapshot)
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(perf_counter=lambda: made_up.host / 1e6))
    return made_up


class MadeUpRace:
    """Counts what the clock asks of it; every call notes its block and how often the inputs were refilled there."""

    def __init__(self, torch, **gpu_us):
        self.torch, self.gpu_us = torch, gpu_us
        self.made = self.refills = 0
        self.log, self.kept, self.judged = [], {}, None

    def block(self, number):
        assert number == self.made
        self.made += 1
        self.refills = 0
        return {name: self.call(name, number) for name in self.gpu_us}

    def call(self, name, block):
        def run():
            self.torch.launch(gpu_us=self.gpu_us[name], name=name)
            self.log.append((name, block, self.refills))
            return self.log[-1]

        return run

    def refill(self):
        self.refills += 1

    def keep(self, name, result):
        assert name not in self.kept
        self.kept[name] = result

    def judge(self):
        assert self.judged is None
        self.judged = len(self.log)


# --- one sample -----------------------------------------------------------------------------------


def test_samples_are_the_gpus_time(torch):
    timing = Clock().time({"k": lambda: torch.launch(gpu_us=1000.0)}, seconds=0.1)

    assert timing.samples_us["k"] == pytest.approx(np.full(timing.rounds, 1000.0), abs=2)
    assert timing.rounds == pytest.approx(100, abs=2)
    assert timing.sampled["k"].host_bound == 0


def test_a_slow_host_is_not_timed(torch):
    # The call keeps the host busy for 40 times as long as the GPU works.
    timing = Clock().time({"k": lambda: torch.launch(gpu_us=20.0, host_us=800.0)}, seconds=0.01)

    found = timing.sampled["k"]
    assert found.us == pytest.approx(np.full(len(found.us), 20.0), abs=2)
    assert found.host_us == pytest.approx(np.full(len(found.us), 800.0), abs=1e-6)
    assert found.host_bound == 0


def test_a_host_that_is_slow_once_is_timed_again(torch):
    calls = []

    def call():
        calls.append(1)
        torch.launch(gpu_us=20.0, host_us=2000.0 if len(calls) % 7 == 0 else 5.0)

    timing = Clock().time({"k": call}, seconds=0.001)

    found = timing.sampled["k"]
    assert found.us == pytest.approx(np.full(len(found.us), 20.0), abs=2)
    assert found.host_bound == 0


def test_a_sample_that_timed_the_host_to_the_end_is_flagged(torch):
    slow_from = []

    def call():
        torch.launch(gpu_us=20.0, host_us=90_000.0 if slow_from and torch.host > slow_from[0] else 5.0)

    clock = Clock()
    race = MadeUpRace(torch)
    race.block = lambda number: (slow_from.append(torch.host) if number == BLOCKS - 1 else None, {"k": call})[
        1
    ]
    found = clock.time(race, seconds=0.001).sampled["k"]

    assert found.host_bound == np.sum(found.block == BLOCKS - 1) > 0
    assert np.median(found.us) < 25


def test_a_call_that_waits_for_the_gpu_is_timed_as_its_caller_sees_it_and_flagged(torch):
    def call():
        torch.launch(gpu_us=500.0)
        torch.cuda.synchronize()
        torch.launch(gpu_us=500.0, host_us=300.0)

    found = Clock().time({"k": call}, seconds=0.01).sampled["k"]

    assert np.median(found.us) == pytest.approx(1305, abs=5)
    assert len(found.us) == found.host_bound == MIN_ROUNDS


@pytest.mark.parametrize(
    ("l2_bytes", "floats"), [(50 * 2**20, 50 * 2**20), (2**20 + 4, 2**20 + 4), (1000, 2**20)]
)
def test_the_buffer_that_empties_the_cache_is_four_times_the_cache(torch, l2_bytes, floats):
    """A float has four bytes; a card that tells no cache is taken to have one of 1 MiB."""
    torch.l2_bytes = l2_bytes
    Clock()

    assert torch.made == [(floats, "cuda"), ((), "cuda")]


def test_two_marks_tell_what_lies_between_them(torch):
    clock = Clock()
    before = clock.mark()
    torch.launch(gpu_us=5000.0)

    assert before.elapsed_time(clock.mark()) == pytest.approx(5.0, abs=0.01)


# --- the whole of it ------------------------------------------------------------------------------


def races(torch):
    """Races of several kinds: names and microseconds, or a call; and for how long they are sampled."""

    def waits():
        torch.launch(gpu_us=500.0)
        torch.cuda.synchronize()

    def hiccups():
        hiccups.calls = getattr(hiccups, "calls", 0) + 1
        torch.launch(gpu_us=20.0, host_us=5000.0 if hiccups.calls % 7 == 0 else 5.0)

    def slows_down():  # what was learnt while the card got warm does not hold
        torch.launch(gpu_us=20.0 if torch.host < 0.3e6 else 8000.0)

    late = MadeUpRace(torch, late=20.0)
    in_time = late.call

    def late_at_last(name, block):
        def run():
            torch.host += 90_000.0 if block == BLOCKS - 1 else 0.0
            return in_time(name, block)()

        return run

    late.call = late_at_last
    return {
        "one that is very quick": (MadeUpRace(torch, quick=5.0), 0.001),
        "one that slows down": ({"slows_down": slows_down}, 0.2),
        "a host that is late to the end": (late, 0.001),
        "two that are quick": (MadeUpRace(torch, quick=20.0, other=30.0), 0.002),
        "one that is slow": (MadeUpRace(torch, quick=1000.0, other=1100.0, slow=60_000.0), 0.5),
        "a long one": (MadeUpRace(torch, long=6000.0), 0.05),
        "a call that waits": ({"waits": waits}, 0.01),
        "a slow host": ({"busy": lambda: torch.launch(gpu_us=20.0, host_us=400.0)}, 0.002),
        "a host that is slow at times": ({"hiccups": hiccups}, 0.001),
        "more rounds than there may be": (MadeUpRace(torch, quick=20.0), 1.0),
    }


@pytest.mark.parametrize(
    ("name", "rounds", "ran", "all_of_it"),
    [
        ("one that is very quick", 38, 52301, "28f3418dab3d"),
        ("one that slows down", 25, 6885, "79026acdf653"),
        ("a host that is late to the end", 30, 7385, "d060dff0275e"),
        ("two that are quick", 67, 25914, "0c31a2279f72"),
        ("one that is slow", 118, 1516, "f8c863aa2311"),
        ("a long one", 12, 220, "eb0cdb1e2d9e"),
        ("a call that waits", 20, 1958, "341a96cc9d91"),
        ("a slow host", 12, 6071, "b0b85dccedb7"),
        ("a host that is slow at times", 12, 8178, "66d56f8decdc"),
        ("more rounds than there may be", 1000, 21187, "823326d747a6"),
    ],
)
def test_a_race_takes_the_course_that_it_took_when_the_records_were_made(torch, name, rounds, ran, all_of_it):
    """Written down once: whoever changes what is run, in which order or how often, changes what was measured."""
    race, seconds = races(torch)[name]
    timing = Clock().time(race, seconds)

    found = [f"{what} {began:.1f} {ended:.1f}" for what, began, ended in torch.ran]
    found += [f"read {began:.1f}" for began, _ in torch.readings]
    for who, sampled in timing.sampled.items():
        found.append(
            f"{who} {sampled.every} {sampled.host_bound} {sampled.block.tolist()} {sampled.round.tolist()}"
        )
    found.append(str(getattr(race, "log", "")))  # with the refills that each call had seen
    digest = hashlib.sha256("\n".join(found).encode()).hexdigest()[:12]
    assert (timing.rounds, len(torch.ran), digest) == (rounds, ran, all_of_it)


def test_without_a_seed_a_race_is_drawn_by_seed_0(torch):
    def order(**seed):
        race = MadeUpRace(torch, **dict.fromkeys("abcd", 100_000.0))
        Clock().time(race, 0.1, **seed)
        return [name for name, _, _ in race.log]

    assert order() == order(seed=0) != order(seed=1)


def test_samples_are_all_of_the_gpu_and_of_every_round_unless_it_is_said():
    nothing = np.array([])
    sampled = Sampled(nothing, nothing, nothing, nothing)

    assert (sampled.host_bound, sampled.every, sampled.running) == (0, 1, ())


# --- rounds and blocks ----------------------------------------------------------------------------


def test_every_round_has_an_order_of_its_own_and_a_seed_repeats_it(torch, monkeypatch):
    monkeypatch.setattr(clock_module._Sitting, "_burst", lambda *call: {})

    def order(seed):
        race = MadeUpRace(torch, **dict.fromkeys("abcd", 100_000.0))
        timing = Clock().time(race, seconds=2.0, seed=seed)
        ran = "".join(name for name, _, _ in race.log[-4 * timing.rounds :])
        return [ran[i : i + 4] for i in range(0, len(ran), 4)]

    first, again, other = order(1), order(1), order(2)

    assert all(sorted(turn) == list("abcd") for turn in first)
    assert first == again != other
    assert len(set(first)) >= 10  # of 24 orders; rotation knows 4
    assert {turn[0] for turn in first} == set("abcd")


def test_every_block_has_inputs_of_its_own_and_the_old_ones_are_let_go(torch):
    alive = set()

    class Inputs:
        def __init__(self, number):
            self.number = number
            alive.add(number)

        def __del__(self):
            alive.discard(self.number)

    race = MadeUpRace(torch)

    def block(number):
        assert alive == set()
        inputs = Inputs(number)
        return {"k": lambda: torch.launch(gpu_us=1000.0, name=str(inputs.number))}

    race.block = block
    found = Clock().time(race, seconds=0.12).sampled["k"]

    assert list(dict.fromkeys(found.block)) == list(range(BLOCKS))
    assert all(np.sum(found.block == block) == pytest.approx(20, abs=1) for block in range(BLOCKS))
    assert list(found.round) == list(range(len(found.us)))
    assert {name for name, _, _ in torch.ran} == {"pass", *map(str, range(BLOCKS))}


def test_one_warm_up_by_time_for_the_whole_field(torch, monkeypatch):
    monkeypatch.setattr(clock_module._Sitting, "_burst", lambda *call: {})
    began = {}
    race = MadeUpRace(torch, quick=10.0, slow=200_000.0)
    real = race.block
    race.block = lambda number: (began.setdefault(number, torch.host), real(number))[1]

    timing = Clock().time(race, seconds=0.001)

    calls = [name for name, block, _ in race.log if block == 0]
    sampled = {name: int(np.sum(found.block == 0)) for name, found in timing.sampled.items()}
    assert calls.count("slow") - sampled["slow"] == 3  # enough for the 0.3 s, and for what loads at first
    assert began[1] - began[0] >= WARM_UP_S * 1e6
    # Later blocks: a few calls of what is quick, none of what takes long; no third of a second.
    assert began[3] - began[2] < WARM_UP_S * 1e6 + 2 * 200_000
    second = [name for name, block, _ in race.log if block == 1]
    assert second.count("slow") == np.sum(timing.sampled["slow"].block == 1) == 2
    assert second[:SETTLE_CALLS] == ["quick"] * SETTLE_CALLS


def test_few_slow_rounds_and_many_quick_ones(torch):
    slow = Clock().time({"k": lambda: torch.launch(gpu_us=300_000.0)}, seconds=0.1)
    quick = Clock().time({"k": lambda: torch.launch(gpu_us=20.0)}, seconds=1.0)

    assert slow.rounds == len(slow.samples_us["k"]) == MIN_ROUNDS
    assert quick.rounds == len(quick.samples_us["k"]) == MAX_ROUNDS
    assert set(np.bincount(slow.sampled["k"].block)) == {2}


def test_a_set_time_for_each_on_average(torch):
    timing = Clock().time(
        {"a": lambda: torch.launch(gpu_us=1000.0), "b": lambda: torch.launch(gpu_us=3000.0)}, seconds=0.2
    )

    assert sum(found.us.sum() for found in timing.sampled.values()) == pytest.approx(0.4e6, rel=0.02)


def test_what_waits_mostly_for_the_cache_stops_by_the_wall(torch):
    began = torch.host
    timing = Clock().time({"k": lambda: torch.launch(gpu_us=5.0)}, seconds=0.005)

    assert MIN_ROUNDS < timing.rounds < 400
    assert torch.host - began < (WARM_UP_S + BURST_S + 0.05) * 1e6


def test_memory_that_is_asked_for_in_a_new_block_takes_no_second_call_of_a_slow_one(torch):
    race = MadeUpRace(torch, slow=50_000.0)
    real, first = race.block, []

    def block(number):
        first.append(number)
        call = real(number)["slow"]

        def run():
            if first:  # the driver looks for memory
                torch.host += 1000.0
                first.clear()
            call()

        return {"slow": run}

    race.block = block
    timing = Clock().time(race, seconds=0.1)

    later = [entry for entry in race.log[: race.judged] if entry[1] > 0]
    assert len(later) == np.sum(timing.sampled["slow"].block > 0)
    assert timing.sampled["slow"].host_bound == 0


# --- slow ones give way ----------------------------------------------------------------------------


def test_what_is_far_slower_than_the_field_takes_part_in_every_kth_round():
    assert every_of({"a": 10.0, "b": 12.0, "c": 30.0}) == {"a": 1, "b": 1, "c": 1}
    assert every_of({"a": 10.0, "b": 12.0, "c": 120.0}) == {"a": 1, "b": 1, "c": 2}
    assert every_of({"a": 1.0, "b": 1e6}) == {"a": 1, "b": MAX_EVERY}
    assert every_of({"alone": 1e6}) == {"alone": 1}
    assert every_of({"a": 10.0, "b": 79.9}) == {"a": 1, "b": 1}
    assert every_of({"a": 10.0, "b": 80.0}) == {"a": 1, "b": 2}
    assert every_of({"a": 10.0, "b": 4e9}) == {"a": 1, "b": 50}
    assert every_of({"a": 0.0, "b": 0.1}) == {"a": 1, "b": 25}


def test_a_slow_one_leaves_the_time_to_the_quick_ones(torch):
    race = MadeUpRace(torch, quick=1000.0, other=1200.0, slow=60_000.0)
    timing = Clock().time(race, seconds=1.0)

    slow, quick = timing.sampled["slow"], timing.sampled["quick"]
    assert (slow.every, quick.every) == (12, 1)
    assert len(quick.us) == timing.rounds > 5 * len(slow.us)
    for block in range(BLOCKS):
        assert np.sum(slow.block == block) >= 2
    later = slow.round[slow.block == 2]
    first = timing.sampled["quick"].round[quick.block == 2][0]
    assert all((later[:-1] - first) % 12 == 0)  # and the round that closes the block


# --- the last answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_last_call_of_each_is_kept_and_comes_after_the_refill(torch, seed):
    race = MadeUpRace(torch, quick=1000.0, other=1000.0, slow=60_000.0)
    Clock().time(race, seconds=0.5, seed=seed)

    assert set(race.kept) == {"quick", "other", "slow"}
    timed = race.log[: race.judged]
    for name, result in race.kept.items():
        assert result == (name, BLOCKS - 1, 1)
        # No call of it came between the one that is judged and the judgement: there it could still be mended.
        assert [entry for entry in timed if entry[0] == name][-1] is result
    # All had seen the inputs of the last block before they were refilled.
    last = [entry for entry in timed if entry[1] == BLOCKS - 1]
    assert {name for name, _, refills in last if refills == 0} == {"quick", "other", "slow"}


def test_the_refill_comes_at_a_round_drawn_at_random(torch):
    def refilled_after(seed):
        race = MadeUpRace(torch, k=1000.0)
        Clock().time(race, seconds=0.3, seed=seed)
        return sum(block == BLOCKS - 1 and refills == 0 for _, block, refills in race.log)

    assert len({refilled_after(seed) for seed in range(8)}) > 4


def test_results_are_dropped_at_once_but_for_the_last(torch):
    alive, most, kept = set(), [0], {}

    class Output:
        def __init__(self):
            alive.add(id(self))
            most[0] = max(most[0], len(alive))

        def __del__(self):
            alive.discard(id(self))

    def call():
        torch.launch(gpu_us=10.0)
        return Output()

    race = MadeUpRace(torch)
    race.block = lambda number: {"a": call, "b": call}
    race.keep = lambda name, result: (kept.setdefault(name, most[0]), None)[1]
    Clock().time(race, seconds=0.001)

    assert most == [1]
    assert set(kept) == {"a", "b"}


# --- the card while it runs ----------------------------------------------------------------------------


@pytest.mark.parametrize("times", [{"short": 30.0, "other": 25.0}, {"long": 3000.0, "longer": 40_000.0}])
def test_each_is_read_once_it_has_run_alone_for_longer_than_the_card_remembers(torch, times):
    race = MadeUpRace(torch, **times)
    timing = Clock().time(race, seconds=0.01)

    for name, found in timing.sampled.items():
        (reading,) = found.running
        assert reading["sm_mhz"] == 1000
        began = reading["power_w"]  # the made-up reading tells when it began
        assert torch.running(began) == torch.running(began + READING_US) == name
        assert all(torch.running(began - ago) == name for ago in np.linspace(0, 0.9 * BURST_S * 1e6, 50))
        assert len(found.us) == timing.rounds  # what ran for a reading is no sample


def test_the_card_is_read_behind_all_samples_and_the_judgement(torch):
    race = MadeUpRace(torch, **{f"k{n}": 30.0 for n in range(BLOCKS + 1)})
    timing = Clock().time(race, seconds=0.01)
    taken = sum(len(found.us) for found in timing.sampled.values())

    # What a run back to back heats up, no sample pays for; and it could mend an answer that was not yet judged.
    assert race.judged >= taken
    after = [name for name, _, _ in race.log[race.judged :]]
    assert list(dict.fromkeys(after)) == list(race.gpu_us)
    assert len(after) > len(race.gpu_us) * 0.9 * BURST_S * 1e6 / 30.0
    assert all(len(found.running) == 1 for found in timing.sampled.values())


def test_a_call_that_waits_for_the_gpu_is_read_too(torch):
    def call():
        torch.launch(gpu_us=500.0)
        torch.cuda.synchronize()

    found = Clock().time({"k": call}, seconds=0.01).sampled["k"]

    assert len(found.running) == 1


def test_a_card_that_does_not_tell_is_not_timed(torch, monkeypatch):
    def unavailable():
        raise SensorsUnavailable("clocks and power cannot be read")

    monkeypatch.setattr(clock_module, "snapshot", unavailable)

    with pytest.raises(SensorsUnavailable):
        Clock().time({"k": lambda: torch.launch(gpu_us=10.0)}, seconds=0.01)
    assert torch.ran == []
