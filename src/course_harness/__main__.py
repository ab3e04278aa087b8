"""``python -m course_harness TASK``: what `nox -s harness` runs."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_harness import record, recorded, table
from course_harness.endpoint import KEY, Endpoint, Settings
from course_harness.journal import Journal
from course_harness.judging import Judge, Judging
from course_harness.loop import DONE, Budget, Plan, run, spent
from course_harness.proposer import Proposer, Stopped
from course_harness.search import MOST, Search
from course_harness.tasks import LEVELS, Task, Unusable, attack_words, task, tasks, words
from course_judge.identity import hash_by_name

ROOT = Path(__file__).resolve().parents[2]
JOURNALS = Path("harness_journals")
ALL = "all"
USAGE, LATER = 2, 3
MOST_SAMPLES, MOST_ROUNDS, LONGEST_S = 256, 32, 86400.0
SAMPLING: dict[str, Callable[[str], int | float]] = {
    "temperature": float,
    "top_p": float,
    "seed": int,
    "max_tokens": int,
}


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Run one task; the exit code: 0 done, 2 a mistake in the command, 3 interrupted by a budget or by a server."""
    options = _options().parse_args(arguments)
    try:
        if options.list:
            print(_listed())
        elif options.table:
            print(_table(options.journals))
        elif not options.task:
            raise Unusable(f"name a task: {', '.join(tasks())}; or {ALL}, --list, --table")
        elif options.words:
            print(_words(options)(task(options.task)), end="")
        elif options.add:
            print(_kept(options, root))
        else:
            return _run(options, root)
    except Unusable as error:
        print(error, file=sys.stderr)
        return USAGE
    except Stopped as error:
        print(f"{error}; the same command goes on", file=sys.stderr)
        return LATER
    except KeyboardInterrupt:
        return 130
    return 0


def _run(options: argparse.Namespace, root: Path) -> int:
    """Run one task, or all that the proposer has something for, one after the other and on one budget."""
    half = "attack" if options.attack else "kernel"
    several = options.task == ALL
    if several and (options.proposer == "endpoint" or options.journal):
        raise Unusable(f"{ALL}: a task each for --proposer endpoint and for --journal")
    if options.record and (not several or half == "attack" or options.proposer != "recorded"):
        raise Unusable(f"--record goes with {ALL}, and with kernels that are kept in proposals/")
    chosen = _all(options, root, half) if several else [(task(options.task), options.series)]
    if not chosen:
        raise Unusable(f"{ALL}: {options.proposer} has nothing for any task")
    ended = DONE
    with Judge(seconds=options.limit) as judging:
        if options.record and not judging.has_card:
            raise Unusable("--record is for a card: what is recorded is timed, and here nothing is")
        if options.gpu and not judging.has_card:
            raise Unusable(
                "this machine has a GPU, but torch cannot use it; CUDA_VISIBLE_DEVICES=-1 runs without"
            )
        runs = [_one(options, root, half, judging, *one) for one in chosen]
        left = options.seconds - sum(spent(Journal(path).entries) for _, _, path in runs)
        for plan, proposer, path in runs:
            if several:
                print(f"{plan.task.name}, {path.name}", flush=True)
            with Journal(path).alone():
                journal = Journal(path)
                before = spent(journal.entries)
                budget = Budget(before + max(left, 0.0), options.proposals)
                why = run(plan, proposer, judging, journal, budget)
                left -= spent(journal.entries) - before
            ended = why if why != DONE else ended
            _tell(path, why, half)
        if options.record and ended == DONE:
            print(f"recorded: {record.keep(root, judging.on, [path for _, _, path in runs])}")
    return 0 if ended == DONE else LATER


def _all(options: argparse.Namespace, root: Path, half: str) -> list[tuple[Task, str]]:
    if options.proposer == "search":
        return [(one, "") for one in tasks().values() if one.kernel]
    return [(one, name) for one in tasks().values() for name in recorded.series(root, one.name, half)]


