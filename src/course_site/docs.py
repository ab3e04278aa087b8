"""The command behind ``nox -s docs``: measure what this machine can measure, then build the site.

With a GPU every page is measured afresh (or what the options say) and its record written; without one the
records of the repository are used. The site is built into a folder of its own and takes the place of site/ only
when it is complete. Exit codes: 0 done, 1 something failed, 2 cannot start, 3 out of minutes, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import difflib
import functools
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_site.records.gpus import Gpu, GpuUnusable, find_gpus

if TYPE_CHECKING:
    from course_site.pages.page import Page
    from course_site.records.execute import PageFailed, Progress
    from course_site.records.record import Record
    from course_site.records.tested import Verdict

STARTUP_S = 3.0  # a page's process, before its first cell
GUESS_S = 120.0  # the forecast of a page that has no record anywhere
UNKNOWN_S = 30.0  # of a group of GPU tests that never ran
# Processes of GPU tests at once: most of their time is compiling, and no part can be shorter than its longest group.
SIDE_BY_SIDE = 3

# Import name and the name pip knows it by.
RENDERING = {
    "mkdocs": "mkdocs",
    "material": "mkdocs-material",
    "mkdocs_jupyter": "mkdocs-jupyter",
    "jupytext": "jupytext",
    "nbformat": "nbformat",
    "matplotlib": "matplotlib",
    "simpleeval": "simpleeval",
    "yaml": "pyyaml",
    "IPython": "ipython",
    "numpy": "numpy",
}
EXECUTING = {
    "jupytext": "jupytext",
    "nbformat": "nbformat",
    "yaml": "pyyaml",
    "nbclient": "nbclient",
    "ipykernel": "ipykernel",
    "numpy": "numpy",
    "simpleeval": "simpleeval",
}
MEASURING = {
    "torch": "torch",
    "triton": "triton",
    "cuda.core": "cuda-core",
    "pynvml": "nvidia-ml-py",
}


class CannotStart(RuntimeError):
    """Nothing was done; the message is one line that says why and what to do."""


class BuildFailed(RuntimeError):
    """The site was not built and site/ is as it was; the message is one line."""


@dataclass
class Job:
    """One page to measure: why, and how long it should take."""

    page: Page
    reasons: list[str]
    forecast_s: float
    forecast_from: str


@dataclass
class Outcome:
    """What measuring came to, kept up to date while it runs."""

    slug: str = ""  # set once measuring begins
    written: list[Path] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    left: list[Job] = field(default_factory=list)
    out_of_minutes: bool = False


def main(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run the command with the options after ``--``; returns the exit code."""
    options = _parse(arguments)
    root = (root or Path.cwd()).resolve()
    outcome = Outcome()
    try:
        return _run(root, options, outcome)
    except (CannotStart, GpuUnusable) as error:
        print(f"docs: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        code = 130
    except asyncio.CancelledError:  # SIGTERM
        code = 143
    finally:
        if options.archive and outcome.slug:
            archive(root, options.archive, outcome.slug, outcome.written)
    count = len(outcome.written)
    print(
        f"\ndocs: stopped; {count} finished record{'s' * (count != 1)} kept, site/ is as it was", flush=True
    )
    return code


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s docs --", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--stale", action="store_true", help="measure only pages whose code changed since their record")
    add("--page", action="append", default=[], metavar="PATH", help="measure this page only (repeatable)")
    add("--plan", action="store_true", help="say what would run, why, and for how long; run nothing")
    add("--minutes", type=float, metavar="M", help="stop before a page that would not fit, with exit code 3")
    add("--measure-only", action="store_true", help="write the records, build no site")
    add("--archive", type=Path, metavar="FILE", help="put the new records into FILE (.tar.gz)")
    add("--jobs", type=int, default=1, metavar="N", help="measure on N GPUs, one page on each")
    add("--tests", action="store_true", help="run all GPU tests, also where their last run still holds")
    add("--draft", action="store_true", help="build although pages are stale; they show no numbers")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    if options.minutes is not None and options.minutes <= 0:
        parser.error("--minutes must be above 0")
    if options.archive:
        options.archive = options.archive.absolute()
    return options


