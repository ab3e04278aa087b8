"""A disassembled kernel as lines that can be counted and looked up: its instructions, its loops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:(?P<guard>@!?U?P[\dT])\s+)?(?P<name>[A-Z][\w.]*)\s*(?P<rest>[^;]*);"
)
_LABEL = re.compile(r"^(?P<label>\.L_\w+):")
_TARGET = re.compile(r"`\((?P<label>\.L_\w+)\)")


@dataclass(frozen=True)
class Instruction:
    """One line of machine code.

    Attributes:
        number: of the line in the whole listing, from 1.
        guard: "@P0", "@!P0" …; "" for what is done in any case.
        name: with all that hangs on it, "HGMMA.64x256x16.F32.BF16".
        rest: its operands.
        labels: what stands before it, for branches.
    """

    number: int
    guard: str
    name: str
    rest: str
    labels: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The name alone: "HGMMA"."""
        return self.name.partition(".")[0]

    @property
    def target(self) -> str:
        """The label that a branch goes to; "" for what is none."""
        found = _TARGET.search(self.rest)
        return found["label"] if found else ""

    def __str__(self) -> str:
        return f"{self.guard:>4} {self.name} {self.rest}".rstrip()


def instructions(text: str, kernel: str = "") -> list[Instruction]:
    """Return the instructions of a listing, as `disassemble.sass` gives it; what can never happen (@!PT) is left out.

    Args:
        text: the listing.
        kernel: of this kernel alone; without it, of all.
    """
    inside, labels, found = not kernel, list[str](), []
    head = re.compile(r"^\s*\.section\s+\.text\.(\S+?),|^\.text\.(\S+?):")
    for number, line in enumerate(text.splitlines(), start=1):
        if begins := head.match(line):
            inside = not kernel or (begins[1] or begins[2]) == kernel
        elif label := _LABEL.match(line):
            labels.append(label["label"])
        elif inside and (one := _INSTRUCTION.match(line)) and one["guard"] != "@!PT":
            found.append(
                Instruction(number, one["guard"] or "", one["name"], one["rest"].strip(), tuple(labels))
            )
            labels = []
        elif not inside:
            labels = []
    return found


def counted(lines: Sequence[Instruction], names: Collection[str]) -> dict[str, int]:
    """Return how often each name stands in a listing: "HGMMA", or with what hangs on it, "BAR.SYNC"."""
    stems = Counter(line.stem for line in lines)
    return {
        name: stems[name]
        if "." not in name
        else sum(f"{line.name}.".startswith(f"{name}.") for line in lines)
        for name in names
    }


def loop_with(lines: Sequence[Instruction], name: str) -> list[Instruction]:
    """Return the shortest loop that waits for something and has such an instruction.

    From a label to who may go back to it.

    A branch back without a condition is no end of a loop: that is how a wait that failed at first is left.

    Args:
        lines: of one kernel.
        name: of the instruction without what hangs on it: "HGMMA".
    Raises:
        ValueError: there is no such loop.
    """
    places = {label: at for at, line in enumerate(lines) for label in line.labels}
    loops = [
        list(lines[places[line.target] : at + 1])
        for at, line in enumerate(lines)
        if line.guard and line.target in places and places[line.target] <= at
    ]
    ours = [
        loop
        for loop in loops
        if any(line.stem == name for line in loop) and any(waits(line) for line in loop)
    ]
    if not ours:
        raise ValueError(f"no loop with {name} and a wait in {len(lines)} lines")
    return min(ours, key=len)


def waits(line: Instruction) -> bool:
    """Return whether an instruction lets nobody past until something is so."""
    return bool(re.match(r"SYNCS\.PHASECHK|BAR\.SYNC|DEPBAR|WARPGROUP\.DEPBAR", line.name))
