"""Interactive cases of a lab: what is asked next follows from what was answered, and a complaint tells why.

Such a lab has no problem. Where another lab by hand has cases, its truth.py and alone.py have plays: each asks the
student's file as often as it likes, keeps a model of its own, and says in the student's terms where the two part.
Objects that no message can hold, such as kernels for a student's judge, are made in the student's process, by a text
that the grader sends: the lab's `drive.py`.
Standard library only.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_judge.host import Broken, CannotJudge, Host, Stranger
from course_judge.protocol.verdict import escaped
from course_labs import diagnosis, hints
from course_labs import grade as usual
from course_labs.grade import CannotGrade, Grader
from course_labs.lab import Lab, has_given_kernels, load_file
from course_labs.protocol.messages import Do, Drive, Make, PlayCall, Played, shown
from course_labs.verdict import RIGHT, Verdict

WORKER = "course_labs.worker.plays"
DRIVE = "drive.py"  # in a lab that is played with objects: the text that makes them, with NumPy

# What to try next, where a play finds no words of its own.
NEXT = {
    "wrong row": "take that one token: which page by its table, and which place on it?",
    "no page": "at which lengths is the last page full? Write down 0, 1, and one page more.",
    "page too many": "at which lengths is the last page full? Write down 0, 1, and one page more.",
    "page lost": "follow that page: where do you note that its last holder has left?",
    "held by two": "follow that page: who holds it, and what do you count when one of them leaves?",
    "given back twice": "a page that nobody holds is free already. Look at your count before you take one away.",
    "cheat refused": "use the hole of this stage alone: what does the judge take for granted there?",
    "no cheat": "be right where this one hole lets the judge see it, and not elsewhere: what does the hole hide?",
    "cheat passed": "this one you know: follow it through your judge, line by line.",
    "honest refused": "let your judge judge `honest`: what does it say, and where?",
    "wrong bytes": "read the clock when all work of the call is done, on every stream, and none before it.",
}


class Slip(Exception):
    """Difference between a file and the grader's model.

    Attributes:
        found, why, next: as in a `Verdict`.
        lines: what went before, to be shown below.
    """

    def __init__(self, found: str, why: str, next: str = "", lines: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.found, self.why, self.next, self.lines = found, why, next, tuple(lines)


@dataclass(frozen=True)
class Answer:
    """Outcome of a call.

    Attributes:
        value: what was returned, in plain numbers, texts and lists.
        strange: what was returned and is neither, as text.
        raised: the name of an error that was allowed, and came.
        after: the arguments as they are now.
        taken: how often the function `take` was called that was handed over.
    """

    value: Any = None
    strange: str = ""
    raised: str = ""
    after: tuple[Any, ...] = ()
    taken: int = 0

    def told(self) -> str:
        """Return the returned value, short."""
        return self.strange[:60] or shown(self.value)

    def number(self, call: str) -> int:
        """Return the whole number that was returned.

        Raises:
            Slip: it is none.
        """
        if self.strange or isinstance(self.value, bool) or not isinstance(self.value, int):
            hint = (
                "`/` gives a number with a point; `//` gives a whole one."
                if isinstance(self.value, float)
                else ""
            )
            told = repr(self.value) if hint and not self.strange else self.told()
            raise Slip("wrong result", f"{call}: expected a whole number, got {told}", hint or self._next())
        return self.value

    def list(self, call: str, of: str) -> list[Any]:
        """Return the list that was returned.

        Raises:
            Slip: it is none.
        """
        if self.strange or not isinstance(self.value, list):
            raise Slip("wrong result", f"{call}: expected a list of {of}, got {self.told()}", self._next())
        return self.value

    def _next(self) -> str:
        return hints.NEXT_OF_NONE if self.value is None and not self.strange else ""


class Asked:
    """A student's file, as a play asks it."""

    def __init__(self, stranger: Stranger) -> None:
        self._stranger = stranger

    def call(
        self,
        name: str,
        *given: Any,
        arrays: int = 0,
        take: Sequence[int] | None = None,
        writes: bool = False,
    ) -> Answer:
        """Call a function.

        Args:
            arrays: so many of the first arguments come as arrays to a file that imports NumPy.
            take: pages that a function gives one after the other, which is the last argument.
            writes: whoever asks looks at what became of the arguments.
        Raises:
            Slip: an argument is no longer what it was.
        """
        taken = None if take is None else tuple(take)
        answer = _answer(self._stranger.ask(PlayCall(name, given, arrays, taken)))
        if not writes and list(answer.after) != _as_lists(given):
            raise Slip("input modified", f"an argument of {name} has changed", f"`{name}` only reads.")
        return answer

    def drive(self, text: str, names: Sequence[str], *given: Any) -> Answer:
        """Have a text of the grader's run functions of the file, on objects that no message can hold.

        Args:
            text: Python that defines `drive(functions, *given)`.
            names: of the functions.
        """
        return _answer(self._stranger.ask(Drive(text, tuple(names), given)))

    def make(self, name: str, *given: Any, at: int = 0) -> None:
        """Make an object of a class; what follows is done with it.

        Args:
            at: its number, where several are wanted at once; it takes the place of an earlier one of the same number.
        """
        self._stranger.ask(Make(name, given, at))

    def do(self, name: str, *given: Any, may: str = "", at: int = 0) -> Answer:
        """Call a method of the object of that number.

        Args:
            may: the name of an error that may come.
        """
        return _answer(self._stranger.ask(Do(name, given, may, at)))


