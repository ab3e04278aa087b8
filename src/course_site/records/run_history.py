"""The history of runs: the medians of every run of a page, so that the difference between cards and days is known.

records/<gpu>/runs.json keeps the medians of the last runs of every page, with the card's own number, the date
and the commit. Two runs of the same code say how far runs lie apart; blocks of one run cannot see that.
The file is written by `nox -s docs` on a GPU, and by no hand: it carries a checksum. Of every run it also keeps the
seal of the whole record, so that nothing of a record can be changed there alone; those of older runs stand in
records/seals.txt.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from course_site.records import renames
from course_site.records.record import Record, RecordError, load_sealed, seal, write_atomically
from course_site.values.uncertainty import (
    CARDS_ENOUGH,
    UNSEEN_COMMON,
    BetweenRuns,
    factors,
    interval,
    kind_of,
)
from course_site.values.values import walk_leaves

SAME = 1e-9  # a number written down twice
KEPT = 4  # runs of a page: enough for six pairs
NAME = "runs.json"
FIELDS = frozenset({"page", "date", "card", "commit", "code", "values"})  # of every run
EARLIER = "records/seals.txt"  # seals of records from before every run kept its own
FAR = 0.5  # a median that moved so far is noted in the list of what moved


def load(root: Path, slug: str) -> list[dict[str, Any]]:
    """Return the runs that are kept, oldest first; empty where none was.

    Raises:
        RecordError: the file is cut short, was changed by hand, or is of another version.
    """
    path = root / "records" / slug / NAME
    again = "restore it with git"
    data = load_sealed(path, again)
    runs = data.get("runs") if data else []
    if not isinstance(runs, list) or not all(isinstance(run, dict) and run.keys() >= FIELDS for run in runs):
        raise RecordError(f"{path}: is not what this version reads; {again}")
    return runs


def today(root: Path) -> datetime.date:
    """Return a day after which nothing can have happened yet, whatever the clock of this machine says.

    A clock that stands before the last run is wrong: then a month after that run must do.
    """
    written = "".join(path.read_text(encoding="utf-8") for path in (root / "records").glob(f"*/{NAME}"))
    days = [
        datetime.date.fromisoformat(day) for day in set(re.findall(r'"date": "(\d{4}-\d\d-\d\d)', written))
    ]
    clock = datetime.date.today() + datetime.timedelta(days=1)  # somewhere on earth it is that already
    last = max(days, default=clock)
    return clock if clock >= last else last + datetime.timedelta(days=31)


def append(root: Path, slug: str, record: Record, moved: int = 0) -> None:
    """Keep what a page's new record found, and only the last `KEPT` runs of it.

    Args:
        moved: how many of its values have moved since the record before, by the list of what moved.
    """
    provenance = record.meta["provenance"]
    entry = {
        "page": record.meta["id"],
        "date": provenance["date"],
        "card": provenance.get("uuid"),
        "commit": provenance.get("commit"),
        "code": _code(record, renames.load(root)),
        "values": dict(_numbers(record)),
        "seal": record.meta["checksum"],
        "moved": moved,
    }
    runs = [*load(root, slug), entry]
    mine = [run for run in runs if run["page"] == entry["page"]]
    gone = {id(run) for run in mine[:-KEPT]}
    runs = [run for run in runs if id(run) not in gone]
    text = json.dumps(seal({"kind": "runs", "runs": runs}), ensure_ascii=False)
    # A line for each run: a diff then shows which run came and which went.
    write_atomically(root / "records" / slug / NAME, text.replace('{"page"', '\n{"page"') + "\n")


def between(runs: Sequence[dict[str, Any]]) -> BetweenRuns:
    """Estimate how far runs lie apart, by kind of number."""
    common: dict[str, list[float]] = defaultdict(list)
    own: dict[str, list[float]] = defaultdict(list)
    cards: dict[str, set[str]] = defaultdict(set)
    dates: set[str] = set()
    for one, other in _pairs(runs):
        dates |= {run["date"] for run in (one, other)}
        apart: dict[str, list[float]] = defaultdict(list)
        for name, (kind, value) in one["values"].items():
            if name in other["values"] and value > 0 and other["values"][name][1] > 0:
                apart[kind].append(float(np.log(other["values"][name][1] / value)))
        for kind, logs in apart.items():
            # Runs from before a record knew its card's number teach as well; which card it was they cannot say.
            cards[kind] |= {run["card"] for run in (one, other) if run["card"]}
            # With one or two numbers there is no telling what is common to all of them.
            together = float(np.mean(logs)) if len(logs) > 2 else 0.0
            if len(logs) > 2:
                common[kind].append(together)
            own[kind] += [log - together for log in logs]
    return BetweenRuns(
        common={kind: _common(found, len(cards[kind])) for kind, found in common.items()},
        own={kind: _own(np.abs(found)) for kind, found in own.items() if kind in common},
        runs=len(dates),
        cards=len(set().union(*cards.values())),
    )


def _common(together: list[float], cards: int) -> float:
    """Return a standard deviation around 0; a few cards that agree do not speak for those never seen."""
    found = float(np.sqrt(np.mean(np.square(together))))
    return found if cards >= CARDS_ENOUGH else max(found, UNSEEN_COMMON)


def _own(apart: np.ndarray) -> float:
    """Return a standard deviation that neither one wild number nor a long tail makes too large or too small."""
    return float(max(np.quantile(apart, 0.683), np.quantile(apart, 0.95) / 1.96))


def _pairs(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the runs of one page and the same code, two by two."""
    same: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        same[run["page"], run["code"]].append(run)
    for of_one_page in same.values():
        yield from itertools.combinations(of_one_page, 2)


