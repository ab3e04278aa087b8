"""How judge and worker talk while a function is timed: both sides here, on memory of the host, with a made-up clock."""

import random
import threading
from types import SimpleNamespace

import pytest
import torch

from course_judge import timing
from course_judge.host import Broken, Stranger
from course_judge.protocol.channel import Channel
from course_judge.protocol.limits import Limits
from course_judge.protocol.messages import ON_TENSORS, End, Sampled, plain
from course_judge.protocol.tensors import SharedMemory
from course_judge.worker import sampling
from course_judge.worker.answers import Answers
from course_judge.worker.connection import Connection
from course_judge.working_clock import Clock
from course_kernels.measure.check import WrongResult
from course_kernels.measure.machine import machine_for
from course_kernels.measure.roofline import floor_us
from course_kernels.measure.summary import measurement_of
from course_kernels.problem import Workload
from course_kernels.refusals.problem import PROBLEM

WORKLOAD = Workload.parse("dtype=float32,M=3,N=5")


class MadeUpClock:
    """Asks a race for what the true one asks for, and takes no time."""

    def time(self, race, seconds, *, seed):
        for block in range(2):
            call = race.block(block)["it"]
            race.keep("it", call())
        race.refill()
        race.keep("it", call())
        race.judge()
        samples = SimpleNamespace(us=[1.25, 1.5, 1.75], block=[0, 1, 1])
        return SimpleNamespace(sampled={"it": samples})


@pytest.fixture
def times(monkeypatch):
    """The judge's side, and the worker's end of the channel."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**26, 2**26))
    monkeypatch.setattr(sampling, "Clock", MadeUpClock)
    make = SharedMemory.make
    monkeypatch.setattr(SharedMemory, "make", lambda device, size: make("cpu", size))
    ours, theirs = Channel.pair()
    stranger = object.__new__(Stranger)
    stranger._channel, stranger._limits, stranger.clock = ours, Limits(seconds=60), Clock()
    stranger._began = stranger.clock.moment()
    stranger._look = lambda: None
    stranger._gone = lambda: Broken("died", "it has ended")
    one = object.__new__(timing.Times)
    one._stranger, one._problem, one._workload = stranger, PROBLEM, WORKLOAD
    one._options, one._memory, one._room = PROBLEM.options(WORKLOAD), None, 0
    one._rng = random.Random(1)
    generator = torch.Generator().manual_seed(1)
    one._draw_inputs = lambda: tuple(PROBLEM.make_inputs(WORKLOAD, generator, "cpu"))
    one._copy_us = lambda calls: 0.0
    yield one, theirs
    theirs.close()
    ours.close()


def serve(channel, function):
    """A worker, in a thread of this process."""
    connection = Connection(channel)
    answers = Answers(function, function, connection, None)

    def run():
        while True:
            question, files = connection.hear((*ON_TENSORS, End))
            if isinstance(question, End):
                return
            connection.say(answers.answer(question, files))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def end(times, thread):
    times._stranger._channel.send({"end": True, "of": ""})
    thread.join(30)
    assert not thread.is_alive()


def test_samples_and_batches_come_over(times):
    one, channel = times
    calls = []

    def right(x, s):
        calls.append(x)
        return x * s[:, None]

    thread = serve(channel, right)
    samples = one._samples()
    assert samples.median_us == 1.5
    assert samples.n == 3
    assert len(calls) == 3  # on inputs that the judge gave: twice in new memory, then with other values
    assert calls[1] is calls[2]
    wall_us, share = one._by_our_clock(1000.0)
    assert len(calls) > 3 + 2 * timing.BATCHES - 1
    assert wall_us >= 0
    assert share > 0
    end(one, thread)


def test_a_wrong_last_answer_and_a_wrong_batch_are_seen(times):
    one, channel = times
    thread = serve(channel, lambda x, s: x + s[:, None])
    with pytest.raises(WrongResult) as caught:
        one._by_our_clock(1000.0)
    assert "element" in str(caught.value)
    end(one, thread)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"want": "refill"}, "it asked for what no clock needs"),
        ({"want": "judge"}, "it asked for what no clock needs"),
        ({"want": "the truth"}, "it asked for what no clock needs"),
        ({"want": 5}, "what it answered has another form: Sampled.want: expected a text, got 5"),
        ({}, "its samples are no list of times"),
        (plain(Sampled(samples_us=(1.0, 2.0), blocks=(0,))), "its samples are no list of times"),
        (plain(Sampled(samples_us=(float("nan"),), blocks=(0,))), "its samples are no list of times"),
        (plain(Sampled(samples_us=(1.0,), blocks=(99,))), "its samples are no list of times"),
        (
            {"samples_us": "1"},
            "what it answered has another form: Sampled.samples_us: expected a list, got '1'",
        ),
        (
            {"failed": [], "why": ""},
            "what it answered has another form: Failed.failed: expected a text, got []",
        ),
    ],
)
def test_what_no_clock_says_is_a_verdict(times, said, why):
    one, channel = times

    def run():
        message, _ = channel.receive(30)
        channel.send({**said, "of": message["of"]})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with pytest.raises(Broken) as caught:
        one._samples()
    assert (caught.value.found, caught.value.why) == ("out of turn", why)
    thread.join(30)


def asked_thrice(one, monkeypatch, *of_floor):
    """What is taken where the judge's clock reads so many times the least possible time, one try after the other."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    samples = measurement_of("it", WORKLOAD, PROBLEM, [100.0] * 3, group="judge", error=0.0, blocks=[0, 1, 2])
    floor = floor_us(samples, machine_for("NVIDIA H200"))
    readings = iter(of_floor)
    one._samples = lambda: samples
    one._by_our_clock = lambda about_us: (next(readings) * floor, 0.001)
    return one.taken().wall_us / floor


def test_a_busy_neighbour_makes_nobody_faster_than_the_floor(times, monkeypatch):
    one, _ = times
    assert asked_thrice(one, monkeypatch, 0.9, 0.8, 1.4) == pytest.approx(1.4)
    assert asked_thrice(one, monkeypatch, 1.2) == pytest.approx(1.2)


def test_work_that_is_never_done_in_time_is_refused(times, monkeypatch):
    one, _ = times
    with pytest.raises(WrongResult, match=r"faster than the floor: it took 0\.8 of the least possible time"):
        asked_thrice(one, monkeypatch, 0.9, 0.8, 0.9, 1.4)