def _as_lists(value: Any) -> Any:
    """Return a value as it comes back: every tuple in it is a list."""
    return [_as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def _answer(played: Played) -> Answer:
    return Answer(played.value, escaped(played.strange), played.raised, played.after, played.taken)


@dataclass(frozen=True)
class Play:
    """One play.

    Attributes:
        job: what it is about, as a complaint names it.
        run: asks, and raises a Slip where something is wrong.
        again: how often a file that is right so far is played with once more, each time with numbers that nobody
            announced; 0 where there is no chance in it.
        long: whether it takes so many calls that it is played once only, with numbers that nobody announced.
    """

    job: str
    run: Callable[[Asked, random.Random], None]
    again: int = 0
    long: bool = False


def counted(number: int, what: str) -> str:
    """Count of a thing in words: "1 page", "2 pages"."""
    return f"{number} {what}{'s' * (number != 1)}"


def has_plays(lab: Lab) -> bool:
    """Return True for a lab of this kind."""
    return not lab.problem and not has_given_kernels(lab) and any(map(_is_play, _cases(lab)))


def needs_numpy(lab: Lab) -> bool:
    """Return True for a lab that is played with arrays: NumPy is there before any file."""
    return (lab.folder / DRIVE).is_file()


def _is_play(case: Any) -> bool:
    return isinstance(case, Play)


def _cases(lab: Lab) -> Sequence[Any]:
    return load_file(lab.folder / "truth.py", "lab_truth").cases()  # type: ignore[no-any-return]


class PlaysGrader(Grader):
    """Grader for one such lab."""

    worker = WORKER

    def _host(self) -> Host:
        more = ("numpy",) if needs_numpy(self.lab) else ()
        return usual._host("python", False, self._environment, self.worker, *more)

    def _by_hand(self, stranger: Stranger) -> Verdict:
        asked = Asked(stranger)
        # The same each time, so that a complaint can be come back to.
        for play in [once for once in self.cases if not once.long]:
            if refused := self._played(play, asked, random.Random(play.job)):
                return refused
        for play in [once for once in self.cases for _ in range(once.again + once.long)]:
            if refused := self._played(play, asked, random.Random(secrets.randbits(64))):
                return refused
        why = f"correct in all {len(self.cases)} cases; no speed claim: this lab is done by hand"
        return Verdict(RIGHT, why)

    def _played(self, play: Play, asked: Asked, draw: random.Random) -> Verdict | None:
        self._size = play.job
        try:
            play.run(asked, draw)
        except Slip as slip:
            next_ = slip.next or NEXT.get(slip.found, hints.NEXT_BY_HAND)
            return Verdict(slip.found, slip.why, play.job, next_, slip.lines)
        return None


def with_advice(found: str, advised: str, broken: Broken) -> Broken:
    """Replace the advice of an error whose property is `found` and that came with none."""
    return broken if broken.found != found or broken.next else Broken(found, broken.why, advised)


def grade_each(
    tasks: Sequence[tuple[Lab, str, Path]],
    *,
    seconds: float | None = None,
    needs_gpu: bool = False,
    compile: bool = False,
    environment: dict[str, str] | None = None,
) -> Iterator[Verdict]:
    """Grade files of any labs, those of this kind among them; as `course_labs.grade.grade_each`."""
    graders: dict[Path, PlaysGrader | None] = {}
    for lab, door, file in tasks:
        if lab.folder not in graders:
            more = environment or {}
            graders[lab.folder] = PlaysGrader(lab, door, environment=more) if has_plays(lab) else None
        grader = graders[lab.folder]
        if grader is None:
            yield from diagnosis.grade_each(
                [(lab, door, file)],
                seconds=seconds,
                needs_gpu=needs_gpu,
                compile=compile,
                environment=environment,
            )
            continue
        try:
            yield grader.verdict(file.resolve(), seconds or lab.seconds)
        except CannotJudge as error:
            raise CannotGrade(str(error)) from None


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
    """Grade files of one lab of any kind; as `course_labs.grade.grade`."""
    tasks = [(lab, usual._door(lab, file, door), file) for file in files]
    return list(
        grade_each(tasks, seconds=seconds, needs_gpu=needs_gpu, compile=compile, environment=environment)
    )
