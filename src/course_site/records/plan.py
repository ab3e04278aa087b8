"""Plan of what to measure on this machine: which pages and GPU tests, why, and how long it should take.

Nothing heavy is imported before it is needed: a machine that lacks a package is told so in one line.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_site.pages.needs import card_of, gpus_of
from course_site.records.gpus import Gpu
from course_site.records.packages import packages_lacking

if TYPE_CHECKING:
    from course_site.pages.page import Page
    from course_site.records.gpu_test_records import Verdict
    from course_site.records.record import Record

STARTUP_S = 3.0  # a page's process, before its first cell
GUESS_S = 120.0  # the forecast of a page that has no record anywhere
UNKNOWN_S = 30.0  # of a group of GPU tests that never ran
# Kinds of tasks, by what they bear beside them on a host: a page pages, tests tests, and a clock nothing.
PAGE, TESTS, ALONE = "page", "tests", "alone"


class CannotStart(RuntimeError):
    """A run that cannot begin: nothing was done, and the message is one line that says why and what to do."""


@dataclass
class Job:
    """A page to measure: why, and how long it should take."""

    page: Page
    reasons: list[str]
    forecast_s: float
    forecast_from: str

    @property
    def name(self) -> str:
        """Path of the page in the repository."""
        return self.page.path.as_posix()

    @property
    def gpus(self) -> int:
        """GPUs of one host that it uses at once."""
        return gpus_of(self.page.needs)

    @property
    def kind(self) -> str:
        """Kind of task, which decides what it shares a host with."""
        return PAGE


@dataclass
class GroupJob:
    """A group of GPU tests to run.

    Attributes:
        alone: it looks at time, or at what a busy neighbour changes: nothing else may run on its host.
    """

    verdict: Verdict
    alone: bool

    @property
    def name(self) -> str:
        """Name among the tasks of a run."""
        return f"tests/gpu/{self.verdict.group}"

    @property
    def forecast_s(self) -> float:
        """Seconds of its last run, or a guess."""
        return UNKNOWN_S if self.verdict.seconds is None else self.verdict.seconds

    @property
    def gpus(self) -> int:
        """GPUs of one host that it uses at once."""
        return self.verdict.gpus

    @property
    def kind(self) -> str:
        """Kind of task, which decides what it shares a host with."""
        return ALONE if self.alone else TESTS


Task = Job | GroupJob


def in_words(tasks: Sequence[Task]) -> tuple[str, str]:
    """Return what there is to do, "2 pages" or "2 pages and 1 group of GPU tests", and its forecast in GPU minutes."""
    groups = sum(isinstance(task, GroupJob) for task in tasks)
    pages = len(tasks) - groups
    words = f"{pages} page{'s' * (pages != 1)}"
    if groups:
        words += f" and {groups} group{'s' * (groups != 1)} of GPU tests"
    return words, f"about {sum(task.forecast_s for task in tasks) / 60:.1f} GPU minutes"


def unmet(page: Page, gpus: Sequence[Gpu], *, here: bool = True) -> str | None:
    """First need of the page that this machine lacks, or None; its cards are of one model.

    ``capability X.Y`` is the same major number and at least that minor one: what is built for one family
    (sm_90a) runs on no other. ``capability X.Y+`` is that or anything newer.

    Args:
        here: the cards are in this machine: whether their counters can be read is asked as well.
    """
    gpu, together = gpus[0], gpus_of(page.needs)
    if too_few := _too_few(together, gpus):
        return too_few
    for need in page.needs:
        card = card_of(need)
        if card and not re.fullmatch(card.pattern, gpu.name):
            return f"needs {need}, and this is an {gpu.name}"
        if older := _of_another_capability(need, gpu):
            return older
        lacking = counters_lacking() if here and need == "counters" else None
        if lacking:
            return f"needs hardware counters; {lacking}"
        extra = need.removeprefix("packages ")
        missing = packages_lacking(extra) if here and extra != need else None
        if missing:
            return f"{need}: {missing}"
    return None


def _too_few(together: int, gpus: Sequence[Gpu]) -> str | None:
    if len(gpus) >= together:
        return None
    return f"needs {together} GPUs, and there {'is' if len(gpus) == 1 else 'are'} {len(gpus)}"


def _of_another_capability(need: str, gpu: Gpu) -> str | None:
    match = re.fullmatch(r"capability (\d+)\.(\d+)(\+?)", need)
    if not match:
        return None
    wanted = (int(match[1]), int(match[2]))
    fits = gpu.capability >= wanted and (bool(match[3]) or gpu.capability[0] == wanted[0])
    return None if fits else f"needs {need}, and the {gpu.name} has {gpu.capability[0]}.{gpu.capability[1]}"


def lacking(pages: Sequence[Page], gpus: Sequence[Gpu], *, here: bool = True) -> dict[str, str | None]:
    """Return what these cards lack for each page, by its path; None where they can run it. For `here` see `unmet`."""
    return {page.path.as_posix(): unmet(page, gpus, here=here) for page in pages}


# One small call under the profiler: that ncu is installed does not say that this user may read the counters.
COUNT_ONCE = """
import sys
from course_kernels.measure import CountersUnavailable, count
from course_kernels.problem import Workload
from course_kernels.vector_add import k01_cuda
try:
    count(k01_cuda, Workload.of("float32", N=2**20))
