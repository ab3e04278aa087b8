"""Checks that a record agrees with itself and with the history it names.

A checksum keeps accidents out, and nobody who means it: two lines of Python seal whatever they like. So what is
written in a record several times must agree. It makes a forgery work, and does not make it impossible (`How we
measure` says so).
"""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from course_site.records import renames
from course_site.records.digest import digest_of
from course_site.records.record import Record
from course_site.values.values import walk_leaves

EXACT = 1e-3  # of quantiles and the samples they are of
THINNED = 0.05  # of the median, where a part of the samples is kept
NOT_CHECKED = "not checked"
COMMIT = re.compile(r"[0-9a-f]{40}")  # git would take other things for options


def doubts(record: Record, slug: str, now: datetime | None = None) -> Iterator[str]:
    """Contradictions inside a record, each in one line."""
    provenance = record.meta["provenance"]
    if record.edition.get("slug") != slug:
        yield f"it lies in records/{slug} and is of {record.edition.get('slug')}"
    try:
        date = datetime.fromisoformat(str(provenance["date"]))
    except ValueError:
        yield f"its date is not a date: {provenance['date']!r}"
    else:
        if date > (now or datetime.now(UTC)):
            yield f"it was made on {date:%d %B %Y}, which is to come"
    for name, leaf in walk_leaves(record.names):
        if leaf["kind"] == "measurement":
            yield from (f"{name}: {doubt}" for doubt in _of_measurement(leaf))


def of_no_card(record: Record) -> Iterator[str]:
    """Yield what a page that measures nothing says to have measured: nobody timed it, so somebody typed it."""
    for name, leaf in walk_leaves(record.names):
        how = leaf.get("how", leaf["kind"])
        if (
            leaf["kind"] in ("measurement", "counted", "trace")
            or how in ("timed", "device")
            or _is_counted(leaf)
        ):
            yield (
                f"{name} is recorded as {how}, and the page measures nothing: record it as computed or given, or let "
                "the page measure"
            )


def _is_counted(leaf: dict[str, Any]) -> bool:
    """Return whether a leaf claims a counter of a card: Python counts plain things alone."""
    return leaf.get("how") == "counted" and leaf.get("unit") != "1"


def _of_measurement(leaf: dict[str, Any]) -> Iterator[str]:
    samples = np.asarray(leaf["samples_us"], dtype=float)
    quantiles = {float(q): float(value) for q, value in leaf["quantiles_us"].items()}
    if not samples.size or not (samples > 0).all():
        yield "its samples are not times"
        return
    whole = samples.size == leaf["n"]
    for q, stated in quantiles.items() if whole else [(0.5, quantiles[0.5])]:
        found = float(np.quantile(samples, q))
        if abs(found / stated - 1) > (EXACT if whole else THINNED):
            yield f"its samples have the {q:g} quantile {found:.4g} µs, and it states {stated:.4g}"
    least, most = quantiles.get(0.0, samples.min()), quantiles.get(1.0, samples.max())
    beside = [value for value in (*samples, *leaf["blocks_us"]) if not least * 0.999 <= value <= most * 1.001]
    if beside:
        yield f"{beside[0]:.4g} µs is outside its least and its most, {least:.4g} and {most:.4g}"
    if leaf["error"] > leaf["allowed"]:
        yield f"its error {leaf['error']:.3g} is above what is allowed, {leaf['allowed']:.3g}"


def doubt_of_commit(root: Path, commit: str, date: str, manifest: dict[str, str]) -> str:
    """Reason to doubt the commit a record names; empty if nothing does, NOT_CHECKED without its history.

    Where the repository does not have the commit (`is_lost`) its last one must hold every file as it ran.

    Args:
        root: the repository.
        commit: forty hexadecimal digits.
        date: when the record was made, in ISO 8601.
        manifest: the files that ran, each with the hash of its meaning.
    """
    if not _whole(root):
        return NOT_CHECKED
    if not COMMIT.fullmatch(commit):
        return f"it names no commit: {commit[:40]!r}"
    lost = _lacks(root, commit)
    if lost:
        manifest = renames.load(root).in_present_names(manifest)
    other = next(_others(root, "HEAD" if lost else commit, manifest), None)
    if other and lost:
        return (
            f"it names the commit {commit[:12]}, which this repository does not have, nor {other} as it ran"
        )
    if other:
        return f"it names the commit {commit[:12]}, where {other} is not as it ran"
    made = "" if lost else _git(root, "log", "-1", "--format=%cI", commit, "--").decode().strip()
    if made and datetime.fromisoformat(made) > datetime.fromisoformat(date):
        return f"it was made before the commit it names, {commit[:12]}"
    return ""


def is_lost(root: Path, commit: str) -> bool:
    """Return True where a repository with all of its history lacks a commit.

    Such is a commit of a branch since squashed or rebased.
    """
    if not COMMIT.fullmatch(commit) or not _whole(root):
        return False
    return _lacks(root, commit)


def _lacks(root: Path, commit: str) -> bool:
    return not _git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")


def _whole(root: Path) -> bool:
    return _git(root, "rev-parse", "--is-shallow-repository").strip() == b"false"


def _others(root: Path, commit: str, manifest: dict[str, str]) -> Iterator[str]:
    """Yield files of a manifest that have another meaning in a commit, or are not in it.

    Files are known by the renames of that commit.
    """
    asked = [renames.FILE.as_posix(), *manifest]
    answer = io.BytesIO(
        _git(root, "cat-file", "--batch", told="".join(f"{commit}:./{path}\n" for path in asked).encode())
    )

    def read() -> bytes | None:
        size = answer.readline().split()[-1]  # or "missing"
        return answer.read(int(size) + 1)[:-1] if size.isdigit() else None

    names = renames.read((read() or b"").decode())
    for path, digest in manifest.items():
        data = read()
        if data is None or digest_of(PurePath(path), data, names) != digest:
            yield path


def _git(root: Path, *arguments: str, told: bytes = b"") -> bytes:
    """Answer of git; empty where there is no git, no repository or no answer."""
    try:
        done = subprocess.run(("git", *arguments), cwd=root, input=told, capture_output=True, check=False)
    except OSError:
        return b""
    return done.stdout if done.returncode == 0 else b""
