"""A judge that is weak on purpose: which of a student's kernels cheat it, and what a mended one must tell apart.

A cheat is called a few times in the process that runs the student's file. What comes back is looked at here, as the
weak judge would and then without its hole. A student's judge is handed kernels that `drive.py` makes there.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_labs.interactive_cases import Asked, Play, Slip

DRIVE = Path(__file__).with_name("drive.py")
TOLERANCE = 1e-5
SAME, COMPARED, ROOM, SIZE, CLOCK = HOLES = range(1, 6)
CALLED = {
    SAME: "the same numbers in every call",
    COMPARED: "a comparison by the mean",
    ROOM: "the truth left in the room",
    SIZE: "one size",
    CLOCK: "a clock that is read early, an input that nobody looks at again",
}
SMALL = (4, 8, 8)  # the one size of the weak judge: rows, columns, and the pitch of its lines
SIZES = (SMALL, (1, 1, 3), (5, 7, 9), (33, 40, 40), (50, 100, 110))

NEXT_OF_A_FORM = "a pair: True or False, and the bytes of the last call."
NEXT_OF_LOOKING = (
    "a judge knows a kernel by what it does when it is called: names and sources are free to lie."
)
NEXT_OF_A_REFUSED_CHEAT = (
    "the other four holes are mended here, with many sizes and fresh room: use the hole of this stage alone."
)
NEXT_OF_ENDLESS = "some calls for each size are enough: does every loop end?"


@dataclass(frozen=True)
class Kernel:
    """A kernel that a student's judge is asked about.

    Attributes:
        says: what it does, in a complaint.
        name, options: as in drive.py.
        next: what to try if it is judged wrongly.
        may_pass: if it is a cheat of the clock alone: whoever counts all its bytes may call it right.
    """

    says: str
    name: str
    options: Any = field(default_factory=dict)
    next: str = ""
    may_pass: bool = False


def honest(rng: random.Random) -> list[Kernel]:
    """Kernels that are right."""
    digits = "the task allows each element to differ by 1e-5: is yours stricter, or are small elements?"
    kept = "what a kernel keeps is its own affair, as long as its answers are right."
    time = "a kernel may use both streams: wait for all, and count all."
    return [
        Kernel("works in one launch", "plain"),
        Kernel("waits for its own work", "waits"),
        Kernel("works row by row", "by_row"),
        Kernel("works in float64", "in_double"),
        Kernel("works in three passes", "in_passes"),
        Kernel("goes through the columns in blocks", "online", {"block": rng.choice([3, 4, 16])}),
        Kernel("takes powers of two", "in_powers_of_two"),
        Kernel("uses both streams", "two_streams", {}, time),
        Kernel("starts work from work", "started_by_work", {}, time),
        Kernel("starts work from the other stream's work", "late_again", {}, time),
        Kernel("differs by 8e-6, as it may", "rounded", {"by": rng.choice([8e-6, -8e-6])}, digits),
        Kernel("writes 0 for elements below 5e-6, as it may", "flushed", {}, digits),
        Kernel("keeps room from call to call", "keeps_room", {}, kept),
        Kernel("sums up in another order each time", "other_order", {}, digits),
    ]


def cheats(hole: int, rng: random.Random) -> list[Kernel]:
    """Kernels that use one hole."""
    return {
        SAME: _same_numbers,
        COMPARED: _compared,
        ROOM: _room,
        SIZE: _size,
        CLOCK: _clock,
    }[hole](rng)


def _same_numbers(rng: random.Random) -> list[Kernel]:
    advice = "do two calls of one size see the same numbers? And two judgements, with another `draw`?"
    return [
        Kernel("keeps the first answer of each size", "cached", {"by": "shape"}, advice),
        Kernel("keeps its first answer", "cached", {"by": "nothing"}, advice),
        Kernel("writes the answer of the call before", "one_behind", {}, advice),
        Kernel("knows what default_rng(0) draws", "known_numbers", {"seed": 0}, advice),
        Kernel("replays an earlier judgement", "replays", {}, advice),
    ]


def _compared(rng: random.Random) -> list[Kernel]:
    mean = "a mean forgives one element what all the others have to spare: which of them decides?"
    nan = "every comparison with NaN is false: ask what must be so, not what must not."
    by = rng.choice([1, -1]) * rng.uniform(1.5e-4, 2.5e-4)
    where = rng.choice(["first", "last", "largest"])
    one = f"gets one element wrong, by {abs(by):.1g}"
    return [
        Kernel(one, "off", {"where": "last", "by": 2e-4}, mean),
        Kernel(one, "off", {"where": "first", "by": -2e-4}, mean),
        Kernel(one, "off", {"where": where, "by": by}, mean),
        Kernel("gets its largest element wrong, by 3e-5", "off", {"where": "largest", "by": 3e-5}, mean),
        Kernel("gets one element too large and one too small", "up_and_down", {"by": 1e-4}, mean),
        Kernel("writes NaN", "all_nan", {}, nan),
        Kernel("writes one NaN", "off", {"where": where, "by": float("nan")}, nan),
    ]


def _room(rng: random.Random) -> list[Kernel]:
    left = (
        "what lies in the room before the kernel is called? It must be nothing that could pass for an answer."
    )
    added = "what if a kernel adds to what it finds? 0 is a number, too."
    return [
        Kernel("writes nothing", "leaves", {"what": "all"}, left),
        Kernel("leaves its last row", "leaves", {"what": "last row"}, left),
        Kernel("leaves its last column", "leaves", {"what": "last column"}, left),
        Kernel("writes every other row", "leaves", {"what": "odd rows"}, left),
        Kernel("leaves its last element", "leaves", {"what": "one element"}, left),
        Kernel("adds to what it finds in the room", "adds", {}, added),
    ]


def _size(rng: random.Random) -> list[Kernel]:
    size = "ask the smallest size, the largest, one that is no multiple of anything, and some that you draw."
    line = "rows that do not follow each other: when is the pitch larger than the number of columns?"
    tile, most = rng.choice([3, 4, 8, 16, 32]), rng.randint(40, 90)
    return [
        Kernel("knows 4 rows of 8 columns alone", "four_by_eight", {}, size),
        *(
            Kernel(f"is right {says} alone", "only", {"when": when}, size)
            for says, when in (
                ("up to 8 columns", "columns< 9"),
                ("up to 4 rows", "rows< 5"),
                ("up to 64 columns", "columns< 65"),
                ("up to 32 rows", "rows< 33"),
                ("for multiples of 4 columns", "columns% 4"),
                (f"for multiples of {tile} columns", f"columns% {tile}"),
                ("for an even number of rows", "rows% 2"),
                ("below 100 columns", "columns< 100"),
                ("below 50 rows", "rows< 50"),
                ("from 2 columns up", "columns> 1"),
                ("from 2 rows up", "rows> 1"),
                (f"up to {most} columns", f"columns< {most + 1}"),
            )
        ),
        Kernel("is right where rows follow each other alone", "only", {"when": "contiguous"}, line),
        Kernel("writes into a flat copy of its output", "raveled", {}, line),
        Kernel("reads lines as long as the rows", "strided", {}, line),
    ]


def _clock(rng: random.Random) -> list[Kernel]:
    time = "its answer is right. Its bytes are the sum over both streams, until no queue has anything in it."
    given = "the caller's input belongs to the caller: what was it before the call, number by number?"
    return [
        Kernel("works on the other stream", "late", {"part": 4}, time, True),
        Kernel("does half of its work on the other stream", "late", {"part": 2}, time, True),
        Kernel("queues once more from the other stream", "late_again", {}, time, True),
        *(
            Kernel(says, "changes", {"how": how}, given)
            for says, how in (
                ("writes zeros over its input", "zeros"),
                ("changes one element of its input", "one"),
                ("adds 1 to its input", "shift"),
                ("sorts its input", "sort"),
                ("changes one element of its input by a hair", "hair"),
            )
        ),
    ]


# --- plays -----------------------------------------------------------------------------------------


def cases() -> list[Play]:
    """For each hole the cheat, the honest kernels, and cheats of its kind."""
    plays = []
    for hole in HOLES:
        plays.append(
            Play(f"the hole {hole}, {CALLED[hole]}", lambda asked, rng, hole=hole: cheat(asked, hole))
        )
        if hole == SAME:
            plays.append(Play("honest kernels", lambda asked, rng: passes(asked, "judge", honest(rng), rng)))
        plays.append(
            Play(
                f"cheats of the kind {hole}",
                lambda asked, rng, hole=hole: refuses(
                    asked, "judge", [own(hole), *cheats(hole, rng)], rng, [f"cheat{hole}"]
                ),
            )
        )
    return [
        *plays,
        Play("bytes", lambda asked, rng: passes(asked, "judge", honest(rng), rng, bytes=True)),
        Play("kernels in any order", by_chance, again=1),
    ]


def own(hole: int) -> Kernel:
    """The student's cheat, for the student's own judge."""
    return Kernel(f"is your cheat{hole}", "own", 0, may_pass=hole == CLOCK)


def by_chance(asked: Asked, rng: random.Random) -> None:
    """All kernels, in an order that nobody knows."""
    mixed = [(kernel, True) for kernel in honest(rng)]
    mixed += [(kernel, False) for hole in HOLES for kernel in cheats(hole, rng)]
    rng.shuffle(mixed)
    found = judged(asked, "judge", [kernel for kernel, _ in mixed], rng)
    for (kernel, is_honest), one in zip(mixed, found, strict=True):
        look("judge", kernel, one, is_honest, bytes=True)


def passes(
    asked: Asked, judge: str, kernels: Sequence[Kernel], rng: random.Random, bytes: bool = False
) -> None:
    """Ask the judge about kernels that are right; with `bytes` its count of them, too."""
    for kernel, found in zip(kernels, judged(asked, judge, kernels, rng), strict=True):
        look(judge, kernel, found, True, bytes)


def refuses(
    asked: Asked, judge: str, kernels: Sequence[Kernel], rng: random.Random, own: Sequence[str] = ()
) -> None:
    """Ask the judge about kernels that cheat."""
    for kernel, found in zip(kernels, judged(asked, judge, kernels, rng, own), strict=True):
        look(judge, kernel, found, False, True)


def judged(
    asked: Asked, judge: str, kernels: Sequence[Kernel], rng: random.Random, own: Sequence[str] = ()
) -> list[Any]:
    """What the judge finds of each."""
    specs = [[one.name, one.options, rng.getrandbits(31)] for one in kernels]
    answer = asked.drive(DRIVE.read_text(encoding="utf-8"), (judge, *own), "judge", specs)
    return fields(answer.list(judge, "verdicts"), len(kernels))


def look(judge: str, kernel: Kernel, found: Any, honest: bool, bytes: bool) -> None:
    """Compare one verdict with the truth."""
    verdict, looked, counts, at_work = fields(found, 4)
    if looked:
        raise Slip("not yours", f"{judge} looks at {looked[0]} of the kernel", NEXT_OF_LOOKING)
    if verdict == "endless":
        raise Slip("timed out", f"{judge} calls a kernel again and again", NEXT_OF_ENDLESS)
    if verdict is None:
        raise Slip("wrong result", f"{judge}: expected True or False and a number of bytes", NEXT_OF_A_FORM)
    right, moved = fields(verdict, 2)
    counted = moved in counts
    if honest and not right:
        raise Slip("honest refused", f"{judge} refuses a kernel that is right: it {kernel.says}", kernel.next)
    if honest and bytes and not counted:
        due = " or ".join(map(str, sorted(set(counts))[:3])) or "nothing"
        what = f"{judge} counts {moved} bytes of a kernel that {kernel.says}; a call of it moves {due}"
        raise Slip("wrong bytes", what, kernel.next)
    if not honest and right and at_work and not (kernel.may_pass and counted):
        short = f"counts {moved} bytes and calls" if kernel.may_pass else "calls"
        raise Slip("cheat passed", f"{judge} {short} a kernel right that {kernel.says}", kernel.next)


def fields(found: Any, count: int) -> list[Any]:
    """What the student's process sends has a form, unless something in it has taken over.

    Raises:
        Slip: it has not.
    """
    if not isinstance(found, list) or len(found) != count:
        raise Slip("out of turn", "what came back is no answer to what was asked")
    return found


# --- a student's cheat -------------------------------------------------------------------------------


def cheat(asked: Asked, hole: int) -> None:
    """The judge with this one hole calls the cheat right; the judge without it does not."""
    name = f"cheat{hole}"
    weak = calls_of(
        hole, fixed=hole == SAME, truth_left=hole == ROOM, sizes=[SMALL] if hole == SIZE else SIZES
    )
    results = called(asked, name, weak)
    for call, result in zip(weak, fields(results, len(weak)), strict=True):
        if why := wrong_in(call, result, hole):
            what = f"the judge with this hole alone refuses {name}: {why}"
            raise Slip("cheat refused", what, NEXT_OF_A_REFUSED_CHEAT)
    other = weak if hole in (COMPARED, CLOCK) else calls_of(hole, sizes=SIZES)
    again = results if other is weak else called(asked, name, other)
    again = fields(again, len(other))
    if not any(wrong_in(call, result, 0) for call, result in zip(other, again, strict=True)):
        what = f"{name} is right without the hole, too: a judge may call it so"
        raise Slip("no cheat", what)


@dataclass(frozen=True)
class Call:
    """A call of a kernel: its input, what is due in float64, and what lies in the room."""

    shape: tuple[int, int]
    pitch: int
    x: Any
    due: Any
    room: Any


def calls_of(
    hole: int,
    *,
    fixed: bool = False,
    truth_left: bool = False,
    sizes: Sequence[tuple[int, int, int]],
) -> list[Call]:
    """Two calls of each size, with numbers that are drawn anew, or as the weak judge draws them."""
    import numpy as np

    found = []
    for rows, columns, pitch in sizes:
        for _ in range(2):
            draw = np.random.default_rng(0 if fixed else None)
            x = draw.standard_normal((rows, pitch), dtype=np.float32)[:, :columns]
            due = truth(x)
            room = due.astype(np.float32) if truth_left else np.full_like(x, np.nan)
            found.append(Call((rows, columns), pitch, x, due, room))
    return found


def truth(x: Any) -> Any:
    """The softmax of every row."""
    import numpy as np

    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def called(asked: Asked, name: str, calls: Sequence[Call]) -> list[Any]:
    """What comes of these calls of a student's kernel."""
    given = [[list(c.shape), c.pitch, c.x.tobytes().hex(), c.room.tobytes().hex()] for c in calls]
    answer = asked.drive(DRIVE.read_text(encoding="utf-8"), (name,), "calls", given)
    return answer.list(name, "results")


def wrong_in(call: Call, result: Any, hole: int) -> str:
    """What a judge with this hole, 0 for none, finds wrong with a call; empty for nothing."""
    import numpy as np

    error, *both, early, moved = fields(result, 5)
    rows, columns = call.shape
    where = f" for {rows} × {columns}"
    if error:
        return f"it raises {error}{where}"
    try:
        x, out = (np.frombuffer(bytes.fromhex(text), np.float32).reshape(call.shape) for text in both)
    except (TypeError, ValueError):
        fields(None, 0)
    off = np.abs(out - call.due)
    if hole == COMPARED:
        if off.mean() > TOLERANCE:
            return f"its mean error is {off.mean():.2g}{where}"
    elif not (off <= TOLERANCE).all():
        row, column = (int(n) for n in np.unravel_index((~(off <= TOLERANCE)).argmax(), call.shape))
        return f"out[{row}, {column}] is {out[row, column]:.4g}, due is {call.due[row, column]:.4g}{where}"
    if hole != CLOCK and x.tobytes() != call.x.tobytes():
        return f"it changes its input{where}"
    if hole == 0 and early != moved:
        return f"its clock stands at {early} bytes of {moved}{where}"
    return ""
