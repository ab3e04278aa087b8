"""Grading of a student's file: it runs in a process of its own, and what is right is known in this one alone.

Nothing of the file is loaded here. Inputs are handed over and answers come back in memory that both see; the truth
is worked out here, after the answers are in.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import importlib
import math
import random
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from course_judge.hidden_sizes import draw
from course_judge.host import Broken, CannotJudge, Host, Stranger, Task
from course_judge.protocol.limits import Limits
from course_judge.protocol.messages import Load, plain
from course_judge.protocol.verdict import escaped
from course_labs import hints
from course_labs.further_cases import Further, further_of
from course_labs.lab import ON_THE_CPU, Lab, LabError, load_file
from course_labs.protocol.messages import Case, Compile, LabTask, Launches, NotRun, shown
from course_labs.protocol.source_text import without_comments
from course_labs.verdict import NOT_BEGUN, NOT_RUN, RIGHT, Verdict

INPUT_FILL = 0x4B  # around the inputs: no input holds the number that these bytes make
# What the process that runs students' files has loaded before any of them, by door.
MODULES = {
    "python": ("course_labs.worker.lists",),
    "numpy": ("numpy", "course_labs.worker.arrays"),
    # torch loads its compiler when it is first asked who calls its operators: once is enough
    "triton": (
        "torch",
        "triton",
        "torch._dynamo",
        "course_labs.worker.triton_compile",
        "course_judge.worker.answers",
        "course_kernels.measure.check",
    ),
    "cuda": (
        "torch",
        "torch._dynamo",
        "course_judge.worker.answers",
        "course_kernels.measure.check",
        "course_kernels.cuda.compile",
        "course_kernels.cuda.launch",
    ),
    "compile": ("torch", "triton", "course_labs.worker.triton_compile"),
}
INTERPRETED = (
    "triton.runtime.interpreter",
    "course_judge.worker.interpreter",
    "triton.experimental.gluon.nvidia.hopper",  # what the first launch asks for
)
NO_GPU = "this machine has no GPU"
INTERPRETER = "in Triton's interpreter, which is not a card: docs/triton_for_numpy_people.py says in what"
CORRECT = "correct on every size tried"
LIBRARY_SECONDS = 0.3
DRAWN_MOST = 4096  # all dimensions of a size multiplied, where an interpreter or a loop walks over them
COMPILE_SECONDS = 20.0
LONGEST = 2000  # characters of what a student's process says
LONGEST_LIST = 400  # characters of a list that it was given


class CannotGrade(RuntimeError):
    """Error: grading could not begin, through no fault of the student's; one line."""


def grade(
    lab: Lab,
    files: Sequence[Path],
    door: str = "",
    *,
    seconds: float | None = None,
    needs_gpu: bool = False,
    compile: bool = False,
    environment: dict[str, str] | None = None,
) -> list[Verdict]:
    """Grade files of one lab, one after the other; see `grade_each`.

    Args:
        door: the door the files belong to; by their names if empty.
    Raises:
        LabError: no such file, or one that fits no door.
        CannotGrade: something that grading needs is missing on this machine.
    """
    tasks = [(lab, _door(lab, file, door), file) for file in files]
    return list(
        grade_each(tasks, seconds=seconds, needs_gpu=needs_gpu, compile=compile, environment=environment)
    )


def grade_each(
    tasks: Sequence[tuple[Lab, str, Path]],
    *,
    seconds: float | None = None,
    needs_gpu: bool = False,
    compile: bool = False,
    environment: dict[str, str] | None = None,
) -> Iterator[Verdict]:
    """Grade files of several labs; each verdict comes as soon as it is known.

    Args:
        tasks: (lab, door, file).
        seconds: the limit for each file, instead of its lab's own.
        needs_gpu: refuse to begin where torch cannot use a GPU.
        compile: where Triton only interprets, compile the kernels of a right file too; it takes a second or two.
        environment: variables for the processes that run the files, over those of this one.
    Returns:
        A verdict for every file, in order.
    Raises:
        CannotGrade: something that grading needs is missing on this machine.
    """
    graders: dict[tuple[Path, str], Grader] = {}
    for lab, door, file in tasks:
        if (lab.folder, door) not in graders:
            graders[lab.folder, door] = Grader(lab, door, needs_gpu, compile, environment or {})
        try:
            yield graders[lab.folder, door].verdict(file.resolve(), seconds or lab.seconds)
        except CannotJudge as error:
            raise CannotGrade(str(error)) from None


