"""The command behind ``nox -s docs``: measure what this machine can measure, then build the site.

With a GPU every page is measured afresh (or what the options say) and its record written; without one the
records of the repository are used. The site is built into a folder of its own and takes the place of site/ only
when it is complete. Exit codes: 0 done, 1 something failed, 2 cannot start, 3 out of minutes, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import importlib.util
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from course_site.records import plan, renames
from course_site.records.gpu_tests import run_tests
from course_site.records.gpus import Gpu, GpuUnusable, find_gpus, one_model
from course_site.records.plan import CannotStart
from course_site.records.queue import LocalQueue, measure_all
from course_site.records.store import Outcome, archive
from course_site.site.about import reference_of
from course_site.site.build import BuildFailed, build

if TYPE_CHECKING:
    from course_site.pages.page import Page
    from course_site.records.fleet.address import Address
    from course_site.records.fleet.opening import Fleet
    from course_site.records.fleet.slurm import SlurmFile

# Import name and the name pip knows it by.
RENDERING = {
    "mkdocs": "mkdocs",
    "material": "mkdocs-material",
    "mkdocs_jupyter": "mkdocs-jupyter",
    "jupytext": "jupytext",
    "nbformat": "nbformat",
    "matplotlib": "matplotlib",
    "simpleeval": "simpleeval",
    "math_core": "math-core",
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
# For more GPUs than one, wherever they are.
FLEET = {"distributed": "distributed"}
SLURM = {"dask_jobqueue": "dask-jobqueue"}


def main(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run the command with the options after ``--``; returns the exit code."""
    options = _parse(arguments)
    root = (root or Path.cwd()).resolve()
    outcome = Outcome()
    before = signal.getsignal(signal.SIGTERM)
    try:
        _stop_when_asked()
        try:
            return _run(root, options, outcome)
        finally:
            if options.archive and outcome.slug:
                archive(root, options.archive, outcome.slug, outcome.written)
    except (CannotStart, GpuUnusable) as error:
        print(f"docs: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that only others may write
        where = f"{error.filename}: " if error.filename else ""
        print(f"docs: {where}{error.strerror or error}; {_kept(outcome)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        code = 130
    except asyncio.CancelledError:  # SIGTERM
        code = 143
    finally:
        signal.signal(signal.SIGTERM, before)
    print(f"\ndocs: stopped; {_kept(outcome)}", flush=True)
    return code


def _kept(outcome: Outcome) -> str:
    count = len(outcome.written)
    return f"{count} finished record{'s' * (count != 1)} kept, site/ is as it was"


def _stop_when_asked() -> None:
    """SIGTERM stops as Ctrl-C does, so that nothing is left behind.

    The loop that measures has a handler of its own for its time, and leaves none.
    """

    def stop(*_: object) -> None:
        raise asyncio.CancelledError

    signal.signal(signal.SIGTERM, stop)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s docs --", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--stale", action="store_true", help="measure only pages whose code changed since their record")
    add("--page", action="append", default=[], metavar="PATH", help="measure this page only (repeatable)")
    add("--plan", action="store_true", help="say what would run, why, and for how long; run nothing")
    add("--minutes", type=float, metavar="M", help="begin no page that would not fit; exit code 3")
    add("--measure-only", action="store_true", help="write the records, build no site")
    add("--archive", type=Path, metavar="FILE", help="put the new records into FILE (.tar.gz)")
    add("--jobs", type=int, default=1, metavar="N", help="measure on N GPUs, one page on each")
    add("--scheduler", metavar="ADDRESS", help="take workers that `nox -s worker -- ADDRESS` starts")
    add("--tls", type=Path, metavar="FOLDER", help="ca.pem, cert.pem and key.pem, for a tls:// address")
    add("--slurm", type=Path, metavar="FILE", help="have SLURM start the workers; --plan prints the script")
    add(
        "--with",
        action="append",
        default=[],
        dest="extras",
        metavar="EXTRA",
        help="what nox installs besides, such as ladder, for pages that need its packages (repeatable)",
    )
    add("--tests", action="store_true", help="run all GPU tests, also where their last run still holds")
    add("--draft", action="store_true", help="build although pages are stale; they show no numbers")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    if options.minutes is not None and not 0 < options.minutes < math.inf:
        parser.error("--minutes must be a number above 0")
    if options.scheduler and options.slurm:
        parser.error("--scheduler and --slurm: one of them; the file of --slurm has an address")
    if options.tls and not options.scheduler:
        parser.error("--tls: is for --scheduler; the file of --slurm has a key tls")
    if options.archive:
        options.archive = options.archive.absolute()
    return options


def _run(root: Path, options: argparse.Namespace, outcome: Outcome) -> int:
    started = time.monotonic()
    try:
        renames.load(root)
    except renames.RenamesWrong as error:
        raise CannotStart(str(error)) from None
    address, slurm = _elsewhere(root, options)
    gpus = [] if address or slurm else one_model(find_gpus())
    is_fleet = bool(address or slurm) or min(options.jobs, len(gpus)) > 1
    _require(_wanted(options, bool(gpus), is_fleet, slurm is not None))
    if not gpus and not is_fleet and not options.plan and (asked := _asks_to_measure(options)):
        verb = "asks" if len(asked) == 1 else "ask"
        raise CannotStart(
            f"there is no GPU here, and {' and '.join(asked)} {verb} to measure: run this on a GPU machine, or "
            "`nox -s docs` alone, which builds from the records"
        )

    reference = reference_of(root)
    if not gpus and not is_fleet and not options.plan:
        print(f"docs: no GPU here: building from records/{reference}", flush=True)
        return _build(root, None, options)
    from course_site.pages.page import PageError, find_pages
    from course_site.records.manifest import strangers

    try:
        pages = [page for page in find_pages(root) if page.measures]
    except PageError as error:
        raise CannotStart(str(error)) from None
    chosen = _choose(pages, options.page)
    if options.plan:
        if slurm:
            print(f"script of each of {slurm.jobs} jobs:\n{slurm.script().rstrip()}")
        plan.print_plan(*_planned(root, options, chosen, gpus, reference))
        return 0
    for path, message in strangers(root):
        raise CannotStart(f"{path}: {message}")
    deadline = started + options.minutes * 60 if options.minutes else None
    if gpus and options.jobs > len(gpus):
        print(f"docs: --jobs {options.jobs}, but {len(gpus)} GPU here: one page at a time on each")
    if is_fleet:
        from course_site.records.fleet.opening import opened

        wanted = slurm.gpus if slurm else options.jobs if address else min(options.jobs, len(gpus))
        with opened(root, wanted, address, slurm) as fleet:
            _stop_when_asked()
            _measure_on(fleet, root, options, chosen, reference, deadline, outcome)
    else:
        _measure_here(root, options, chosen, gpus, reference, deadline, outcome)
    if outcome.failed:
        print(f"\ndocs: {len(outcome.failed)} failed; site/ is as it was:", file=sys.stderr)
        for name, line in outcome.failed:
            print(f"  {line if line.startswith(name) else f'{name}: {line}'}", file=sys.stderr)
        return 1
    if outcome.out_of_minutes:
        names = ", ".join(job.name for job in outcome.left)
        print(
            f"docs: out of minutes, not measured: {names}; `nox -s docs -- --stale` goes on", file=sys.stderr
        )
        return 3
    if options.measure_only:
        return 0
    return _build(root, outcome.slug, options)


Planned = tuple[list[plan.Job], list[Gpu], str, list[plan.GroupJob]]


def _planned(
    root: Path,
    options: argparse.Namespace,
    chosen: list[Page],
    gpus: list[Gpu],
    reference: str,
    edition: dict[str, str] | None = None,
) -> Planned:
    """Return what to measure, on which cards, for which edition, and the groups of GPU tests after it.

    Args:
        edition: of workers elsewhere; None for what is installed here.
    """
    slug = gpus[0].slug if gpus else reference
    only_stale = options.stale or not gpus
    jobs = list(
        plan.jobs(root, chosen, slug, gpus, reference=reference, only_stale=only_stale, edition=edition)
    )
    # Whoever measures a page wants that page, and runs the tests when all of it is done.
    will_build = not (options.measure_only or options.draft or options.page)
    groups = plan.tests_to_run(
        root, gpus, slug, reference=reference, asked=options.tests, will_build=will_build, edition=edition
    )
    return jobs, gpus, slug, groups


def _measure_here(
    root: Path,
    options: argparse.Namespace,
    chosen: list[Page],
    gpus: list[Gpu],
    reference: str,
    deadline: float | None,
    outcome: Outcome,
) -> None:
    """Measure in this process, one page after another, and run the GPU tests after the last."""
    jobs, gpus, slug, groups = _planned(root, options, chosen, gpus, reference)
    _begin(root, slug, groups, outcome, plan.lacking(chosen, gpus))
    measure_all(root, LocalQueue(root, gpus), jobs, deadline, outcome, after=groups)
    if not groups:
        return
    if deadline is not None and time.monotonic() + sum(job.forecast_s for job in groups) > deadline:
        outcome.out_of_minutes = True
    if outcome.out_of_minutes:
        outcome.left += groups
        return
    _stop_when_asked()
    run_tests(root, groups, outcome)


def _measure_on(
    fleet: Fleet,
    root: Path,
    options: argparse.Namespace,
    chosen: list[Page],
    reference: str,
    deadline: float | None,
    outcome: Outcome,
) -> None:
    """Measure, and run the GPU tests, on the workers of a fleet."""
    from course_site.records.fleet.coordinator import in_order

    queue = fleet.coordinator
    if queue.first is None:
        raise CannotStart("all workers are gone before anything was measured")
    jobs, _, slug, groups = _planned(root, options, chosen, queue.gpus, reference, queue.first.edition)
    # What the workers of other machines lack, those say themselves.
    lacking = plan.lacking(chosen, queue.gpus, here=False)
    _begin(root, slug, [] if options.scheduler or options.slurm else groups, outcome, lacking)
    measure_all(root, queue, in_order([*jobs, *groups]), deadline, outcome, runner=fleet.runner)


def _begin(
    root: Path, slug: str, groups: list[plan.GroupJob], outcome: Outcome, lacking: dict[str, str | None]
) -> None:
    """See that what a run writes to can be read, and what it starts is there; note what the card cannot run."""
    from course_site.records.edition import note_lacking

    plan.check_beside(root, slug)
    note_lacking(root, slug, lacking)
    if groups:
        _require({"pytest": "pytest"})
    outcome.slug = slug


def _build(root: Path, slug: str | None, options: argparse.Namespace) -> int:
    _stop_when_asked()
    try:
        build(root, slug, draft=options.draft)
    except BuildFailed as error:
        print(f"docs: {error}; site/ is as it was", file=sys.stderr)
        return 1
    return 0


def _asks_to_measure(options: argparse.Namespace) -> list[str]:
    """Return the options that mean nothing where nothing is measured."""
    asked = {
        "--measure-only": options.measure_only, "--stale": options.stale, "--page": options.page,
        "--tests": options.tests, "--minutes": options.minutes, "--archive": options.archive,
        "--jobs": options.jobs != 1,
    }  # fmt: skip
    return [name for name, given in asked.items() if given]


# --- what is here, what is wanted -------------------------------------------------------------------------


def _elsewhere(root: Path, options: argparse.Namespace) -> tuple[Address | None, SlurmFile | None]:
    """Return where workers come from that are not this machine's, if they are asked for."""
    if options.scheduler:
        from course_site.records.fleet.address import read_address

        return read_address(options.scheduler, options.tls), None
    if options.slurm:
        from course_site.records.fleet.slurm import read_slurm_file

        return None, read_slurm_file(options.slurm, root)
    return None, None


def _wanted(options: argparse.Namespace, has_gpus: bool, is_fleet: bool, slurm: bool) -> dict[str, str]:
    """Return the packages that a run needs: import names, and the names that pip knows them by."""
    if options.plan:
        return {name: EXECUTING[name] for name in ("jupytext", "yaml")} | (SLURM if slurm else {})
    wanted = {} if options.measure_only else dict(RENDERING)
    if has_gpus or is_fleet:
        wanted |= EXECUTING
    if has_gpus and not os.environ.get("COURSE_FAKE_GPUS"):
        wanted |= MEASURING
    if is_fleet:
        wanted |= FLEET | (SLURM if slurm else {})
    return wanted


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
