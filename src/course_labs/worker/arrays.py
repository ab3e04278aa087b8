"""NumPy arrays in a student's hands: which functions they call on them."""

from __future__ import annotations

import contextlib
import functools
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from course_judge.protocol.layout import Place
from course_judge.protocol.messages import Answer, Memory, Output, Question
from course_judge.protocol.shared_memory import taken
from course_judge.worker.forbidden_calls import Watch
from course_labs.protocol.array_memory import EVERY, FIRST, array_at
from course_labs.protocol.messages import ArrayCall, ArrayOutputs


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Making room, and asking about it.
ALLOCATIONS = _words(
    "numpy.empty_like numpy.zeros_like numpy.ones_like numpy.full_like numpy.shape numpy.ndim numpy.size "
    "numpy.result_type numpy.may_share_memory numpy.array_repr numpy.array_str"
)
METHODS = _words(
    "T mT transpose swapaxes sum mean prod cumsum cumprod dot max min argmax argmin std var sort argsort "
    "partition searchsorted trace take choose compress repeat copy astype round clip tolist tobytes "
    "__matmul__ __rmatmul__ __imatmul__ __copy__ __deepcopy__"
)

VIEWS = _words("T mT transpose swapaxes")  # they move nothing yet
# Open to everybody but where a lab refuses them: they look at numbers in another order, keep them, choose, or cut.
OPEN = frozenset(
    f"numpy.ndarray.{name}"
    for name in VIEWS | _words("copy __copy__ __deepcopy__ astype round clip argmax argmin")
) | _words(
    "numpy.where numpy.clip numpy.round numpy.around numpy.argmax numpy.argmin numpy.copy numpy.any numpy.all "
    "numpy.logical_or.reduce numpy.logical_and.reduce numpy.flatnonzero numpy.nonzero numpy.count_nonzero "
    "numpy.ix_ numpy.expand_dims numpy.squeeze numpy.broadcast_to numpy.atleast_1d numpy.atleast_2d"
)

# They look at nobody's class, or make an array from nothing. What they give is watched as well.
ROOM = _words("empty zeros ones full")
MAKERS = ROOM | _words("eye identity arange array asarray ascontiguousarray asfortranarray")
# Ways to an array of another kind, or to one's numbers past the class that watches.
WAYS_OUT = _words("matrix asmatrix bmat frombuffer fromfile fromiter fromstring from_dlpack memmap")
PEEPHOLES = _words("base data ctypes flat __array_interface__ __array_struct__ __buffer__ __dlpack__")
COPIERS = _words("array asarray ascontiguousarray asfortranarray")  # of them, those that are given numbers


@dataclass(frozen=True)
class _Rules:
    watch: Watch
    allow: frozenset[str]
    refuse: frozenset[str]
    longest: int  # of an axis of an array that the student makes; 0 for any
    shapes: frozenset[tuple[int, ...]]  # of the inputs: an array like one of them is let through
    at_once: int  # numbers that one step may read, work out or write; 0 for any
    # Rooms that are too long for all but an answer: each with what is said of it, and of which line, if it is none.
    rooms: list[tuple[np.ndarray, str, int | None]]


_rules: list[_Rules] = []

np.add.outer(0, 0)  # its first call asks for np.matrix, and must not meet what replaces it later


def _ask(name: str) -> None:
    rules = _rules[-1]
    if rules.watch.on and (name in rules.refuse if name in OPEN else name not in rules.allow):
        rules.watch.refuse(f"calls NumPy's own {name}")


def _step(*values: Any) -> None:
    """Refuse a step of the student's that has more numbers before it than a program may have."""
    rules = _rules[-1]
    if rules.at_once and rules.watch.on:
        for value in values:
            # Whole numbers and booleans are positions and masks.
            if isinstance(value, np.ndarray) and value.dtype.kind not in "iub" and value.size > rules.at_once:
                what = f"works on {value.size} numbers in one step, and {rules.at_once} is the most"
                rules.watch.refuse(what, "holds too much")


def _made(array: Any, *sources: Any, room: bool = False) -> Any:
    """Return an array the student has made, watched; refused if it is too long.

    A view of a source holds nothing itself.

    Room waits until the student's function is back: the answer must lie somewhere.
    """
    if not isinstance(array, np.ndarray):
        return array
    rules, shape = _rules[-1], _without_ones(array.shape)
    if rules.longest and rules.watch.on and max(shape, default=0) > rules.longest:
        positions = array.dtype.kind in "iu"
        like_an_input = shape in rules.shapes or (
            len(shape) > 1 and any(shape == known[-len(shape) :] for known in rules.shapes)
        )
        if not (positions or like_an_input or _view_of(array, sources)):
            size = " × ".join(map(str, shape)) + (" numbers" if len(shape) == 1 else "")
            what = f"makes an array of {size}, and {rules.longest} is the most along an axis"
            if not room:
                rules.watch.refuse(what, "holds too much")
            rules.rooms.append((array, what, rules.watch.line()))
    return array.view(Watched)