def _door(lab: Lab, file: Path, door: str) -> str:
    if door and door not in lab.doors:
        raise LabError(f"{lab.name} has no door {door!r}; it has {', '.join(lab.doors)}")
    found = door or lab.door_of(file)
    if found is None:
        fitting = ", ".join(lab.student_file(one) for one in lab.doors)
        raise LabError(f"{file.name}: {lab.name} takes {fitting}")
    if not file.is_file():
        raise LabError(f"there is no file {file}; the starter: nox -s lab -- {lab.name} --door {found}")
    return found


# --- the processes that run students' files ------------------------------------------------------

_HOSTS: dict[Any, Host] = {}


def _host(kind: str, gpu: bool, environment: Mapping[str, str], *also: str) -> Host:
    """Return a process that has loaded what files of one kind need; kept, for it takes seconds."""
    key = kind, gpu, also, tuple(sorted(environment.items()))
    if key not in _HOSTS:
        modules, more = MODULES[kind], {}
        if kind == "triton" and not gpu:
            modules, more = modules + INTERPRETED, {"TRITON_INTERPRET": "1"}
        elif kind in ("triton", "compile"):
            more = {"TRITON_INTERPRET": "0"}
        _HOSTS[key] = Host((*modules, *also), {**environment, **more}, wait=False)
    return _HOSTS[key]


@atexit.register
def _close() -> None:
    while _HOSTS:
        _HOSTS.popitem()[1].close()


def _ready(host: Host, doors: Sequence[str]) -> Host:
    """Return the host, once it has loaded all.

    Raises:
        CannotGrade: something is not installed.
    """
    try:
        host.ready()
    except CannotJudge as error:
        for key in [key for key, one in _HOSTS.items() if one is host]:
            del _HOSTS[key]
        raise CannotGrade(_missing(error.missing, str(error), doors)) from None
    return host


def _missing(module: str, said: str, doors: Sequence[str] = ()) -> str:
    """Return the words for a module that is not installed; `said` begins with its name."""
    if module == "triton":
        others = ", ".join(other for other in doors if other != "triton")
        return f"{said}: pip install triton" + (f", or take another door: {others}" if others else "")
    if module == "numpy":
        said = said.replace("numpy", "NumPy", 1)
    return f"{said}: nox -s grade installs it" if module else said


# --- one door of one lab -----------------------------------------------------------------------------


