"""Watch over memory in Triton's interpreter: accesses past an end, over another's, in an order no card keeps.

The interpreter runs the programs of a launch one after the other, over plain host memory. So a load past the end
goes unnoticed as long as nothing comes of it, and two programs that store in one place come out right. Here every
load, store and atomic is looked at before it is done. Nothing outside of a known tensor is touched.

A kernel is given addresses that do not exist: every tensor lies far away from every other. So the tensor that an
address was worked out from is known however far past its end it goes. Hooks turn them into the true ones.
"""

from __future__ import annotations

import ctypes
import functools
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

READ_OUTSIDE = "read out of bounds"
STORED_OUTSIDE = "stored out of bounds"
OVERWRITTEN = "overwritten"  # several programs, or lanes of one, store different values in one place
ORDER = "depends on order"  # what is read, or left, depends on which program comes first
GRID = "too large a grid"
MOST_PROGRAMS = (2**31 - 1, 2**16 - 1, 2**16 - 1)  # of a launch, in each dimension

# Each tensor lies in the middle of a room of its own: half a room either side of it is no other tensor's.
# Every room begins above 2**47, where no true address is.
ROOM_BITS = 40
FIRST_ROOM = 2**15
PAGE = 4096  # an address keeps its place in a page, and so its alignment

FEW_SECONDS = 3.0  # of the processor, for the programs of a call that is asked to run few

# Operations in which the lanes of a program wait for each other, in a barrier or on the way through shared memory.
MEETINGS = ("barrier", "dot", "trans", "gather", "histogram", "cat", "reshape")
NO_ORDER = "on a card nothing says which of the two comes first"

# The bits of NaN where NumPy has no such type.
NAN_BITS = {"bf16": 0x7FC0, "fp8e5": 0x7F, "fp8e4nv": 0x7F, "fp8e5b16": 0x80, "fp8e4b8": 0x80}


@dataclass(frozen=True)
class Finding:
    """One thing that a kernel did.

    Attributes:
        kind: READ_OUTSIDE, STORED_OUTSIDE, OVERWRITTEN, ORDER or GRID.
        line: the line of the kernel's file; None where its source is in no file.
        text: what it did, in words, without the line.
    """

    kind: str
    line: int | None
    text: str


