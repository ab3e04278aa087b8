"""Record of all proposals that are kept, judged on one card: journals that are done, one behind the other, in one file.

    records/<gpu>/harness.jsonl     a sealed line that names the journals, then their lines as they are

`nox -s harness -- all --record` writes it on the card. A page reads it as it reads nothing else that is recorded: what
is in it was judged once, in a run of its own, and only this judge's verdicts on these files count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_harness import recorded
from course_harness.journal import Entry, entries_of, lines_of, read
from course_harness.loop import DONE, FORMAT
from course_harness.table import RIVALS, Attempt, Row, Summary, by_level, is_quicker, row, summary_of
from course_harness.tasks import Unusable, tasks
from course_judge.protocol.verdict import is_sealed, seal_of
from course_kernels.measure.artifacts import write
from course_kernels.measure.provenance import slug_of

NAME = "harness.jsonl"
AGAIN = "nox -s harness -- all --record"


def path_of(root: Path, on: str) -> Path:
    """Return where the record of a card lies."""
    return root / "records" / slug_of(on) / NAME


def keep(root: Path, on: str, journals: Sequence[Path]) -> Path:
    """Write the record of a card from journals of this card.

    Raises:
        Unusable: one is not done, or of another machine; or a series that is kept has none.
    """
    kept = [_done(path, on) for path in sorted(journals)]
    missing = _series(root) - {_of_series(entries) for entries in kept}
    if missing:
        raise Unusable(f"no journal yet of {min(missing)}, so nothing is recorded; the same command goes on")
    head: dict[str, Any] = {
        "kind": "record",
        "format": FORMAT,
        "on": on,
        "journals": [[len(entries), entries[-1]["seal"]] for entries in kept],
    }
    lines = [{**head, "seal": seal_of(head)}, *(entry for entries in kept for entry in entries)]
    path = path_of(root, on)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(
        path.parent, path.name, ("\n".join(json.dumps(one, sort_keys=True) for one in lines) + "\n").encode()
    )
    return path


def load(path: Path) -> list[Summary]:
    """Return what the journals of a record say.

    Raises:
        Unusable: it is none, or was changed since it was sealed.
    """
    return [summary_of(entries, path) for entries in _journals(path)]


def told(root: Path, on: str, judge_now: Callable[[str], str]) -> tuple[list[Summary], str]:
    """Return what the record of a card says now, and why that is nothing where it is.

    Args:
        root: of the repository.
        on: the card.
        judge_now: task -> the hash of the judge as it is now.
    Raises:
        Unusable: there is a file that is no record, or was changed.
    """
    path = path_of(root, on)
    if not path.is_file():
        return [], f"not yet judged on this card: {AGAIN}"
    journals = _journals(path)
    found = [summary_of(entries, path) for entries in journals]
    if strange := [one.task for one in found if one.on != on or one.judge != judge_now(one.task)]:
        return [], f"{strange[0]}: of another judge or another card than now: {AGAIN}"
    if _hashes(root) != {_of_series(entries): entries[0]["about"]["files"] for entries in journals}:
        return [], f"other proposals are kept now than were judged: {AGAIN}"
    return found, ""


def merged(found: Iterable[Summary]) -> list[Summary]:
    """Return one summary for each task: the samples of its series together, and of each rival the shorter time.

    All series of a task are by the same model, each with a prompt of its own: so they are samples of it.
    """
    of: dict[str, list[Summary]] = {}
    for one in found:
        of.setdefault(one.task, []).append(one)
    together = []
    for several in of.values():
        rivals = {
            name: min(
                (time for one in several if (time := one.rivals[name])),
                key=lambda time: time.us,
                default=None,
            )
            for name in RIVALS
        }
        first = several[0]
        samples = tuple(sample for one in several for sample in one.samples)
        together.append(
            Summary(
                first.task,
                first.level,
                first.half,
                first.who,
                first.on,
                first.judge,
                samples,
                rivals,
                first.why,
            )
        )
    return sorted(together, key=lambda one: list(tasks()).index(one.task))


def numbers(found: Sequence[Summary]) -> dict[str, Any]:
    """Return the numbers of a page's tables; what no time was taken of counts as 0.

    Returns:
        by the name of a task, the files, how many are right, and over each rival the best of them: the rival's time
        over its; by level, "l1" to "l3" and "all", shares of tasks: of one sample in the mean, and of the best; and
        files, right and not_timed, of all.
    """
    rows = [row(one) for one in found]
    attempts = [attempt for one in found for attempt in one.attempts]
    return {
        **{one.task: _of_task(one) for one in found},
        **{f"l{level}": _shares(of) for level, of in by_level(rows).items()},
        "all": _shares(rows),
        "files": len(attempts),
        "right": sum(one.right is True for one in attempts),
        "not_timed": sum(one.right is True and one.time is None for one in attempts),
    }


def _of_task(one: Summary) -> dict[str, float]:
    rights = [attempt for attempt in one.attempts if attempt.right]
    return {
        "files": len(one.attempts),
        "right": len(rights),
        **{name: max((_over(attempt, one, name) for attempt in rights), default=0.0) for name in RIVALS},
    }


def _over(attempt: Attempt, one: Summary, name: str) -> float:
    """Return a rival's time over that of a right file; 0 where one of them is not known."""
    time, rival = attempt.time, one.rivals[name]
    if time is None or rival is None or is_quicker(time, rival) is None:
        return 0.0
    return rival.us / time.us


def _shares(rows: Sequence[Row]) -> dict[str, float]:
    found: dict[str, float] = {"tasks": len(rows)}
    for way, short in (("one_sample", "one"), ("best_of_k", "best")):
        for name in ("fast_0", *RIVALS):
            # Not known counts as not: no table gets better by what was not timed.
            shares = [getattr(getattr(one, way), name) or 0.0 for one in rows]
            found[f"{short}_{name}"] = sum(shares) / len(shares)
    return found


def _done(path: Path, on: str) -> list[Entry]:
    entries = read(path)
    begun = entries[0] if entries else {}
    if not entries or entries[-1]["kind"] != "ended" or entries[-1]["why"] != DONE:
        raise Unusable(f"{path}: is not done, so nothing is recorded; the same command goes on")
    if begun["on"] != on:
        raise Unusable(f"{path}: is of {begun['on']}, and this is {on}")
    return entries


def _journals(path: Path) -> list[list[Entry]]:
    lines = lines_of(path)
    try:
        head = json.loads(lines[0])
    except (IndexError, ValueError):
        head = {}
    if not isinstance(head, Mapping) or head.get("kind") != "record" or not is_sealed(head):
        raise Unusable(f"{path}: no record of the harness, or changed since it was sealed: {AGAIN}")
    found, at = [], 1
    for length, seal in head["journals"]:
        entries = entries_of(lines[at : at + length], path, at + 1)
        if len(entries) != length or not entries or entries[-1]["seal"] != seal:
            raise Unusable(f"{path}: line {at + 1}: another journal than was sealed: {AGAIN}")
        found.append(entries)
        at += length
    if at != len(lines):
        raise Unusable(f"{path}: line {at + 1}: more than was sealed: {AGAIN}")
    return found


def _series(root: Path) -> set[tuple[str, str]]:
    return set(_hashes(root))


def _hashes(root: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the hashes of the files of each series of kernels, by task and name."""
    return {
        (name, one): dict(kept.about["files"])
        for name in tasks()
        for one, kept in recorded.series(root, name).items()
    }


def _of_series(entries: Sequence[Entry]) -> tuple[str, str]:
    return entries[0]["task"], str(entries[0]["about"].get("series", ""))
