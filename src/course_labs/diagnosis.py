"""Diagnosis of several kernels, each slow for one reason: the reason, the counter that proves it, the kernel anew.

Such a lab has a folder `given/` with the slow kernels, and a `truth.py` that says what each waits for. The student's
file says it in FOUND, a table that is read and never run. Reasons come first, then counters, then the kernels: one
that is right and comes with a wrong reason is not looked at, since it was luck.

What was counted on a card is handed out from the record of the profiler's GPU tests. Where there is no such record,
no value is asked for.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import random
import re
import secrets
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from course_judge.host import CannotJudge
from course_labs import experiments, hints
from course_labs import grade as usual
from course_labs.further_cases import Further
from course_labs.grade import CORRECT, LIBRARY_SECONDS, CannotGrade, Grader, size_of
from course_labs.lab import FOLDER, GIVEN, Lab, has_given_kernels, load_file
from course_labs.starter_files import keep_and_replace
from course_labs.verdict import NOT_BEGUN, NOT_RUN, RIGHT, Verdict

WORKER = "course_labs.worker.suspects"
TABLE = "FOUND"  # in the student's file
ENTRY = "fixed_{}"  # the student's function for a kernel
RECORD, KEY = "tests/profile.json", "lab/{}"  # what the GPU tests of the profiler said of the lab's kernels
WITHIN = 0.01  # of a value that was copied by hand, three digits long or more
# Bytes of device memory; as course_kernels/measure/counters.py has them, which brings torch along.
READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
# A kernel that needs more than this share of the given one's has not been cured: well past what two runs differ by.
GAIN = 0.8
AWAITED = (
    "the counters' values await a card: reasons and counters are graded by name, and no value is asked for"
)

NEXT = {
    "not filled in": "the starter has the form; nox -s lab says how to see it again.",
    "wrong reason": "which wait, or which full unit, would this kernel show? Name that, and ask its counter.",
    "wrong counter": "which counter must move once the cause is gone, and stays where it is for every other cure?",
    "wrong value": "look it up in the table of this kernel, and mind its neighbours: the names differ in one word.",
    "no gain": "the answer is right, and the time is the old one. Did your change touch what you named?",
}


@dataclass(frozen=True)
class Suspect:
    """One of the kernels.

    Attributes:
        name: what the student calls it.
        given: its file in `given/`.
        planted: its twin in tests/profile/lab/, whose counters are recorded.
        problem: what it computes, a folder of course_kernels.
        reason: what it waits for, one of the profiler's names.
        proofs: counters of which each proves it alone.
        tries: sizes for a machine without a GPU.
        further: draws further sizes, with numbers that nobody announced, and further cases.
        shorter: whether an answer may do with less arithmetic than the problem's words: bytes alone are a floor then.
    """

    name: str
    given: str
    planted: str
    problem: str
    reason: str
    proofs: tuple[str, ...]
    tries: tuple[str, ...]
    shorter: bool = False
    further: Callable[[random.Random], Sequence[str | Further]] = lambda draw: ()

    @property
    def entry(self) -> str:
        """The student's function for it."""
        return ENTRY.format(self.name)


# --- what was counted on a card --------------------------------------------------------------------


def recorded(root: Path, suspects: Sequence[Suspect]) -> dict[str, dict[str, Any]] | None:
    """Return the profiler's recorded words on each, by the suspects' names; None while no record has all of them.

    The build looks whether a record is sealed and fresh; here it is only read.
    """
    for path in sorted((root / "records").glob(f"*/{RECORD}")):
        tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
        told = {key: value for test in tests for key, value in test.get("properties", {}).items()}
        keys = {one.name: KEY.format(one.planted) for one in suspects}
        if set(keys.values()) <= set(told):
            return {name: json.loads(told[key]) for name, key in keys.items()}
    return None


def counters_of(told: Mapping[str, Any]) -> dict[str, float]:
    """Return every counter of one kernel, by its name; the bytes of device memory are those of the whole call."""
    reading = told["reading"]
    more = {READ: reading["read_bytes"], WRITE: reading["write_bytes"]}
    known = {name: float(value) for name, value in more.items() if value is not None}
    return {**known, **{name: float(value) for name, value in reading["counters"].items()}}