def _one(
    options: argparse.Namespace, root: Path, half: str, judging: Judging, one: Task, series: str
) -> tuple[Plan, Proposer, Path]:
    """Return the plan of a task, who proposes, and the journal."""
    proposer, name, samples, rounds = _proposer(options, root, one, half, series)
    samples, rounds = options.samples or samples, options.rounds or rounds
    plan = Plan(one, half, _words(options)(one), samples, rounds, options.profile)
    file = f"{half}-{one.name}-{name}-{_file_name(judging.on)}.jsonl"
    return plan, proposer, options.journal or options.journals / file


def _tell(path: Path, why: str, half: str) -> None:
    print(f"{why}; the journal: {path}")
    found = table.summary(path)
    if half == "attack":
        told = table.tally([found])
        print(f"tried {told.tried}, refused {told.refused}, not judged {told.not_judged}, open {told.open}")
    else:
        print(table.plain(table.task_table([table.row(found)])))


def _proposer(
    options: argparse.Namespace, root: Path, one: Task, half: str, series: str
) -> tuple[Proposer, str, int, int]:
    """Return the proposer, its name for a file, and how many samples and rounds it has by itself."""
    if options.proposer == "search":
        if half == "attack":
            raise Unusable("search changes constants of a right kernel, which attacks nobody")
        search = Search(one, seed=options.seed, most=options.most)
        return search, "search", len(search.choices), 1
    if options.proposer == "endpoint":
        if not options.url or not options.model:
            raise Unusable("endpoint needs --url and --model")
        settings = Settings(
            options.url, options.model, _sampling(options.sampling), options.key_from, options.timeout
        )
        return Endpoint(settings, _words(options)), _file_name(options.model), 1, 1
    kept = recorded.series(root, one.name, half)
    if not kept:
        raise Unusable(f"{one.name}: no proposals are recorded for it; take --proposer search or endpoint")
    if not series and len(kept) > 1:
        raise Unusable(f"{one.name}: several series are recorded, choose by --series: {', '.join(kept)}")
    name = series or next(iter(kept))
    if name not in kept:
        raise Unusable(f"{one.name}: no series {name!r}; there are {', '.join(kept)}")
    return recorded.Recorded(kept[name]), name, kept[name].samples, kept[name].rounds


def _words(options: argparse.Namespace) -> Callable[[Task], str]:
    return attack_words if options.attack else words


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:60] or "unnamed"


def _sampling(told: list[str]) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    for one in told:
        name, _, value = one.partition("=")
        if name not in SAMPLING or name in found:
            raise Unusable(
                f"--sampling {one}: expected one of {', '.join(SAMPLING)} with a number, each once"
            )
        try:
            found[name] = SAMPLING[name](value)
        except ValueError:
            raise Unusable(f"--sampling {one}: {value!r} is no such number") from None
        if not math.isfinite(found[name]):
            raise Unusable(f"--sampling {one}: {value!r} is no such number")
    return found


def _kept(options: argparse.Namespace, root: Path) -> Path:
    one = task(options.task)
    if not options.series:
        raise Unusable("--add needs --series, the name of a folder")
    try:
        text = options.add.read_bytes()
    except OSError as error:
        raise Unusable(f"{options.add}: {error.strerror}") from None
    unknown = recorded.UNKNOWN
    about: dict[str, Any] = {
        "half": "attack" if options.attack else "kernel",
        "model": options.model or unknown,
        "date": options.date or unknown,
        "prompt": options.prompt or unknown,
        "saw": options.saw or unknown,
        "sampling": {**dict.fromkeys(recorded.SAMPLING, unknown), **_known(_sampling(options.sampling))},
    }
    at = (options.samples or 1, options.rounds or 1)
    return recorded.keep(root, one.name, options.series, about, at, text)


def _known(sampling: dict[str, int | float]) -> dict[str, int | float]:
    return {name: value for name, value in sampling.items() if name in recorded.SAMPLING}


