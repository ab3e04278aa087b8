"""Tables of what machines wrote, from journals alone: how much was right, and how much was quicker than its rivals.

fast₀ is the share of tasks with a right answer; fast₁ the share with one that takes less time than a rival: PyTorch as
most people write it, eager, and the same under torch.compile. Every time is the judge's, of one run. Where no time was
taken, nothing is said of it: such a cell is None, *not timed*.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from course_harness.journal import Entry, read
from course_harness.tasks import LEVELS, Unusable
from course_judge.protocol.verdict import NOT_JUDGED, RIGHT, escaped

NOT_TIMED = "not timed"
RIVALS = ("eager", "compiled")
SHOWN = 200  # characters of a stranger's words


@dataclass(frozen=True)
class Time:
    """Time by the judge's verdict.

    Attributes:
        us: in microseconds.
        by: as in `course_judge.protocol.verdict.Taken`.
    """

    us: float
    by: str


@dataclass(frozen=True)
class Attempt:
    """A proposal that was judged.

    Attributes:
        right: None where the judge could not tell without a card.
        time: None where none was taken.
        found: the property that it was refused for.
    """

    right: bool | None
    time: Time | None
    found: str


@dataclass(frozen=True)
class Summary:
    """Content of one journal.

    Attributes:
        task, level, half: as it began.
        who: the series or the model; a stranger's words, so never shown but through `inert`.
        on: the card, or that there was none.
        judge: the hash of the judge.
        samples: the attempts of each, round by round.
        rivals: the times of `RIVALS`; None where none was taken.
        why: why it ended; empty where it has not.
        series: of recorded proposals; empty for others.
    """

    task: str
    level: int
    half: str
    who: str
    on: str
    judge: str
    samples: tuple[tuple[Attempt, ...], ...]
    rivals: dict[str, Time | None]
    why: str
    series: str = ""

    @property
    def attempts(self) -> list[Attempt]:
        """All attempts."""
        return [one for sample in self.samples for one in sample]


def summary(path: Path) -> Summary:
    """Return what a journal says.

    Raises:
        Unusable: it is none, was changed, or a verdict in it is on another file or of another judge.
    """
    return summary_of(read(path), path)


def summary_of(entries: Sequence[Entry], path: Path | str) -> Summary:
    """Return what the entries of a journal say.

    Args:
        entries: as `course_harness.journal` reads them.
        path: where they stand, for what is said of them.
    Raises:
        Unusable: there are none, or a verdict in them is on another file or of another judge.
    """
    if not entries:
        raise Unusable(f"{path}: is empty")
    begun = entries[0]
    texts = {(e["sample"], e["round"]): e["text"] for e in entries if e["kind"] == "proposed"}
    samples: dict[int, list[Attempt]] = {}
    rivals: dict[str, Time | None] = dict.fromkeys(RIVALS)
    for entry in entries:
        if entry["kind"] == "judged":
            verdict, at = entry["verdict"], (entry["sample"], entry["round"])
            digest = sha256(texts.get(at, "").encode(errors="surrogatepass")).hexdigest()
            if verdict["evidence"]["file"] != digest or verdict["evidence"]["judge"] != begun["judge"]:
                raise Unusable(
                    f"{path}: sample {at[0]}, round {at[1]}: the verdict is on another file, or of another judge"
                )
            samples.setdefault(at[0], []).append(_attempt(verdict))
        elif entry["kind"] == "baseline":
            rivals[entry["which"]] = _attempt(entry["verdict"]).time
    ends = [entry["why"] for entry in entries if entry["kind"] == "ended"]
    return Summary(
        task=begun["task"],
        level=begun["level"],
        half=begun["half"],
        who=_who(begun),
        on=begun["on"],
        judge=begun["judge"],
        samples=tuple(tuple(samples[number]) for number in sorted(samples)),
        rivals=rivals,
        why=ends[-1] if entries[-1]["kind"] == "ended" else "",
        series=str(begun["about"].get("series", "")),
    )


def _who(begun: Entry) -> str:
    about = begun["about"]
    return str(about.get("model") or begun["proposer"])


def _attempt(verdict: dict[str, Any]) -> Attempt:
    found, time = verdict["found"], verdict.get("time")
    right = None if found == NOT_JUDGED else found == RIGHT
    return Attempt(right, Time(time["us"], time["by"]) if right and time else None, found)


def summaries(folder: Path, judge_now: Callable[[str], str] | None = None) -> tuple[list[Summary], list[str]]:
    """Return what all journals below a folder say, and lines about those that do not count.

    Args:
        folder: with journals.
        judge_now: task -> the hash of the judge as it is now; a journal of another judge does not count.
    """
    found: dict[tuple[str, ...], Summary] = {}
    lines = []
    for path in sorted(folder.rglob("*.jsonl")):
        one = summary(path)
        key = (one.task, one.half, one.who, one.series, one.on)
        if judge_now and one.judge != judge_now(one.task):
            lines.append(f"{path.name}: of another judge than now; run it again")
        elif key in found:
            raise Unusable(
                f"{path}: a second journal of {one.task} by the same proposer on the same machine; keep one"
            )
        else:
            found[key] = one
            if not one.why:
                lines.append(f"{path.name}: was interrupted; the same command goes on")
    return list(found.values()), lines


# --- shares -----------------------------------------------------------------------------------------


def is_quicker(time: Time, rival: Time) -> bool | None:
    """Return whether one takes less time; None where the clocks allow no word on it.

    The judge's clock alone gives the most that a call can take. Against such a rival nobody is known to be quicker.
    """
    if rival.by == time.by or time.us >= rival.us:
        return time.us < rival.us
    return None if rival.by != "both clocks" else True


def fast_0(attempts: Iterable[Attempt]) -> float | None:
    """Return 1 where one is right, and 0 where none is; None where one could not be judged."""
    rights = [one.right for one in attempts]
    if any(rights):
        return 1.0
    return None if None in rights else 0.0


def fast_1(attempts: Iterable[Attempt], rival: Time | None) -> float | None:
    """Return 1 where a right one is quicker than its rival, and 0 where none is; None where that is not known.

    What is wrong is not quick, whether anything was timed or not.
    """
    known: list[bool | None] = []
    for one in attempts:
        if one.right is False:
            known.append(False)
        elif one.time is None or rival is None:
            known.append(None)
        else:
            known.append(is_quicker(one.time, rival))
    if any(known):
        return 1.0
    return None if None in known else 0.0


def _mean(shares: Sequence[float | None]) -> float | None:
    known = [one for one in shares if one is not None]
    return statistics.fmean(known) if known and len(known) == len(shares) else None


@dataclass(frozen=True)
class Shares:
    """fast₀, and fast₁ against each rival; None where it is not known."""

    fast_0: float | None
    eager: float | None
    compiled: float | None

    @classmethod
    def of(cls, chosen: Sequence[Sequence[Attempt]], one: Summary) -> Shares:
        """Return the means over several choices of attempts of one task."""
        return cls(
            _mean([fast_0(attempts) for attempts in chosen]),
            *(_mean([fast_1(attempts, one.rivals[rival]) for attempts in chosen]) for rival in RIVALS),
        )


@dataclass(frozen=True)
class Row:
    """Shares of one task.

    Attributes:
        summary: whose.
        one_sample: the first round of a sample, in the mean over all samples.
        best_of_k: the first rounds of all samples together.
        with_feedback: all rounds of a sample, in the mean; None where no sample has a second round.
    """

    summary: Summary
    one_sample: Shares
    best_of_k: Shares
    with_feedback: Shares | None


def row(one: Summary) -> Row:
    """Return the shares of one task."""
    firsts = [sample[:1] for sample in one.samples]
    several = any(len(sample) > 1 for sample in one.samples)
    return Row(
        one,
        Shares.of(firsts, one),
        Shares.of([[attempt for first in firsts for attempt in first]] if firsts else [], one),
        Shares.of(one.samples, one) if several else None,
    )


def by_level(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Return the rows of each level, in order; levels without any are left out."""
    return {level: of for level in LEVELS if (of := [row for row in rows if row.summary.level == level])}


