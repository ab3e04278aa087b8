"""The judge: draws inputs, asks a stranger's process, and decides from what it hands over."""

from __future__ import annotations

import dataclasses
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from course_judge.contract import ONE_TYPE
from course_judge.cpu_sizes import (
    SLACK,
    InTurn,
    Pace,
    cost,
    drawn,
    is_affordable,
    larger,
    names_triton,
    of_long_sums,
    of_many_numbers,
    of_two_long,
    of_whole_tiles,
    past_a_group,
    ran,
    reached,
)
from course_judge.drawn import Promise, Tensors, kept_alike
from course_judge.edge_sizes import Edges, of_other_types
from course_judge.hidden_sizes import draw, small
from course_judge.host import Broken, Host, Stranger, Task
from course_judge.identity import hash_of, hash_of_judge
from course_judge.nearly_alike import PLACES, changed, may_change, on_a_grid, one_and_the_same, sizes_alike
from course_judge.promises import case, cases_on, ends_of, ingredients, promises, shorter
from course_judge.protocol.messages import Load
from course_judge.protocol.verdict import AFTER, RIGHT, Evidence, Taken, Verdict, refused
from course_judge.remote import HELD_BYTES, MOST_HELD_BYTES, Remote
from course_judge.timing import NoTime, Times
from course_kernels.measure import messages
from course_kernels.measure.check import BITS, Check, WrongResult
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Problem, Workload

# Further questions on one size when all seems right: nobody knows beforehand how many, or on which.
AGAIN = (25, 120)
AGAIN_SECONDS = 2.0  # none is begun later; the least of them are always asked
LATER_SECONDS = (0.2, 0.4)  # then the answers that are still held are looked at
# And on a size whose answers are larger than those that are held else: how many, of how many bytes, for how long.
AGAIN_LARGE, LARGE_BYTES, AGAIN_LARGE_SECONDS = (6, 12), (HELD_BYTES + 1, MOST_HELD_BYTES), 1.0
AWHILE_SECONDS = (0.006, 0.012)  # after a larger size, whose inputs are then looked at again
LEAST_HARD_COST, HARD_COST = 0.1, 16.0  # of sizes that are asked with NaN and infinities, too
FEW_SIZES = 3  # of those that read least, with a case that is for them alone
PROMISED_COST = 8.0  # the largest size that a case of `promises` is tried on
ALIKE_COST = 0.5  # and that is asked with inputs which are nearly those of the question before
# Of a file that an interpreter runs: what a call may take of a size that is drawn, or tried with special values, or
# asked again and again; and for how long special values are tried on more than one size each.
DRAWN_SECONDS, SPECIAL_SECONDS, QUICK_SECONDS = 1.0, 0.8, 0.1
SPECIALS_SECONDS = 12.0
LONG_SECONDS = 20.0  # a call that may take longer is made once
# Of a size that would take longer still: programs of each launch that are run; what all may take if those are wrong.
FEW_PROGRAMS, IN_FULL_SECONDS = 24, 60.0


def judge(
    host: Host,
    file: Path,
    problem: Problem,
    *,
    workloads: Sequence[Workload] = (),
    device: str = "cpu",
    time_on: Workload | None = None,
    task: Task | None = None,
    seed: int | None = None,
) -> Verdict:
    """Judge one file.

    Args:
        host: what starts its process.
        file: defines a function of the problem's name, called as the problem's kernels are.
        workloads: the sizes announced; without them those of the problem, on the CPU as `cpu_sizes` says.
        device: "cpu" or "cuda".
        time_on: what is timed, on a card.
        task: how its process is started; without it as the problem says, with the usual limits.
        seed: for tests; otherwise nobody knows it.
    """
    task = dataclasses.replace(task or Task(file, problem.name), by_work=device == "cpu")
    rng = random.Random(secrets.randbits(64) if seed is None else seed)
    more = None
    interpreted = device == "cpu" and names_triton(file)
    with host.stranger(task) as stranger:
        pace = Pace(problem, stranger.clock.now) if interpreted else None
        if not workloads and device == "cpu":
            more = _More(problem, rng, pace)
        workloads = tuple(workloads) or (problem.check_on if device == "cuda" else small(problem))
        examination = _Examination(problem, device, rng, pace)
        try:
            stranger.ask(Load())
            verdict = examination.of(stranger, workloads, time_on, more)
            stranger.finish()
        except Broken as broken:
            verdict = Verdict(broken.found, broken.why, examination.size)
        where = ran(interpreted) if device == "cpu" else f"on {torch.cuda.get_device_name()}"
        cases = tuple(examination.cases)
        evidence = Evidence(hash_of(file), hash_of_judge(problem), where, cases, examination.launches)
        printed = stranger.printed
        return dataclasses.replace(verdict, printed=printed, not_held=stranger.not_held, evidence=evidence)


