"""Messages between the judge and the processes that it starts: a frozen dataclass each, and one line of JSON.

A question is {"KEY": {field: value, …}, "of": MARK} on the wire, `true` in place of the fields where it has none; an
answer is {field: value, …, "of": MARK}. A field that has its default is left out. A worker runs a stranger's file, so
anything may come from it: `read` takes what is declared here, and refuses the rest in one line.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Generic, TypeVar, Union, cast, get_args, get_origin

from course_judge.protocol.layout import Place
from course_judge.protocol.limits import Limits

DEEPEST = 32  # lists in lists, where a field may hold anything
_SHOWN = 60  # characters of what came instead


class Malformed(ValueError):
    """A message of the wrong form; one line: the field, what it should hold, and what came."""


@dataclass(frozen=True)
class Answer:
    """Answer of a process; without fields it says that the question was carried out."""


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True)
class Question(Generic[A]):
    """Question to a process.

    Attributes:
        key: its name on the wire.
        answer: the class of its answer.
    """

    key: ClassVar[str]
    answer: ClassVar[type[Answer]] = Answer

    @functools.cached_property
    def body(self) -> Any:
        """The fields as plain data; worked out once, so that a clock can be read around sending it."""
        return plain(self) or True


@dataclass(frozen=True)
class Failed(Answer):
    """Failure of a stranger's file, in place of an answer.

    Attributes:
        failed: the property, a key of `course_judge.protocol.verdict.PROPERTIES`.
        next: what to try, where the usual advice does not fit.
    """

    failed: str
    why: str
    next: str = ""


# --- to the process that starts workers ----------------------------------------------------------


@dataclass(frozen=True)
class Imported(Answer):
    """Outcome of loading: the first module that is not there, and Python's words for it; empty if all are."""

    missing: str = ""
    why: str = ""


@dataclass(frozen=True)
class Import(Question[Imported]):
    """Load these modules; each worker has them then."""

    key: ClassVar[str] = "import"
    answer: ClassVar[type[Answer]] = Imported
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Started(Answer):
    """The number of the new process."""

    process: int


@dataclass(frozen=True)
class Start(Question[Started]):
    """Start a worker. Nothing in it is secret. With it go its end of a channel, and where its prints go.

    Attributes:
        file: the stranger's file, run where it lies.
        function: the name of the function that is asked.
        own: the work must be the file's own.
        worker: the module whose `Worker` answers.
        folder: the one place where it may write.
        environment: variables over those of the process that starts it.
        more: what its kind of worker needs to know besides.
    """

    key: ClassVar[str] = "start"
    answer: ClassVar[type[Answer]] = Started
    file: str
    function: str
    own: bool
    worker: str
    folder: str
    environment: dict[str, str]
    limits: Limits
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Swept(Answer):
    """End of a worker: exit code or minus a signal, None if unknown; and how many others were left."""

    status: int | None = None
    left: int = 0


@dataclass(frozen=True)
class Sweep(Question[Swept]):
    """End a worker, and all that it has started."""

    key: ClassVar[str] = "sweep"
    answer: ClassVar[type[Answer]] = Swept
    process: int


# --- to a worker ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Confined(Answer):
    """The first words of a worker, unasked: what the system could not hold it to, a short clause each."""

    open: tuple[str, ...] = ()


@dataclass(frozen=True)
class Load(Question[Answer]):
    """Run the stranger's file."""

    key: ClassVar[str] = "load"


@dataclass(frozen=True)
class End(Question[Answer]):
    """End: there are no more questions, and nothing is answered."""

    key: ClassVar[str] = "end"


@dataclass(frozen=True)
class Memory(Question[Answer]):
    """Work in other shared memory from now on. On the host its open file goes with it.

    Attributes:
        size: bytes.
        ticket: on a card, the handle by which it is opened.
    """

    key: ClassVar[str] = "memory"
    size: int
    device: str = "cpu"
    ticket: str = ""