def _run(root: Path, options: argparse.Namespace, outcome: Outcome) -> int:
    started = time.monotonic()
    gpus = one_model(find_gpus())
    wanted = {} if options.measure_only else dict(RENDERING)
    if gpus and not options.plan:
        wanted |= EXECUTING | ({} if os.environ.get("COURSE_FAKE_GPUS") else MEASURING)
    elif options.plan:
        wanted = {name: EXECUTING[name] for name in ("jupytext", "yaml")}
    _require(wanted)
    if options.measure_only and not gpus and not options.plan:
        raise CannotStart("there is no GPU here, so there is nothing to measure: run this on a GPU machine")

    reference = _reference(root)
    if not gpus and not options.plan:
        print(f"docs: no GPU here: building from records/{reference}", flush=True)
        return _build(root, None, options)
    from course_site.pages.page import PageError, find_pages
    from course_site.records.manifest import strangers

    try:
        pages = [page for page in find_pages(root) if page.measures]
    except PageError as error:
        raise CannotStart(str(error)) from None
    chosen = _choose(pages, options.page)
    slug = gpus[0].slug if gpus else reference
    jobs = list(_jobs(root, chosen, slug, gpus, only_stale=options.stale or not gpus))
    groups = _tests_to_run(root, gpus, slug, options)
    if options.plan:
        _print_plan(jobs, gpus, slug, groups)
        return 0
    if options.jobs > len(gpus):
        print(f"docs: --jobs {options.jobs}, but {len(gpus)} GPU here: one page at a time on each")
    for path, message in strangers(root):
        raise CannotStart(f"{path}: {message}")
    _check_beside(root, slug)
    outcome.slug = slug
    if groups:
        _run_tests(root, groups, outcome)
    _measure_all(root, jobs, gpus[: options.jobs], options, started, outcome)
    if outcome.failed:
        print(f"\ndocs: {len(outcome.failed)} failed; site/ is as it was:", file=sys.stderr)
        for name, line in outcome.failed:
            print(f"  {line if line.startswith(name) else f'{name}: {line}'}", file=sys.stderr)
        return 1
    if outcome.out_of_minutes:
        names = ", ".join(job.page.path.as_posix() for job in outcome.left)
        print(
            f"docs: out of minutes, not measured: {names}; `nox -s docs -- --stale` goes on", file=sys.stderr
        )
        return 3
    if options.measure_only:
        return 0
    return _build(root, slug, options)


def _build(root: Path, slug: str | None, options: argparse.Namespace) -> int:
    try:
        build(root, slug, draft=options.draft)
    except BuildFailed as error:
        print(f"docs: {error}; site/ is as it was", file=sys.stderr)
        return 1
    return 0


# --- what is here, what is wanted -------------------------------------------------------------------------


def one_model(gpus: list[Gpu]) -> list[Gpu]:
    """The devices of the first one's model: an edition belongs to one GPU model."""
    chosen = [gpu for gpu in gpus if gpu.name == gpus[0].name]
    for gpu in gpus:
        if gpu.name != gpus[0].name:
            print(f"docs: GPU {gpu.index} ({gpu.name}) is left out: this edition is of the {gpus[0].name}")
    return chosen


def _require(wanted: dict[str, str]) -> None:
    missing = sorted({package for module, package in wanted.items() if not _is_there(module)})
    if missing:
        names = " ".join(missing)
        raise CannotStart(
            f"missing packages: {', '.join(missing)}: `pip install {names}` with a network; without one, "
            f"`nox -s wheelhouse` elsewhere and `pip install --no-index --find-links wheelhouse {names}`"
        )
    if "torch" in wanted:
        from importlib.metadata import version

        if version("torch").endswith("+cpu"):
            raise CannotStart(f"torch {version('torch')} cannot use the GPU: install a CUDA build of torch")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _reference(root: Path) -> str:
    import tomllib

    with (root / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["tool"]["course"]["reference"])


