"""Product of the compilers of a ladder's rungs: instructions of their inner loops, each with its line of source.

Read from a JSON file that tests/ladder/lens.py writes, whose head describes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.pages.blocks import DirectiveError
from course_site.pages.rungs import Ladder, Lines, Rung

_ANEW = "`PYTHONPATH=src python tests/ladder/lens.py --anew` writes it, with the extra `ladder` installed"


@dataclass(frozen=True)
class Instruction:
    """One instruction of a loop.

    Attributes:
        number: its place in the loop, from 1.
        text: the whole of it.
        at: file and line that it comes from, of those that are shown; None where the compiler names none of them.
    """

    number: int
    text: str
    at: tuple[str, int] | None


@dataclass(frozen=True)
class Loop:
    """One loop, as both kinds of instructions."""

    sass: tuple[Instruction, ...]
    ptx: tuple[Instruction, ...]


@dataclass(frozen=True)
class Made:
    """Product of a compiler for one rung's kernel.

    Attributes:
        compiler: its name and version.
        registers: of a thread. shared_bytes: of a block; 0 where the launcher alone knows.
        all: instructions of SASS.
        lined: whether the compiler names lines of the kernel.
        loops: the loop that multiplies; and that which brings the tiles, where it is another.
    """

    compiler: str
    registers: int
    shared_bytes: int
    all: int
    lined: bool
    loops: tuple[Loop, ...]


def digest(ladder: Ladder, rung: Rung) -> str:
    """Return the digest of all lines that are shown of a rung; where they stand in their file is no part of it."""
    text = "\n".join(line for part in rung.shown for line in ladder.text(part))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(path: Path, ladder: Ladder) -> dict[str, Made]:
    """Return what the file has of every rung, by name.

    Raises:
        DirectiveError: it is no such file, or a kernel is not the one that was compiled.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        kernels = {rung.name: data[rung.name]["kernel"] for rung in ladder.rungs}
        found = {rung.name: _made(data[rung.name], rung) for rung in ladder.rungs}
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DirectiveError(f"{path.name}: cannot be read: {error!r}; {_ANEW}") from None
    for rung in ladder.rungs:
        if kernels[rung.name] != digest(ladder, rung):
            raise DirectiveError(f"{path.name}: {rung.name}: its kernel has changed; {_ANEW}")
    return found


def _made(data: Mapping[str, Any], rung: Rung) -> Made:
    shown = [(part.file, number) for part in rung.shown for number in part.numbers]
    loops = tuple(
        Loop(*(_instructions(loop[kind], shown) for kind in ("sass", "ptx"))) for loop in data["loops"]
    )
    return Made(
        compiler=data["compiler"],
        registers=data["registers"],
        shared_bytes=data["shared_bytes"],
        all=data["all"],
        lined=data["lined"],
        loops=loops,
    )


def _instructions(pairs: list[list[Any]], shown: list[tuple[str, int]]) -> tuple[Instruction, ...]:
    return tuple(
        Instruction(number, text, None if at is None else shown[at])
        for number, (at, text) in enumerate(pairs, 1)
    )


def idea_of(instruction: Instruction, rung: Rung) -> str:
    """Return which idea's line an instruction comes from; "" for none's.

    Of a line that says several ideas an order to the tensor cores belongs to `multiply`, if that is one of them, and
    everything else to the first one.
    """
    if instruction.at is None:
        return ""
    file, line = instruction.at
    ideas = [idea for idea, parts in rung.ideas.items() if any(_holds(part, file, line) for part in parts)]
    multiplies = "multiply" in ideas and ("GMMA" in instruction.text or "wgmma" in instruction.text)
    return "multiply" if multiplies else next(iter(ideas), "")


def _holds(part: Lines, file: str, line: int) -> bool:
    return part.file == file and line in part.numbers