@dataclass(frozen=True)
class Output:
    """One output of a call; its numbers are in shared memory.

    Attributes:
        type: the name of its class.
        plain: whether that is the usual class of arrays, and nothing more; None for what is no array.
        shape, strides: in elements.
        at: byte of its first element in shared memory; -1 where there was no room for it.
        shares: the number of the input on whose bytes it lies; -1 for none.
        again: whether it lies on the bytes of an answer that the judge still holds.
    """

    type: str
    plain: bool | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    device: str = ""
    at: int = -1
    shares: int = -1
    again: bool = False


@dataclass(frozen=True)
class Outputs(Answer):
    """Outputs of a call.

    Attributes:
        launches: the kernels of Triton's that it launched in the interpreter; -1 where nobody counted.
        run: programs that were run of all their launches, where a call asks for few.
        programs: all that they have.
        reach: elements that those launches can have stored, if no program stores more than one that was run.
        updates: a program did an atomic.
        seconds: that all programs would take.
    """

    outputs: tuple[Output, ...]
    launches: int = -1
    run: int = 0
    programs: int = 0
    reach: int = 0
    updates: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Call(Question[Outputs]):
    """Call the function once.

    Attributes:
        room: byte where its outputs begin.
        poisoned: have memory that it asks torch for hold NaN.
        keep: hold its outputs until the next call is answered.
        number: hold its outputs under this number until they are let go; -1 for not at all.
        few: run at most so many programs of each launch of Triton's, the first and the last with them; 0 for all.
    """

    key: ClassVar[str] = "call"
    answer: ClassVar[type[Answer]] = Outputs
    inputs: tuple[Place, ...]
    options: Mapping[str, Any]
    room: int
    poisoned: bool = False
    keep: bool = False
    number: int = -1
    few: int = 0


@dataclass(frozen=True)
class Again(Question[Outputs]):
    """Hand the outputs of an earlier call over once more, as they are now.

    Attributes:
        number: what that call gave them.
        room: byte where they begin.
        let_go: hold them no longer.
    """

    key: ClassVar[str] = "again"
    answer: ClassVar[type[Answer]] = Outputs
    number: int
    room: int
    let_go: bool = False


@dataclass(frozen=True)
class Hold(Question[Outputs]):
    """Call the function behind work that holds the stream back, with `first` in its inputs, then with `second`."""

    key: ClassVar[str] = "hold"
    answer: ClassVar[type[Answer]] = Outputs
    inputs: tuple[Place, ...]
    first: tuple[Place, ...]
    second: tuple[Place, ...]
    options: Mapping[str, Any]
    room: int


@dataclass(frozen=True)
class Batch(Question[Answer]):
    """Call the function on many sets of inputs, and lay the outputs `each` bytes apart, from the byte `room` on."""

    key: ClassVar[str] = "batch"
    inputs: tuple[tuple[Place, ...], ...]
    options: Mapping[str, Any]
    room: int
    each: int


@dataclass(frozen=True)
class Sampled(Answer):
    """Next wish of a worker's clock, or its samples at the end.

    Attributes:
        want: "block" for inputs in new memory, "refill" for other values in the same, "judge" for its last answer to
            be judged; empty once it is done.
        samples_us: microseconds.
        blocks: the block of each sample.
    """

    want: str = ""
    samples_us: tuple[float, ...] = ()
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Time(Question[Sampled]):
    """Sample the function for so long, in an order drawn from the seed."""

    key: ClassVar[str] = "time"
    answer: ClassVar[type[Answer]] = Sampled
    seconds: float
    seed: int


@dataclass(frozen=True)
class Block(Question[Sampled]):
    """The inputs that were wanted, in new memory, and the byte where the outputs begin."""

    key: ClassVar[str] = "block"
    answer: ClassVar[type[Answer]] = Sampled
    memory: Memory
    inputs: tuple[Place, ...]
    options: Mapping[str, Any]
    room: int


@dataclass(frozen=True)
class Go(Question[Sampled]):
    """Go on: what was wanted is done."""

    key: ClassVar[str] = "go"
    answer: ClassVar[type[Answer]] = Sampled


ON_TENSORS: tuple[type[Question[Any]], ...] = (Memory, Call, Again, Hold, Time, Batch)


# --- to the wire and back ------------------------------------------------------------------------


