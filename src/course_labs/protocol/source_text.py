"""Facts that the text of a student's file shows, read and never run. Standard library only."""

from __future__ import annotations

import re
from pathlib import Path

_NUMPY = re.compile(rb"^\s*(?:import|from)[ \t]+numpy\b", re.MULTILINE)


def takes_arrays(file: Path) -> bool:
    """Return True for a file that imports NumPy."""
    return file.is_file() and bool(_NUMPY.search(file.read_bytes()))


def without_comments(text: str) -> str:
    """C++ without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