def table(
    suspects: Sequence[Suspect], counters: Mapping[str, str], told: Mapping[str, Mapping[str, Any]] | None
) -> str:
    """Table to hand out: the counters of every kernel, without what the profiler's rules say of it.

    Args:
        counters: what each counter says.
        told: what was recorded of each kernel; None for a table of the counters' names.
    """
    if told is None:
        return "\n".join(
            ["The counters that prove a reason. Their values await a card.", "", *_rows({}, counters), ""]
        )
    lines = ["What was timed and counted of the kernels, as they were given.", ""]
    for one in suspects:
        of = told[one.name]
        reading = of["reading"]
        facts = {
            "time, microseconds": reading["time_us"],
            "floor, microseconds": reading["floor_us"],
            "share of peak": reading["of_peak"],
            "bytes that must move": (reading["least_read_bytes"] or 0) + (reading["least_write_bytes"] or 0),
            "kernels of a call": reading["launches"],
        }
        size = ", ".join(f"{key}={value}" for key, value in of["workload"].items())
        lines += [f"{one.name}: {size}, on {of['gpu']}; its floor is set by {reading['bound']}"]
        lines += [f"  {value:<14.6g} {what}" for what, value in facts.items() if value is not None]
        lines += [*_rows(counters_of(of), counters), ""]
    return "\n".join(lines)


def _rows(values: Mapping[str, float], counters: Mapping[str, str]) -> list[str]:
    """Return a line for each counter: its value, its name and what it says."""
    wide = max(map(len, counters))
    shown = {name: f"{values[name]:.6g}" if name in values else "-" for name in counters}
    return [f"  {shown[name]:<14} {name:<{wide}}  {what}" for name, what in counters.items()]


def hand_out(lab: Lab, root: Path) -> list[str]:
    """Write the table beside the student's file; lines for the student."""
    truth = load_file(lab.folder / "truth.py", "lab_truth")
    told = recorded(root, truth.SUSPECTS)
    path = root / FOLDER / f"{lab.name}_counters.txt"
    text = table(truth.SUSPECTS, truth.COUNTERS, told)
    keep_and_replace(path, text.encode(), "before-the-table")
    what = "the counters' names" if told is None else "what was counted"
    return [f"{what}:  {path.relative_to(root).as_posix()}", *([AWAITED] if told is None else [])]


def completed(lab: Lab, root: Path) -> Callable[[str], str]:
    """Return a function that puts the recorded values into a file of the lab, behind the counters that it names.

    No file holds them: they are measured, and a new record has others. Without a record nothing is put in.
    """
    suspects: Sequence[Suspect] = load_file(lab.folder / "truth.py", "lab_truth").SUSPECTS
    told = recorded(root, suspects)

    def complete(text: str) -> str:
        for one in suspects if told else ():
            values = counters_of(told[one.name]) if told else {}

            def put(found: re.Match[str], values: Mapping[str, float] = values) -> str:
                value = values.get(found["counter"])
                return found[0] if value is None else f"{found['line']}{value:.6g}),"

            line = rf'(?P<line>^    "{one.name}": \("[^"\n]*", "(?P<counter>[^"\n]+)", )None\),'
            text = re.sub(line, put, text, flags=re.MULTILINE)
        return text

    return complete


# --- what the student found ------------------------------------------------------------------------


def found_in(file: Path, suspects: Sequence[Suspect]) -> dict[str, tuple[Any, ...]] | Verdict:
    """Return the table FOUND of a file, a line for each kernel; or what is wrong with its form."""
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        return Verdict("syntax error", f"line {error.lineno}: {error.msg}")
    except ValueError as error:
        return Verdict("syntax error", str(error))
    given = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(name, ast.Name) and name.id == TABLE for name in node.targets)
    ]
    if not given:
        return Verdict("not filled in", f"your file has no {TABLE} = {{…}} with a line for each kernel")
    try:
        found = ast.literal_eval(given[-1])
    except (ValueError, TypeError, SyntaxError):
        found = None
    if not isinstance(found, dict):
        return Verdict(
            "not filled in", f"{TABLE} is no table of texts and numbers: it is read, and never run"
        )
    for one in suspects:
        line = found.get(one.name)
        if not (
            isinstance(line, tuple | list)
            and len(line) == 3
            and all(isinstance(text, str) for text in line[:2])
        ):
            why = f'{TABLE}["{one.name}"] is {line!r}: expected ("a reason", "a counter", a number or None)'
            return Verdict("not filled in", why, one.name)
    return {one.name: tuple(found[one.name]) for one in suspects}


