"""Outcome of the attacks on the judge: from the sealed journals that are kept beside them, and from nothing else.

    proposals/attacked/attack-TASK-SERIES-without_a_card.jsonl        written by nox -s harness -- all --attack

A verdict is on one file, by one judge. Where either is another one now, the verdict still counts as what it was, and a
line says that it is of an earlier judge, or on an earlier file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from course_harness import recorded, table
from course_harness.journal import Entry, read
from course_harness.tasks import Unusable, tasks
from course_judge.identity import hash_by_name

FOLDER = recorded.FOLDER / "attacked"
COMMAND = "nox -s harness -- all --attack"
HALF = "attack"
WHERE = 1000  # characters of names


@dataclass(frozen=True)
class Open:
    """An attack that the judge calls right.

    Attributes:
        file: where it lies, below the folder of proposals.
        words: its first comment; a stranger's, so never shown but through `table.inert`.
    """

    file: str
    words: str


@dataclass(frozen=True)
class Attacked:
    """All attacks.

    Attributes:
        tally: how many were tried, refused, not judged and called right.
        tasks: how many tasks they are for.
        refused_for: property -> how many were refused for it, the most first.
        open: those that were called right.
        stale: what is no longer as it was when they were judged, a line each; empty where all is.
    """

    tally: table.Tally
    tasks: int
    refused_for: dict[str, int]
    open: tuple[Open, ...]
    stale: tuple[str, ...]


def attacked(root: Path, judge_now: Callable[[str], str] = hash_by_name) -> Attacked:
    """Return what came of all attacks that are kept.

    Args:
        root: of the repository.
        judge_now: task -> the hash of the judge as it is now.
    Raises:
        Unusable: a journal or a series is not of its form, was changed, or belongs to none.
    """
    left = {(task, name): one for task in tasks() for name, one in recorded.series(root, task, HALF).items()}
    found, opened, stale = [], [], []
    for path in sorted((root / FOLDER).glob("*.jsonl")):
        entries = read(path)
        one, about = table.summary_of(entries, path), entries[0]["about"]
        name = str(about.get("series"))
        if one.half != HALF or (kept := left.pop((one.task, name), None)) is None:
            raise Unusable(f"{path.name}: of no attack that is kept, or the second of one; move it away")
        found.append(one)
        where = f"{one.task}/{name}"
        if about["files"] != kept.about["files"] or len(one.attempts) < len(kept.files):
            stale.append(f"{where}: files were added or changed since it was judged")
        if one.judge != judge_now(one.task):
            stale.append(f"{where}: judged by an earlier judge")
        opened += _opened(entries, where)
    stale += [f"{task}/{name}: not judged yet" for task, name in left]
    refused = [attempt.found for one in found for attempt in one.attempts if attempt.right is False]
    most = sorted(set(refused), key=lambda why: (-refused.count(why), why))
    return Attacked(
        table.tally(found),
        len({one.task for one in found}),
        {why: refused.count(why) for why in most},
        tuple(opened),
        tuple(stale),
    )


def _opened(entries: list[Entry], where: str) -> list[Open]:
    texts = {(e["sample"], e["round"]): e for e in entries if e["kind"] == "proposed"}
    judged = [e for e in entries if e["kind"] == "judged" and e["verdict"]["found"] == table.RIGHT]
    proposed = [texts[e["sample"], e["round"]] for e in judged]
    return [Open(f"{where}/{e['said'].get('file', '')}", first_comment(e["text"])) for e in proposed]


def first_comment(text: str) -> str:
    """Return the comment that a file begins with, in one line; empty where it begins with none."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def lines_of(told: Attacked) -> list[str]:
    """Return what came of them as Markdown, a stranger's words inert: a table, what is open, and what is stale."""
    tally = told.tally
    head = ["tasks", "tried", "refused", "not judged without a card", "open"]
    counts = [told.tasks, tally.tried, tally.refused, tally.not_judged, tally.open]
    parts = [table.markdown([head, list(map(str, counts))])]
    if told.refused_for:
        reasons = [[why, str(count)] for why, count in told.refused_for.items()]
        parts.append(table.markdown([["refused for", "attacks"], *reasons]))
    if told.open:
        named = [[one.file, one.words] for one in told.open]
        parts.append(table.markdown([["open", "what it says of itself"], *named]))
    if told.stale:
        of: dict[str, list[str]] = {}
        for where, _, why in (line.partition(": ") for line in told.stale):
            of.setdefault(why, []).append(where)
        said = "; ".join(f"{table.inert(why)}: {table.inert(', '.join(of[why]), WHERE)}" for why in of)
        parts.append(f"Not as it was when this was judged. {said}. `{COMMAND}` judges anew.\n")
    return parts
