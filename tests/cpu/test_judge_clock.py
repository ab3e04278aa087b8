"""The clock by which the judge asks and ends a file: made-up readings of wall and CPU, so that no load is needed."""

import random
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from course_judge.cpu_sizes import InTurn, Pace, cost, larger
from course_judge.edge_sizes import Edges
from course_judge.hidden_sizes import small
from course_judge.host import Broken, Stranger
from course_judge.judge import judge
from course_judge.protocol.channel import TimedOut
from course_judge.protocol.limits import Limits
from course_judge.protocol.messages import Outputs
from course_judge.protocol.processes import cpu_seconds
from course_judge.remote import Remote
from course_judge.working_clock import BACKSTOP, Clock
from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.refusals.problem import PROBLEM as SCALE
from course_kernels.vector_add.problem import PROBLEM as VECTOR_ADD

STRANGER = 7  # the number of a process


class Machine:
    """Readings: seconds of the wall, of the judge's CPU, and of each of the stranger's processes."""

    def __init__(self):
        self.wall, self.own, self.cpu = 1000.0, 5.0, {STRANGER: 3.0}

    def clock(self, process=STRANGER):
        return Clock(process, wall=lambda: self.wall, own=lambda: self.own, cpu=self.cpu.get)

    def goes_on(self, wall, cpu=0.0, own=0.0):
        """Let time go by, on the wall, in the stranger's process and in the judge's."""
        self.wall += wall
        self.own += own
        self.cpu[STRANGER] += cpu


@pytest.fixture
def machine():
    return Machine()


@pytest.mark.parametrize(
    ("steps", "working"),
    [
        ([(13.0, 1.5, 0.5)], 2.0),  # others have had the rest
        ([(1.0, 4.0, 0.0)], 1.0),  # four threads
        ([(10.0, 1.0, 0.0), (1.0, 10.0, 0.0)], 2.0),  # the lesser of each interval, not of all
        ([(600.0, 0.0, 0.0)], 0.0),  # it sleeps
    ],
)
def test_it_goes_on_by_the_lesser_of_wall_and_work(machine, steps, working):
    clock = machine.clock()
    began = clock.now()
    for step in steps:
        machine.goes_on(*step)
        clock.now()
    assert clock.now() - began == pytest.approx(working)


def test_it_counts_all_processes_and_never_goes_back(machine):
    clock = machine.clock()
    began = clock.now()
    machine.goes_on(1.0)
    machine.cpu[8] = 0.75
    clock.watch({STRANGER, 8})
    assert clock.now() - began == pytest.approx(0.75)
    del machine.cpu[8]
    machine.goes_on(1.0)
    assert clock.now() - began == pytest.approx(0.75)
    machine.goes_on(1.0, 0.5)
    assert clock.now() - began == pytest.approx(1.25)


@pytest.mark.parametrize("process", [None, 99])
def test_it_is_the_walls_without_a_process_and_without_readings(machine, process):
    clock = machine.clock(process)
    began, since = clock.now(), clock.moment()
    machine.goes_on(3.0)
    assert clock.now() - began == pytest.approx(3.0)
    assert clock.left(since, 10.0) == pytest.approx(7.0)
    machine.goes_on(7.0)
    assert clock.past(since, 10.0, "one answer") == "it ran for 10 s, the limit of one answer"


def test_the_system_tells_what_a_process_and_its_children_have_used():
    if cpu_seconds(1) is None:
        pytest.skip("this system does not tell")
    work = "import time\nwhile time.process_time() < 0.3: pass\n"
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {work!r}])\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline()
        assert 0.29 < cpu_seconds(process.pid) < 5.0
        process.stdin.close()
    assert cpu_seconds(process.pid) is None
    clock, began = Clock(1), time.monotonic()
    before = clock.now()
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert clock.of_work
    assert 0.09 < clock.now() - before <= time.monotonic() - began


# --- limits ------------------------------------------------------------------------------------------