def _view_of(array: np.ndarray, sources: Iterable[Any]) -> bool:
    return any(
        isinstance(source, np.ndarray) and np.may_share_memory(_plain(array), _plain(source))
        for source in sources
    )


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)


@contextmanager
def _resting() -> Iterator[None]:
    watch = _rules[-1].watch
    was, watch.on = watch.on, False
    try:
        yield
    finally:
        watch.on = was


class Watched(np.ndarray):
    """An array that says what is done with it."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        name = f"numpy.{ufunc.__name__}"
        watch, refuse = _rules[-1].watch, _rules[-1].refuse
        if method != "__call__":
            _ask(f"{name}.{method}")
        elif ufunc.signature is not None:  # matmul and its kin
            _ask(name)
        elif watch.on and name in refuse:
            watch.refuse(f"calls NumPy's own {name}")
        plain = [_plain(value) for value in inputs]
        if "out" in keywords:
            keywords["out"] = tuple(_plain(value) for value in keywords["out"])
        result = getattr(ufunc, method)(*plain, **keywords)
        _step(*plain, result)
        if "out" in keywords:
            outs = keywords["out"]
            return outs[0].view(Watched) if len(outs) == 1 else tuple(out.view(Watched) for out in outs)
        return _made(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = f"{func.__module__}.{func.__name__}"
        if name not in ALLOCATIONS:
            _ask(name)
            _step(*args)
        with _resting():  # what NumPy calls in turn is its own affair
            result = super().__array_function__(func, types, args, kwargs)
        if name == "numpy.empty_like":
            _poison(result)
        return _made(result, *args)

    def __iter__(self) -> Iterator[Any]:
        if _rules:
            _step(self)
        return super().__iter__()

    def __getitem__(self, key: Any) -> Any:
        result = super().__getitem__(key)
        if _rules and isinstance(result, np.ndarray) and not np.may_share_memory(result, self):
            _step(result)  # the numbers at an array of positions; a slice is a view, and reads nothing yet
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        if _rules:
            _step(_plain(self)[key])
        super().__setitem__(key, value)


def _poison(array: np.ndarray) -> None:
    """Fill room that was asked for empty, so that what is never written shows."""
    if array.dtype.kind == "f":
        _plain(array)[...] = np.nan


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Watched) else value


def _method(name: str) -> Any:
    inherited = getattr(np.ndarray, name)
    if callable(inherited):

        def method(self: Any, *args: Any, **keywords: Any) -> Any:
            _ask(f"numpy.ndarray.{name}")
            if name not in VIEWS:
                _step(self)
            with _resting():
                result = inherited(self, *args, **keywords)
            return _made(result, self)

        return method

    def attribute(self: Any) -> Any:
        _ask(f"numpy.ndarray.{name}")
        return inherited.__get__(self)

    return property(attribute)


@contextmanager
def makers_watched(watch: Watch) -> Iterator[None]:
    """Watch the arrays that students make themselves, too: copying A and B into it frees nobody."""

    def watching(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **keywords: Any) -> Any:
            array = make(*args, **keywords)
            if name == "empty":
                _poison(array)
            if _rules and watch.on and name in COPIERS and not _view_of(array, args):
                _step(array)
            return _made(array, *args, room=name in ROOM) if _rules and watch.on else array

        return made

    def closed(name: str, way: Any) -> Any:
        def refused(*args: Any, **keywords: Any) -> Any:
            if watch.on:
                watch.refuse(f"calls NumPy's own numpy.{name}")
            return way(*args, **keywords)

        return refused

    plain = {name: getattr(np, name) for name in MAKERS | WAYS_OUT if hasattr(np, name)}
    for name, make in plain.items():
        setattr(np, name, watching(name, make) if name in MAKERS else closed(name, make))
    try:
        yield
    finally:
        for name, make in plain.items():
            setattr(np, name, make)


def _peephole(name: str) -> Any:
    inherited = getattr(np.ndarray, name)

    def looked(self: Any) -> Any:
        if _rules and _rules[-1].watch.on:
            _rules[-1].watch.refuse(f"takes the numbers out of an array with {name}")
        return inherited.__get__(self) if hasattr(inherited, "__get__") else inherited

    return property(looked)


for _name in PEEPHOLES:
    if hasattr(np.ndarray, _name):
        setattr(Watched, _name, _peephole(_name))
for _name in METHODS:
    if hasattr(np.ndarray, _name):
        setattr(Watched, _name, _method(_name))


def watched(
    function: Callable[..., Any],
    watch: Watch,
    allow: Iterable[str],
    refuse: Iterable[str],
    longest: int = 0,
    at_once: int = 0,
    row_at_once: bool = False,
) -> Callable[..., Any]:
    """Return the student's function over arrays, as one that the checker can call.

    Args:
        longest: the longest axis of an array that the student makes, save one with the shape of an input, the room
            of the answer, and positions, which are whole numbers; 0 for any.
        at_once: the most numbers that one step of theirs may read, work out or write; 0 for any.
        row_at_once: whether that may be a row of the first input, in as many seats as the next power of two has.
    """

    last: list[tuple[np.ndarray, Watched]] = []  # inputs of the last call, each with what was handed over

    def handed(array: np.ndarray) -> Watched:
        """Return the same object for the same array: who keeps an answer for it meets it again."""
        for old, view in last:
            if old is array and (view.shape, view.strides) == (array.shape, array.strides):
                return view
        return array.view(Watched)

    def call(*inputs: np.ndarray, **options: Any) -> Any:
        shapes = frozenset(_without_ones(array.shape) for array in inputs)
        row = inputs[0].shape[-1] if row_at_once else 1
        most = max(at_once, 1 << (row - 1).bit_length()) if at_once else 0
        _rules.append(_Rules(watch, frozenset(allow), frozenset(refuse), longest, shapes, most, []))
        try:
            with watch.watching(), makers_watched(watch):
                views = [handed(array) for array in inputs]
                last[:] = zip(inputs, views, strict=True)
                result = function(*views, **options)
            several = result if isinstance(result, tuple | list) else (result,)
            answers = [array for array in several if isinstance(array, np.ndarray)]
            for room, what, line in _rules[-1].rooms:
                if answers and not any(np.may_share_memory(room, answer) for answer in answers):
                    watch.refuse(what, "holds too much", line)
            plain = tuple(_plain(array) for array in several)
            return plain if isinstance(result, tuple | list) else plain[0]
        finally:
            _rules.pop()

    return call


@contextmanager
def _weighed() -> Iterator[list[int]]:
    """Yield the most bytes held at once meanwhile, over what there was: arrays of every type, lists and numbers."""
    found = [0]
    tracemalloc.start()
    try:
        yield found
    finally:
        found[0] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


class Programs:
    """The function of a student's that says what one program does: counts its calls, and leaves some out.

    Attributes:
        started: how often it was called in the last call of theirs; -1 where the file has no such function.
        returned: true if it gave something back.
    """

    def __init__(self, module: ModuleType, name: str) -> None:
        """
        Args:
            module: the student's file, which calls the function by its name.
        """
        self.started, self.returned = -1, False
        self._runs = EVERY
        plain = getattr(module, name, None)
        if not callable(plain):
            return

        @functools.wraps(plain)
        def counted(*args: Any, **keywords: Any) -> Any:
            first, self.started = self.started == 0, self.started + 1
            if self._runs == EVERY or first is (self._runs == FIRST):
                result = plain(*args, **keywords)
                self.returned = self.returned or result is not None
                return result
            return None

        self.started = 0
        setattr(module, name, counted)

    def begin(self, runs: str) -> None:
        """Begin a call in which every program runs, the first alone, or all the others."""
        self._runs = runs
        if self.started >= 0:
            self.started, self.returned = 0, False


class ArrayAnswers:
    """Answers of a function over arrays, whose numbers are in shared memory."""

    def __init__(self, function: Callable[..., Any], programs: Programs) -> None:
        self._function, self._programs = function, programs
        self._memory: Any = None
        self._inputs: dict[Place, np.ndarray] = {}
        self._kept: list[np.ndarray] = []  # the answers that the grader has not let go of

    def answer(self, question: Question[Any], files: Sequence[int]) -> Answer:
        """Work in other memory, or call the function."""
        if isinstance(question, Memory):
            (file,) = files
            self._memory, self._inputs, self._kept = taken(file, question.size), {}, []
            return Answer()
        assert isinstance(question, ArrayCall)
        inputs = [self._input(place) for place in question.inputs]
        self._programs.begin(question.runs)
        weighed = _weighed() if question.weigh else contextlib.nullcontext([0])
        with np.errstate(all="ignore"), weighed as held:  # planted values make NaN on purpose
            result = self._function(*inputs, **question.options)
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        told, at = [], question.room
        for out in outputs:
            told.append(self._told(out, inputs, at))
            if isinstance(out, np.ndarray):
                at += -(-out.nbytes // 16) * 16
        if question.keep:
            self._kept = [out for out in outputs if isinstance(out, np.ndarray)]
        return ArrayOutputs(tuple(told), held[0], self._programs.started, self._programs.returned)

    def _input(self, place: Place) -> np.ndarray:
        """Return the same object for the same place: who keeps an answer for an array meets that array again."""
        if place not in self._inputs:
            self._inputs[place] = array_at(self._memory, place)
        return self._inputs[place]

    def _told(self, out: Any, inputs: list[np.ndarray], at: int) -> Output:
        """Describe an output, and put its numbers into shared memory."""
        if not isinstance(out, np.ndarray):
            return Output(type(out).__name__)
        fits = not out.dtype.hasobject and at + out.nbytes <= len(self._memory)
        if fits:
            self._memory[at : at + out.nbytes] = np.ascontiguousarray(out.view(np.ndarray)).tobytes()
        return Output(
            type(out).__name__,
            plain=type(out) is np.ndarray,
            dtype=out.dtype.str,
            shape=tuple(out.shape),
            strides=tuple(step // max(out.itemsize, 1) for step in out.strides),
            at=at if fits else -1,
            shares=next((n for n, x in enumerate(inputs) if np.may_share_memory(out, x)), -1),
            again=any(np.may_share_memory(out, kept) for kept in self._kept),
        )
