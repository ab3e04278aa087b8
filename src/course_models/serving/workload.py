"""A morning at a server: who comes when, how long the prompt is, how long the answer; played on an engine.

The trace is made up, by a fixed formula, and not recorded from people: lengths are exponential, so that most are short
and a few are long, which is what batches suffer from; gaps between arrivals are exponential, too.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from course_models.serving.engine import Engine
from course_models.serving.request import Request


@dataclass(frozen=True)
class Arrival:
    """An arrival of a request.

    Attributes:
        at_s: when, in seconds from the beginning.
        prompt, answer: tokens of each.
    """

    at_s: float
    prompt: int
    answer: int


def trace(
    count: int, *, prompt: float, answer: float, longest: int, per_s: float = math.inf, seed: int = 0
) -> list[Arrival]:
    """So many arrivals, the same ones for a seed on every Python.

    Args:
        prompt, answer: mean tokens of each; none is shorter than 1.
        longest: tokens of a prompt and its answer together, at most.
        per_s: how many come in a second, in the mean; all at once without it.
    """
    rng = random.Random(seed)

    def exponential(mean: float) -> float:
        return -mean * math.log1p(-rng.random())

    arrivals, now = [], 0.0
    for _ in range(count):
        reads = min(1 + int(exponential(prompt - 1)), longest - 1)
        writes = min(1 + int(exponential(answer - 1)), longest - reads)
        now += 0.0 if per_s == math.inf else exponential(1 / per_s)
        arrivals.append(Arrival(now, reads, writes))
    return arrivals


LONGEST = 1024  # tokens of a prompt and its answer together, at most, in the queue


def queue() -> list[Arrival]:
    """Return the queue that the pages serve: 128 arrivals, all there from the beginning."""
    return trace(128, prompt=32, answer=96, longest=LONGEST, seed=2)


def least_steps(answers: Sequence[int], batch: int, *, continuous: bool) -> int:
    """Count the steps of decoding that a batch needs by arithmetic, all there from the beginning, prompts left out.

    A static batch goes on for as long as its longest answer. In a continuous one the first seat that is free goes to
    the next in the queue.
    """
    if not continuous:
        return sum(max(answers[i : i + batch]) for i in range(0, len(answers), batch))
    seats = [0] * batch
    for answer in answers:
        seats[seats.index(min(seats))] += answer
    return max(seats)


@dataclass(frozen=True)
class Served:
    """Times at which a request's answer was written.

    Attributes:
        arrival: when he came, and what he asked.
        times_s: when each token was written, in seconds from the beginning.
    """

    arrival: Arrival
    times_s: tuple[float, ...]

    @property
    def first_s(self) -> float:
        """Time to the first token."""
        return self.times_s[0] - self.arrival.at_s

    @property
    def each_s(self) -> float:
        """Mean time from one token to the next; 0 for an answer of one."""
        return (self.times_s[-1] - self.times_s[0]) / max(len(self.times_s) - 1, 1)


def play(
    engine: Engine,
    arrivals: Sequence[Arrival],
    *,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Served]:
    """Serve a trace, by the clock; random prompts, answers as long as the trace says.

    Args:
        engine: with nobody in it.
        clock, sleep: seconds that go by.
    Returns:
        In the order of the arrivals.
    """
    rng, vocab = random.Random(seed), engine.model.config.vocab
    asked = [Request([rng.randrange(vocab) for _ in range(one.prompt)], one.answer) for one in arrivals]
    times: list[list[float]] = [[] for _ in arrivals]
    who: dict[int, int] = {}
    coming: Iterator[int] = iter(sorted(range(len(arrivals)), key=lambda i: arrivals[i].at_s))
    following = next(coming, None)
    begun = clock()
    while following is not None or any(len(t) < one.answer for t, one in zip(times, arrivals, strict=True)):
        now = clock() - begun
        while following is not None and arrivals[following].at_s <= now:
            who[engine.submit(asked[following])] = following
            following = next(coming, None)
        step = engine.step()
        now = clock() - begun
        for written in step:
            times[who[written.number]].append(now)
        idle = not engine.schedule.running and not engine.schedule.waiting
        if idle and following is not None:
            sleep(max(arrivals[following].at_s - now, 0.0))
    return [Served(one, tuple(t)) for one, t in zip(arrivals, times, strict=True)]
