"""Comparison of a new record with the one before it, value by value: what moved.

A median counts as moved when it left the interval that was stated for another run, and by more than `LEAST`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_site.records.record import Record, RecordError, load_sealed, seal, write_atomically
from course_site.records.run_history import middle
from course_site.values.uncertainty import BetweenRuns, factors, interval
from course_site.values.values import walk_leaves

LEAST = 0.01
NAME = "changes.json"


@dataclass(frozen=True)
class Moved:
    """A value that moved by more than its spread."""

    name: str
    before: float
    after: float
    unit: str
    date: str

    def __str__(self) -> str:
        change = f" ({self.after / self.before - 1:+.1%})" if self.before else ""
        return f"{self.name}: {self.before:.4g} -> {self.after:.4g} {self.unit}{change}"


def moved(old: Record | None, new: Record, terms: BetweenRuns) -> list[Moved]:
    """Return values of a page that left the interval stated before; empty for a first record."""
    if old is None:
        return []
    before = {name: leaf for name, leaf in walk_leaves(old.names) if _number(leaf) is not None}
    found = []
    for name, leaf in walk_leaves(new.names):
        if name not in before or _number(leaf) is None or leaf["kind"] != before[name]["kind"]:
            continue
        (a, unit), (b, _) = _number(before[name]), _number(leaf)  # type: ignore[misc]
        drawn = factors(before[name], name=name, run=old.run, terms=terms)
        low, high = (a, a) if drawn is None else interval(a * drawn)
        if not min(low, a - LEAST * abs(a)) <= b <= max(high, a + LEAST * abs(a)):
            found.append(Moved(f"{new.meta['id']}.{name}", a, b, unit, str(new.meta["provenance"]["date"])))
    return found


def _number(leaf: dict[str, Any]) -> tuple[float, str] | None:
    value = middle(leaf)
    if value is None or (leaf["kind"] == "quantity" and leaf["how"] == "given"):
        return None
    units = {"measurement": "µs", "counted": "B"}
    return value, str(units.get(leaf["kind"]) or leaf["unit"])


def _path(root: Path, slug: str) -> Path:
    return root / "records" / slug / NAME


def load(root: Path, slug: str) -> list[dict[str, Any]]:
    """Everything that ever moved in an edition, oldest first.

    Raises:
        RecordError: the file is cut short, was changed by hand, or is no such list.
    """
    path = _path(root, slug)
    again = "restore it with git"
    data = load_sealed(path, again)
    try:
        return [asdict(Moved(**entry)) for entry in data["moved"]] if data else []
    except (KeyError, TypeError):
        raise RecordError(f"{path}: is not a list of what moved; {again}") from None


def append(root: Path, slug: str, found: list[Moved]) -> None:
    """Keep what moved, beside the records."""
    if found:
        entries = [*load(root, slug), *(asdict(entry) for entry in found)]
        text = json.dumps(seal({"moved": entries}), indent=1, ensure_ascii=False)
        write_atomically(_path(root, slug), text + "\n")


def doubt(record: Record, entries: Sequence[dict[str, Any]]) -> str:
    """First contradiction between a record and what was noted of its values when it was made; empty where none is."""
    date, page = str(record.meta["provenance"]["date"]), record.meta["id"]
    values = {f"{page}.{name}": _number(leaf) for name, leaf in walk_leaves(record.names)}
    for entry in entries:
        if (
            entry["date"] == date
            and (found := values.get(entry["name"])) is not None
            and entry["after"] != found[0]
        ):
            return f"{entry['name']} is {found[0]:.4g} in it, and moved to {entry['after']:.4g} in {NAME} beside it"
    return ""
