"""Answers in a terminal, as they are written, and under them a line of numbers that moves."""

from __future__ import annotations

import codecs
import time
from collections import deque
from typing import TextIO

from course_models.byte_tokens import BEGIN
from course_models.serving.engine import Engine

WINDOW = 32  # steps over which the rate is taken
# One line down and up again, so that there is one; the place is kept, the line written, the place taken up.
BELOW, UP, KEEP, AGAIN, NEXT, CLEAR = "\033D", "\033[A", "\0337", "\0338", "\r\033[B", "\033[K"


class ByteText:
    """Bytes that come one by one, as text: a letter of several bytes is told when it is whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> str:
        """Return what can be told now; what is no text, and what cannot be printed, as U+FFFD."""
        text = self._decoder.decode(bytes([token]) if token < BEGIN else b"\xff")
        return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)

    def end(self) -> str:
        """Return what was left of a letter."""
        return self._decoder.decode(b"", final=True)


class Numbers:
    """Tokens a second over the last steps, and what an engine holds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._steps: deque[tuple[float, int]] = deque([(time.perf_counter(), 0)], maxlen=WINDOW)
        self._begun = self._steps[0][0]
        self._written = self._most = 0

    def step(self, written: int) -> None:
        """Note a step in which so many tokens were written."""
        self._written += written
        self._steps.append((time.perf_counter(), self._written))
        self._most = max(self._most, self._engine.schedule.pages.held)

    def line(self) -> str:
        """Return what is so now."""
        (begun, before), (now, written) = self._steps[0], self._steps[-1]
        rate = (written - before) / (now - begun) if now > begun else 0.0
        schedule = self._engine.schedule
        pages = schedule.pages
        return (
            f"{rate:.0f} tokens/s · {pages.held} of {pages.count} pages (most {self._most}) · "
            f"batch {len(schedule.running)} · {len(schedule.waiting)} waiting"
        )

    def whole(self) -> str:
        """Return what was so from the beginning until now."""
        (now, written), pages = self._steps[-1], self._engine.schedule.pages
        seconds = max(now - self._begun, 1e-9)
        return f"{written} tokens, {written / seconds:.0f} a second · at most {self._most} of {pages.count} pages"


class Screen:
    """Screen for an answer and the numbers; without a terminal the numbers come at the end alone."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.moves = out, out.isatty()

    def text(self, text: str) -> None:
        """Go on with an answer."""
        self.out.write(CLEAR + text if self.moves and "\n" in text else text)

    def numbers(self, line: str) -> None:
        """Show the numbers under the answer, in place of those before them."""
        if self.moves:
            self.out.write(f"{BELOW}{UP}{KEEP}{NEXT}{CLEAR}\033[2m{line}\033[0m{AGAIN}")
        self.out.flush()

    def end(self, line: str) -> None:
        """End an answer: the numbers stay below it."""
        self.out.write(f"\n{CLEAR if self.moves else ''}[{line}]\n")
        self.out.flush()
