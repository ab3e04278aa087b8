"""The choices of a prediction: a list that ends its body, where a mark says of each line when it is the right one.

    - [ ] the CPU
    - [x] the GPU
    - [cpu.us < gpu.us] the CPU, on a card where it is so

`x` is right, a blank is wrong, and a condition over recorded values is right where it holds. The marks are for the
build; no reader sees them. A prediction without such a list is open: its reader says afterwards who was right.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from course_site.pages.blocks import Block, DirectiveError

RIGHT = "x"
_CHOICE = re.compile(r"- \[(?P<mark>[^\[\]]*)\] (?P<text>\S.*)")
_UNMARKED = re.compile(r"^(?:[-*+]|\d{1,2}[.)])\s+\S|\s·\s", re.MULTILINE)
_HOW = "mark each of its choices: `- [x] right`, `- [ ] wrong`, or `- [condition] right where it holds`"


@dataclass(frozen=True)
class Choice:
    """One choice; `condition` is "" where the mark itself says whether it is right."""

    text: str
    is_right: bool
    condition: str = ""


def taken_apart(block: Block) -> tuple[list[str | Block], list[Choice]]:
    """Return what a prediction says before its choices, and these; no choices of an open one.

    Raises:
        DirectiveError: choices without a mark, fewer than two, not at the end, or with marks that name no right one.
    """
    before, last = block.body[:-1], block.body[-1] if block.body else ""
    if not isinstance(last, str):
        before, last = list(block.body), ""
    lines = last.rstrip().split("\n")
    first = next((n for n, line in enumerate(lines) if _CHOICE.match(line)), len(lines))
    found: list[tuple[str, str]] = []
    for line in lines[first:]:
        if choice := _CHOICE.match(line):
            found.append((choice["mark"].strip(), choice["text"].strip()))
        elif line.startswith("  ") and line.strip():
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
        else:
            raise DirectiveError(
                f"its choices must come last and together, and {line.strip()!r} comes between or after them"
            )
    rest = "\n".join(lines[:first]).rstrip()
    said = [*before, *([rest] if rest else [])]
    if any(isinstance(node, str) and _UNMARKED.search(node) for node in said):
        raise DirectiveError(_HOW)
    choices = [Choice(text, mark == RIGHT, "" if mark in ("", RIGHT) else mark) for mark, text in found]
    if len(choices) == 1:
        raise DirectiveError("has one choice, and needs two or more; or none, then it is open")
    if len({choice.text for choice in choices}) < len(choices):
        raise DirectiveError("has the same choice twice")
    if sum(choice.is_right for choice in choices) + any(choice.condition for choice in choices) != bool(
        choices
    ):
        raise DirectiveError(f"names no right choice, or several; {_HOW}")
    return said, choices


def name_of(block: Block) -> str:
    """Return the anchor of a prediction, by which a browser keeps what was called: other words, another prediction.

    Raises:
        DirectiveError: as above.
    """
    asked = [block.argument, *(choice.text for choice in taken_apart(block)[1])]
    return f"predict-{zlib.crc32(chr(10).join(asked).encode()):08x}"