# Problems whose answers are rounded one by one: what they are off by has either sign, and none on average.
ROUNDED = (
    *("bias_gelu", "decode_linear", "gemm", "gemm_fp8"),
    *("skinny_gemm", "skinny_gemm_fp8", "skinny_gemm_w4", "swiglu"),
)
MANY, CUT = 2000, -0.3  # numbers that make an average, in units of their last place
NEARLY = "nearly those of the question before"
ONE_TENSOR = "with one tensor handed in twice"
SHORT = "with sequences far shorter than their caches"
WITH_CACHES = ("decode_attention", "paged_attention")
SHOWS = 4.0  # times what is allowed: so far apart are two truths that no right answer is one of either


class _More:
    """Sizes beyond the small ones, on a machine without a card.

    Attributes:
        late: some were left out, or cut, for the time that they would take.
        of_tiles: sizes of whole tiles; all that is asked of small sizes is asked of them.
        edges: the smallest sizes, and those past the largest announced.
        types: sizes of types that the contract alone names.
        many: sizes of many numbers, most of them more than float32 can count.
        long_sums: sizes of float16 with sums longer than any announced.
        pace: of a file that an interpreter runs.
        few: special values were tried on one size each, and not on all that were meant.
    """

    def __init__(self, problem: Problem, rng: random.Random, pace: Pace | None) -> None:
        self._problem, self.pace, self.late = problem, pace, False
        self.of_tiles = of_whole_tiles(problem, rng)
        groups = [*past_a_group(problem, rng), *of_two_long(problem, rng)]
        sizes = dict.fromkeys((*larger(problem, rng), *drawn(problem, rng), *self.of_tiles, *groups))
        self.sizes = sorted(sizes, key=partial(cost, problem))
        self.edges = Edges(problem, rng)
        self.types = of_other_types(problem, rng)
        self.long_sums = of_long_sums(problem, rng)
        self.many = of_many_numbers(problem, rng)
        self.few = False

    def told(self, asked: Sequence[Workload], kinds: Iterable[str]) -> tuple[str, ...]:
        """Return which sizes were asked, with which kinds of values, and what was not asked, in words."""
        edges = self.edges
        announced = [w for w in asked if w not in self.many]
        far = ", ".join(f"{name} = {size}" for name, size in edges.past.items())
        past = f"; past the largest announced, one dimension at a time: {far}" if far else ""
        if many := ", ".join(w.label for w in asked if w in self.many):
            past += f"; of many numbers: {many}"
        some = "some" if edges.late else "all"
        on = ", on few of the sizes" if self.few else ""
        left = [f"{name} past the largest announced" for name in edges.not_asked]
        left += [
            "sizes past these",
            "speed",
            "what only a card does: its own rounding, races, launches, streams",
        ]
        return (
            reached(self._problem, announced, self.pace is not None, self.late),
            f"{some} of the smallest sizes of each dimension{past}",
            f"values{on}: {'; '.join(dict.fromkeys(('usual ones', 'NaN, infinities and zeros planted', *kinds)))}",
            f"not asked: {', '.join(left)}",
        )


