"""The strict build of a site, of all its editions: each by a process of its own, all at once.

Into a folder of its own, which takes the place of site/ only when it is complete. Which process waits for what, says
`turns`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_site.records.environments import with_source
from course_site.site.turns import BUILT, EXECUTED, FOUND, LOOK, TURNS

if TYPE_CHECKING:
    from course_site.site.editions import SiteEdition

_SWITCHES = ("COURSE_EDITION", "COURSE_DRAFT", "COURSE_REBUILT", "COURSE_FIRST", "COURSE_ENGINE")
# What all editions share: it stands at the root of the site, and once.
SHARED = ("assets", "search", "handouts", "404.html", "sitemap.xml", "sitemap.xml.gz")
_COUNT = re.compile(r"\d+ problem\(s\), nothing was built:|^\s*$")


class BuildFailed(RuntimeError):
    """The site was not built and site/ is as it was; the message is one line."""


def build(
    root: Path, slug: str | None, *, draft: bool = False, engine: str = "mkdocs", into: Path | None = None
) -> None:
    """Build the site strictly and put it in the place of site/.

    Args:
        slug: the edition that was measured just now; None where none was.
        engine: mkdocs, or properdocs, which runs the same hook.
        into: another place than site/.
    Raises:
        BuildFailed: the engine or the link check found something; site/ is untouched.
    """
    into = into or root / "site"
    from course_site.site.editions import editions

    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    for left in cache.glob("build-*"):
        if not _runs(left.name.split("-")[1]):  # ended by what no program hears of
            shutil.rmtree(left, ignore_errors=True)
    held = editions(root)
    first = next((one for one in held if one.slug == slug), held[0])
    scratch = Path(tempfile.mkdtemp(prefix=f"build-{os.getpid()}-", dir=cache))
    try:
        with contextlib.ExitStack() as running:
            made = [
                running.enter_context(
                    _Making(root, one, scratch / one.key, slug, first, draft=draft, engine=engine)
                )
                for one in held
            ]
            _in_turns(made, scratch)
        swap(made[0].folder, into, scratch / "old")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"docs: {into.name}/ is built: open {into / first.address('index.html')}", flush=True)


def _in_turns(made: Sequence[_Making], scratch: Path) -> None:
    """Take the processes through their turns, to a whole site in the folder of the first."""
    from course_site.site import styles

    reference, *others = made
    if not others or reference.hears(EXECUTED):
        for one in others:
            one.go_on(EXECUTED)
        told = [one.hears(BUILT) for one in made]
        if told[0] and all(told):
            for one in others:
                _put_into(reference.folder, one)
            styles.lighten(reference.folder, told[0][0])
            for one in made:
                one.go_on(LOOK)
            wrong = [line for one in made for line in (one.hears(FOUND) or [[]])[0]]
            _refuse(wrong)
    for one in made:
        one.end()
    _say_the_others(reference, others)
    if any(one.process.returncode for one in made):
        raise BuildFailed("the build failed, see above")


def _put_into(site: Path, made: _Making) -> None:
    """Move an edition into its folder of the site, without what all of them share."""
    for name in (*SHARED, *(path.name for path in made.folder.iterdir() if path.suffix in (".gz", ".txt"))):
        place = made.folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    made.folder.rename(site / made.edition.folder)


def _refuse(wrong: Sequence[str]) -> None:
    if not wrong:
        return
    for line in _once(wrong):
        print(f"  {line}", file=sys.stderr)
    typed = sum("typed number" in line for line in wrong)
    sums = sum("printed sum" in line for line in wrong)
    counts = [(len(wrong) - typed - sums, "broken link"), (typed, "typed number"), (sums, "wrong sum")]
    raise BuildFailed(" and ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n))


def _say_the_others(reference: _Making, others: Sequence[_Making]) -> None:
    """Print what the other editions said and the reference did not."""
    known = set(reference.said)
    for one in others:
        lines = [line for line in one.said if line not in known]
        if any(not _COUNT.search(line) for line in lines):
            print(f"docs: the {one.edition.name}'s edition:\n{''.join(lines)}", end="", file=sys.stderr)
        known.update(lines)


class _Making:
    """The process that builds one edition, into a folder.

    Attributes:
        said: the lines of its log so far; the reference's are printed as they come.
    """

    def __init__(
        self,
        root: Path,
        edition: SiteEdition,
        folder: Path,
        slug: str | None,
        first: SiteEdition,
        *,
        draft: bool,
        engine: str,
    ) -> None:
        self.edition, self.folder, self.said = edition, folder, list[str]()
        self._told: dict[str, Any] = {}
        # What is left of somebody's earlier try decides nothing.
        environment = {k: v for k, v in with_source(root, os.environ).items() if k not in _SWITCHES}
        environment |= {
            "NO_MKDOCS_2_WARNING": "1",
            "COURSE_EDITION": edition.slug,
            "COURSE_FIRST": first.slug,
            "COURSE_ENGINE": engine,
        }
        environment |= {"COURSE_REBUILT": "1"} if slug == edition.slug else {}
        environment |= {"COURSE_DRAFT": "1"} if draft else {}
        # Whoever measured just now is not stopped by how his digits happen to round; who commits them builds again.
        # Digits are chosen for the reference: on another card the last one of a sum may be another.
        asked = "sums" if slug != edition.slug and edition.at_root else "no sums"
        # A compiled file says nothing that its source does not say.
        fresh = ("--check-hash-based-pycs", "always")
        command = [sys.executable, *fresh, "-m", "course_site.site.build", str(folder), asked]
        self.process = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._log = threading.Thread(target=self._listen)
        self._log.start()

    def __enter__(self) -> _Making:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()

    def _listen(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.said.append(line)
            if self.edition.at_root:
                print(line, end="", file=sys.stderr, flush=True)

    def hears(self, word: str) -> list[Any] | None:
        """Wait until it is as far as a word, and return what came with it, in a list; None where it ended before."""
        assert self.process.stdout
        while word not in self._told:
            line = self.process.stdout.readline()
            if not line:
                return None
            self._told |= dict([json.loads(line)])
            if BUILT in self._told:  # who has built had executed
                self._told.setdefault(EXECUTED, None)
        return [self._told[word]]

    def go_on(self, word: str) -> None:
        """Let it go on."""
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # it ended; what it waits for next shows that
            print(word, file=self.process.stdin, flush=True)

    def end(self) -> None:
        """Wait for its end: one that still waits for a word hears that none comes."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()
        self._log.join()


