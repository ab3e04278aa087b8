"""The terminal of a measuring run."""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course_site.records.execute import Progress


class Board:
    """The lines of a measuring run: a terminal rewrites the last one, elsewhere every cell is a line."""

    def __init__(self) -> None:
        self.running: list[Progress] = []
        self.rewrites = sys.stdout.isatty()
        self.width = 0

    def clear(self) -> None:
        """Take the rewritten line off the screen."""
        if self.width:
            print("\r" + " " * self.width + "\r", end="", flush=True)
            self.width = 0

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self.clear()
        print(text, flush=True)

    def update(self, state: Progress) -> None:
        """Show that a page reached its next cell."""
        if self.rewrites:
            self.draw()
        else:
            print(self.line(state), flush=True)

    def line(self, state: Progress) -> str:
        """Page, cell, elapsed, expected."""
        expected = f" of about {_clock(state.expected_s)}" if state.expected_s else ""
        cell = f"cell {max(state.cell, 1)}/{len(state.page.code)}"
        return f"{state.page.path}  {cell}  {_clock(state.elapsed_s)}{expected}"

    def draw(self) -> None:
        """Rewrite the line."""
        room = shutil.get_terminal_size().columns - 1
        text = "  |  ".join(self.line(state) for state in self.running)[:room]
        print("\r" + text.ljust(self.width), end="", flush=True)
        self.width = len(text)

    async def run(self) -> None:
        """Keep the seconds going on a terminal."""
        while self.rewrites:
            if self.running:
                self.draw()
            await asyncio.sleep(1)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
