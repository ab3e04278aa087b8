"""Verdict of the judge: one property, where it shows, and the limits that this system could not enforce."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

RIGHT = "right"
NOT_JUDGED = "needs a card"

# Every property a file can be refused for, and what each says in full.
PROPERTIES = {
    "syntax error": "Python cannot read the file",
    "function missing": "the file defines no function of the problem's name",
    "does not compile": "its compiler refuses it",
    "crashed": "an exception came out of it",
    NOT_JUDGED: "it asks for a card, or for what Triton's interpreter lacks",
    "died": "its process ended in the middle",
    "timed out": "an answer took longer than its limit",
    "out of memory": "it took more memory than its limit",
    "out of room": "it wrote more than its limit, or where it may not write",
    "too many processes": "it ran more processes than its limit",
    "out of turn": "it sent the judge what no question asked for",
    "left behind": "something that it started was still running when it had answered",
    "not yours": "it calls what the task asks it to write",
    "holds too much": "it holds more at once than the task allows",
    "wrong result": "not as many tensors as were asked for",
    "wrong shape": "an output has another shape",
    "wrong dtype": "an output has another type",
    "wrong device": "an output lies on another device",
    "shares memory": "an output lies in the memory of an input",
    "input modified": "an input is not what it was",
    "all NaN": "nothing of the output was written",
    "not written": "a part of the output was not written, or is NaN",
    "NaN lost": "NaN went in and a number came out",
    "infinity lost": "an infinity went in and a number came out",
    "a view": "an output lies in memory in another order",
    "not a plain tensor": "an output is of a class of its own",
    "same memory twice": "an output lies where the one before still lies",
    "wrong": "an element is further from the truth than rounding explains",
    "cached result": "with new values it gave the answer to the old ones",
    "wrong in the end": "right at first, wrong later: when it was asked again, or in memory that others still hold",
    "another stream": "its work was not on the current stream",
    "out of bounds": "it read or stored outside of its tensors",
    "stored twice": "two values were stored in one place, and the last one won",
    "a race": "two programs use one place, and which comes first is chance",
    "clock": "its own events and the judge's clock tell two stories",
    "faster than the floor": "it took less time than the bytes or the operations need",
}

# How the checker begins what it says, where the property is called something else.
_BEGINS = {
    "not written, or NaN": "not written",
    "not a plain array": "not a plain tensor",
    "work on another stream": "another stream",
}
# How a complaint begins that comes when all was right before; the checker of `measure` begins it so.
AFTER = "right before the timing, wrong after it: "


@dataclass(frozen=True)
class Evidence:
    """Subject of a verdict, and what it was reached by: another judge or another file, another verdict.

    Attributes:
        file: the hash of the file that was judged.
        judge: the hash of the judge's own files, those of the check and of the problem among them.
        on: which card, or that there was none.
        cases: the questions that were asked, in their order: a size, and what was special about its values.
        launches: the kernels of Triton's that a call launched in the interpreter, fewest and most; as the file's own
            process counted them.
    """

    file: str
    judge: str
    on: str
    cases: tuple[str, ...]
    launches: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """Line for a person."""
        some = ""
        if self.launches:
            fewest, most = self.launches
            times = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            some = f", launches in a call: {times}"
        asked = f"{len(self.cases)} question{'' if len(self.cases) == 1 else 's'}"
        return f"{asked}, {self.on}{some}; file {self.file[:12]}, judge {self.judge[:12]}; --json lists and seals it"


@dataclass(frozen=True)
class Taken:
    """Time of a call, as the judge vouches for it.

    Attributes:
        on: the size.
        us: in microseconds: the median of the samples, where the judge's clock agrees with them; otherwise the most
            that a call can have taken by the judge's clock.
        by: "both clocks", or "the judge's clock", which has the launch in it.
    """

    on: str
    us: float
    by: str


@dataclass(frozen=True)
class Verdict:
    """The outcome for one file.

    Attributes:
        found: `RIGHT`, or the property that failed, a key of `PROPERTIES`.
        why: what exactly is wrong, and where.
        on: the size it shows on.
        lines: further lines, such as the time.
        printed: what the file printed, escaped.
        not_held: what the system at hand could not hold the stranger to.
        evidence: what the verdict is about, and by what it was reached.
        time: where there is a card, and the clocks agree on one.
    """

    found: str
    why: str = ""
    on: str = ""
    lines: tuple[str, ...] = ()
    printed: str = ""
    not_held: tuple[str, ...] = ()
    evidence: Evidence | None = field(default=None, compare=False)
    time: Taken | None = field(default=None, compare=False)

    @property
    def code(self) -> int:
        """The exit code: 0 right, 1 refused, 2 not judged."""
        return code_of(self.found)

    @property
    def text(self) -> str:
        """Text for a person."""
        where = f" on {self.on}" if self.on and self.found != RIGHT else ""
        what = f"{self.found}: {self.why}" if self.why else self.found
        how = "not judged" if self.found == NOT_JUDGED else "refused"
        lines = [what if self.found == RIGHT else f"{how}{where}: {what}", *self.lines]
        if self.printed:
            lines += ["the file printed:", *(f"  | {line}" for line in self.printed.splitlines())]
        if self.not_held:
            lines.append(f"not held on this system: {', '.join(self.not_held)}")
        if self.evidence:
            lines.append(self.evidence.text)
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Plain data; its seal is a hash of all the rest."""
        told = asdict(self)
        return {**told, "seal": seal_of(told)}


def code_of(found: str) -> int:
    """Return the exit code of what was found: 0 right, 1 refused, 2 not judged."""
    return {RIGHT: 0, NOT_JUDGED: 2}.get(found, 1)


def is_sealed(told: Mapping[str, Any]) -> bool:
    """Return whether a verdict as plain data, read from JSON, is as it was when it was sealed."""
    return told.get("seal") == seal_of({name: value for name, value in told.items() if name != "seal"})


def seal_of(told: Mapping[str, Any]) -> str:
    """Return the seal of plain data: a hash that any change of it changes."""
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def refused(why: str, on: str = "") -> Verdict:
    """Return the verdict behind a line of the checker's, `course_kernels.measure.check.WrongResult.why`."""
    if why.startswith(AFTER):
        return Verdict("wrong in the end", why.removeprefix(AFTER), on)
    if "shares memory with" in why:
        return Verdict("shares memory", why, on)
    head, _, rest = why.partition(": ")
    found = _BEGINS.get(head, head)
    return Verdict(found, rest, on) if found in PROPERTIES else Verdict("wrong", why, on)


def escaped(text: str, most: int = 400) -> str:
    """Return a stranger's words as a terminal and a page may show them: no control characters, and not too many."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:most])
    return shown + ("…" if len(text) > most else "")
