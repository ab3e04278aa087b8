"""Files that other people made: the site carries them as they were published, and SHA256SUMS has each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

FOLDER = "docs/assets/vendor"
SUMS = "SHA256SUMS"
_OURS = frozenset({"README.md", SUMS})


def faults(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the path of every file that is not the one that was checked, and what is wrong with it."""
    folder = root / FOLDER
    if not folder.is_dir():
        return
    listed: dict[str, str] = {}
    if (folder / SUMS).is_file():
        for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
            found, _, name = line.partition("  ")
            listed[name] = found
    there = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _OURS
    }
    for name in sorted(listed.keys() | there.keys()):
        place = f"{FOLDER}/{name}"
        if name not in there:
            yield place, f"is missing, and {SUMS} has it: take it from the last commit"
        elif name not in listed:
            yield place, f"is not in {SUMS}: check where it comes from, then add its sum"
        elif hashlib.sha256(there[name].read_bytes()).hexdigest() != listed[name]:
            yield place, f"is not the file that {SUMS} has: take it from its publisher, and do not edit it"