@pytest.fixture
def stranger(machine, monkeypatch):
    """A stranger who answers after so many looks of a second of the wall each, and works for a part of each."""
    one = object.__new__(Stranger)
    one._process, one._limits = STRANGER, Limits(seconds=10.0, seconds_in_all=25.0)
    one.clock = machine.clock()
    one._began = one.clock.moment()
    one._look = lambda: None

    def asked(looks, works):
        left = [looks]

        def receive(_):
            if not left[0]:
                return {}, []
            left[0] -= 1
            machine.goes_on(1.0, works)
            raise TimedOut

        one._channel = SimpleNamespace(receive=receive)
        return one._receive(one._limits.seconds)

    return asked


def test_a_busy_machine_ends_nobody(stranger):
    for _ in range(3):
        assert stranger(60, 0.125) == ({}, [])  # 7.5 working seconds in a minute, and again


@pytest.mark.parametrize(
    ("looks", "works", "said"),
    [
        ((1000,), 1.0, "it worked for 10 s, the limit of one answer, and was ended"),
        ((9, 9, 9), 1.0, "it worked for 25 s, the limit of all answers, and was ended"),
        ((1000,), 0.0, "it mostly waited for 80 s, 8 times the limit of one answer, and was ended"),
        ((79, 79, 79), 0.0, "it mostly waited for 200 s, 8 times the limit of all answers, and was ended"),
    ],
)
def test_who_works_or_waits_too_long_is_ended(stranger, machine, looks, works, said):
    began = machine.wall
    for some in looks[:-1]:
        stranger(some, works)
    with pytest.raises(Broken) as broken:
        stranger(looks[-1], works)
    assert (broken.value.found, broken.value.why) == ("timed out", said)
    assert machine.wall - began <= BACKSTOP * 25.0 + 1


@pytest.mark.parametrize(("device", "by_work"), [("cpu", True), ("cuda", False)])
def test_on_a_card_the_seconds_are_the_walls(tmp_path, device, by_work):
    class Met(Exception):
        pass

    def stranger(task):
        raise Met(task.by_work)

    with pytest.raises(Met, match=str(by_work)):
        judge(SimpleNamespace(stranger=stranger), tmp_path / "a.py", SCALE, device=device)


# --- what is asked -----------------------------------------------------------------------------------


def test_a_call_takes_its_working_seconds(machine):
    def ask(question, files=()):
        machine.goes_on(6.0, 0.75, 0.25)
        return Outputs(())

    remote = Remote(SimpleNamespace(ask=ask, clock=machine.clock()), SCALE, "cpu")
    workload = SCALE.check_on[0]
    remote.begin(workload)
    remote(*SCALE.make_inputs(workload, torch.Generator(), "cpu"))
    remote.close()
    assert remote.seconds == pytest.approx(1.0)


def sizes_asked(problem, busy, a_unit_s):
    """The sizes that an interpreted file is asked, where the wall goes `busy` times as fast as the work."""
    machine, asked = Machine(), []
    pace = Pace(problem, machine.clock().now)

    def ask(w):
        asked.append(w)
        took = a_unit_s * cost(problem, w)
        began = pace.now()
        machine.goes_on(busy * took, took)
        pace.note(w, pace.now() - began)

    ask(max(small(problem), key=partial(cost, problem)))
    in_turn, edges = InTurn(problem, ask, pace), Edges(problem, random.Random(0))
    for w in larger(problem, random.Random(0)):
        in_turn.ask(w)
    edges.ask_smallest(ask, pace)
    edges.ask_past(ask, pace)
    return asked, in_turn.late, edges.late, edges.not_asked


@pytest.mark.parametrize("problem", [ATTENTION, VECTOR_ADD], ids=lambda problem: problem.name)
@pytest.mark.parametrize("a_unit_s", [1e-3, 0.1])
def test_a_busy_machine_asks_the_same_sizes(problem, a_unit_s):
    idle = sizes_asked(problem, 1.0, a_unit_s)
    assert sizes_asked(problem, 7.0, a_unit_s) == idle
    assert len(idle[0]) > 5
