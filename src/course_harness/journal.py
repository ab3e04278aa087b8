"""Journal of one run: everything that happened, in order, on disk, sealed.

A file of JSON lines. Each entry holds the seal of the one before and is sealed as a verdict is, so that one that is
changed, left out or moved is found. The file is written to a temporary name and renamed: whoever is interrupted has all
entries but the last one, whole.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_harness.tasks import Unusable
from course_judge.protocol.verdict import is_sealed, seal_of
from course_kernels.measure.artifacts import write

Entry = dict[str, Any]
KINDS = ("begun", "baseline", "proposed", "judged", "profiled", "spent", "ended")


class Journal:
    """Entries of a run.

    Attributes:
        path: the file.
        entries: what it holds.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there.

        Raises:
            Unusable: the file is no journal, or was changed.
        """
        self.path = path
        self.entries: list[Entry] = read(path) if path.exists() else []

    def add(self, kind: str, **told: Any) -> Entry:
        """Append an entry; it is on disk when this returns."""
        before = self.entries[-1]["seal"] if self.entries else ""
        # As it will be read: a tuple is a list then.
        entry: Entry = json.loads(json.dumps({"kind": kind, **told, "before": before}, allow_nan=False))
        entry["seal"] = seal_of(entry)
        lines = [json.dumps(one, sort_keys=True) for one in [*self.entries, entry]]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write(self.path.parent, self.path.name, ("\n".join(lines) + "\n").encode())
        self.entries.append(entry)
        return entry

    def of(self, kind: str, **like: Any) -> list[Entry]:
        """Return the entries of a kind with these values."""
        return [
            entry
            for entry in self.entries
            if entry["kind"] == kind and all(entry.get(key) == value for key, value in like.items())
        ]

    def first(self, kind: str, **like: Any) -> Entry | None:
        """Return the first of these; None where there is none."""
        return next(iter(self.of(kind, **like)), None)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the journal for this process.

        Raises:
            Unusable: another process has it.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Unusable(f"{self.path}: another run is writing it; wait for its end") from None
            yield


def read(path: Path) -> list[Entry]:
    """Return the entries of a journal.

    Raises:
        Unusable: it is none, or was changed since it was sealed.
    """
    return entries_of(lines_of(path), path)


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file.

    Raises:
        Unusable: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path}: cannot be read: {error}") from None


def entries_of(lines: Iterable[str], path: Path | str, first: int = 1) -> list[Entry]:
    """Return the entries of a journal from its lines.

    Args:
        lines: of the journal alone.
        path: where they stand, for what is said of them.
        first: the number of the first of them there.
    Raises:
        Unusable: it is none, or was changed since it was sealed.
    """
    entries: list[Entry] = []
    before = ""
    for number, line in enumerate(lines, first):
        try:
            entry = json.loads(line)
        except ValueError:
            raise Unusable(f"{path}: line {number} is no JSON; move the file away and run again") from None
        if not isinstance(entry, dict) or entry.get("kind") not in KINDS:
            raise Unusable(
                f"{path}: line {number} is no entry of a journal; move the file away and run again"
            )
        if not is_sealed(entry) or entry.get("before") != before:
            raise Unusable(f"{path}: line {number} was changed since it was sealed; run again")
        if entry["kind"] in ("judged", "baseline") and not _is_verdict(entry.get("verdict")):
            raise Unusable(f"{path}: line {number}: its verdict was changed since it was sealed; run again")
        entries.append(entry)
        before = entry["seal"]
    if entries and entries[0]["kind"] != "begun":
        raise Unusable(f"{path}: it does not begin with what was asked; move the file away and run again")
    return entries


def _is_verdict(told: Any) -> bool:
    return isinstance(told, Mapping) and isinstance(told.get("evidence"), Mapping) and is_sealed(told)