class SuspectsGrader:
    """Grader for one such lab."""

    def __init__(
        self,
        lab: Lab,
        needs_gpu: bool = False,
        compile: bool = False,
        environment: Mapping[str, str] | None = None,
        root: Path | None = None,
    ) -> None:
        """
        Args:
            root: where the records lie; the repository of the lab.
        """
        self.lab = lab
        self.truth = load_file(lab.folder / "truth.py", "lab_truth")
        self.suspects: tuple[Suspect, ...] = self.truth.SUSPECTS
        self._told = recorded(root or lab.folder.parents[1], self.suspects)
        self._how = (needs_gpu, compile, dict(environment or {}))
        self._graders: list[Fix] = []
        self._alone: Cause | None = None

    def verdict(self, file: Path, seconds: float) -> Verdict:
        """Return the first thing that is wrong, in the order of the lab.

        Reasons, counters, values, kernels, the last task.

        Raises:
            CannotGrade, CannotJudge: something that grading needs is missing, or has ended.
        """
        found = found_in(file, self.suspects)
        if isinstance(found, Verdict):
            return _advised(found)
        for look in (self._reason, self._counter, self._value):
            for one in self.suspects:
                if refused := look(one, *found[one.name]):
                    return _advised(refused)
        return self._fixes(file, seconds)

    # --- on paper

    def _reason(self, one: Suspect, reason: str, *_: Any) -> Verdict | None:
        if reason == one.reason:
            return None
        names = self.truth.THRESHOLDS
        if not reason:
            return Verdict("wrong reason", "none is given yet", one.name)
        if reason not in names:
            like = get_close_matches(reason, names, 1)
            meant = f"; did you mean {like[0]!r}?" if like else ""
            return Verdict("wrong reason", f"{reason!r} is none of the profiler's names{meant}", one.name)
        why = f"{reason!r} is not what it waits for, and no fix is looked at before its reason is right"
        return Verdict("wrong reason", why, one.name, f"it would show like this: {names[reason]}. Does it?")

    def _counter(self, one: Suspect, _: str, counter: str, *__: Any) -> Verdict | None:
        if counter in one.proofs:
            return None
        if not counter:
            return Verdict("wrong counter", "none is given yet", one.name)
        if counter not in self.truth.COUNTERS:
            like = get_close_matches(counter, self.truth.COUNTERS, 1)
            meant = f"; did you mean {like[0]}?" if like else ""
            return Verdict("wrong counter", f"{counter!r} is no counter of the table{meant}", one.name)
        return Verdict("wrong counter", f"{counter} does not prove {one.reason!r}", one.name)

    def _value(self, one: Suspect, _: str, counter: str, value: Any) -> Verdict | None:
        if self._told is None:
            return None
        due = counters_of(self._told[one.name]).get(counter)
        if due is None:  # a card that does not count it
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Verdict("wrong value", f"{counter}: no number is given yet", one.name)
        if not abs(value - due) <= WITHIN * abs(due):
            return Verdict("wrong value", f"{counter}: the table does not say {value:g}", one.name)
        return None

    # --- and by running

    def _fixes(self, file: Path, seconds: float) -> Verdict:
        needs_gpu, compile, environment = self._how
        try:
            if not self._graders:
                self._graders = [
                    Fix(one, fix_of(self.lab, one), self.truth, needs_gpu, compile, environment)
                    for one in self.suspects
                ]
            verdicts = list(self._each(file, seconds))
        except CannotGrade as missing:
            if needs_gpu:
                raise
            return Verdict(NOT_RUN, f"six causes named and proved; the kernels are not run: {missing}")
        last = verdicts[-1]
        if last.found != RIGHT:
            return last
        gpu = self._graders[0].gpu
        gain = "each with its gain" if gpu else "no gain is graded: this machine has no GPU"
        why = f"six causes named and proved, six kernels {CORRECT}; {gain}"
        lines = tuple(line for verdict in verdicts for line in verdict.lines)
        awaited = (AWAITED,) if self._told is None else ()
        return dataclasses.replace(
            Verdict(RIGHT, why, lines=(*lines, *awaited)),
            alone=self._last_task(file, seconds, environment),
            printed=last.printed,
        )

    def _each(self, file: Path, seconds: float) -> Iterator[Verdict]:
        """Yield a verdict for each kernel, up to the first that is wrong."""
        for one, grader in zip(self.suspects, self._graders, strict=True):
            verdict = grader.verdict(file, seconds)
            on = f"{one.name}, {verdict.on}" if verdict.on else one.name
            yield _advised(dataclasses.replace(verdict, on=on))
            if verdict.found != RIGHT:
                return

    def _last_task(self, file: Path, seconds: float, environment: Mapping[str, str]) -> Verdict | None:
        if self.lab.alone is None:
            return None
        if self._alone is None:
            self._alone = Cause(self.lab.alone, "python", environment=environment)
        verdict = self._alone.verdict(file, seconds)
        if verdict.found == "function missing":
            return Verdict(NOT_BEGUN, f"add {self.lab.alone.entry[0]} to your file")
        return verdict


