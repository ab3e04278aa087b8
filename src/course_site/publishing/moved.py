"""List of what moved since a commit, as the text of a change: the records keep it, so it needs no GPU."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_site.records import changes, run_history
from course_site.records.edition import gpu_of, slugs
from course_site.site.about import reference_of

# Rows of a table; what GitHub takes as the text of a change ends at 65,536 characters.
MOST = 250


def moved_since(root: Path, commit: str = "HEAD") -> str:
    """Return what was measured since a commit, and what moved by more than its spread, in Markdown.

    Raises:
        RecordError: a file of the records cannot be read.
    """
    parts = []
    for slug in slugs(root, reference_of(root)):
        runs = _new(run_history.load(root, slug), _before(root, commit, slug, run_history.NAME, "runs"))
        moves = _new(changes.load(root, slug), _before(root, commit, slug, changes.NAME, "moved"))
        if runs or moves:
            parts.append("\n".join(_edition(gpu_of(root, slug) or slug, len(runs), moves)))
    return "\n\n".join(parts or ["Nothing was measured."]) + "\n"


def _before(root: Path, commit: str, slug: str, name: str, key: str) -> list[dict[str, Any]]:
    file = f"records/{slug}/{name}"
    said = subprocess.run(["git", "show", f"{commit}:{file}"], cwd=root, capture_output=True, check=False)
    return list(json.loads(said.stdout)[key]) if said.returncode == 0 else []


def _new(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries that were not there; of runs only the last few are kept."""
    known = {json.dumps(entry, sort_keys=True) for entry in before}
    return [entry for entry in now if json.dumps(entry, sort_keys=True) not in known]


def _edition(card: str, runs: int, moves: list[dict[str, Any]]) -> Iterator[str]:
    pages = f"{runs} page{'s' * (runs != 1)} measured on {card}"
    if not moves:
        yield f"**{pages}**; nothing moved by more than its spread."
        return
    yield f"**{pages}**; moved by more than their spread, the most first: {len(moves)}."
    yield ""
    yield "| value | before | after | change |"
    yield "| --- | ---: | ---: | ---: |"
    moves = sorted(moves, key=lambda entry: -abs(_change(entry)))
    for entry in moves[:MOST]:
        unit = f" {entry['unit']}".removesuffix(" 1")
        change = f"{_change(entry):+.1%}" if entry["before"] else ""
        yield f"| {entry['name']} | {entry['before']:.4g}{unit} | {entry['after']:.4g}{unit} | {change} |"
    if len(moves) > MOST:
        yield ""
        yield f"And {len(moves) - MOST} more, in `records/`: see `{changes.NAME}`."


def _change(entry: dict[str, Any]) -> float:
    return float(entry["after"] / entry["before"] - 1) if entry["before"] else float("inf")
