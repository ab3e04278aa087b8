"""Time of a stranger's function: its own process samples it, and the judge's clock says whether that can be.

Two clocks. The samples come from the process that runs the stranger, which may have patched its timer. So the judge
reads its own clock over a batch of calls, each on inputs that nobody has seen, all answers handed over and some of
them judged. What is left when its own share is taken away is the most a call can have taken, launches included. The
samples are shown where they agree with that.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
import time
from dataclasses import dataclass

import torch

from course_judge.host import Broken
from course_judge.protocol.cuda_ipc import CardFailed
from course_judge.protocol.layout import GUARD_BYTES, Layout, Place, aligned
from course_judge.protocol.messages import Batch, Block, Go, Memory, Sampled, Time
from course_judge.protocol.tensors import SharedMemory, place_in
from course_judge.protocol.verdict import AFTER, Taken
from course_judge.remote import Remote
from course_kernels.measure.check import BITS, WrongResult, worst_element
from course_kernels.measure.clock import BLOCKS
from course_kernels.measure.derive import derive
from course_kernels.measure.machine import machine_for
from course_kernels.measure.record_types import Measurement
from course_kernels.measure.roofline import FasterThanFloor, check_floor
from course_kernels.measure.summary import measurement_of
from course_kernels.problem import Problem, Workload

SECONDS = 0.3  # of samples
BATCHES = 7
BATCH_US = 150_000.0  # what the calls of a batch should take: a handshake is a hundredth of that at most
MAX_CALLS = 512
MEMORY_BYTES = 60 * 2**30  # for inputs and answers of a batch, at most; and at most half of what is free
AGREE = 0.85  # the samples say at least this much of what the judge's clock says
# Below this much of it they cannot be true, where a call takes longer than a host needs to launch it.
LIES = 0.5
LAUNCH_US = 200.0
HANDSHAKE = 0.01  # the most of a batch that asking may take
JUDGED = 3  # answers of a batch that are compared with the truth
# Another program on the card delays the judge's clock, or what is taken away from it: what cannot be true is asked so
# many times more.
ASKED_AGAIN = 2


class NoTime(RuntimeError):
    """Error: the card has no room to time this now; one line."""


@dataclass(frozen=True)
class Timed:
    """Times of one function by two clocks.

    Attributes:
        samples: what the events of its own process say.
        wall_us: the most a call can have taken by the judge's clock, launches included.
        share: of the judge's time, what asking took.
    """

    samples: Measurement
    wall_us: float
    share: float

    @property
    def events_us(self) -> float:
        """The median by its own events, in microseconds."""
        return self.samples.median_us

    @property
    def is_long(self) -> bool:
        """True where the judge's clock tells a call from the asking."""
        return self.share <= HANDSHAKE

    @property
    def is_possible(self) -> bool:
        """False where its own events cannot be true: a call took far longer by the judge's clock."""
        return not (self.is_long and self.wall_us > LAUNCH_US and self.events_us < LIES * self.wall_us)

    @property
    def agrees(self) -> bool:
        """True where both clocks tell one story: then the events' is shown."""
        return self.is_long and self.events_us >= AGREE * self.wall_us

    def taken(self, label: str) -> Taken | None:
        """Return the time that is shown; None where a batch is too short for the judge's clock."""
        if self.agrees:
            return Taken(label, self.events_us, "both clocks")
        return Taken(label, self.wall_us, "the judge's clock") if self.is_long else None

    def text(self, label: str) -> str:
        """Clause about it, without a full stop."""
        if self.agrees:
            return f"{label} takes {self.events_us:.1f} µs{of_peak(self.samples)}"
        if not self.is_long:
            return f"{label}: no time; a batch is so short that asking for it takes {self.share:.1%} of it"
        return (
            f"{label} takes {self.wall_us:.1f} µs by the judge's own clock, launches included; "
            f"its own events say {self.events_us:.1f} µs, which is not shown as its time"
        )


def of_peak(samples: Measurement) -> str:
    """Return the percent of peak of a measurement's median, as a clause."""
    machine = machine_for(torch.cuda.get_device_name())
    if machine is None:
        return " (no data sheet of this card in course_kernels/measure/machine.py)"
    return f", {derive(samples, 'of_peak', samples.median_us, machine):.1%} of peak"