def _code(record: Record, names: renames.Renames) -> str:
    """Hash of what ran, in the oldest names: a run before a rename and one after it are runs of the same code."""
    meta = record.meta
    edition = sorted(meta["edition"].items())
    manifest = sorted((names.paths.first(path), digest) for path, digest in meta["manifest"].items())
    told = json.dumps([meta["cells"], manifest, edition])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _numbers(record: Record) -> Iterator[tuple[str, tuple[str, float]]]:
    """Yield name, kind and median of everything a record holds that may differ from run to run."""
    for name, leaf in walk_leaves(record.names):
        kind, value = kind_of(leaf), middle(leaf)
        if kind is not None and value is not None:
            yield name, (kind, value)
        if leaf["kind"] == "measurement" and leaf.get("host_us"):
            yield f"{name}.host_us", ("host", float(leaf["host_us"]["0.5"]))


def earlier_seals(root: Path) -> frozenset[str]:
    """Return the seals of records that were made before their runs kept them."""
    path = root / EARLIER
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return frozenset(line.split()[0] for line in lines if line and not line.startswith("#"))


def doubt(record: Record, runs: Sequence[dict[str, Any]], earlier: Collection[str] = ()) -> str:
    """Contradiction between a record and the run that it was kept as; empty where the two agree.

    Args:
        earlier: seals of records whose runs keep none, see `earlier_seals`.
    """
    meta, date = record.meta, record.meta["provenance"]["date"]
    of_page = {run["date"]: run for run in runs if run["page"] == meta["id"]}
    run = of_page.get(date)
    if run is None:
        return f"{NAME} beside it knows no run of {date}"
    for what, mine in (("card", "uuid"), ("commit", "commit")):
        if run[what] != (named := record.meta["provenance"].get(mine)):
            return f"it names the {what} {str(named)[:12]}, and {NAME} beside it {str(run[what])[:12]}"
    found = dict(_numbers(record))
    for name, (_, value) in found.items():
        _, kept = run["values"].get(name, (None, None))
        if kept is None or abs(kept - value) > SAME * abs(value):
            said = "unknown" if kept is None else f"{kept:.4g}"
            return f"{name} is {value:.4g} in it, and {said} in {NAME} beside it"
    mine = record.meta["checksum"]
    if "seal" not in run and mine not in earlier:
        return f"{NAME} beside it keeps no seal of this run, and {EARLIER} does not have the record's"
    if run.get("seal", mine) != mine:
        return f"its seal is not the one that {NAME} beside it keeps of this run"
    return ""


def doubt_of_moves(record: Record, runs: Sequence[dict[str, Any]], moves: Sequence[dict[str, Any]]) -> str:
    """Return what the list of what moved lacks of a record's run; "" where it has all that the runs beside it tell."""
    page, date = record.meta["id"], str(record.meta["provenance"]["date"])
    noted = {
        entry["name"] for entry in moves if entry["date"] == date and entry["name"].startswith(f"{page}.")
    }
    mine = sorted(
        (run for run in runs if run["page"] == page and run["date"] <= date), key=lambda run: run["date"]
    )
    if mine and mine[-1].get("moved", len(noted)) != len(noted):
        return f"{mine[-1]['moved']} of its values moved, and the list of what moved has {len(noted)} of them"
    for before, now in itertools.pairwise(mine[-2:]):
        for name, (_, value) in now["values"].items():
            _, then = before["values"].get(name, (None, 0.0))
            if (
                then > 0
                and abs(value / then - 1) > FAR
                and f"{page}.{name}" not in noted
                and ".host_us" not in name
            ):
                return (
                    f"{name} went from {then:.4g} to {value:.4g}, and the list of what moved does not have it"
                )
    return ""


def middle(leaf: dict[str, Any]) -> float | None:
    """Return the central number of a leaf; None for a text or a trace."""
    if leaf["kind"] == "measurement":
        return float(leaf["quantiles_us"]["0.5"])
    if leaf["kind"] == "samples":
        return float(leaf["quantiles"]["0.5"])
    if leaf["kind"] == "counted":
        return float(leaf["read_bytes"] + leaf["write_bytes"])
    if leaf["kind"] == "quantity" and isinstance(leaf["value"], (int, float)):
        return float(leaf["value"])
    return None


def covered(old: Record, new: Record, terms: BetweenRuns) -> tuple[int, int]:
    """Count how many timings of a new record lie inside the interval that the old one stated, and of how many."""
    before = dict(walk_leaves(old.names))
    inside = of = 0
    for name, leaf in walk_leaves(new.names):
        if leaf["kind"] != "measurement" or before.get(name, {}).get("kind") != "measurement":
            continue
        drawn = factors(before[name], name=name, run=old.run, terms=terms)
        then, now = middle(before[name]), middle(leaf)
        if drawn is None or then is None or now is None:
            continue
        low, high = interval(then * drawn)
        of += 1
        inside += low <= now <= high
    return inside, of