def plain(message: Any) -> dict[str, Any]:
    """Return the fields of a message that differ from their defaults, as JSON can hold them."""
    found = {}
    for one in fields(message):
        value = getattr(message, one.name)
        if one.default is MISSING or value != one.default:
            found[one.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return plain(value)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return dict(value) if isinstance(value, Mapping) else value


T = TypeVar("T")


def read(kind: type[T], data: Any) -> T:
    """Return a message of this class, from plain data.

    Raises:
        Malformed: the data are of another form.
    """
    return cast(T, _reader(cast(Hashable, kind))(data, kind.__name__))


def make_ready(kinds: Iterable[type]) -> None:
    """Look the fields of these classes up now: `read` then works where their modules are no longer to be found."""
    for kind in kinds:
        _reader(cast(Hashable, kind))


def question_in(message: Mapping[str, Any], kinds: Iterable[type[Question[Any]]]) -> Question[Any]:
    """Return the question that a message asks.

    Raises:
        Malformed: it asks none of these kinds.
    """
    for kind in kinds:
        if kind.key in message:
            body = message[kind.key]
            return read(kind, {} if body is True else body)
    raise Malformed(f"unknown question {', '.join(sorted(message))}")


def shown(value: Any) -> str:
    """Return a value that came from elsewhere, short."""
    try:
        text = repr(value)
    except RecursionError:
        text = "lists in lists without an end"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_Reader = Callable[[Any, str], Any]


@functools.cache
def _reader(hint: Any) -> _Reader:
    """Reader of plain data for a type; its second argument names the place of the value."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return _anything
    if hint is Place:
        return lambda value, where: Place.from_json(
            value
        )  # by the judge alone, many at once, beside its clock
    if is_dataclass(hint):
        return _of_fields(hint)
    if origin is tuple:
        return _of_list(_reader(arguments[0]))
    if origin in (Union, types.UnionType):
        return _of_one([_reader(part) for part in arguments])
    if origin in (dict, typing.get_origin(Mapping[str, Any])):
        return _of_table(_reader(arguments[1]))
    if hint is float:
        return _number
    return _exactly(hint)


def _refused(value: Any, where: str, due: str) -> Malformed:
    return Malformed(f"{where}: expected {due}, got {shown(value)}")


def _anything(value: Any, where: str) -> Any:
    level = [value]
    for _ in range(DEEPEST):
        level = [part for one in level if isinstance(one, list | dict) for part in _parts(one)]
        if not level:
            return value
    raise _refused(value, where, f"at most {DEEPEST} lists in each other")


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _exactly(kind: type) -> _Reader:
    names = {str: "a text", int: "a whole number", bool: "true or false", types.NoneType: "null"}

    def reader(value: Any, where: str) -> Any:
        if type(value) is not kind:
            raise _refused(value, where, names[kind])
        return value

    return reader


def _number(value: Any, where: str) -> float:
    try:
        if type(value) in (int, float):
            return float(value)
    except OverflowError:
        pass
    raise _refused(value, where, "a number")


def _of_list(inner: _Reader) -> _Reader:
    def reader(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _refused(value, where, "a list")
        return tuple([inner(part, where) for part in value])

    return reader


def _of_table(inner: _Reader) -> _Reader:
    def reader(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _refused(value, where, "a table")
        return {name: inner(part, where) for name, part in value.items()}

    return reader


def _of_one(inner: list[_Reader]) -> _Reader:
    def reader(value: Any, where: str) -> Any:
        for number, one in enumerate(inner, start=1):
            try:
                return one(value, where)
            except Malformed:
                if number == len(inner):
                    raise
        return None

    return reader


def _of_fields(kind: Any) -> _Reader:
    hints = typing.get_type_hints(kind)
    readers = {one.name: _reader(hints[one.name]) for one in fields(kind)}
    needed = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
    places = {name: f"{kind.__name__}.{name}" for name in readers}

    def reader(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _refused(value, where, "a table")
        if missing := needed - value.keys():
            raise Malformed(f"{kind.__name__}: no {', '.join(sorted(missing))}")
        if unknown := value.keys() - readers.keys():
            raise Malformed(f"{kind.__name__}: unknown {shown(min(unknown))}")
        return kind(**{name: readers[name](part, places[name]) for name, part in value.items()})

    return reader
