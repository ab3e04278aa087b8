"""Cache that a build leaves for the next one: pages as HTML, and texts in which no number was typed.

Entries are keyed by a hash of their inputs: a stale one is never used, and a lost cache only costs time. The
files in .cache/kept/ hold what the last build used and nothing older.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(".cache") / "kept"
# What turns a page into HTML.
_MAKERS = ("markdown", "mkdocs", "mkdocs-material", "pymdown-extensions", "pygments")
# What tells whether a number was typed, whether a kernel reads itself, and what a page says.
_JUDGES = (
    "lint",
    "values",
    "pages",
    "records/kernel_sources.py",
    "site/own_counts.py",
    "site/search.py",
    "site/page_cache.py",
)


def digest(*parts: object) -> bytes:
    """Return a name for what something was made from."""
    return hashlib.sha256(repr(parts).encode()).digest()[:16]


@functools.cache
def made_by() -> bytes:
    """Return the versions of everything whose answers are kept."""
    here = Path(__file__).parents[1]
    found = (here / name for name in _JUDGES)
    files = [file for place in found for file in (sorted(place.glob("*.py")) if place.is_dir() else [place])]
    return digest(sys.version, *map(version, _MAKERS), *(file.read_bytes() for file in files))


class Kept:
    """Entries of the build before, and what this one used of them or found out.

    Args:
        name: of its file; each process that writes has one of its own, see `of`.
    Attributes:
        pages: anything about a page, by what it is and the page's place: (digest of what it was made from, result).
    """

    def __init__(self, name: str) -> None:
        self._name, self.file = name, FOLDER / f"{name}.pickle"
        self.pages: dict[tuple[str, str], tuple[bytes, Any]] = {}
        self._clean: set[bytes] = set()
        self._used: set[bytes] = set()

    def of(self, edition: str) -> None:
        """Take the file of an edition beside the reference, which is built at the same time; "" for the reference."""
        self.file = FOLDER / f"{self._name}{edition and '-'}{edition}.pickle"

    def read(self, root: Path) -> None:
        """Take over what the build before left; what cannot be read is made anew."""
        self._used = set()
        try:
            made, pages, clean = pickle.loads((root / self.file).read_bytes())
        except Exception:
            return
        if made == made_by():
            self.pages = {**pages, **self.pages}
            self._clean |= clean

    def write(self, root: Path) -> None:
        """Leave what this build used; nothing is lost where it cannot be written."""
        data = pickle.dumps((made_by(), self.pages, self._used))
        try:
            (root / FOLDER).mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=root / FOLDER, suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, root / self.file)
        except OSError:
            return

    def is_clean(self, name: bytes) -> bool:
        """Return whether nothing was found in this text before."""
        if name in self._clean:
            self._used.add(name)
            return True
        return False

    def clean(self, name: bytes) -> None:
        """Note that nothing was found in this text."""
        self._clean.add(name)
        self._used.add(name)


KEPT = Kept("build")  # of the process that makes the pages
SEEN = Kept("seen")  # of the one that looks at them