def shares_of(rows: Sequence[Row], way: str) -> Shares:
    """Return the mean of shares over tasks; one that is not known for a task is not known.

    Args:
        rows: each with such shares.
        way: "one_sample", "best_of_k" or "with_feedback".
    """
    told = [getattr(one, way) for one in rows]
    return Shares(*(_mean([getattr(one, name) for one in told]) for name in ("fast_0", *RIVALS)))


@dataclass(frozen=True)
class Tally:
    """Attacks on the judge: tried, refused, not judged without a card, and open: called right."""

    tried: int
    refused: int
    not_judged: int
    open: int


def tally(found: Iterable[Summary]) -> Tally:
    """Count the attacks of all journals of the hacker's half."""
    attempts = [attempt for one in found if one.half == "attack" for attempt in one.attempts]
    rights = [attempt.right for attempt in attempts]
    return Tally(len(rights), rights.count(False), rights.count(None), rights.count(True))


# --- as text ----------------------------------------------------------------------------------------


def inert(text: str, most: int = SHOWN) -> str:
    """Return a stranger's words as a page of the site may hold them: no HTML, no Markdown, no template reads them.

    All but letters, digits and single spaces is written as numeric entities.
    """
    line = " ".join(escaped(" ".join(text.split()), most).split())
    return "".join(c if c == " " or c.isalnum() else f"&#{ord(c)};" for c in line)