class Grader:
    """Grader for one door of one lab.

    Attributes:
        gpu: whether its files run on a card.
        tries: the sizes that are asked for, in their order.
        worker: the name of the module that answers in the process that runs a file.
    """

    worker = "course_labs.worker.file"

    def __init__(
        self,
        lab: Lab,
        door: str,
        needs_gpu: bool = False,
        compile: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare to grade files of a lab through one of its doors.

        Raises:
            CannotGrade: something that grading needs is missing on this machine.
        """
        self.lab, self.door, self._environment = lab, door, dict(environment or {})
        self.gpu = False
        self._size = ""
        self._compile = False
        if not lab.problem:
            by_hand = load_file(lab.folder / f"{'alone' if lab.is_alone else 'truth'}.py", "lab_truth")
            self.cases = by_hand.cases()
            self._drawn: Callable[[random.Random], Sequence[Any]] = getattr(by_hand, "drawn", lambda draw: [])
        elif door in ON_THE_CPU:
            self.has_gpu = needs_gpu  # as whoever started this found out; no torch is here to be asked
            self._host()  # it loads while we do
            self._load_truth()
        else:
            self._load_torch(needs_gpu)
            self._compile = compile and door == "triton" and not self.gpu
            if self._compile:
                _host("compile", False, self._environment)  # the same
            self._load_problem()
        self._further = self._drawn_further() if lab.problem else lambda draw: ()
        self.alone = type(self)(lab.alone, door, needs_gpu, compile, environment) if lab.alone else None

    def _drawn_further(self) -> Callable[[random.Random], Sequence[Further]]:
        """Return what draws the further cases of this lab."""
        return further_of(self.lab, self.door, slow=self.door == "triton" and not self.gpu)

    def _host(self) -> Host:
        return _host(self.door if self.lab.problem else "python", self.gpu, self._environment, self.worker)

    def _load_torch(self, needs_gpu: bool) -> None:
        may = self._environment.get("CUDA_VISIBLE_DEVICES") != "-1"
        if not needs_gpu and not may:
            self._host()  # it loads while we do
        try:
            import torch
        except ImportError as error:
            raise CannotGrade(_missing("torch", f"torch is not installed here ({error})")) from None
        self.has_gpu = self.gpu = may and torch.cuda.is_available()
        if needs_gpu and not self.gpu:
            raise CannotGrade(
                "this machine has a GPU, but torch cannot use it; CUDA_VISIBLE_DEVICES=-1 grades without"
            )

    def _load_truth(self) -> None:
        try:
            import numpy  # noqa: F401
        except ImportError as error:
            raise CannotGrade(_missing("numpy", f"numpy is not installed here ({error})")) from None
        from course_kernels.problem import Workload

        path = self.lab.folder / "truth.py"
        name = "ALONE" if self.lab.is_alone else "TRUTH"
        self.problem: Any = getattr(load_file(path, "lab_truth"), name, None)
        if self.problem is None:
            raise CannotGrade(f"{path} has no {name}, which a door {self.door} is judged by")
        self.own = self.tries = [Workload.parse(text) for text in self.lab.tries]

    def _load_problem(self) -> None:
        from course_kernels.problem import Workload

        if self.lab.is_alone:
            self.problem = load_file(self.lab.folder / "alone.py", "lab_alone").PROBLEM
        else:
            self.problem = importlib.import_module(f"course_kernels.{self.lab.problem}.problem").PROBLEM
        self.own = [Workload.parse(text) for text in self.lab.tries]
        self.tries = list(self.own)
        if self.gpu:
            self.tries += [w for w in self.problem.check_on if self._alike(w, self.tries)]

    def _alike(self, workload: Any, tries: list[Any]) -> bool:
        """Return True for one more size of the same kind.

        A further dimension asks for options that a student's function does not take, another type, or another value
        of what is a constant in the file, for another kernel.
        """
        same = workload.dims.keys() == tries[0].dims.keys()
        same = same and all(workload.dims[name] == tries[0].dims[name] for name in self.lab.fixed)
        return same and workload.dtype in {w.dtype for w in tries} and workload not in tries

    def verdict(self, file: Path, seconds: float) -> Verdict:
        """Verdict on one file; once it is right, on the lab's last task in it too.

        Args:
            seconds: the limit, for each of the two.
        Raises:
            CannotGrade, CannotJudge: something that grading needs is missing, or has ended.
        """
        verdict = self._own_verdict(file, seconds)
        if self.alone is None or verdict.found not in (RIGHT, NOT_RUN):
            return verdict
        alone = self.alone._own_verdict(file, seconds)
        if alone.found == "function missing" and not self.alone._is_begun(file):
            alone = Verdict(NOT_BEGUN, f"add {self.alone.lab.entry[0]} to your file")
        return dataclasses.replace(verdict, alone=alone)

    def _is_begun(self, file: Path) -> bool:
        """Return True for a .cu with a kernel of the name that cannot be found by it, for want of its extern "C"."""
        name = self.lab.entry[0]
        return self.door == "cuda" and bool(
            re.search(rf"__global__[^;{{]*\b{name}\s*\(", without_comments(file.read_text(encoding="utf-8")))
        )

    def _own_verdict(self, file: Path, seconds: float) -> Verdict:
        self._size = ""
        path = str(self.lab.folder.resolve() / "lab.toml")
        about = plain(LabTask(path, self.lab.is_alone, self.door, self.gpu, self._compile))
        limits = Limits(seconds=seconds, seconds_in_all=seconds)
        task = Task(file, self.lab.entry[0], limits=limits, worker=self.worker, more=about)
        with _ready(self._host(), tuple(self.lab.doors)).stranger(task) as stranger:
            try:
                stranger.ask(Load())
                verdict = self._examined(file, stranger)
                stranger.finish()
            except Broken as broken:
                verdict = hints.broken(broken.found, broken.why, self._size, self.door, broken.next)
            interpreted = self.door == "triton" and bool(self.lab.problem) and not self.gpu
            return dataclasses.replace(
                verdict, printed=stranger.printed, ran=INTERPRETER if interpreted else ""
            )

    def _examined(self, file: Path, stranger: Stranger) -> Verdict:
        if not self.lab.problem:
            return self._by_hand(stranger)
        if self.door in ON_THE_CPU:
            from course_labs.remote import RemoteArrays

            arrays = RemoteArrays(stranger, lists=self.door == "python")
            refusal = self._refusal_of_arrays(arrays)
            refused = self._try_sizes(refusal) or self._weighed(arrays) or self._shared_out(arrays)
            if refused := refused or self._try_what_is_drawn(refusal):
                return refused
        else:
            if self.door == "cuda" and (why := stranger.ask(NotRun()).why):
                return Verdict(NOT_RUN, escaped(why, LONGEST))
            from course_judge.remote import Remote

            function = Remote(stranger, self.problem, "cuda" if self.gpu else "cpu", INPUT_FILL)
            try:
                refusal = self._refusal_of_tensors(file, function)
                if refused := self._try_sizes(refusal) or self._try_what_is_drawn(refusal):
                    return refused
                if self.gpu and self.lab.time:
                    return self._timed(function)
            finally:
                function.close()
            if self._compile and (said := self._compiled(file, stranger)):
                return Verdict("does not compile", said, next=self._after_compiling(said))
        if self.gpu:
            return Verdict(RIGHT, f"{CORRECT}; no speed claim: this task is not timed")
        road = {"numpy": "NumPy", "python": "Python"}.get(self.door)
        why = f"{road} runs on the CPU" if self.has_gpu else NO_GPU
        return Verdict(RIGHT, f"{CORRECT}; no speed claim: {why}")

    # --- sizes -------------------------------------------------------------------------------------

    def _try_sizes(self, refusal: Callable[..., Verdict | None]) -> Verdict | None:
        """Try every announced size, and once more with larger inputs where the lab asks for it.

        They are asked with the same numbers each time, so that a complaint can be come back to.

        Args:
            refusal: (problem, workload, seed) -> what a file is refused for, None where it is right.
        Returns:
            What the smallest size shows with everyday numbers; else what only hard values show; None for a right file.
        """
        times = 1

        def make_inputs(*arguments: Any) -> Any:
            inputs = self.problem.make_inputs(*arguments)
            return tuple(x * times for x in inputs) if times > 1 else inputs

        def max_error(workload: Any) -> float:
            # The rounding of a product grows with both of its factors.
            return float(times**2 * self.problem.max_error(workload))

        problem = dataclasses.replace(self.problem, make_inputs=make_inputs, max_error=max_error)
        again = [w for w in self.tries if self.lab.magnify and w in self.own]
        found = None
        for workload, times in [*((w, 1) for w in self.tries), *((w, self.lab.magnify) for w in again)]:
            self._size = size_of(workload) + (f", inputs times {times}" if times > 1 else "")
            refused = refusal(problem, workload, 0)
            if refused and not found:
                # What NaN and infinities bring to light is told where ordinary numbers bring nothing to light, at no
                # size: a race that comes out right by chance must not be called a lost infinity.
                found, problem = refused, dataclasses.replace(problem, hard=lambda workload: ())
                refused = refusal(problem, workload, 0)
            if refused:
                return refused
        return found

    def _try_what_is_drawn(self, refusal: Callable[..., Verdict | None]) -> Verdict | None:
        """Try what nobody announced, with numbers that nobody knows; only a file that is right so far sees it.

        Args:
            refusal: (problem, workload, seed, once, exact) -> what a file is refused for, None where it is right.
        """
        for case in self._further(random.Random(secrets.randbits(64))):
            workload = self._workload(case.size)
            self._size = size_of(workload) + case.said
            how = {"once": True, "exact": case.exact}
            if refused := refusal(case.of(self.problem), workload, secrets.randbits(32), **how):
                return refused
        for workload in self._unannounced(random.Random(secrets.randbits(64))):
            self._size = size_of(workload)
            if refused := refusal(self.problem, workload, secrets.randbits(32)):
                return refused
        return None

    def _workload(self, text: str) -> Any:
        from course_kernels.problem import Workload

        return Workload.parse(text)

    def _unannounced(self, rng: random.Random) -> tuple[Any, ...]:
        """Sizes like those of the lab, and none of them."""
        problem: Any = self.problem
        if not self.gpu:
            # No more of them at once than the lab itself asks for: an interpreter, and a loop, have time for that.
            counts = [_count(workload) for workload in self.own]
            most = max(min(counts), min(max(counts), DRAWN_MOST))
            problem = SimpleNamespace(
                name=self.lab.problem, check_on=(), reads_bytes=_count, writes_bytes=_count,
                flops=lambda w: 0 if _count(w) <= most else math.inf,
            )  # fmt: skip
        try:
            return draw(problem, self.own, rng, fixed=self.lab.fixed)
        except ValueError:
            return ()  # no dimension of the lab's is free

    def _weighed(self, function: Any) -> Verdict | None:
        """Refusal of a right file whose answer to a long question is wrong, or that holds more for it than it may."""
        if self.door != "numpy" or not self.lab.held_on:
            return None
        workload, held = self._workload(self.lab.held_on), 0

        def weighing(*inputs: Any, **options: Any) -> Any:
            nonlocal held
            outputs, held = function.weigh(inputs, options)
            return outputs

        weighing.begin = function.begin  # type: ignore[attr-defined]
        self._size = size_of(workload)
        refused = self._refusal_of_arrays(weighing)(self.problem, workload, secrets.randbits(32), once=True)
        if refused or held <= self.lab.held_bytes:
            return refused
        most = f"{self.lab.held_bytes / 1e6:.3g} MB is the most"
        return Verdict("holds too much", f"it holds {held / 1e6:.3g} MB at once, and {most}", self._size)

    def _shared_out(self, function: Any) -> Verdict | None:
        """Refusal of a right file whose programs do not have a block each; asked where a list fills several.

        Some programs are left out. Who needs neither the first nor the others has not shared the work out between them.
        """
        most = self.lab.at_once
        fills_several = [w for w in self.own if self.door == "numpy" and 0 < most < _count(w)]
        if not fills_several:
            return None
        import numpy as np

        from course_labs.check import are_right, is_right
        from course_labs.protocol.array_memory import EVERY, FIRST, OTHERS

        workload = min(fills_several, key=_count)
        self._size = size_of(workload)
        inputs = self.problem.make_inputs(workload, np.random.default_rng(0))

        def run(programs: str) -> tuple[Any, int, bool]:
            given = tuple(array.copy() for array in inputs)
            return function.with_programs(programs, given, self.problem.options(workload))  # type: ignore[no-any-return]

        _, started, returned = run(EVERY)
        program, entry, numbers = self.lab.program, self.lab.entry[0], _count(workload)
        if started < 1 or returned:
            return hints.not_in_blocks(program, entry, started, self._size)
        if started * most < numbers or 2 * started > numbers:
            return hints.blocks_of_a_wrong_size(program, started, numbers, most, self._size)
        alone, others = (run(kept)[0] for kept in (FIRST, OTHERS))
        for kept, outputs in ((FIRST, alone), (OTHERS, others)):
            if is_right(self.problem, workload, inputs, outputs):
                return hints.not_its_own_block(program, started, kept, self._size)
        # What the first has not written is the others' to write, also where they are started without it.
        for of_first, of_others in zip(
            *(are_right(self.problem, workload, inputs, outputs) for outputs in (alone, others)), strict=True
        ):
            if of_first.any() and not (of_first | of_others).all():
                return hints.not_by_its_number(program, started, self._size)
        return None

    def _refusal_of_arrays(self, function: Any) -> Callable[..., Verdict | None]:
        from course_labs.check import WrongArray, check

        def refusal(
            truth: Any, workload: Any, seed: int, once: bool = False, exact: bool = False
        ) -> Verdict | None:
            function.begin()
            try:
                check(truth, workload, function, seed, once=once, exact=exact)
            except WrongArray as error:
                return hints.wrong(str(error), self._size, self.door)
            return None

        return refusal

    def _refusal_of_tensors(self, file: Path, function: Any) -> Callable[..., Verdict | None]:
        from course_judge.judge import RemoteCheck
        from course_judge.promises import Promise
        from course_kernels.measure.check import WrongResult
        from course_kernels.measure.competitor import Competitor

        def refusal(
            problem: Any, workload: Any, seed: int, once: bool = False, exact: bool = False
        ) -> Verdict | None:
            function.begin(workload)
            field = {"it": Competitor(file.name, problem, function)}
            try:
                check = RemoteCheck(function, field, workload, seed, function.device)
                check.promised(
                    Promise("", lambda drawn, inputs: inputs, exact=exact)
                ) if once else check.before()
            except WrongResult as error:
                return hints.wrong(error.why, self._size, self.door)
            return None

        return refusal

    # --- once all is right -------------------------------------------------------------------------

    def _timed(self, function: Any) -> Verdict:
        from course_judge.timing import NoTime, Times, of_peak
        from course_kernels.measure import SensorsUnavailable, compare
        from course_kernels.measure.check import WrongResult
        from course_kernels.measure.competitor import competitor_named
        from course_kernels.problem import Workload

        workload = Workload.parse(self.lab.time)
        self._size = size_of(workload)
        draw = random.Random(secrets.randbits(64))
        try:
            timed = Times(function, self.problem, workload, draw).taken()
        except WrongResult as error:
            return hints.wrong(error.why, self._size, self.door)
        except NoTime as error:
            return Verdict(RIGHT, f"{CORRECT}; no speed claim: {error}")
        lines: tuple[str, ...] = ()
        if self.lab.beside:
            try:
                library = compare(
                    {"it": competitor_named(self.lab.beside)}, workload, seconds=LIBRARY_SECONDS
                )["it"]
            except SensorsUnavailable as error:
                return Verdict(RIGHT, f"{CORRECT}; no speed claim: {str(error).splitlines()[0]}")
            lines = (f"the library's {self.lab.beside}: {library.median_us:.1f} µs{of_peak(library)}",)
        return Verdict(RIGHT, f"{CORRECT}; {timed.text(self._size)}", lines=lines)

    def _compiled(self, file: Path, stranger: Stranger) -> str:
        """Complaint of the compiler for a card about a right file; empty if it takes it, or does not answer."""
        launches = stranger.ask(Launches()).launches
        host = _ready(_host("compile", False, self._environment), tuple(self.lab.doors))
        limits = Limits(seconds=COMPILE_SECONDS, seconds_in_all=2 * COMPILE_SECONDS)
        task = Task(file, "", limits=limits, worker="course_labs.worker.triton_compile")
        with contextlib.suppress(Broken), host.stranger(task) as compiling:
            return escaped(compiling.ask(Compile(launches)).said, LONGEST)
        return ""

    def _after_compiling(self, said: str) -> str:
        """Hint for code that the interpreter ran and the compiler refuses: a name it lacks is one of Python's."""
        return (
            hints.advice_after(said, self.door) if "is not defined" not in said else ""
        ) or hints.NEXT_OF_PYTHON_IN_A_KERNEL

    # --- a lab by hand -----------------------------------------------------------------------------

    def _by_hand(self, stranger: Stranger) -> Verdict:
        """Verdict on a file by cases: those of the lab, and then others, with numbers that nobody announced."""
        cases = [*self.cases, *self._drawn(random.Random(secrets.randbits(64)))]
        for case in cases:
            given = case["with"]
            call = f"{case['call']}({', '.join(f'{name}={_told(value)}' for name, value in given.items())})"
            self._size = case["job"]
            answer = stranger.ask(Case(case["call"], given))
            expected, got = case["expect"], answer.value
            told = escaped(answer.strange) or shown(got)
            text = f"{call}: expected {shown(expected)}, got {told[:57] + '...' if len(told) > 60 else told}"
            if got is None or isinstance(got, str) is not isinstance(expected, str):
                none = got is None and not answer.strange
                next_ = hints.NEXT_OF_NONE if none else hints.NEXT_BY_HAND
                return Verdict("wrong result", text, self._size, next_)
            if not agrees(got, expected, case.get("within", 1e-6)):
                return Verdict("wrong", text, self._size, hints.NEXT_BY_HAND)
        why = f"correct in all {len(cases)} cases; no speed claim: this lab is done by hand"
        return Verdict(RIGHT, why)


def _told(value: Any) -> str:
    """Return an argument as a complaint has it: of a long list its two ends."""
    text = repr(value)
    if not isinstance(value, list) or len(text) <= LONGEST_LIST:
        return text
    return f"{text[: LONGEST_LIST // 2]} … {text[-LONGEST_LIST // 4 :]}"


def _count(workload: Any) -> int:
    """Return all sizes of a workload, multiplied."""
    return math.prod(size for size in workload.dims.values() if not isinstance(size, bool))


def size_of(workload: Any) -> str:
    """Return a workload as a student reads it: "N=1000 float32"."""
    dims = [
        f"{name}={value}" if not isinstance(value, bool) else name
        for name, value in workload.dims.items()
        if value is not False
    ]
    return " ".join([*dims, workload.dtype])


def agrees(got: Any, expected: Any, within: float) -> bool:
    """Return True if a student's value is right: exactly, or for a float as near as asked."""
    if isinstance(expected, float):
        with contextlib.suppress(OverflowError):  # a whole number past every float
            return math.isclose(got, expected, rel_tol=within)
        return False
    return bool(got == expected)
