"""The strict build: into a folder of its own, which takes the place of site/ only when it is complete."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from course_site.records.environments import with_source

_SWITCHES = ("COURSE_EDITION", "COURSE_DRAFT", "COURSE_REBUILT")


class BuildFailed(RuntimeError):
    """The site was not built and site/ is as it was; the message is one line."""


def build(root: Path, slug: str | None, *, draft: bool = False) -> None:
    """Build the site strictly and put it in the place of site/; ``slug`` is the edition, None the reference.

    Raises:
        BuildFailed: MkDocs or the link check found something; site/ is untouched.
    """
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    for left in cache.glob("build-*"):
        if not _runs(left.name.split("-")[1]):  # ended by what no program hears of
            shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"build-{os.getpid()}-", dir=cache))
    try:
        # What is left of somebody's earlier try decides nothing.
        environment = {k: v for k, v in with_source(root, os.environ).items() if k not in _SWITCHES}
        environment |= {"NO_MKDOCS_2_WARNING": "1"}
        if slug:
            environment |= {"COURSE_EDITION": slug, "COURSE_REBUILT": "1"}
        if draft:
            environment["COURSE_DRAFT"] = "1"
        new, found = scratch / "site", scratch / "found.json"
        # Whoever measured just now is not stopped by how his digits happen to round; who commits them builds again.
        asked = "sums" if slug is None else "no sums"
        # A compiled file says nothing that its source does not say.
        fresh = ("--check-hash-based-pycs", "always")
        command = [sys.executable, *fresh, "-m", "course_site.site.build", str(new), str(found), asked]
        if subprocess.run(command, cwd=root, env=environment).returncode:
            raise BuildFailed("the build failed, see above")
        wrong = json.loads(found.read_text(encoding="utf-8"))
        if wrong:
            for line in _once(wrong):
                print(f"  {line}", file=sys.stderr)
            typed = sum("typed number" in line for line in wrong)
            sums = sum("printed sum" in line for line in wrong)
            counts = [
                (len(wrong) - typed - sums, "broken link"),
                (typed, "typed number"),
                (sums, "wrong sum"),
            ]
            raise BuildFailed(" and ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n))
        _swap(new, root / "site", scratch / "old")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"docs: site/ is built: open {root / 'site' / 'index.html'}", flush=True)


def _once(lines: list[str]) -> list[str]:
    """`PLACE: what is wrong` for every fault; one that stands on many pages, such as in a title, is told once."""
    places: dict[str, list[str]] = {}
    for line in lines:
        place, _, fault = line.partition(": ")
        places.setdefault(fault, []).append(place)
    return [
        f"{found[0]}: {fault}" + (f" (and in {len(found) - 1} more places)" if len(found) > 1 else "")
        for fault, found in places.items()
    ]


def _runs(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def _mkdocs(folder: str) -> None:
    """Run MkDocs; a disk that is full is one line."""
    from mkdocs.__main__ import cli

    try:
        cli(["build", "--strict", "--site-dir", folder], prog_name="mkdocs")
    except OSError as error:
        where = error.filename2 or error.filename
        print(f"{f'{where}: ' if where else ''}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)


def _build_and_check(folder: str, found: str, asked: str) -> None:
    """Run MkDocs, and leave what the last look at its pages finds, as JSON.

    In one process, as a sentence that was looked at in its page's source is most often the one that a reader sees.
    """
    gc.disable()  # nearly all that is read stays to the end: to look for garbage takes seconds
    try:
        _mkdocs(folder)
    except SystemExit as ended:
        if ended.code:
            raise
    from course_site.pages import bibliography
    from course_site.pages.build_cache import SEEN
    from course_site.site.links import check

    root, sources = Path.cwd(), Path("docs/bibliography.toml")
    SEEN.read(root)
    keys = bibliography.load(sources) if sources.exists() else ()
    wrong = check(Path(folder), keys, sums=asked == "sums")
    if not wrong:
        SEEN.write(root)
    Path(found).write_text(json.dumps(wrong), encoding="utf-8")


def _swap(new: Path, site: Path, old: Path) -> None:
    if site.exists():
        site.rename(old)
    try:
        new.rename(site)
    except BaseException:
        if old.exists():
            old.rename(site)
        raise


if __name__ == "__main__":
    _build_and_check(*sys.argv[1:])