def calls_of_a_batch(about_us: float, size: int, free: int) -> int:
    """Return the number of calls in a batch.

    Args:
        about_us: of a call.
        size: bytes of its inputs and its answer.
        free: bytes of the card that nobody uses.
    Raises:
        NoTime: there is no room for two of them.
    """
    fit = min(MEMORY_BYTES, free // 2) // size
    if fit < 2:
        raise NoTime(no_room(4 * size))
    return int(max(2, min(BATCH_US / max(about_us, 1.0), MAX_CALLS, fit)))


def no_room(wanted: int) -> str:
    """Reason why there is no time, and what to do."""
    needs = f", and a time of this size takes {wanted / 1e9:.1f} GB" if wanted else ""
    return f"the card has too little memory free{needs}; end other programs that use it"


class Times:
    """The times of one function on one workload."""

    def __init__(self, function: Remote, problem: Problem, workload: Workload, rng: random.Random) -> None:
        self._stranger = function.stranger
        self._problem, self._workload, self._rng = problem, workload, rng
        self._options = problem.options(workload)
        self._generator = torch.Generator(device="cuda").manual_seed(rng.getrandbits(48))
        self._memory: SharedMemory | None = None
        self._room = 0
        function.close()  # of the questions before: the room is needed
        torch.cuda.empty_cache()

    def taken(self) -> Timed:
        """Measure by both clocks.

        Raises:
            WrongResult: an answer was wrong, or the time is none.
            Broken: the process did not answer as it should.
            NoTime: the card has too little memory free.
        """
        try:
            samples = self._samples()
            tries = [self._timed(samples)]
            while not self._can_be(tries[-1]) and len(tries) <= ASKED_AGAIN:
                tries.append(self._timed(samples))
            timed = tries[-1] if self._can_be(tries[-1]) else min(tries, key=lambda one: one.wall_us)
        except (CardFailed, torch.OutOfMemoryError):
            raise NoTime(no_room(0)) from None
        finally:
            if self._memory:
                self._memory.close()
        for time_us in (timed.events_us, *((timed.wall_us,) if timed.is_long else ())):
            if error := self._too_fast(time_us, samples):
                raise error
        if not timed.is_possible:
            said = f"its own events say {timed.events_us:.1f} µs a call, and the judge's clock {timed.wall_us:.1f} µs"
            raise Broken("clock", said)
        return timed

    def _timed(self, samples: Measurement) -> Timed:
        return Timed(samples, *self._by_our_clock(samples.median_us))

    def _can_be(self, timed: Timed) -> bool:
        """Return whether the judge's clock contradicts neither the events nor the card."""
        return timed.is_possible and not (timed.is_long and self._too_fast(timed.wall_us, timed.samples))

    def _too_fast(self, time_us: float, samples: Measurement) -> WrongResult | None:
        """Return the refusal of a time that the card cannot reach; None where it can."""
        what = f"{self._problem.name} on {self._workload.label}"
        try:
            check_floor(what, time_us, samples, machine_for(torch.cuda.get_device_name()))
        except FasterThanFloor as error:
            return WrongResult(str(error), str(error).removeprefix(f"{what}: "))
        return None

    # the samples

    def _samples(self) -> Measurement:
        """Return samples of the process's own clock, which asks for inputs, and hands over its last answer."""
        asked = self._stranger.tell(Time(SECONDS, self._rng.getrandbits(31)))
        values: tuple[torch.Tensor, ...] = ()
        places: list[list[Place]] = []
        while True:
            answer = self._stranger.listen(asked)
            if answer.want == "block":
                values = self._draw_inputs()
                places, memory, files = self._lay([values])
                self._write(places[0], values)
                block = Block(memory, tuple(places[0]), self._options, self._room)
                asked = self._stranger.tell(block, files)
            elif answer.want == "refill" and places:
                values = self._draw_inputs()
                self._write(places[0], values)
                asked = self._stranger.tell(Go())
            elif answer.want == "judge" and places:
                self._judge(values, self._room)
                asked = self._stranger.tell(Go())
            elif not answer.want:
                return self._measurement(answer)
            else:
                raise Broken("out of turn", "it asked for what no clock needs")

    def _write(self, places: list[Place], values: tuple[torch.Tensor, ...]) -> None:
        self._shared.write(places, values)
        torch.cuda.synchronize()  # another process sees it

    def _measurement(self, answer: Sampled) -> Measurement:
        samples, blocks = list(answer.samples_us), list(answer.blocks)
        fits = len(samples) == len(blocks) > 0 and set(blocks) <= set(range(BLOCKS))
        if not fits or not all(map(math.isfinite, samples)):
            raise Broken("out of turn", "its samples are no list of times")
        return measurement_of(
            "the file", self._workload, self._problem, samples, group="judge", error=0.0, blocks=blocks
        )

    # the judge's own clock

    def _by_our_clock(self, about_us: float) -> tuple[float, float]:
        """Return the most a call can have taken, in microseconds; and the share of a batch that asking takes."""
        base = self._draw_inputs()
        size = sum(t.numel() * t.element_size() + 2 * GUARD_BYTES for t in base) + self._out_bytes()
        calls = calls_of_a_batch(about_us, size, torch.cuda.mem_get_info()[0])
        places, memory, files = self._lay([base] * calls, answers=calls)
        self._stranger.ask(memory, files)
        question = Batch(tuple(map(tuple, places)), self._options, self._room, self._out_bytes())
        empty = dataclasses.replace(question, inputs=())
        _ = question.body, empty.body  # made now, so that the clock does not see it
        all_us, wrote, asked, handed = [], [], [], []
        for _ in range(BATCHES):
            turns = [self._rng.getrandbits(40) for _ in range(calls)]
            began = time.perf_counter()
            for one, turn in zip(places, turns, strict=True):
                self._shared.write(one, [_turned(tensor, turn) for tensor in base])
            torch.cuda.synchronize()
            written = time.perf_counter()
            self._stranger.ask(question)
            all_us.append((time.perf_counter() - began) * 1e6)
            wrote.append((written - began) * 1e6)
            for number in self._rng.sample(range(calls), min(JUDGED, calls)):
                values = tuple(_turned(tensor, turns[number]) for tensor in base)
                self._judge(values, self._room + number * self._out_bytes())
            began = time.perf_counter()
            self._stranger.ask(empty)
            asked.append((time.perf_counter() - began) * 1e6)
            handed.append(self._copy_us(calls))
        # The first batch sets things up on both sides. Of each part the least: what other programs on the card added
        # to one of them at its own moment is no part of another.
        least = min(whole - write for whole, write in zip(all_us[1:], wrote[1:], strict=True))
        least -= min(asked[1:]) + min(handed[1:])
        return max(least, 0.0) / calls, statistics.median(asked[1:]) / statistics.median(all_us[1:])

    def _copy_us(self, calls: int) -> float:
        """Time to copy as many bytes as the answers have, once each, in microseconds."""
        step = self._out_bytes()
        room = self._shared.raw(self._room, calls * step)
        other = torch.empty(step, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        began = time.perf_counter()
        for number in range(calls):
            other.copy_(room[number * step : (number + 1) * step])
        torch.cuda.synchronize()
        return (time.perf_counter() - began) * 1e6

    # small things

    @property
    def _shared(self) -> SharedMemory:
        assert self._memory is not None
        return self._memory

    def _out_bytes(self) -> int:
        return aligned(self._problem.writes_bytes(self._workload) + 1)

    def _draw_inputs(self) -> tuple[torch.Tensor, ...]:
        return tuple(self._problem.make_inputs(self._workload, self._generator, "cuda"))

    def _lay(
        self, sets: list[tuple[torch.Tensor, ...]], answers: int = 1
    ) -> tuple[list[list[Place]], Memory, list[int]]:
        layout = Layout()
        places = [[place_in(layout, tensor) for tensor in one] for one in sets]
        self._room = layout.room(answers * self._out_bytes())
        old, self._memory = self._memory, SharedMemory.make("cuda", layout.bytes)
        if old:
            old.close()
        memory, files = self._memory.as_message()
        return places, memory, files

    def _judge(self, values: tuple[torch.Tensor, ...], at: int) -> None:
        """Compare an answer that lies in shared memory with the truth."""
        truth = self._problem.reference(*values, **self._options)
        truths = truth if isinstance(truth, tuple | list) else (truth,)
        expected = truths[0]
        dtype = self._workload.torch_dtype
        size = expected.numel() * dtype.itemsize
        out = self._shared.raw(at, size).clone().view(dtype).view(expected.shape)
        worst, where = worst_element(out, expected, rows_apart=self._problem.rows_apart)
        if not worst <= self._problem.max_error(self._workload):
            why = f"{AFTER}element {where} of the output, a scaled error of {worst:.2g}"
            raise WrongResult(why, why)


def _turned(tensor: torch.Tensor, turn: int) -> torch.Tensor:
    """Other values of the same kind, at next to no cost: the elements go round by a secret number of places."""
    if tensor.numel() < 2:
        return tensor
    bits = tensor.reshape(-1).view(BITS[tensor.element_size()])  # some types cannot be rolled themselves
    return bits.roll(turn % bits.numel()).view(tensor.dtype).view(tensor.shape)