except CountersUnavailable as why:
    sys.exit(str(why))
"""


@functools.cache
def counters_lacking() -> str | None:
    """Reason why hardware counters cannot be read here, in one line; None where they can."""
    if shutil.which("ncu") is None:
        return "Nsight Compute (ncu) is not on PATH"
    if os.environ.get("COURSE_FAKE_GPUS"):
        return None
    done = subprocess.run([sys.executable, "-c", COUNT_ONCE], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or ["it failed without a word"]
    return said[-1].removeprefix("counters: ")


def jobs(
    root: Path,
    pages: list[Page],
    slug: str,
    gpus: list[Gpu],
    *,
    reference: str,
    only_stale: bool,
    edition: dict[str, str] | None = None,
) -> Iterator[Job]:
    """Yield the pages to measure, each with why and for how long; what this card lacks is printed.

    Args:
        gpus: those that one page can have together.
        edition: of workers elsewhere; None for what is installed here.
    """
    from course_site.records import artifacts
    from course_site.records.record import Record, RecordError, record_path, stale_reasons

    here = edition is None
    edition = installed_edition(gpus[0]) if gpus and here else edition
    for page in pages:
        lacking = unmet(page, gpus, here=here) if gpus else None
        if lacking:
            print(f"docs: {page.path} {lacking}: this edition has no numbers of it", flush=True)
            continue
        path = record_path(root, slug, page)
        record = None
        if not path.exists():
            reasons = [f"no record in records/{slug} yet"]
        else:
            try:
                record = Record.load(path)
                reasons = stale_reasons(page, record, root)
                for name, fault in artifacts.faults(path, record.artifacts):
                    reasons.append(f"{artifacts.folder_of(path).name}/{name} {fault.split('; ')[0]}")
                if edition and record.edition != edition:
                    reasons.append(f"its record is of {_difference(record.edition, edition)}")
                if record.made_up:
                    reasons.append("its record is of a GPU that COURSE_FAKE_GPUS made up")
                if record.dirty and slug == reference:
                    reasons.append("its record was made from files that differ from their commit")
            except RecordError as error:
                reasons = ["its record " + str(error).split("; ")[0].removeprefix(f"{path}: ")]
        if only_stale and not reasons:
            continue
        yield Job(page, reasons or ["measured afresh"], *_forecast(root, page, slug, record))


def _difference(then: dict[str, str], now: dict[str, str]) -> str:
    return ", ".join(f"{key} {then[key]}, here is {now[key]}" for key in now if then.get(key) != now[key])


def installed_edition(gpu: Gpu) -> dict[str, str] | None:
    """Return the edition a page measured here would get, without importing torch; None if that cannot be told."""
    from importlib.metadata import PackageNotFoundError, version

    from course_site.records.record import edition_of

    if os.environ.get("COURSE_FAKE_GPUS"):
        from course_site.records.execute import fake_provenance

        return edition_of(fake_provenance(gpu))
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return None
    text = (Path(torch.origin).parent / "version.py").read_text(encoding="utf-8")
    cuda = re.search(r"^cuda\b[^=]*= '([\d.]+)'", text, re.MULTILINE)
    try:
        return edition_of(
            {"gpu": gpu.name, "cuda": cuda[1], "torch": version("torch"), "triton": version("triton")}
        ) if cuda else None  # fmt: skip
    except PackageNotFoundError:
        return None


def _forecast(root: Path, page: Page, slug: str, record: Record | None) -> tuple[float, str]:
    if record is not None:
        return record.seconds + STARTUP_S, f"records/{slug}"
    from course_site.records.record import record_path, seconds_of

    others = (root / "records").glob(record_path(root, "*", page).relative_to(root / "records").as_posix())
    for path in sorted(others, key=lambda path: (path.relative_to(root).parts[1] != slug, path)):
        seconds = seconds_of(path)
        if seconds is not None:
            return seconds + STARTUP_S, f"records/{path.relative_to(root).parts[1]}"
    return GUESS_S, "a guess"


def print_plan(jobs: list[Job], gpus: list[Gpu], slug: str, groups: list[GroupJob]) -> None:
    """Say what would run, why, and for how long, in the order of running."""
    where = f"{len(gpus)} × {gpus[0].name}" if gpus else f"no GPU here; what is stale in records/{slug}"
    print(f"plan ({where}):")
    for job in jobs:
        more = f", and {len(job.reasons) - 1} more" if len(job.reasons) > 1 else ""
        where = f"{job.page.path}: {job.forecast_s / 60:.1f} min ({job.forecast_from})"
        print(f"  {where}: {job.reasons[0]}{more}")
    for line in _plan_of_tests([job.verdict for job in groups]):
        print(f"  {line}")
    print(", ".join(in_words([*jobs, *groups])))


def check_beside(root: Path, slug: str) -> None:
    """Check that the histories can be read to which every record is added, before a minute of a GPU is spent."""
    from course_site.records import changes, run_history
    from course_site.records.record import RecordError

    try:
        run_history.load(root, slug)
        changes.load(root, slug)
    except RecordError as error:
        raise CannotStart(str(error)) from None


def tests_to_run(
    root: Path,
    gpus: list[Gpu],
    slug: str,
    *,
    reference: str,
    asked: bool,
    will_build: bool,
    edition: dict[str, str] | None,
) -> list[GroupJob]:
    """Return the groups of GPU tests that were asked for, or that the build which follows would miss.

    Args:
        edition: of workers elsewhere; None for what is installed here.
    """
    if not (root / "tests" / "gpu").exists() or not (asked or will_build):
        return []
    from course_site.records import gpu_test_records

    try:
        project = gpu_test_records.Project(root)
        found = gpu_test_records.verdicts(project, slug, clean=slug == reference)
    except ValueError as error:
        raise CannotStart(str(error)) from None
    here = bool(gpus) and edition is None
    found = [verdict for verdict in found if _is_for_these_cards(verdict, gpus, slug)]
    if here:
        found = [
            verdict for verdict in found if _has_packages(project.packages_of(verdict.group), verdict.group)
        ]
        edition = installed_edition(gpus[0])
    for number, verdict in enumerate(found):
        if edition and verdict.edition not in (None, edition) and not verdict.why:
            why = f"is of {_difference(verdict.edition, edition)}"
            found[number] = dataclasses.replace(verdict, why=why)
    return [
        GroupJob(
            verdict, project.looks_at_time(verdict.group) or verdict.group.startswith(gpu_test_records.LAB)
        )
        for verdict in found
        if asked or verdict.why
    ]


def _is_for_these_cards(verdict: Verdict, gpus: Sequence[Gpu], slug: str) -> bool:
    """Return whether a group of tests is for the cards here; one that is not is printed, with what it needs.

    Without a card here it is for that of the edition, if this has a record of it.
    """
    if gpus:
        why = _of_another_capability(verdict.needs, gpus[0]) or _too_few(verdict.gpus, gpus)
    else:
        of_another = f"needs {verdict.needs}, and records/{slug} is of another card"
        why = of_another if verdict.awaits_its_card else None
    if why:
        print(f"docs: GPU tests {verdict.group}: {why}, which collects none of them", flush=True)
    return not why


def _has_packages(extras: Iterable[str], group: str) -> bool:
    """Return whether what a group of tests needs is installed here; what is not is printed."""
    lacking = [why for extra in extras if (why := packages_lacking(extra))]
    for why in lacking:
        print(f"docs: GPU tests {group}: {why}: their last record stands", flush=True)
    return not lacking


def _plan_of_tests(groups: list[Verdict]) -> Iterator[str]:
    """Yield a line with the groups and their seconds, and a line for each reason."""
    if not groups:
        return
    names = ", ".join(
        f"{verdict.group} ({'never run' if verdict.seconds is None else f'{verdict.seconds:.0f} s'})"
        for verdict in groups
    )
    total = sum(UNKNOWN_S if verdict.seconds is None else verdict.seconds for verdict in groups) / 60
    yield f"tests/gpu: {total:.1f} min: {names}"
    by_reason: dict[str, list[str]] = {}
    for verdict in groups:
        by_reason.setdefault(verdict.why or "asked for", []).append(verdict.group)
    for why, those in by_reason.items():
        yield f"    {those[0] if len(those) == 1 else f'{len(those)} groups'}: {why}"