def _once(lines: Sequence[str]) -> list[str]:
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


def _run_engine(folder: str) -> None:
    """Run the engine; a disk that is full is one line."""
    engine = os.environ.get("COURSE_ENGINE", "mkdocs")
    if engine != "mkdocs":
        importlib.import_module(
            f"{engine}.replacement"
        )  # our hook and the plugins import mkdocs, and get this one
    cli = importlib.import_module(f"{engine}.__main__").cli

    try:
        cli(["build", "--strict", "--config-file", "mkdocs.yml", "--site-dir", folder], prog_name=engine)
    except OSError as error:
        where = error.filename2 or error.filename
        print(f"{f'{where}: ' if where else ''}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)


def _build_and_check(folder: str, asked: str) -> None:
    """Run the engine, wait for the other editions, and tell what the last look at the pages of this one finds.

    In one process, as a sentence that was looked at in its page's source is most often the one that a reader sees.
    """
    gc.disable()  # nearly all that is read stays to the end: to look for garbage takes seconds
    TURNS.open()
    try:
        _run_engine(folder)
    except SystemExit as ended:
        if ended.code:
            raise
    TURNS.tell(BUILT, TURNS.sheets)
    TURNS.wait_for(LOOK)
    from course_site.pages import bibliography
    from course_site.pages.build_cache import SEEN
    from course_site.site.editions import editions
    from course_site.site.links import check

    root, sources = Path.cwd(), Path("docs/bibliography.toml")
    held = editions(root)
    mine = next(one for one in held if one.slug == os.environ["COURSE_EDITION"])
    SEEN.of("" if mine.at_root else mine.slug)
    SEEN.read(root)
    keys = bibliography.load(sources) if sources.exists() else ()
    site = Path(folder).with_name(held[0].key)
    others = [one.folder for one in held if one.folder and one is not mine]
    wrong = check(site, keys, sums=asked == "sums", part=mine.folder, others=others)
    if not wrong:
        SEEN.write(root)
    TURNS.tell(FOUND, wrong)


def swap(new: Path, site: Path, old: Path) -> None:
    """Put a complete folder in the place of another one, which goes to `old`; if that fails, all is as it was."""
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