class _Place:
    """A known tensor: where it lies, and which program stored, read or added where in it.

    Programs are numbered on from launch to launch, so that what an earlier launch left needs no wiping.
    """

    def __init__(self, name: str, owner: Any, start: int, size: int, unit: int, room: int) -> None:
        self.name, self.owner = name, owner  # kept, so that nothing else is put at its address
        self.parameter = ""
        self.start, self.size, self.unit = start, size, unit
        self.base = (room << ROOM_BITS) + 2 ** (ROOM_BITS - 1) + start % PAGE
        self.down = np.uint64(self.base - start)  # from the address that is given to the true one
        self._marks: dict[str, np.ndarray] = {}
        self._marked_in: dict[str, int] = {}  # the last launch that did
        self._words: np.ndarray | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.parameter})" if self.parameter not in ("", self.name) else self.name

    def holds(self, address: int, size: int = 1) -> bool:
        """Return True if a piece of true memory is part of it."""
        return self.start <= address and address + size <= self.start + self.size

    def cells(self, addresses: np.ndarray, width: int) -> np.ndarray:
        """Elements at addresses that are given to kernels, all of them inside."""
        if width < self.unit:
            self._refine(width)
        offsets = (addresses - np.uint64(self.base)).view(np.int64)
        if self.unit > 1:
            offsets >>= self.unit.bit_length() - 1
        if width > self.unit:
            return np.add.outer(offsets.ravel(), np.arange(width // self.unit))
        return offsets

    def _refine(self, unit: int) -> None:
        """Keep one mark for each smaller element: a kernel sees another type than the tensor has."""
        times, self.unit, self._words = self.unit // unit, unit, None
        self._marks = {which: np.repeat(marks, times) for which, marks in self._marks.items()}

    def words(self) -> np.ndarray:
        """Return its memory, as whole numbers of the size of an element."""
        if self._words is None:
            memory = (ctypes.c_ubyte * (self.size // self.unit * self.unit)).from_address(self.start)
            self._words = np.ctypeslib.as_array(memory).view(f"u{self.unit}")
        return self._words

    def marks(self, which: str, launch: int) -> np.ndarray | None:
        """Last program that stored, added or read, for each element; None if none did in this launch."""
        return self._marks[which] if self._marked_in.get(which) == launch else None

    def mark(self, which: str, launch: int) -> np.ndarray:
        """Return the marks of a launch, to write to."""
        self._marked_in[which] = launch
        if which not in self._marks:
            self._marks[which] = np.zeros(self.size // self.unit, dtype=np.int32)
        return self._marks[which]


@dataclass
class Few:
    """Launches of which few programs are run: the first, the last third of them, and some between.

    Attributes:
        most: so many programs of a launch, at most.
        run: those that were.
        programs: all that the launches have.
        reach: elements that the launches can have stored, if no program stores more than one that was run.
        seconds: that all programs would take, by what one takes that is neither quick nor slow.
        updates: a program did an atomic.
        is_late: one took too long, and was ended.
    """

    most: int
    run: int = 0
    programs: int = 0
    reach: int = 0
    seconds: float = 0.0
    updates: bool = False
    is_late: bool = False
    _stored: int = 0  # elements, by the program that runs
    _largest: int = 0  # by one program of this launch
    _in_launch: int = 0
    _began: float = 0.0  # the program that runs
    _took: list[float] = field(default_factory=list)  # the programs of this launch, in seconds
    _until: float = 0.0

    def begin_launch(self, programs: int) -> list[int]:
        """Return the programs to run."""
        self._until = self._until or time.process_time() + FEW_SECONDS
        self._took = []
        self._in_launch, self._largest = programs, 0
        last = range(max(1, programs - self.most // 3), programs)  # where an index is largest
        between = range(1, max(1, programs - len(last)))
        some = random.Random(programs).sample(between, min(len(between), self.most - 1 - len(last)))
        chosen = [0, *sorted(some), *last] if programs else []
        self.programs += programs
        self.run += len(chosen)
        return chosen

    def end_program(self) -> None:
        """Note what the program before this stored, and how long it took; the first one marks memory for all."""
        now = time.process_time()
        if self._began:
            self._took.append(now - self._began)
        self._began = now
        self._largest, self._stored = max(self._largest, self._stored), 0

    def end_launch(self) -> None:
        """Note what the launch can have stored."""
        if self._stored:  # the last one, where all of them were run
            self.end_program()
        self.seconds += self._in_launch * (median(self._took) if self._took else 0.0)
        self._began = 0.0
        self.reach += self._in_launch * self._largest
        self._in_launch = 0

    def store(self, elements: int) -> None:
        """Note elements that are stored."""
        self._stored += elements

    def look_at_clock(self) -> None:
        """End the launch where it takes too long."""
        if time.process_time() > self._until:
            self.is_late = True
            raise _EndOfLaunch


@dataclass
class _Access:
    """Memory that one operation of one program reaches.

    Attributes:
        addresses: the true ones, of all elements.
        inside: which elements are in known tensors; None where all are that are not masked off.
        parts: for each tensor that is reached the elements, as the kernel addresses them and as a mask.
    """

    addresses: np.ndarray
    inside: np.ndarray | None
    parts: list[tuple[_Place, np.ndarray, np.ndarray]]


class Memory:
    """The tensors that kernels may touch, and what was found.

    Attributes:
        findings: in the order they were made, each kind once for a line.
        few: of each launch only these programs are run; None for all.
    """

    def __init__(self, shuffle: int | None = None) -> None:
        self.findings: list[Finding] = []
        self.few: Few | None = None
        self._places: list[_Place] = []
        self._shuffle = random.Random(shuffle) if shuffle is not None else None
        self._order: list[int] = []
        self._begun = 0  # programs of this launch
        self._file = ""
        self._grid = (1, 1, 1)
        self._launch = 0
        self._before = 0  # one before this launch's first program; as a reader, it means several
        self._programs = 1
        self._program = 0
        self._masked = True  # false while a load or store runs that has no mask
        self._synchronised = False  # this program has done an atomic that orders memory
        self._handed_over: set[int] = set()  # programs that ended with such an atomic, after all they stored
        self._unsettled: list[tuple[_Place, Finding]] = []  # reads, perhaps half of an addition
        self._meeting = 0  # counts where all lanes of a program wait for each other
        self._lanes: dict[
            _Place, np.ndarray
        ] = {}  # for each element the meeting, and the lane that stored since

    # --- what is known ----------------------------------------------------------------------

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Let kernels touch this tensor too; part of a known one is known already."""
        size = 1 + sum((n - 1) * abs(stride) for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
        size = size * tensor.element_size() if tensor.numel() else 0
        self._add(name, tensor, tensor.data_ptr(), size, tensor.element_size())

    def _add(self, name: str, owner: Any, start: int, size: int, unit: int) -> _Place:
        known = self._place_of(start, size)
        if known is None:
            known = _Place(name, owner, start, size, unit, FIRST_ROOM + len(self._places))
            self._places.append(known)
        return known

    def _place_of(self, start: int, size: int) -> _Place | None:
        return next((place for place in self._places if place.holds(start, size)), None)

    def _argument(self, tensor: Any, parameter: str = "") -> _Place:
        """Place of an argument of a launch; one that nobody added is known by its parameter from here on."""
        # triton.reinterpret wraps a tensor of another type.
        plain = tensor if hasattr(tensor, "untyped_storage") else tensor.base
        start, unit = plain.data_ptr(), plain.element_size()
        if not plain.numel():
            return self._add("an empty tensor", plain, start, 0, unit)
        place = self._place_of(start, unit)
        if place is None:
            storage = plain.untyped_storage()
            place = self._add(parameter or "a tensor", plain, storage.data_ptr(), storage.nbytes(), unit)
        place.parameter = parameter or place.parameter
        return place

    # --- launches and programs --------------------------------------------------------------

    @property
    def launches(self) -> int:
        """Launches so far."""
        return self._launch

    def _begin_launch(self, grid: tuple[int, int, int]) -> None:
        self._settle()
        self._launch += 1
        self._before += self._programs + 1
        self._grid, self._programs = grid, math.prod(grid)
        self._handed_over.clear()
        self._order, self._begun = [], 0
        if self.few:
            self._order = self.few.begin_launch(self._programs)
            self._programs = len(self._order)
        elif self._shuffle:
            self._order = list(range(self._programs))
            self._shuffle.shuffle(self._order)

    def _look_at_grid(self, grid: tuple[int, int, int]) -> None:
        for which, size, most in zip(("first", "second", "third"), grid, MOST_PROGRAMS, strict=True):
            if size > most:
                self._note(GRID, f"a grid of {size} programs in its {which} dimension; a card takes {most}")

    def _begin_program(self, x: int, y: int, z: int) -> tuple[int, int, int]:
        """Return the program to run where (x, y, z) is due."""
        self._settle()
        _, columns, layers = self._grid
        if self.few:
            self.few.end_program()
            if self._begun == len(self._order):
                raise _EndOfLaunch
            number, self._program = self._order[self._begun], self._before + 1 + self._begun
        else:
            number = (x * columns + y) * layers + z
            if self._order:
                number = self._order[number]
            self._program = self._before + 1 + number
        self._begun += 1
        self._synchronised = False
        self._meet()
        return self._place_in_grid(number)

    def _place_in_grid(self, number: int) -> tuple[int, int, int]:
        _, columns, layers = self._grid
        return number // (columns * layers), number // layers % columns, number % layers

    def _called(self, program: int) -> str:
        number = program - self._before - 1
        if self.few:
            number = self._order[number]
        x, y, z = self._place_in_grid(number)
        if self._grid[2] > 1:
            return f"program ({x}, {y}, {z})"
        return f"program ({x}, {y})" if self._grid[1] > 1 else f"program {x}"

    # --- findings ---------------------------------------------------------------------------

    def _line(self) -> int | None:
        """Return the line of the innermost frame in the file of the kernel that was launched."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._file:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return None

    def _note(self, kind: str, text: str, unsettled: _Place | None = None) -> None:
        finding = Finding(kind, self._line(), text)
        if any((known.kind, known.line) == (kind, finding.line) for known in self.findings):
            return
        if unsettled is not None:
            self._unsettled.append((unsettled, finding))
        else:
            self.findings.append(finding)

    def _settle(self) -> None:
        for _, finding in self._unsettled:
            if all((known.kind, known.line) != (finding.kind, finding.line) for known in self.findings):
                self.findings.append(finding)
        self._unsettled.clear()

    def _note_outside(self, kind: str, does: str, what: str, addresses: np.ndarray, width: int) -> None:
        """Addresses outside of the tensors they were worked out from."""
        rooms = (addresses >> np.uint64(ROOM_BITS)).astype(np.int64) - FIRST_ROOM
        for room in np.unique(rooms):
            there = addresses[rooms == room]
            if not 0 <= room < len(self._places):
                where = f"{_elements(len(there))} at an address in no tensor"
            else:
                place = self._places[room]
                before = int((there < np.uint64(place.base)).sum())
                past = len(there) - before
                sides = [f"{_elements(before)} before the start"] * (before > 0)
                sides += [f"{_elements(past)} past the end"] * (past > 0)
                where = f"{' and '.join(sides)} of {place}, which has {_elements(place.size // width)}"
            without = "" if self._masked else f"; the {what} has no mask"
            self._note(kind, f"{self._called(self._program)} {does} {where}{without}")

    # --- memory operations ------------------------------------------------------------------

    def _look(self, addresses: np.ndarray, active: np.ndarray, width: int) -> _Access:
        """Places that the addresses lead to, of lanes that are not masked off."""
        used = addresses if active.all() else addresses[active]
        if not used.size:
            return _Access(addresses, None, [])
        low, high = int(used.min()), int(used.max())
        room = (low >> ROOM_BITS) - FIRST_ROOM
        if 0 <= room < len(self._places):
            place = self._places[room]
            if place.base <= low and high + width <= place.base + place.size:
                return _Access(addresses - place.down, None, [(place, used.ravel(), active)])
        return self._look_closely(addresses, active, width)

    def _look_closely(self, addresses: np.ndarray, active: np.ndarray, width: int) -> _Access:
        """Return the same, of addresses in several tensors, or outside."""
        true, inside, parts = addresses.copy(), np.zeros(addresses.shape, dtype=bool), []
        for place in self._places:
            if place.size < width:
                continue
            # A table of pointers holds true addresses.
            by_hand = (addresses >= place.start) & (addresses <= place.start + place.size - width)
            given = np.where(by_hand, addresses + place.down, addresses)
            here = active & (given >= place.base) & (given <= place.base + place.size - width)
            if here.any():
                true[here] = given[here] - place.down
                inside |= here
                parts.append((place, given[here], here))
        return _Access(true, inside, parts)

    def _load(self, addresses: np.ndarray, active: np.ndarray, width: int) -> _Access:
        """Look at a load."""
        if self.few:
            self.few.look_at_clock()
        access = self._look(addresses, active, width)
        if access.inside is not None:
            self._note_outside(READ_OUTSIDE, "reads", "load", addresses[active & ~access.inside], width)
        for place, used, here in access.parts:
            if place in self._lanes:
                self._loaded_by_lanes(place, place.cells(used, width), here)
            if self._programs > 1:
                self._loaded(place, place.cells(used, width))
        return access

    def _meet(self) -> None:
        """Note that what lanes of this program have stored is there for all of them from here on."""
        self._meeting += 1
        self._lanes.clear()

    def _stored_by_lanes(self, place: _Place, cells: np.ndarray, here: np.ndarray) -> None:
        if place not in self._lanes or len(self._lanes[place]) != place.size // place.unit:
            self._lanes[place] = np.zeros(place.size // place.unit, dtype=np.int32)
        self._lanes[place][cells] = _lanes(cells, here)

    def _loaded_by_lanes(self, place: _Place, cells: np.ndarray, here: np.ndarray) -> None:
        """Look for what another lane of this program has stored since they met: nothing makes it wait for that one."""
        if len(self._lanes[place]) != place.size // place.unit:
            return  # its elements are smaller now
        stored = self._lanes[place][cells]
        others = (stored > 0) & (stored != _lanes(cells, here))
        if others.any():
            self._note(
                ORDER,
                f"{self._called(self._program)} reads {_elements(np.count_nonzero(others))} of {place} that other "
                "lanes of it have stored, and nothing makes them wait for each other: tl.debug_barrier() does",
            )

    def _loaded(self, place: _Place, cells: np.ndarray) -> None:
        me, several = self._program, self._before
        stored = self._others(place, "stored", cells)
        if stored is not None:
            self._note(
                ORDER,
                f"{self._called(me)} reads {_elements(np.count_nonzero(stored))} of {place} that "
                f"{self._first(stored)} has stored in the same launch: {NO_ORDER}",
                unsettled=place,
            )
        marks = place.mark("read", self._launch)
        readers = marks[cells]
        first, last = readers.min(), readers.max()
        if last < several:
            marks[cells] = me
        elif not first == last in (me, several):
            marks[cells] = np.where((readers < several) | (readers == me), me, several)

    def _store(
        self, addresses: np.ndarray, values: np.ndarray, active: np.ndarray, do: Callable[[_Access], None]
    ) -> None:
        """Look at a store, and have done what of it is inside."""
        width = values.itemsize
        access = self._look(addresses, active, width)
        if access.inside is not None:
            self._note_outside(STORED_OUTSIDE, "stores", "store", addresses[active & ~access.inside], width)
        pieces = []
        for place, used, here in access.parts:
            cells = place.cells(used, width)
            bits = values.ravel() if here.all() else values[here]
            bits = np.ascontiguousarray(bits).view(f"u{place.unit}").reshape(cells.shape)
            pieces.append((place, cells, bits))
            if self.few:
                self.few.store(cells.size)
            if addresses.size > 1:
                self._stored_by_lanes(place, cells, here)
            if self._programs > 1:
                self._will_store(place, cells, bits)
        do(access)
        for place, cells, bits in pieces:
            lost = np.count_nonzero(place.words()[cells] != bits)
            if lost:
                self._note(
                    OVERWRITTEN,
                    f"one store of {self._called(self._program)} puts several values in one place of {place}: "
                    f"{lost} of {_elements(bits.size)} are lost",
                )

    def _will_store(self, place: _Place, cells: np.ndarray, bits: np.ndarray) -> None:
        earlier = {which: self._others(place, which, cells) for which in ("stored", "added", "read")}
        if any(programs is not None for programs in earlier.values()):
            differs = place.words()[cells] != bits
            for which, programs in earlier.items():
                if programs is not None and (programs[differs] > 0).any():
                    self._note_overwritten(place, which, programs, (programs > 0) & differs, cells)
                    break
        place.mark("stored", self._launch)[cells] = self._program
        self._handed_over.discard(self._program)

    def _note_overwritten(
        self, place: _Place, which: str, programs: np.ndarray, where: np.ndarray, cells: np.ndarray
    ) -> None:
        me, other = self._called(self._program), self._first(programs[where])
        what = f"{_elements(np.count_nonzero(where))} of {place}"
        if which == "read":
            self._note(
                ORDER,
                f"{me} stores another value in {what} that {other} has read in the same launch: {NO_ORDER}",
            )
            return
        # What this program has read there it has read to add to it, and that is the same fault.
        self._unsettled = [(there, finding) for there, finding in self._unsettled if there is not place]
        marks = place.marks("read", self._launch)
        readers = None if marks is None else marks[cells][where]
        if readers is not None and ((readers == self._program) | (readers == self._before)).all():
            self._note(
                OVERWRITTEN,
                f"{me} reads, changes and stores {what} where {other} has stored: "
                "on a card both may do so at once, and one change is lost",
            )
            return
        did = "stored another value" if which == "stored" else "added by an atomic"
        self._note(
            OVERWRITTEN,
            f"{me} stores to {what} where {other} has {did}",
        )

    def _atomic(self, addresses: np.ndarray, active: np.ndarray, width: int, orders: bool) -> _Access:
        """Look at an atomic; `orders`: it also orders what this program stores and loads."""
        if self.few:
            self.few.updates = True
            self.few.look_at_clock()
        if orders:
            self._meet()
        access = self._look(addresses, active, width)
        if access.inside is not None:
            self._note_outside(STORED_OUTSIDE, "updates", "atomic", addresses[active & ~access.inside], width)
        if self._programs > 1:
            for place, used, _ in access.parts:
                cells = place.cells(used, width)
                stored = self._others(place, "stored", cells)
                if stored is not None:
                    self._note(
                        ORDER,
                        f"{self._called(self._program)} updates {_elements(np.count_nonzero(stored))} of {place} by "
                        f"an atomic that {self._first(stored)} has stored in the same launch: {NO_ORDER}",
                    )
                place.mark("added", self._launch)[cells] = self._program
            if orders:
                self._synchronised = True
                self._handed_over.add(self._program)
        return access

    def _others(self, place: _Place, which: str, cells: np.ndarray) -> np.ndarray | None:
        """Other program of this launch that did this, for each element, else 0; None if none did.

        A program that ended with an atomic has handed over to one that has begun with an atomic: that is how a lock
        and a count of those who are done work.
        """
        marks = place.marks(which, self._launch)
        if marks is None:
            return None
        programs = marks[cells]
        others = (programs >= self._before) & (programs != self._program)
        if not others.any():
            return None
        if self._synchronised:
            others &= ~np.isin(programs, [self._before, *self._handed_over])
        return np.where(others, programs, 0) if others.any() else None

    def _first(self, programs: np.ndarray) -> str:
        number = int(programs[programs > 0][0])
        return "another program" if number == self._before else self._called(number)


@contextmanager
def watched_memory(
    tensors: Mapping[str, torch.Tensor] | None = None, *, shuffle: int | None = None
) -> Iterator[Memory]:
    """Look at every load, store and atomic of the kernels that Triton interprets in here.

    Args:
        tensors: what kernels may touch, by name. Further ones with `Memory.add`; an argument of a launch that is
            part of none of them is known by its parameter, with all of its storage.
        shuffle: run the programs of each launch in an order drawn from this seed, instead of from the first on.
    """
    from triton.runtime import interpreter

    if _ACTIVE:
        raise RuntimeError("memory is watched already")
    memory = Memory(shuffle)
    for name, tensor in (tensors or {}).items():
        memory.add(name, tensor)
    builder = interpreter.InterpreterBuilder
    hooks = [
        (interpreter.GridExecutor, "__call__", _hook_launch),
        (interpreter, "_implicit_cvt", _hook_argument),
        (builder, "set_grid_dim", _hook_grid),
        (builder, "set_grid_idx", _hook_program),
        (builder, "create_load", _hook_unmasked),
        (builder, "create_store", _hook_unmasked),
        (builder, "create_masked_load", _hook_load),
        (builder, "create_masked_store", _hook_store),
        (builder, "create_atomic_rmw", _hook_update),
        (builder, "create_atomic_cas", _hook_swap),
        *((builder, f"create_{name}", _hook_meeting) for name in MEETINGS),
        (interpreter.ReduceOps, "apply", _hook_meeting),
        (interpreter.ScanOps, "apply", _hook_meeting),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in hooks]
    _ACTIVE.append(memory)
    try:
        for (owner, name, hook), (_, _, original) in zip(hooks, originals, strict=True):
            setattr(owner, name, hook(memory, original, interpreter))
        yield memory
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
        _ACTIVE.clear()


_ACTIVE: list[Memory] = []  # hooks on hooks would take each other's addresses for true ones


class _EndOfLaunch(BaseException):
    """The end of a launch of which few programs are run; no error, which the interpreter would wrap in its own."""


# --- hooks: each is given the memory, what it stands in for, and the interpreter's module ---------


def _hook_launch(memory: Memory, original: Callable[..., Any], _: Any) -> Callable[..., Any]:
    def call(executor: Any, *arguments: Any, **named: Any) -> Any:
        memory._file = executor.fn.__code__.co_filename
        given = dict(zip(executor.arg_names, arguments, strict=False)) | named
        for parameter in executor.arg_names:
            for tensor in _tensors_in(given.get(parameter)):
                memory._argument(tensor, parameter)
        try:
            return original(executor, *arguments, **named)
        except _EndOfLaunch:
            return None
        finally:
            if memory.few:
                memory.few.end_launch()
            memory._settle()

    return call


def _tensors_in(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for one in value:
            yield from _tensors_in(one)
    elif hasattr(value, "block_shape"):  # a tensor descriptor
        yield value.base
    elif hasattr(value, "data_ptr"):
        yield value


def _hook_argument(memory: Memory, original: Callable[..., Any], _: Any) -> Callable[..., Any]:
    def convert(argument: Any) -> Any:
        converted = original(argument)
        if hasattr(argument, "data_ptr"):
            converted.handle.data = converted.handle.data + memory._argument(argument).down
        return converted

    return convert


def _hook_grid(memory: Memory, original: Callable[..., Any], _: Any) -> Callable[..., Any]:
    def set_grid_dim(builder: Any, x: int, y: int, z: int) -> None:
        memory._look_at_grid((x, y, z))
        original(builder, x, y, z)
        memory._begin_launch((x, y, z))

    return set_grid_dim


def _hook_program(memory: Memory, original: Callable[..., Any], _: Any) -> Callable[..., Any]:
    def set_grid_idx(builder: Any, x: int, y: int, z: int) -> None:
        original(builder, *memory._begin_program(x, y, z))

    return set_grid_idx


def _hook_unmasked(memory: Memory, original: Callable[..., Any], _: Any) -> Callable[..., Any]:
    def operation(*arguments: Any) -> Any:
        memory._masked = False
        try:
            return original(*arguments)
        finally:
            memory._masked = True

    return operation


def _hook_load(memory: Memory, original: Callable[..., Any], interpreter: Any) -> Callable[..., Any]:
    def create_masked_load(builder: Any, ptrs: Any, mask: Any, other: Any, *how: Any, **named: Any) -> Any:
        active = _yes_or_no(mask)
        element = ptrs.get_element_ty()
        width = max(1, getattr(element, "primitive_bitwidth", 64) // 8)  # 64: a pointer's own
        access = memory._load(ptrs.data, active, width)
        if access.inside is not None:
            mask = interpreter.TensorHandle(access.inside, interpreter.tl.int1)
        true = interpreter.TensorHandle(access.addresses, ptrs.dtype)
        result = original(builder, true, mask, other, *how, **named)
        if access.inside is not None:
            result.data[active & ~access.inside] = _nothing(element, result.data.dtype)
        return result

    return create_masked_load


def _hook_store(memory: Memory, original: Callable[..., Any], interpreter: Any) -> Callable[..., Any]:
    def create_masked_store(builder: Any, ptrs: Any, value: Any, mask: Any, *how: Any) -> None:
        def do(access: _Access) -> None:
            inside = mask
            if access.inside is not None:
                inside = interpreter.TensorHandle(access.inside, interpreter.tl.int1)
            true = interpreter.TensorHandle(access.addresses, ptrs.dtype)
            original(builder, true, value, inside, *how)

        memory._store(ptrs.data, np.broadcast_to(value.data, ptrs.data.shape), _yes_or_no(mask), do)

    return create_masked_store


def _hook_update(memory: Memory, original: Callable[..., Any], interpreter: Any) -> Callable[..., Any]:
    def create_atomic_rmw(builder: Any, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        orders = sem != interpreter._ir.MEM_SEMANTIC.RELAXED
        active = _yes_or_no(mask)
        access = memory._atomic(ptr.data, active, val.data.itemsize, orders)
        if access.inside is not None:
            mask = interpreter.TensorHandle(access.inside, interpreter.tl.int1)
        true = interpreter.TensorHandle(access.addresses, ptr.dtype)
        result = original(builder, op, true, val, mask, sem, scope)
        if access.inside is not None:
            result.data[active & ~access.inside] = _nothing(val.get_element_ty(), result.data.dtype)
        return result

    return create_atomic_rmw


def _hook_swap(memory: Memory, original: Callable[..., Any], interpreter: Any) -> Callable[..., Any]:
    def create_atomic_cas(builder: Any, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        orders = sem != interpreter._ir.MEM_SEMANTIC.RELAXED
        everything = np.ones(ptr.data.shape, dtype=bool)
        access = memory._atomic(ptr.data, everything, val.data.itemsize, orders)
        if access.inside is None:
            true = interpreter.TensorHandle(access.addresses, ptr.dtype)
            return original(builder, true, cmp, val, sem, scope)
        # It has no mask: what is outside is left out.
        there = access.inside
        found = np.full(there.shape, _nothing(cmp.get_element_ty(), cmp.data.dtype), dtype=cmp.data.dtype)
        if there.any():
            parts = (
                interpreter.TensorHandle(np.broadcast_to(data, there.shape)[there], handle.dtype)
                for data, handle in ((access.addresses, ptr), (cmp.data, cmp), (val.data, val))
            )
            found[there] = original(builder, *parts, sem, scope).data
        return interpreter.TensorHandle(found, cmp.dtype.scalar)

    return create_atomic_cas


def _hook_meeting(memory: Memory, original: Callable[..., Any], _: Any) -> Callable[..., Any]:
    def operation(*arguments: Any, **named: Any) -> Any:
        memory._meet()
        return original(*arguments, **named)

    return operation


def _lanes(cells: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Return the number of the lane of each element, from 1 on."""
    lanes = (np.flatnonzero(here) + 1).astype(np.int32)
    return lanes[:, None] if cells.ndim > 1 else lanes


def _nothing(element: Any, dtype: np.dtype) -> Any:
    """Return the value that is read where nothing is: NaN if the type has one."""
    return math.nan if dtype.kind == "f" else NAN_BITS.get(str(element), 0)


def _elements(count: Any) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


def _yes_or_no(mask: Any) -> np.ndarray:
    """Return a mask's data; the interpreter leaves whole numbers where a mask was made with a plain True or False."""
    return np.asarray(mask.data).astype(bool, copy=False)


class _FirstConfiguration:
    """A kernel that `triton.autotune` would time on a card: here it runs in the first of its configurations."""

    def __init__(self, kernel: Any, configurations: Sequence[Any]) -> None:
        self.fn, self._first = kernel, configurations[0] if configurations else None
        self.arg_names = kernel.arg_names

    def __getitem__(self, grid: Any) -> Any:
        return functools.partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch the kernel."""
        chosen = self._first.all_kwargs() if self._first else {}
        if self._first and self._first.pre_hook:
            self._first.pre_hook({**dict(zip(self.arg_names, args, strict=False)), **kwargs, **chosen})
        return self.fn.run(*args, grid=grid, warmup=warmup, **{**chosen, **kwargs})


def take_the_first_configuration() -> None:
    """Have `triton.autotune` time nothing: the interpreter has no clock of a card, and left alone it asks for one."""
    import triton

    def autotune(configs: Sequence[Any], *_: Any, **__: Any) -> Any:
        return lambda kernel: _FirstConfiguration(kernel, configs)

    triton.autotune = autotune
