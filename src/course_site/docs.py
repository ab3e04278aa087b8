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
from course_site.records.gpus import Gpu, GpuUnusable, find_gpus
from course_site.records.plan import CannotStart
from course_site.records.queue import LocalQueue, measure_all
from course_site.records.store import Outcome, archive
from course_site.site.build import BuildFailed, build

if TYPE_CHECKING:
    from course_site.pages.page import Page

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
    add("--minutes", type=float, metavar="M", help="stop before a page that would not fit, with exit code 3")
    add("--measure-only", action="store_true", help="write the records, build no site")
    add("--archive", type=Path, metavar="FILE", help="put the new records into FILE (.tar.gz)")
    add("--jobs", type=int, default=1, metavar="N", help="measure on N GPUs, one page on each")
    add("--tests", action="store_true", help="run all GPU tests, also where their last run still holds")
    add("--draft", action="store_true", help="build although pages are stale; they show no numbers")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    if options.minutes is not None and not 0 < options.minutes < math.inf:
        parser.error("--minutes must be a number above 0")
    if options.archive:
        options.archive = options.archive.absolute()
    return options


def _run(root: Path, options: argparse.Namespace, outcome: Outcome) -> int:
    started = time.monotonic()
    try:
        renames.load(root)
    except renames.RenamesWrong as error:
        raise CannotStart(str(error)) from None
    gpus = one_model(find_gpus())
    wanted = {} if options.measure_only else dict(RENDERING)
    if gpus and not options.plan:
        wanted |= EXECUTING | ({} if os.environ.get("COURSE_FAKE_GPUS") else MEASURING)
    elif options.plan:
        wanted = {name: EXECUTING[name] for name in ("jupytext", "yaml")}
    _require(wanted)
    if not gpus and not options.plan and (asked := _asks_to_measure(options)):
        verb = "asks" if len(asked) == 1 else "ask"
        raise CannotStart(
            f"there is no GPU here, and {' and '.join(asked)} {verb} to measure: run this on a GPU machine, or "
            "`nox -s docs` alone, which builds from the records"
        )

    reference = _reference(root)
    if not gpus and not options.plan:
        print(f"docs: no GPU here: building from records/{reference}", flush=True)
        return _build(root, None, options)
    from course_site.pages.page import PageError, find_pages
    from course_site.records import edition
    from course_site.records.manifest import strangers

    try:
        pages = [page for page in find_pages(root) if page.measures]
    except PageError as error:
        raise CannotStart(str(error)) from None
    chosen = _choose(pages, options.page)
    slug = gpus[0].slug if gpus else reference
    jobs = list(
        plan.jobs(root, chosen, slug, gpus, reference=reference, only_stale=options.stale or not gpus)
    )
    will_build = not (options.measure_only or options.draft)
    groups = plan.tests_to_run(
        root, gpus, slug, reference=reference, asked=options.tests, will_build=will_build
    )
    if options.plan:
        plan.print_plan(jobs, gpus, slug, groups)
        return 0
    if options.jobs > len(gpus):
        print(f"docs: --jobs {options.jobs}, but {len(gpus)} GPU here: one page at a time on each")
    for path, message in strangers(root):
        raise CannotStart(f"{path}: {message}")
    plan.check_beside(root, slug)
    outcome.slug = slug
    edition.note_lacking(root, slug, plan.lacking(pages, gpus))
    if groups:
        _require({"pytest": "pytest"})
        run_tests(root, groups, outcome)
    deadline = started + options.minutes * 60 if options.minutes else None
    measure_all(root, LocalQueue(root, gpus, options.jobs), jobs, deadline, outcome)
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


def one_model(gpus: list[Gpu]) -> list[Gpu]:
    """Return the devices of the first one's model: an edition belongs to one GPU model."""
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