def _choose(pages: list[Page], paths: list[str]) -> list[Page]:
    if not paths:
        return pages
    by_path = {page.path.as_posix(): page for page in pages}
    wanted = [Path(os.path.normpath(path)).as_posix() for path in paths]
    for path in wanted:
        if path not in by_path:
            near = difflib.get_close_matches(path, by_path, n=1, cutoff=0.3) or sorted(by_path)[:1]
            hint = f"; did you mean {near[0]}?" if near else ""
            raise CannotStart(f"--page {path}: there is no such page that measures{hint}")
    return [page for page in pages if page.path.as_posix() in wanted]


def unmet(page: Page, gpu: Gpu) -> str | None:
    """What the page needs and this card lacks, or None.

    ``capability X.Y`` is the same major number and at least that minor one: what is built for one family
    (sm_90a) runs on no other. ``capability X.Y+`` is that or anything newer.
    """
    for need in page.needs:
        match = re.fullmatch(r"capability (\d+)\.(\d+)(\+?)", need)
        if match:
            wanted = (int(match[1]), int(match[2]))
            fits = gpu.capability >= wanted and (bool(match[3]) or gpu.capability[0] == wanted[0])
            if not fits:
                return f"needs {need}, and the {gpu.name} has {gpu.capability[0]}.{gpu.capability[1]}"
        lacking = counters_lacking() if need == "counters" else None
        if lacking:
            return f"needs hardware counters; {lacking}"
    return None


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
    """Why hardware counters cannot be read here, in one line; None where they can."""
    if shutil.which("ncu") is None:
        return "Nsight Compute (ncu) is not on PATH"
    if os.environ.get("COURSE_FAKE_GPUS"):
        return None
    done = subprocess.run([sys.executable, "-c", COUNT_ONCE], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or ["it failed without a word"]
    return said[-1].removeprefix("counters: ")


def _jobs(root: Path, pages: list[Page], slug: str, gpus: list[Gpu], *, only_stale: bool) -> Iterator[Job]:
    from course_site.records.record import Record, RecordError, record_path, stale_reasons

    edition = installed_edition(gpus[0]) if gpus else None
    for page in pages:
        lacking = unmet(page, gpus[0]) if gpus else None
        if lacking:
            print(f"docs: {page.path} {lacking}: the page keeps the reference edition", flush=True)
            continue
        path = record_path(root, slug, page)
        record = None
        if not path.exists():
            reasons = [f"no record in records/{slug} yet"]
        else:
            try:
                record = Record.load(path)
                reasons = stale_reasons(page, record, root)
                if edition and record.edition != edition:
                    reasons.append(f"its record is of {_difference(record.edition, edition)}")
                if record.made_up:
                    reasons.append("its record is of a GPU that COURSE_FAKE_GPUS made up")
                if record.dirty and slug == _reference(root):
                    reasons.append("its record was made from files that differ from their commit")
            except RecordError as error:
                reasons = ["its record " + str(error).split("; ")[0].removeprefix(f"{path}: ")]
        if only_stale and not reasons:
            continue
        yield Job(page, reasons or ["measured afresh"], *_forecast(root, page, slug, record))


def _difference(then: dict[str, str], now: dict[str, str]) -> str:
    return ", ".join(f"{key} {then[key]}, here is {now[key]}" for key in now if then.get(key) != now[key])


def installed_edition(gpu: Gpu) -> dict[str, str] | None:
    """The edition a page measured here would get, without importing torch; None if that cannot be told."""
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
    from course_site.records.record import seconds_of

    others = (root / "records").glob(f"*/{page.path.with_suffix('.ipynb').as_posix()}")
    for path in sorted(others, key=lambda path: (path.relative_to(root).parts[1] != slug, path)):
        seconds = seconds_of(path)
        if seconds is not None:
            return seconds + STARTUP_S, f"records/{path.relative_to(root).parts[1]}"
    return GUESS_S, "a guess"


def _print_plan(jobs: list[Job], gpus: list[Gpu], slug: str, groups: list[Verdict]) -> None:
    where = f"{len(gpus)} × {gpus[0].name}" if gpus else f"no GPU here; what is stale in records/{slug}"
    print(f"plan ({where}):")
    for line in _plan_of_tests(groups):
        print(f"  {line}")
    for job in jobs:
        more = f", and {len(job.reasons) - 1} more" if len(job.reasons) > 1 else ""
        where = f"{job.page.path}: {job.forecast_s / 60:.1f} min ({job.forecast_from})"
        print(f"  {where}: {job.reasons[0]}{more}")
    total = sum(job.forecast_s for job in jobs) / 60
    print(f"{len(jobs)} page{'s' * (len(jobs) != 1)}, about {total:.1f} GPU minutes")


def _check_beside(root: Path, slug: str) -> None:
    """What every page's record is added to must be readable, before a minute of a GPU is spent."""
    from course_site.records import changes, runs
    from course_site.records.record import RecordError

    try:
        runs.load(root, slug)
        changes.load(root, slug)
    except RecordError as error:
        raise CannotStart(str(error)) from None


# --- measuring --------------------------------------------------------------------------------------------


def _tests_to_run(root: Path, gpus: list[Gpu], slug: str, options: argparse.Namespace) -> list[Verdict]:
    """The groups of GPU tests that were asked for, or that the build which follows would miss."""
    will_build = not (options.measure_only or options.draft)
    if not (root / "tests" / "gpu").exists() or not (options.tests or will_build):
        return []
    from course_site.records import tested

    try:
        found = tested.verdicts(root, slug, clean=slug == _reference(root))
    except ValueError as error:
        raise CannotStart(str(error)) from None
    edition = installed_edition(gpus[0]) if gpus else None
    for number, verdict in enumerate(found):
        if edition and verdict.edition not in (None, edition) and not verdict.why:
            why = f"is of {_difference(verdict.edition, edition)}"
            found[number] = dataclasses.replace(verdict, why=why)
    return [verdict for verdict in found if options.tests or verdict.why]


def _plan_of_tests(groups: list[Verdict]) -> Iterator[str]:
    """A line with the groups and their seconds, and a line for each reason."""
    if not groups:
        return
    names = ", ".join(
        f"{verdict.group} ({'never run' if verdict.seconds is None else f'{verdict.seconds:.0f} s'})"
        for verdict in groups
    )
    total = sum(verdict.seconds or 0.0 for verdict in groups) / 60
    yield f"tests/gpu: {total:.1f} min: {names}"
    by_reason: dict[str, list[str]] = {}
    for verdict in groups:
        by_reason.setdefault(verdict.why or "asked for", []).append(verdict.group)
    for why, those in by_reason.items():
        yield f"    {those[0] if len(those) == 1 else f'{len(those)} groups'}: {why}"


def _run_tests(root: Path, groups: list[Verdict], outcome: Outcome) -> None:
    from course_site.records import tested

    _require({"pytest": "pytest"})
    project = tested.Project(root)
    alone = [verdict for verdict in groups if project.looks_at_time(verdict.group)]
    parts = _shared_out([verdict for verdict in groups if verdict not in alone], SIDE_BY_SIDE)
    print(f"docs: GPU tests of {len(groups)} group{'s' * (len(groups) != 1)}", flush=True)
    codes = _pytest(root, parts) + _pytest(root, [alone] if alone else [])
    if any(codes):
        outcome.failed.append(("tests/gpu", f"pytest ended with {max(codes)}, see above"))


def _shared_out(groups: list[Verdict], parts: int) -> list[list[Verdict]]:
    """The groups in so many parts at most that take about as long as each other: each to the shortest one so far."""
    found: list[list[Verdict]] = [[] for _ in range(min(parts, len(groups)))]

    def seconds(verdicts: list[Verdict]) -> float:
        return sum(UNKNOWN_S if verdict.seconds is None else verdict.seconds for verdict in verdicts)

    for verdict in sorted(groups, key=lambda verdict: seconds([verdict]), reverse=True):
        min(found, key=seconds).append(verdict)
    return found


def _pytest(root: Path, parts: list[list[Verdict]]) -> list[int]:
    """Run the GPU tests of each part in a process of its own, all at once; what each says comes when it ends."""
    from course_site.records.execute import environment_on_gpu

    environment = _with_source(root, environment_on_gpu(root))
    running = []
    try:
        for part in parts:
            options = [word for verdict in part for word in ("--group", verdict.group)]
            command = [sys.executable, "-m", "pytest", "-q", "tests/gpu", *options]
            said = tempfile.TemporaryFile() if len(parts) > 1 else None  # noqa: SIM115
            process = subprocess.Popen(
                command, cwd=root, env=environment, stdout=said, stderr=subprocess.STDOUT if said else None
            )
            running.append((process, said))
        codes = []
        for process, said in running:
            codes.append(process.wait())
            if said:
                said.seek(0)
                print(said.read().decode(errors="replace"), end="", flush=True)
        return codes
    finally:
        for process, said in running:
            if process.poll() is None:
                process.terminate()
                process.wait()
            if said:
                said.close()


def _measure_all(
    root: Path,
    jobs: list[Job],
    gpus: list[Gpu],
    options: argparse.Namespace,
    started: float,
    outcome: Outcome,
) -> None:
    board = Board()
    deadline = started + options.minutes * 60 if options.minutes else None
    outcome.left = list(jobs)
    total = sum(job.forecast_s for job in jobs) / 60
    board.say(
        f"docs: {len(jobs)} pages to measure on {len(gpus)} × {gpus[0].name}, about {total:.1f} GPU minutes"
    )
    asyncio.run(_measure(root, gpus, deadline, board, outcome))


async def _measure(
    root: Path, gpus: list[Gpu], deadline: float | None, board: Board, outcome: Outcome
) -> None:
    task = asyncio.current_task()
    if task is not None:
        with contextlib.suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    ticker = asyncio.create_task(board.run())
    try:
        async with asyncio.TaskGroup() as group:
            for gpu in gpus:
                group.create_task(_measure_on(gpu, root, deadline, board, outcome))
    finally:
        ticker.cancel()
        board.clear()


async def _measure_on(gpu: Gpu, root: Path, deadline: float | None, board: Board, outcome: Outcome) -> None:
    """One device's pages, one after another, from the queue all devices share."""
    from course_site.records.execute import PageFailed, Progress, execute_async

    while outcome.left and not outcome.out_of_minutes:
        job = outcome.left[0]
        if deadline is not None and time.monotonic() + job.forecast_s > deadline:
            outcome.out_of_minutes = True
            return
        outcome.left.pop(0)
        state = Progress(job.page, gpu, job.forecast_s)
        board.running.append(state)
        try:
            record = await execute_async(job.page, root, state, board.update)
            _keep(root, gpu.slug, job.page, record, state, board, outcome)
        except PageFailed as error:
            _report(error, board)
            outcome.failed.append((job.page.path.as_posix(), str(error)))
        except Exception as error:  # a full disk, or a fault of ours: the other pages still run
            line = f"{job.page.path}: cannot be recorded: {type(error).__name__}: {error}"
            board.say(f"FAILED {line}\n{traceback.format_exc()}")
            outcome.failed.append((job.page.path.as_posix(), line))
        finally:
            board.running.remove(state)


def _keep(
    root: Path, slug: str, page: Page, record: Record, state: Progress, board: Board, outcome: Outcome
) -> None:
    from course_site.records import changes, runs
    from course_site.records.record import Record, RecordError, record_path

    path = record_path(root, slug, page)
    old = None
    if path.exists():
        with contextlib.suppress(RecordError):
            old = Record.load(path)
    record.save(path)
    outcome.written.append(path)
    known = runs.load(root, slug)  # without this run: an interval is held against what came after it
    runs.append(root, slug, record)
    board.say(f"measured {page.path} on GPU {state.gpu.index} in {state.elapsed_s:.0f} s")
    if record.meta["provenance"]["dirty"]:
        board.say(f"  made from files that differ from commit {record.meta['provenance']['commit'][:12]}")
    terms = runs.between(known)
    inside, of = runs.covered(old, record, terms) if old is not None else (0, 0)
    if of:
        board.say(f"  {inside} of {of} timings lie inside the interval that the record before stated")
    moved = changes.moved(old, record, terms)
    if moved:
        changes.append(root, slug, moved)
        for line in moved:
            board.say(f"  {line}")


def _report(error: PageFailed, board: Board) -> None:
    board.say(f"FAILED {error}")
    for line in error.detail.splitlines():
        board.say(f"  | {line}")


class Board:
    """The lines of a measuring run: a terminal rewrites the last one, elsewhere every cell is a line."""

    def __init__(self) -> None:
        self.running: list[Progress] = []
        self.rewrites = sys.stdout.isatty()
        self.width = 0

    def clear(self) -> None:
        """Take the rewritten line off the screen."""
        if self.width:
            print("\r" + " " * self.width + "\r", end="", flush=True)
            self.width = 0

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        print(text, flush=True)

    def update(self, state: Progress) -> None:
        """A page reached its next cell."""
        if self.rewrites:
            self.draw()
        else:
            print(self.line(state), flush=True)

    def line(self, state: Progress) -> str:
        """Page, cell, elapsed, expected."""
        expected = f" of about {_clock(state.expected_s)}" if state.expected_s else ""
        cell = f"cell {max(state.cell, 1)}/{len(state.page.code)}"
        return f"{state.page.path}  {cell}  {_clock(state.elapsed_s)}{expected}"

    def draw(self) -> None:
        """Rewrite the line."""
        room = shutil.get_terminal_size().columns - 1
        text = "  |  ".join(self.line(state) for state in self.running)[:room]
        print("\r" + text.ljust(self.width), end="", flush=True)
        self.width = len(text)

    async def run(self) -> None:
        """Keep the seconds going on a terminal."""
        while self.rewrites:
            if self.running:
                self.draw()
            await asyncio.sleep(1)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


# --- building ---------------------------------------------------------------------------------------------


def build(root: Path, slug: str | None, *, draft: bool = False) -> None:
    """Build the site strictly and put it in the place of site/; ``slug`` is the edition, None the reference.

    Raises:
        BuildFailed: MkDocs or the link check found something; site/ is untouched.
    """
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="build-", dir=cache))
    try:
        environment = _with_source(root, os.environ) | {"NO_MKDOCS_2_WARNING": "1"}
        if slug:
            environment |= {"COURSE_EDITION": slug, "COURSE_REBUILT": "1"}
        if draft:
            environment["COURSE_DRAFT"] = "1"
        new = scratch / "site"
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(new)]
        if subprocess.run(command, cwd=root, env=environment).returncode:
            raise BuildFailed("the build failed, see above")
        from course_site.site.links import check

        broken = check(new)
        if broken:
            for line in broken:
                print(f"  {line}", file=sys.stderr)
            raise BuildFailed(f"{len(broken)} broken link{'s' * (len(broken) != 1)}")
        _swap(new, root / "site", scratch / "old")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"docs: site/ is built: open {root / 'site' / 'index.html'}", flush=True)


def _swap(new: Path, site: Path, old: Path) -> None:
    if site.exists():
        site.rename(old)
    try:
        new.rename(site)
    except BaseException:
        if old.exists():
            old.rename(site)
        raise


def _with_source(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    paths = [str(root / "src"), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


# --- carrying ---------------------------------------------------------------------------------------------


def archive(root: Path, file: Path, slug: str, written: list[Path]) -> None:
    """Put records, those of the GPU tests and the list of what moved into a .tar.gz; unpack it at the root."""
    folder = root / "records" / slug
    beside = [path for path in (*folder.glob("*"), *folder.glob("tests/*.json")) if path.is_file()]
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with tarfile.open(partial, "w:gz") as tar:
            for path in sorted({*written, *beside}):
                tar.add(path, path.relative_to(root).as_posix(), recursive=False, filter=_anonymous)
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)
    print(
        f"docs: {len(written)} new records in {file}; unpack with `tar -xzf {file.name}` at the root",
        flush=True,
    )


def _anonymous(member: tarfile.TarInfo) -> Any:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
