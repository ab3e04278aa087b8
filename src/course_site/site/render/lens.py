"""Machine code of rungs that are side by side: idea by idea, each line of source with its PTX and its SASS."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from course_site.pages.lens import Instruction, Loop, Made, idea_of
from course_site.pages.rungs import Ladder, Rung

# Settings of the block: a file, and words. Those of `facts` are filled in by _facts.
SETTINGS = (
    "file",
    "numbers",
    "facts",
    "counts",
    "summary",
    "rest",
    "unlined",
    "nothing",
    "multiplies",
    "fetches",
)
SHOWN_KINDS = ("PTX", "SASS")
_FRIENDS = ("HGMMA", "UTMALDG", "SYNCS", "WARPGROUP", "BAR", "STSM", "UTMASTG")
_NAME = re.compile(r"^(?:@!?\S+ )?(\S+)")
_BOLD = re.compile(rf"\b(?:{'|'.join(_FRIENDS)})\b|\bwgmma\.mma_async\b|\bmbarrier\b|\bcp\.async\.bulk\b")
_LONGEST_RUN = 5  # instructions of one name after each other that are shown; more of them are counted


@dataclass(frozen=True)
class Lens:
    """A ladder, what was made of it, and the words that are said about that, in HTML."""

    ladder: Ladder
    made: Mapping[str, Made]
    words: Mapping[str, str]

    def ideas(self) -> frozenset[str]:
        """Return the ideas of which some rung has an instruction in its loops; "" for what no idea claims."""
        return frozenset(
            idea_of(one, rung)
            for rung in self.ladder.rungs
            for loop in self.made[rung.name].loops
            for one in (*loop.sass, *loop.ptx)
        )

    def cell(self, rung: Rung, idea: str) -> str:
        """Return what was made of the lines of an idea."""
        made = self.made[rung.name]
        parts = ""
        for number, loop in enumerate(made.loops):
            lines = "".join(f"{self._line(rung, at)}{text}" for at, text in _by_line(loop, rung, idea))
            parts += f"{self._loop(made, number)}{lines}" if lines else ""
        said = f'<p class="unsaid">{self.words["unlined"]}</p>' if not made.lined else ""
        if not idea:
            return said + parts
        return parts or said or f'<p class="unsaid">{self.words["nothing"]}</p>'

    def facts(self, rung: Rung) -> str:
        """Return the compiler, registers, shared memory and counts of a rung."""
        made = self.made[rung.name]
        loops = [one for loop in made.loops for one in loop.sass]
        found = Counter(_stem(one) for one in loops)
        counts = ", ".join(f"{found[name]} <code>{name}</code>" for name in _FRIENDS if found[name])
        said = self.words["facts"].format(
            compiler=html.escape(made.compiler),
            registers=made.registers,
            shared=f"{made.shared_bytes / 1024:.0f}",
            all=made.all,
            loop=len(loops),
        )
        return f"<p>{said}</p><p>{self.words['counts'].format(counts=counts)}</p>"

    def _loop(self, made: Made, number: int) -> str:
        name = self.words[("multiplies", "fetches")[number]]
        return "" if len(made.loops) == 1 else f'<span class="loop">{name}</span>'

    def _line(self, rung: Rung, at: tuple[str, int] | None) -> str:
        if at is None:
            return ""
        file, line = at
        of = f"{file} " if len({part.file for part in rung.shown}) > 1 else ""
        text = html.escape(self.ladder.texts[file][line - 1].strip())
        return f'<span class="from">{of}<b>{line}</b> <code>{text}</code></span>'


def _by_line(loop: Loop, rung: Rung, idea: str) -> Iterator[tuple[tuple[str, int] | None, str]]:
    """Yield each line of source that something of a loop comes from, and that as HTML; None where no idea claims it."""
    chosen = [[one for one in kind if idea_of(one, rung) == idea] for kind in (loop.ptx, loop.sass)]
    for at in sorted({_place(one, idea) for kind in chosen for one in kind}, key=lambda at: at or ("", 0)):
        kinds = [[one for one in kind if _place(one, idea) == at] for kind in chosen]
        yield (
            at,
            "".join(
                f'<span class="kind">{name}</span><pre><code>{_listing(kind)}</code></pre>'
                for name, kind in zip(SHOWN_KINDS, kinds, strict=True)
                if kind
            ),
        )


def _place(one: Instruction, idea: str) -> tuple[str, int] | None:
    return one.at if idea else None


def _listing(instructions: Sequence[Instruction]) -> str:
    """Return instructions with their places in the loop, a line each; a run of one name is cut short."""
    lines: list[str] = []
    for _, run in groupby(instructions, key=_name):
        every = list(run)
        shown = every if len(every) <= _LONGEST_RUN + 1 else every[:_LONGEST_RUN]
        lines += [f"{one.number:>3} {_BOLD.sub(_bold, html.escape(one.text))}" for one in shown]
        if len(every) > len(shown):
            lines.append(f"    … {len(every) - len(shown)} × {html.escape(_name(every[0]))}")
    return "\n".join(lines)


def _bold(found: re.Match[str]) -> str:
    return f"<b>{found[0]}</b>"


def _name(one: Instruction) -> str:
    found = _NAME.match(one.text)
    return found[1] if found else one.text


def _stem(one: Instruction) -> str:
    return _name(one).partition(".")[0]
