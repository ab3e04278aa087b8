"""What moved: a new record against the one before it, value by value.

A median counts as moved when it left the old one by more than the spread of both (interquartile range of the
samples, and never less than one per cent): clocks and temperature alone move a timing that much.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_site.record import Record, write_atomically
from course_site.values import walk_leaves

LEAST = 0.01


@dataclass(frozen=True)
class Moved:
    """One value that moved by more than its spread."""

    name: str
    before: float
    after: float
    unit: str
    date: str

    def __str__(self) -> str:
        change = f" ({self.after / self.before - 1:+.1%})" if self.before else ""
        return f"{self.name}: {self.before:.4g} -> {self.after:.4g} {self.unit}{change}"


def moved(old: Record | None, new: Record) -> list[Moved]:
    """Values of a page that moved by more than their spread; empty for a first record."""
    if old is None:
        return []
    before = {name: leaf for name, leaf in walk_leaves(old.names) if _number(leaf) is not None}
    found = []
    for name, leaf in walk_leaves(new.names):
        if name not in before or _number(leaf) is None or leaf["kind"] != before[name]["kind"]:
            continue
        (a, unit), (b, _) = _number(before[name]), _number(leaf)  # type: ignore[misc]
        allowed = max(LEAST, _spread(before[name]) + _spread(leaf)) * abs(a)
        if abs(b - a) > allowed:
            found.append(Moved(f"{new.meta['id']}.{name}", a, b, unit, str(new.meta["provenance"]["date"])))
    return found


def _number(leaf: dict[str, Any]) -> tuple[float, str] | None:
    if leaf["kind"] == "measurement":
        return leaf["quantiles_us"]["0.5"], "µs"
    if leaf["kind"] == "samples":
        return leaf["quantiles"]["0.5"], str(leaf["unit"])
    if leaf["kind"] == "counted":
        return float(leaf["read_bytes"] + leaf["write_bytes"]), "B"
    if leaf["kind"] == "quantity" and leaf["how"] != "given" and isinstance(leaf["value"], (int, float)):
        return float(leaf["value"]), str(leaf["unit"])
    return None


def _spread(leaf: dict[str, Any]) -> float:
    q = leaf.get("quantiles_us") or leaf.get("quantiles")
    if not q or not q["0.5"]:
        return 0.0
    return float((q["0.75"] - q["0.25"]) / q["0.5"])


def _path(root: Path, slug: str) -> Path:
    return root / "records" / slug / "changes.json"


def load(root: Path, slug: str) -> list[dict[str, Any]]:
    """Everything that ever moved in an edition, oldest first."""
    path = _path(root, slug)
    if not path.exists():
        return []
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["moved"]
    return entries


def append(root: Path, slug: str, found: list[Moved]) -> None:
    """Keep what moved, beside the records."""
    if found:
        entries = [*load(root, slug), *(asdict(entry) for entry in found)]
        write_atomically(
            _path(root, slug), json.dumps({"moved": entries}, indent=1, ensure_ascii=False) + "\n"
        )
