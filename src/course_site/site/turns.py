"""Turns of the processes that build the editions of one site: what each says when, and what it waits for.

The reference executes the pages that measure nothing while the others wait, as what it leaves is the same for all. Each
tells when its pages are there; once all are, the whole site is looked at, by each its own part. A process that builds
alone, such as `mkdocs serve`, waits for nobody.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

EXECUTED, BUILT, LOOK, FOUND = "executed", "built", "look", "found"


class Turns:
    """One process's side: lines of JSON, out by what was its standard output, in by its standard input.

    Attributes:
        sheets: the style sheets that every page asks for, told to whoever joins them.
    """

    def __init__(self) -> None:
        self.sheets: list[str] = []
        self._out: TextIO | None = None

    def open(self) -> None:
        """Take the standard output for the turns; whatever else is printed goes where errors go."""
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def tell(self, word: str, what: Any = None) -> None:
        """Tell the process that started this one how far it is."""
        if self._out is not None:
            print(json.dumps([word, what]), file=self._out, flush=True)

    def wait_for(self, word: str) -> None:
        """Wait until that process says so; this one ends when nobody is there any more."""
        while self._out is not None:
            line = sys.stdin.readline()
            if not line:
                sys.exit(1)
            if line.strip() == word:
                return


TURNS = Turns()
