"""Messages between the grader and the process that runs a student's file, beside those of the judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from course_judge.protocol.layout import Place
from course_judge.protocol.messages import Answer, Output, Question


@dataclass(frozen=True)
class LabTask:
    """Further task of a worker for a lab.

    Attributes:
        lab: the path of its lab.toml.
        alone: whether the last task is graded.
        compile: note the launches in Triton's interpreter, for a compiler.
    """

    lab: str
    alone: bool
    door: str
    gpu: bool
    compile: bool


# --- functions over arrays and lists --------------------------------------------------------------


@dataclass(frozen=True)
class ArrayOutputs(Answer):
    """Outputs of a call.

    Attributes:
        held: the most bytes held at once, where that was asked.
        started: programs that were started; -1 without a function for them.
        returned: whether one gave something back.
    """

    outputs: tuple[Output, ...]
    held: int = 0
    started: int = -1
    returned: bool = False


@dataclass(frozen=True)
class ArrayCall(Question[ArrayOutputs]):
    """Call the function once.

    Attributes:
        room: byte where its outputs begin.
        runs: which of its programs run.
        keep: hold its outputs until the next call that says so.
        weigh: trace how much is held at once.
    """

    key: ClassVar[str] = "call arrays"
    answer: ClassVar[type[Answer]] = ArrayOutputs
    inputs: tuple[Place, ...]
    options: Mapping[str, Any]
    room: int
    runs: str
    keep: bool = False
    weigh: bool = False


# --- kernels --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reason(Answer):
    """Reason why nothing was run; empty if it was."""

    why: str = ""


@dataclass(frozen=True)
class NotRun(Question[Reason]):
    """Say why nothing can be run here."""

    key: ClassVar[str] = "not run"
    answer: ClassVar[type[Answer]] = Reason


@dataclass(frozen=True)
class Launch:
    """A launch of a Triton kernel: its name, the type of each argument, the constants, the options of the launch."""

    kernel: str
    types: dict[str, str]
    constants: dict[str, Any]
    options: dict[str, Any]


@dataclass(frozen=True)
class Launched(Answer):
    """The launches that were seen, each once."""

    launches: tuple[Launch, ...] = ()


@dataclass(frozen=True)
class Launches(Question[Launched]):
    """Say which launches were seen."""

    key: ClassVar[str] = "launches"
    answer: ClassVar[type[Answer]] = Launched


@dataclass(frozen=True)
class Compiled(Answer):
    """Complaint of the compiler, with its line; empty if it takes all."""

    said: str = ""


@dataclass(frozen=True)
class Compile(Question[Compiled]):
    """Compile these launches for a card."""

    key: ClassVar[str] = "compile"
    answer: ClassVar[type[Answer]] = Compiled
    launches: tuple[Launch, ...]


# --- labs by hand ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Returned(Answer):
    """Returned value of a function: a number or a text, or, as text, what is neither."""

    value: int | float | str | None = None
    strange: str = ""


@dataclass(frozen=True)
class Case(Question[Returned]):
    """Call a function by name, with these arguments."""

    key: ClassVar[str] = "case"
    answer: ClassVar[type[Answer]] = Returned
    call: str
    given: dict[str, Any]


@dataclass(frozen=True)
class Played(Answer):
    """Outcome of a call in a play.

    Attributes:
        value: what was returned, in plain numbers, texts and lists.
        strange: what was returned and is none of them, as text.
        raised: the name of an error that was allowed, and came.
        after: the arguments as they are now.
        taken: how often the function that was handed over was called.
    """

    value: Any = None
    strange: str = ""
    raised: str = ""
    after: tuple[Any, ...] = ()
    taken: int = 0


@dataclass(frozen=True)
class PlayCall(Question[Played]):
    """Call a function.

    Attributes:
        arrays: so many of the first arguments come as arrays to a file that imports NumPy.
        take: what a function gives one after the other, which is the last argument; None without one.
    """

    key: ClassVar[str] = "play"
    answer: ClassVar[type[Answer]] = Played
    call: str
    given: tuple[Any, ...]
    arrays: int = 0
    take: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Make(Question[Answer]):
    """Make an object of a class, and keep it under a number; what follows is done with it."""

    key: ClassVar[str] = "make"
    name: str
    given: tuple[Any, ...]
    at: int = 0


@dataclass(frozen=True)
class Do(Question[Played]):
    """Call a method of the object of that number.

    Attributes:
        may: the name of an error that may come.
    """

    key: ClassVar[str] = "do"
    answer: ClassVar[type[Answer]] = Played
    name: str
    given: tuple[Any, ...]
    may: str = ""
    at: int = 0


@dataclass(frozen=True)
class Drive(Question[Played]):
    """Run a text of the grader's in which objects are made that no message can hold.

    Attributes:
        text: Python that defines `drive(functions, *given)`; what that returns is the answer.
        names: the functions of the student's file that it is given.
    """

    key: ClassVar[str] = "drive"
    answer: ClassVar[type[Answer]] = Played
    text: str
    names: tuple[str, ...]
    given: tuple[Any, ...] = ()


def shown(value: Any) -> str:
    """Return a value, short, as a verdict has it."""
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