class _Examination:
    def __init__(self, problem: Problem, device: str, rng: random.Random, pace: Pace | None) -> None:
        self._problem, self._device, self._rng = problem, device, rng
        self.size = ""
        self._pace = pace
        self.cases: list[str] = []
        self.kinds: list[str] = []  # of values, besides the usual ones
        self.launches: tuple[int, int] | None = None
        self._roundings = _Roundings()

    def of(
        self, stranger: Stranger, workloads: Sequence[Workload], time_on: Workload | None, more: _More | None
    ) -> Verdict:
        """Return the verdict on a stranger whose file is loaded.

        Args:
            more: larger sizes, where no sizes were asked for and there is no card.
        """
        # Answers are looked at again where there is no card: what is held there would change what memory is handed out.
        held = self._rng if self._device == "cpu" else None
        function = Remote(stranger, self._problem, self._device, rng=held)
        unannounced = draw(self._problem, workloads, self._rng)
        asked: list[Workload] = []
        lines: tuple[str, ...] = ()
        taken = None
        try:
            for workload in workloads:
                slow = self._pace and workloads[0] != workload and self._pace.guess(workload) > LONG_SECONDS
                (self._asked_once if slow else self._checked)(function, workload)
                asked.append(workload)
            for workload in unannounced:
                if (less := self._pace.fit(workload, DRAWN_SECONDS) if self._pace else workload) is not None:
                    self._checked(function, less)
                    asked.append(less)
            if more:
                asked += self._asked_more(function, more, asked)
            self._promised(function, asked, more)
            if more:
                edges = more.edges.ask_smallest(partial(self._asked_small, function), self._pace)
                edges += more.edges.ask_past(partial(self._asked_past, function), self._pace)
                lines = more.told(asked, self.kinds)
                asked += edges
            if time_on:
                self.size = time_on.label
                line, taken = self._time(function, time_on)
                lines = (line,)
            again = self._rng.choice(
                self._quick([*small(self._problem, workloads), *asked[len(workloads) :][:2]])
            )
            until = stranger.clock.now() + AGAIN_SECONDS
            for number in range(self._rng.randint(*AGAIN)):
                if number >= AGAIN[0] and stranger.clock.now() > until:
                    break
                self._once_more(function, again)
            if held and more:
                self._again_large(function, asked)
            if held:
                time.sleep(self._rng.uniform(*LATER_SECONDS))
                function.still()
            function.finish()
        except WrongResult as error:
            return refused(error.why, self.size)
        finally:
            function.close()
            if function.launches and any(function.launches):
                self.launches = function.launches
        hidden = sum(w not in self._problem.check_on and w not in workloads for w in asked)
        return Verdict(RIGHT, f"{len(asked)} sizes, {hidden} of them not announced", lines=lines, time=taken)

    def _again_large(self, function: Remote, asked: Sequence[Workload]) -> None:
        """Ask a larger size several times: its answers, too, stay what they were."""
        low, high = LARGE_BYTES
        large = [w for w in asked if low <= self._problem.writes_bytes(w) <= high]
        if self._pace:
            large = [w for w in large if self._pace.guess(w) <= AGAIN_LARGE_SECONDS / AGAIN_LARGE[0]]
        if not large:
            return
        again = max(large, key=self._problem.writes_bytes)
        until = time.monotonic() + AGAIN_LARGE_SECONDS
        for number in range(self._rng.randint(*AGAIN_LARGE)):
            if number >= AGAIN_LARGE[0] and time.monotonic() > until:
                break
            self._once_more(function, again)

    def _asked_more(self, function: Remote, more: _More, before: Sequence[Workload]) -> list[Workload]:
        """Ask the larger sizes, and return those that were asked.

        Args:
            before: what was asked already.
        """
        if not more.pace:
            # All that is asked of small sizes; of the others one question each, but for one of them.
            wholly = self._rng.choice(more.sizes[: len(more.sizes) // 2 + 1]) if more.sizes else None
            for workload in more.sizes:
                whole = workload == wholly or workload in more.of_tiles
                (self._checked if whole else self._asked_in_full)(function, workload)
                self._awhile(function)
            for workload in more.many:
                if not self._asked_exactly(function, workload):
                    self._asked_once(function, workload)
            return [*more.sizes, *more.many]
        in_turn = InTurn(self._problem, partial(self._asked_once, function), more.pace)
        asked = [one for workload in more.sizes for one in in_turn.ask(workload)]
        more.late = in_turn.late
        late = [w for w in self._problem.check_on if is_affordable(self._problem, w)]
        for workload in (*more.many, *late):
            if workload not in (*before, *asked):
                asked += self._few(function, workload)
        return asked

    def _awhile(self, function: Remote) -> None:
        """Wait a little, and look whether the inputs are still what they were."""
        time.sleep(self._rng.uniform(*AWHILE_SECONDS))
        function.still()

    def _asked_in_full(self, function: Remote, workload: Workload) -> None:
        """Ask once with usual values, and once with each set of hard ones."""
        hard = cost(self._problem, workload) <= HARD_COST
        self._check(function, workload).once(hard=hard)
        self._note(function, workload)

    def _asked_small(self, function: Remote, workload: Workload) -> None:
        """Ask one of the smallest sizes; whole blocks with hard values, too."""
        full = not self._pace and cost(self._problem, workload) >= LEAST_HARD_COST
        (self._asked_in_full if full else self._asked_once)(function, workload)

    def _asked_exactly(self, function: Remote, workload: Workload) -> bool:
        """Ask with special values where every bit counts; returns whether the problem has such."""
        for promise in promises(self._problem):
            if promise.exact:
                return self._special(function, workload, promise)
        return False

    def _few(self, function: Remote, workload: Workload) -> list[Workload]:
        """Ask a size that would take an interpreter too long with few programs of each launch.

        Where those have a wrong number, or all of them could not fill the answer, they are all run. What is found
        then decides: a file may launch twice, or leave the rest to torch.

        Returns:
            the size, if all were run.
        """
        check = self._check(function, workload, "few programs of each launch")
        if not check.is_doubtful_of_few():
            return []
        self._asked_once(function, workload)
        return [workload]

    def _promised(self, function: Remote, asked: Sequence[Workload], more: _More | None) -> None:
        """Ask with values that the contract covers and usual inputs do not have, on some of the sizes."""
        if self._device != "cpu":
            return
        most = PROMISED_COST if more and not self._pace else 1.0
        sizes = [w for w in asked if cost(self._problem, w) <= most]
        of_types = more.types if more else []
        if self._pace:
            sizes = self._quick(sizes, SPECIAL_SECONDS)
            of_types = [w for w in of_types if self._pace.guess(w) <= SPECIAL_SECONDS]
        of_types = [*of_types, *(more.long_sums if more else ())]
        questions: list[list[Callable[[], bool]]] = []
        ends = ends_of(sizes, self._problem, self._rng) if more else []
        alike = sizes_alike(self._problem, self._rng) if more else []
        for promise in promises(self._problem):
            longest = promise.far or promise.long
            of = cases_on([*sizes, *of_types], self._problem, longest=longest, types=promise.types)
            more_of = (() if longest else ends, alike if promise.square else ())
            of = list(dict.fromkeys([*of, *chain(*more_of)]))
            if promise.least:
                of = sorted(sizes, key=self._problem.reads_bytes)[:FEW_SIZES]
            questions.append([partial(self._special, function, w, promise) for w in of])
        few = [w for w in sizes if cost(self._problem, w) <= ALIKE_COST] or sizes[:1]
        of = cases_on(few, self._problem)
        questions.append([partial(self._nearly_alike, function, w) for w in of])
        if more:
            of = [*of, *alike]
        if self._problem.name in WITH_CACHES and (new := _of_more(few, asked)):
            questions.append([partial(self._short_first, function, new)])
        same = Promise(ONE_TENSOR, partial(one_and_the_same, self._problem))
        questions.append([partial(self._special, function, w, same) for w in of])
        self._in_turn(questions, more)

    def _in_turn(self, questions: Sequence[list[Callable[[], bool]]], more: _More | None) -> None:
        """Ask all questions; where an interpreter is slow one of each kind, and others for as long as there is time."""
        if not self._pace:
            for kind in questions:
                for ask in kind:
                    ask()
            return
        until = self._pace.now() + SPECIALS_SECONDS
        rest: list[Callable[[], bool]] = []
        for kind in questions:
            # The size may have no room for it: then the next.
            order = iter(self._rng.sample(kind, len(kind)))
            any(ask() for ask in order)
            rest += order
        for ask in self._rng.sample(rest, len(rest)):
            if self._pace.now() > until:
                if more:
                    more.few = True
                break
            ask()

    def _quick(self, sizes: Sequence[Workload], seconds: float = QUICK_SECONDS) -> list[Workload]:
        """Return the sizes that an interpreter is done with so soon; the quickest where none is."""
        if not self._pace or not sizes:
            return list(sizes)
        quick = [w for w in sizes if self._pace.guess(w) <= seconds]
        return quick or [min(sizes, key=self._pace.guess)]

    def _special(self, function: Remote, workload: Workload, promise: Promise) -> bool:
        found = self._check(function, workload, promise.name).promised(promise)
        if found:
            self._note(function, workload)
            self.kinds.append(promise.name)
        return found

    def _short_first(self, function: Remote, workload: Workload) -> bool:
        """Ask a size that is new with short sequences in its caches, then with the usual ones."""
        self._check(function, workload, SHORT).promised(
            Promise(SHORT, lambda drawn, _: shorter(self._problem, workload, drawn.generator))
        )
        self._asked_once(function, workload)
        self.kinds.append(SHORT)
        return True

    def _nearly_alike(self, function: Remote, workload: Workload) -> bool:
        found = self._check(function, workload, NEARLY).nearly_alike()
        if found:
            self.kinds.append(NEARLY)
        return found

    def _note(self, function: Remote, workload: Workload) -> None:
        if self._pace:
            self._pace.note(workload, function.seconds)

    def _asked_past(self, function: Remote, workload: Workload) -> None:
        """Ask with whole numbers where the problem has such a case: no tolerance grows with the size then."""
        if cases := [promise for promise in promises(self._problem) if promise.far]:
            for promise in cases:
                self._special(function, workload, promise)
        else:
            self._asked_once(function, workload)

    def _time(self, function: Remote, workload: Workload) -> tuple[str, Taken | None]:
        try:
            timed = Times(function, self._problem, workload, self._rng).taken()
        except NoTime as error:
            return f"{workload.label}: no time; {error}", None
        clause = f"; the judge's own clock, launches included: {timed.wall_us:.1f} µs"
        said = timed.text(workload.label) + (clause if timed.agrees else "")
        return said, timed.taken(workload.label)

    def _check(self, function: Remote, workload: Workload, special: str = "") -> RemoteCheck:
        self.size = workload.label
        self.cases.append(f"{workload.label} {special}".strip())
        field = {"it": Competitor("the file", self._problem, function)}
        function.begin(workload)
        seed = self._rng.getrandbits(32)
        check = RemoteCheck(function, field, workload, seed, self._device, roundings=self._roundings)
        of_sums = workload.dtype == "float32" and self._problem.name != "fused_multiply_add"
        if self._device == "cpu" and of_sums and cost(self._problem, workload) > 1:
            check.allow(SLACK)
        return check

    def _checked(self, function: Remote, workload: Workload) -> None:
        self._check(function, workload).before()
        self._note(function, workload)

    def _asked_once(self, function: Remote, workload: Workload) -> None:
        self._check(function, workload).once()
        self._note(function, workload)

    def _once_more(self, function: Remote, workload: Workload) -> None:
        """Ask a single question, which a stranger who counts calls cannot foresee."""
        try:
            self._asked_once(function, workload)
        except WrongResult as error:
            raise WrongResult(str(error), AFTER + error.why) from None


class RemoteCheck(Check):
    """The check of a function that runs in another process: what needs that process is done there."""

    def __init__(self, function: Remote, *rest: Any, roundings: _Roundings | None = None) -> None:
        super().__init__(*rest)
        self._remote = function
        self._roundings = roundings or _Roundings()

    def allow(self, slack: float) -> None:
        """Allow so many times the usual error."""
        self._allowed *= slack

    def once(self, *, hard: bool = False) -> None:
        """Check one question, and no more.

        Args:
            hard: and one with each set of hard values.
        """
        from course_kernels.measure.check import _Wrong

        working = self._draw()
        values = tuple(tensor.clone() for tensor in working)
        with torch.no_grad():
            try:
                _, _, _, usual = self._first_time(working, values)
                for planted in self.problem.hard(self.workload) if hard else ():
                    self._hard(working, planted, usual)
            except _Wrong as wrong:
                self._refuse(wrong.name, wrong.why)

    def _outputs(self, name: str, result: Any, working: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return the tensors of a result, once they are of the kind that is asked for, each of its type."""
        outputs = super()._outputs(name, result, working)
        dtype = self.workload.torch_dtype
        for number, out in enumerate(outputs):
            if out.dtype != dtype and self.problem.name in ONE_TYPE:
                which = messages.output_name(number, outputs)
                self._refuse(name, f"wrong dtype: {which}: expected {dtype}, got {out.dtype}")
        return outputs

    def is_doubtful_of_few(self) -> bool:
        """Return whether few programs of each launch show that all may be wrong, and all would not take too long."""
        values = self._draw()
        few = self._remote.few(FEW_PROGRAMS, tuple(tensor.clone() for tensor in values), self._options)
        if few is None or few.seconds > IN_FULL_SECONDS or not all(map(_is_plain, few.outputs)):
            return False
        if few.reach < sum(out.numel() for out in few.outputs):
            return True
        if few.launches != 1 or few.updates:
            return False  # what a second launch makes of a part, or many programs of a sum, is no answer
        truth = self._truth(values, finite=False)
        if [out.shape for out in few.outputs] != [out.shape for out in truth]:
            return True
        pairs = zip(few.outputs, truth, strict=True)
        made = tuple(torch.where(out.isnan(), due, out.double()) for out, due in pairs)
        return self._error(made, truth)[0] > self._allowed

    def promised(self, promise: Promise) -> bool:
        """Check one question with the inputs of a case; returns whether the size has room for it."""
        with torch.no_grad():
            values = case(promise, self.problem, self.workload, self._generator)
            if values is None:
                return False
            self._options = {**self._options, **promise.options}
            usual = self._allowed
            self._allowed = max(promise.slack * usual, promise.at_least)
            outputs, truth = self._answered(values, where := f", {promise.name}" if promise.name else "")
            for number, (out, expected) in enumerate(zip(outputs, truth, strict=True)):
                if why := _alone(out, expected, promise, usual):
                    name = messages.output_name(number, outputs)
                    self._refuse("it", f"wrong: {name}{why}{where}")
        return True

    def _judge(
        self, name: str, outputs: Tensors, touched: str, truth: Tensors, *rest: Any, **how: Any
    ) -> float:
        """Return the error of a right answer; one that is cut to its type is none, whose errors have one sign."""
        from course_kernels.measure.check import _Wrong

        error = super()._judge(name, outputs, touched, truth, *rest, **how)
        if (
            self.problem.name in ROUNDED
            and not self._options.get("norm")
            and (why := self._roundings.cut(outputs[0], truth[0], usual=not how.get("where")))
        ):
            raise _Wrong(name, why, None)
        return error

    def nearly_alike(self) -> bool:
        """Check several questions whose inputs differ in a few numbers; returns whether they have a middle."""
        with torch.no_grad():
            made_of = ingredients(self.problem, self.workload, self._generator)
            values = kept_alike(on_a_grid(self.problem, made_of, self._draw()))
            _, before = self._answered(values, "")
            numbers = may_change(self.problem, values)
            for number, place in ((number, place) for number in numbers for place in PLACES):
                name = messages.input_name(self.problem, number)
                where = f", asked again with a few numbers {place} of {name} changed"
                for other in changed(self.problem, made_of, values, number, place):
                    _, truth = self._answered(other, where, before)
                    if self._error(truth, before)[0] > SHOWS * self._allowed:
                        break
        return bool(numbers)

    def _answered(
        self, values: Tensors, where: str, before: Tensors | None = None
    ) -> tuple[Tensors, Tensors]:
        """Return a right answer, and the truth.

        Args:
            values: the inputs.
            where: said at the end of a complaint.
            before: the truth of other inputs; an answer that is still this one is told so.
        """
        from course_kernels.measure.check import _Wrong

        working = kept_alike(values)
        asked = self._ask("it", working, values, poisoned=True)
        truth = self._truth(values, finite=False)
        self._shapes = [out.shape for out in truth]
        outputs = self._outputs("it", asked.result, working)
        try:
            self._judge("it", outputs, asked.touched, truth, where=where)
        except _Wrong as wrong:
            if before is not None and self._error(outputs, before)[0] <= self._allowed:
                self._refuse("it", f"cached result: it gave the old answer{where}")
            self._refuse("it", wrong.why)
        return outputs, truth

    def _truth(self, inputs: Sequence[torch.Tensor], *, finite: bool = True) -> tuple[torch.Tensor, ...]:
        """Return the truth; with hard values a number past the end of its type is the infinity that it rounds to."""
        outputs = super()._truth(inputs, finite=finite)
        if finite or not self.workload.torch_dtype.is_floating_point:
            return outputs
        # Half a unit past the largest number still rounds to it.
        ends = (out.to(self.workload.torch_dtype).double().isinf() for out in outputs)
        return tuple(
            torch.where(past_it, out * torch.inf, out) for past_it, out in zip(ends, outputs, strict=True)
        )

    def _behind_a_hold(self, name: str, working: Any, first: Any, second: Any) -> Any:
        return self._remote.behind_a_hold(working, first, second, self._options)


def _is_plain(out: Any) -> bool:
    return type(out) is torch.Tensor and out.device.type == "cpu" and out.dtype.is_floating_point


def _of_more(sizes: Sequence[Workload], asked: Sequence[Workload]) -> Workload | None:
    """Return a size with more sequences than any that was asked: nobody has kept anything for it."""
    if not (of := [w for w in sizes if w.N > 1]):
        return None
    like = max(of, key=lambda w: w.N)
    return Workload.of(like.dtype, **like.dims | {"B": 1 + max(w.B for w in asked)})


class _Roundings:
    """Average error of answers, in units of their last place: of many numbers, or of many small answers."""

    def __init__(self) -> None:
        self._small: dict[torch.dtype, tuple[float, int]] = {}

    def cut(self, out: torch.Tensor, truth: torch.Tensor, *, usual: bool) -> str:
        """Return what is wrong with numbers that are cut to their type, and not rounded; empty where nothing is.

        Args:
            usual: the inputs are: small answers are then taken together, until they are many.
        """
        if out.element_size() > 2:
            return ""
        about = torch.finfo(out.dtype)
        size = truth.abs()
        normal = (size > about.smallest_normal) & (size < about.max / 2)
        size, got = size[normal], out[normal].double().abs()
        units = (got - size) / (torch.exp2(size.log2().floor()) * about.eps)
        total, count, of = float(units.clamp(-2, 2).sum()), len(units), ""
        if count < MANY:
            if not usual:
                return ""
            before, few = self._small.pop(out.dtype, (0.0, 0))
            total, count, of = total + before, count + few, " of many small answers"
            if count < MANY:
                self._small[out.dtype] = total, count
                return ""
        mean = total / count
        if mean >= CUT:
            return ""
        return (
            f"wrong: cut, and not rounded: {-mean:.2f} of a unit in the last place too small on average{of}"
        )


def _alone(out: torch.Tensor, truth: torch.Tensor, promise: Promise, usual: float) -> str:
    """Return what is wrong with numbers that are held against themselves alone; empty where nothing is."""
    if promise.exact:
        bits = BITS[out.element_size()]
        due = truth.to(out.dtype)
        wrong = (out.view(bits) != due.view(bits)) & ~(out.isnan() & due.isnan())
    elif promise.whole:
        wrong = out != truth.to(out.dtype)
    elif promise.own and out.dtype.is_floating_point:
        # What lies below the smallest normal number may be taken for zero.
        least = torch.finfo(out.dtype).smallest_normal
        wrong = (out.double() - truth).abs() > promise.own(usual) * truth.abs() + least
    else:
        return ""
    if not bool(wrong.any()):
        return ""
    at = int(wrong.reshape(-1).to(torch.uint8).argmax())
    got, expected = (float(x.reshape(-1)[at]) for x in (out, truth))
    return (
        f"{messages.place_of(truth, at)}: expected {expected!r}, got {got!r}; {int(wrong.sum())} of "
        f"{out.numel()} elements are off by more than their own rounding"
    )