WAYS = {"one_sample": "one sample", "best_of_k": "best of k", "with_feedback": "with feedback"}
TOLD = ("fast₀", "fast₁ against eager", "fast₁ against torch.compile")


def cells(shares: Shares | None) -> list[str]:
    """Return the cells of shares."""
    if shares is None:
        return ["one round only"] * len(TOLD)
    unknown = ("not judged", NOT_TIMED, NOT_TIMED)
    values = (shares.fast_0, shares.eager, shares.compiled)
    return [lacks if value is None else f"{value:.2f}" for value, lacks in zip(values, unknown, strict=True)]


def level_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return head and lines: the shares over the tasks of each level; with feedback, over those that have any."""
    lines = [["level", "tasks", "samples", "way", *TOLD]]
    for level, all_ in [*by_level(rows).items(), (0, list(rows))]:
        name = f"{level}: {LEVELS[level]}" if level else "all"
        for way, called in WAYS.items():
            of = [one for one in all_ if getattr(one, way)]
            counts = sorted({len(one.summary.samples) for one in of})
            k = "–".join(str(n) for n in dict.fromkeys([counts[0], counts[-1]])) if counts else "0"
            lines.append([name, str(len(of)), k, called, *cells(shares_of(of, way) if of else None)])
    return lines


def task_table(rows: Sequence[Row]) -> list[list[str]]:
    """Return head and lines: for each task how many were right, the shortest time, and the rivals' times."""
    lines = [["task", "level", "right", "shortest", *RIVALS]]
    for one in rows:
        attempts = one.summary.attempts
        times = [attempt.time.us for attempt in attempts if attempt.time]
        right = f"{sum(attempt.right is True for attempt in attempts)} of {len(attempts)}"
        shortest = f"{min(times):.1f} µs" if times else NOT_TIMED
        rivals = [one.summary.rivals[name] for name in RIVALS]
        shown = [f"{rival.us:.1f} µs" if rival else NOT_TIMED for rival in rivals]
        lines.append([one.summary.task, str(one.summary.level), right, shortest, *shown])
    return lines


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown, its cells inert."""
    head, *rest = [[inert(cell) for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rest]) + "\n"


def plain(lines: Sequence[Sequence[str]]) -> str:
    """Return a table as text for a terminal."""
    told = [[escaped(cell, SHOWN) for cell in line] for line in lines]
    wide = [max(len(line[n]) for line in told) for n in range(len(told[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip() for line in told
    )