def _advised(verdict: Verdict) -> Verdict:
    """Return the verdict with what to try next, where the usual list of complaints has none."""
    if verdict.found in NEXT and not verdict.next:
        return dataclasses.replace(verdict, next=NEXT[verdict.found])
    return verdict


def fix_of(lab: Lab, one: Suspect) -> Lab:
    """Return the kernel anew, as a lab of its own."""
    path = lab.folder / GIVEN / "profile.toml"
    sizes = tomllib.loads(path.read_text(encoding="utf-8"))
    return dataclasses.replace(
        lab,
        problem=one.problem,
        entry=(one.entry,),
        tries=one.tries,
        time=sizes[one.given]["size"],
        doors={"triton": ""},
        alone=None,
    )


class Fix(Grader):
    """Grader of one kernel: right or wrong, and on a card whether it gained anything."""

    worker = WORKER

    def __init__(
        self,
        one: Suspect,
        lab: Lab,
        truth: Any,
        needs_gpu: bool = False,
        compile: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._given, self._truth = lab.folder / GIVEN / one.given, truth
        self._name, self._shorter, self._sizes = one.name, one.shorter, one.further
        super().__init__(lab, "triton", needs_gpu, compile, environment)

    def _drawn_further(self) -> Callable[[random.Random], Sequence[Further]]:
        return lambda draw: [
            case if isinstance(case, Further) else Further(case) for case in self._sizes(draw)
        ]

    def _timed(self, function: Any) -> Verdict:
        from course_judge.timing import NoTime, Times
        from course_kernels.measure import SensorsUnavailable, compare
        from course_kernels.measure.check import WrongResult
        from course_kernels.problem import Workload

        workload = Workload.parse(self.lab.time)
        self._size = size_of(workload)
        draw = random.Random(secrets.randbits(64))
        try:
            problem = self.problem
            if self._shorter:
                problem = dataclasses.replace(problem, flops=lambda w: 1)
            timed = Times(function, problem, workload, draw).taken()
            given = compare({"it": self._truth.competitor(self._given)}, workload, seconds=LIBRARY_SECONDS)[
                "it"
            ]
        except WrongResult as error:
            return hints.wrong(error.why, self._size, self.door)
        except (NoTime, SensorsUnavailable) as error:
            line = f"{self._name}: no gain is graded: {str(error).splitlines()[0]}"
            return Verdict(RIGHT, CORRECT, lines=(line,))
        its_us = timed.events_us if timed.agrees or not timed.is_long else timed.wall_us
        return gained(self._name, self._size, given.median_us, its_us)


def gained(name: str, size: str, given_us: float, its_us: float) -> Verdict:
    """Verdict on the gain: right if the kernel is quicker than the given one by more than chance."""
    times = f"{given_us:.1f} µs as it was given, {its_us:.1f} µs now"
    if its_us > GAIN * given_us:
        return Verdict("no gain", times, size)
    return Verdict(RIGHT, CORRECT, lines=(f"{name}: {times}",))


class Cause(Grader):
    """Grader of the last task, a function in plain Python in a file with kernels."""

    worker = WORKER

    def _host(self) -> Any:
        environment = {**self._environment, "CUDA_VISIBLE_DEVICES": "-1"}
        return usual._host("triton", False, environment, self.worker)


def grade_each(
    tasks: Sequence[tuple[Lab, str, Path]],
    *,
    seconds: float | None = None,
    needs_gpu: bool = False,
    compile: bool = False,
    environment: dict[str, str] | None = None,
) -> Iterator[Verdict]:
    """Grade files of any labs, those of this kind among them; as `course_labs.grade.grade_each`."""
    graders: dict[Path, SuspectsGrader] = {}
    for lab, door, file in tasks:
        if not has_given_kernels(lab):
            for verdict in usual.grade_each(
                [(lab, door, file)],
                seconds=seconds,
                needs_gpu=needs_gpu,
                compile=compile,
                environment=environment,
            ):
                yield experiments.also(lab, file, verdict, environment)
            continue
        if lab.folder not in graders:
            graders[lab.folder] = SuspectsGrader(lab, needs_gpu, compile, environment)
        try:
            yield graders[lab.folder].verdict(file.resolve(), seconds or lab.seconds)
        except CannotJudge as error:
            raise CannotGrade(str(error)) from None