def _listed() -> str:
    return "\n".join(
        f"{one.name}  level {one.level}, {LEVELS[one.level]}; timed on {one.time}" for one in tasks().values()
    )


def _table(folder: Path) -> str:
    found, lines = table.summaries(folder, hash_by_name)
    parts = []
    kernels = [one for one in found if one.half == "kernel"]
    for who, on in dict.fromkeys((one.who, one.on) for one in kernels):
        rows = [
            table.row(one) for one in record.merged(one for one in kernels if (one.who, one.on) == (who, on))
        ]
        head = table.escaped(f"{who}, {on}", table.SHOWN)
        parts.append(
            f"{head}\n{table.plain(table.level_table(rows))}\n\n{table.plain(table.task_table(rows))}"
        )
    told = table.tally(found)
    if told.tried:
        parts.append(
            f"attacks: tried {told.tried}, refused {told.refused}, not judged {told.not_judged}, open {told.open}"
        )
    return "\n\n".join([*parts, *lines]) or f"no journals in {folder}"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nox -s harness --",
        description="Let a machine write a kernel, judge it, tell it, and let it write again.",
    )
    parser.add_argument("task", nargs="?", help="a task of --list, such as softmax; or all")
    parser.add_argument("--list", action="store_true", help="list the tasks")
    parser.add_argument("--words", action="store_true", help="print what a proposer is told of the task")
    parser.add_argument("--table", action="store_true", help="print tables of all journals")
    parser.add_argument(
        "--attack", action="store_true", help="the hacker's half: be called right while wrong"
    )
    parser.add_argument("--proposer", choices=("recorded", "search", "endpoint"), default="recorded")
    parser.add_argument("--series", default="", help="which recorded proposals, where there are several")
    parser.add_argument("--url", default="", help="endpoint: such as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", default="", help="endpoint: the model's name")
    parser.add_argument(
        "--sampling", action="append", default=[], metavar="NAME=VALUE", help="temperature=0.7 …"
    )
    parser.add_argument("--key-from", default=KEY, metavar="NAME", help="the variable that holds the key")
    parser.add_argument(
        "--timeout", type=_number(3600.0), default=300.0, help="endpoint: seconds of each try"
    )
    parser.add_argument("--seed", type=int, help="search: draw choices instead of taking them in order")
    parser.add_argument("--most", type=_whole(MOST), default=MOST, help="search: choices, at most")
    parser.add_argument("--samples", type=_whole(MOST_SAMPLES), help="chains that know nothing of each other")
    parser.add_argument("--rounds", type=_whole(MOST_ROUNDS), help="proposals of a chain, at most")
    parser.add_argument(
        "--seconds", type=_number(LONGEST_S), default=3600.0, help="budget, over interruptions"
    )
    parser.add_argument("--proposals", type=_whole(10000), default=256, help="budget of proposals")
    parser.add_argument(
        "--limit", type=_number(3600.0), default=120.0, help="seconds of each answer of a file"
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="tell of a right file what the profiler says, too; it is run without the judge's limits",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"{ALL}: when all is done, write the record of this card that pages read, records/<gpu>/{record.NAME}",
    )
    parser.add_argument("--journals", type=Path, default=JOURNALS, metavar="FOLDER")
    parser.add_argument("--journal", type=Path, metavar="PATH", help="the journal of this run")
    parser.add_argument(
        "--add", type=Path, metavar="FILE", help="keep a proposal: as --samples, --rounds of --series"
    )
    parser.add_argument("--date", default="", help="--add: such as 2026-11-29")
    parser.add_argument("--prompt", default="", help="--add: what was asked, or where that is told")
    parser.add_argument("--saw", default="", help="--add: what the model had before it")
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    return parser


def _number(most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            if 0 < (value := float(text)) <= most:
                return value
        raise argparse.ArgumentTypeError(f"{text} is no number above 0, up to {most:g}")

    return number


def _whole(most: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        with contextlib.suppress(ValueError):
            if 0 < (value := int(text)) <= most:
                return value
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 1 to {most}")

    return whole


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
