"""Plant drawn faults one at a time in a copy of the tree, and see which test notices.

    nox -s mutants -- --seed 1 --count 60
    nox -s mutants -- --again

A line for each, then a summary; exit code 1 when one survives. `--keep` writes the results to seed-N.toml beside this
file, after every fault, and goes on where an earlier run stopped. `--again` plants the faults of all seed-N.toml once
more, the test that caught each first; where a fault's line is gone, another of its file is drawn in its place.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faults import AREAS, BROWSER, ROOT, Mutant, draw, first_of, generate, instead_of, tests_of

HERE = Path(__file__).parent
LIMIT_S = 240.0  # one test file; what never ends is noticed too, by everybody who waits
# What a result may be; the last is none that anybody wants.
OUTCOMES = ("caught_by", "changes_nothing", "needs_a_card", "survived")
RUN_VIEW = "handbook/run"
# What takes longest, and comes last: a lab's tests run students' files, those in the browser ask for a browser.
SLOW = ("tests/cpu/test_labs", BROWSER)


def kept(seed: int | None = None) -> list[dict[str, Any]]:
    """The results of one seed, or of all."""
    files = sorted(HERE.glob("seed-*.toml")) if seed is None else [HERE / f"seed-{seed}.toml"]
    return [
        found
        for file in files
        if file.exists()
        for found in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"]
    ]


def key_of(found: dict[str, Any]) -> tuple[str, str, str]:
    """As `Mutant.key`, of a kept result."""
    return found["file"], found["before"], found["after"]


def write(seed: int, results: list[dict[str, Any]]) -> None:
    """Keep the results of a seed."""
    counts = Counter(outcome for found in results for outcome in OUTCOMES if outcome in found)
    lines = [
        f"# Written by `nox -s mutants -- --seed {seed} --keep`: {len(results)} faults, {summary(counts)}."
    ]
    lines.append("# The reasons of what changes nothing, or needs a card, are written by hand and kept.")
    for found in results:
        lines += ["", "[[mutant]]"]
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in found.items()]
    (HERE / f"seed-{seed}.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


class NotItsFault(Exception):
    """A test fails, and would fail without the fault."""


class Copy:
    """A copy of the tree, in which files may be spoilt.

    Attributes:
        root: where it lies.
    """

    def __init__(self, root: Path, limit_s: float = LIMIT_S) -> None:
        self.root, self.limit_s = root, limit_s
        self._passing: set[tuple[str, ...]] = set()
        # Python knows a compiled file by the second its source was written in, and by its size: a fault that is
        # planted and taken out within one second would be seen too long, or not at all.
        self._seconds = int(time.time()) - 1_000_000

    @classmethod
    @contextlib.contextmanager
    def made(cls, limit_s: float) -> Iterator[Copy]:
        """Everything git does not ignore, and the built site where there is one."""
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
            listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
            for name in filter(None, listed.split("\0")):
                if (ROOT / name).is_file():
                    to = Path(folder, name)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, to)
            if (ROOT / "site").is_dir():
                shutil.copytree(ROOT / "site", Path(folder, "site"))
            yield cls(Path(folder), limit_s)

    def write(self, file: str, text: str) -> None:
        """Write a file, and the site's copy of a script."""
        places = [self.root / file]
        if file.startswith(RUN_VIEW) and (self.root / "site").is_dir():
            places.append(self.root / "site" / file)
        self._seconds += 2
        for place in places:
            place.write_text(text, encoding="utf-8")
            os.utime(place, (self._seconds, self._seconds))

    @contextlib.contextmanager
    def spoilt(self, mutant: Mutant) -> Iterator[None]:
        """With the fault in its file."""
        text = (self.root / mutant.file).read_text(encoding="utf-8")
        lines = text.split("\n")
        assert lines[mutant.line - 1] == mutant.before
        lines[mutant.line - 1] = mutant.after
        self.write(mutant.file, "\n".join(lines))
        try:
            yield
        finally:
            self.write(mutant.file, text)

    def _environment(self) -> dict[str, str]:
        hidden = {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(self.root / "src"), "COURSE_SITE": "site"}
        return {**os.environ, **hidden}

    def pytest(self, *what: str) -> str:
        """The first test that fails, its name; empty when all pass, or when what is named is not there."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", *what]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            return f"{what[-1]} (never ends)"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and what it started
            process.wait()
            self.end_strays()
        if process.returncode in (0, 5):  # 5: this choice has no test
            return ""
        if process.returncode < 0:
            return f"{what[-1]} (ends the process)"  # a kernel that leaves its memory takes all with it
        if re.search("^ERROR: not found: ", said, re.MULTILINE):
            return ""
        found = re.search(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.*?)?)(?: - .*)?$", said, re.MULTILINE)
        if not found:
            raise RuntimeError(f"pytest failed and named no test:\n{said[-2000:]}")
        return found[1]

    def end_strays(self) -> None:
        """End what left its group: a fault may be that nobody ends a student's endless file."""
        mark = f"PYTHONPATH={self.root / 'src'}".encode()
        for place in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # it is gone, or somebody else's
                if mark in place.read_bytes().split(b"\0"):
                    os.kill(int(place.parent.name), signal.SIGKILL)

    def passes(self, *what: str) -> bool:
        """Whether tests pass without a fault, and in time: run once, also where their verdict is kept."""
        if what not in self._passing:
            anew = ["--anew"] if what[-1].startswith("tests/cpu/") else []
            if self.pytest(*anew, *what):
                return False
            self._passing.add(what)
        return True

    def catcher(self, mutant: Mutant, caught_by: str = "") -> str:
        """The test that fails with a fault and passes without, or nothing; first what caught it before."""
        files = tests_of(mutant)
        first = first_of(mutant)
        tries = [*([("-k", first, files[0])] if first else []), *((file,) for file in files)]
        if "::" in caught_by and (self.root / caught_by.partition("::")[0]).exists():
            tries.insert(0, (caught_by,))
        for what in tries:
            with self.spoilt(mutant):
                caught = self.pytest(*what)
            if caught:
                if not self.passes(*([caught] if "::" in caught else what)):
                    raise NotItsFault(f"{caught} fails without the fault too")
                return caught
        return ""


def compiles(path: Path) -> bool:
    """Whether a compiler takes the file; where there is none, whether it might. A static assertion is a test."""
    if path.suffix == ".js":
        node = shutil.which("node")
        return not node or subprocess.run([node, "--check", str(path)], capture_output=True).returncode == 0
    if path.suffix != ".cu":
        return True
    sys.path.insert(0, str(ROOT / "src"))
    try:
        from course_kernels.cuda.compile import compile_cubin

        compile_cubin(path, "sm_90a")
    except ImportError:
        return True
    except Exception as error:
        return "static assertion" in str(error)
    return True


def judge(copy: Copy, mutant: Mutant, known: dict[tuple[str, str, str], dict[str, Any]]) -> dict[str, Any]:
    """What becomes of one fault."""
    file, before, after = mutant.key
    head = {"area": mutant.area, "file": file, "line": mutant.line, "kind": mutant.kind}
    found = {**head, "before": before, "after": after}
    with copy.spoilt(mutant):
        sound = compiles(copy.root / file)
    if not sound and compiles(copy.root / file):  # some files do not without what their launcher defines
        return {**found, "survived": "it does not compile, so it is no fault: mend the generator"}
    try:
        caught = copy.catcher(mutant, known.get(mutant.key, {}).get("caught_by", ""))
    except NotItsFault as error:
        return {**found, "survived": str(error)}
    if caught:
        return {**found, "caught_by": caught}
    for outcome in ("changes_nothing", "needs_a_card"):
        if outcome in known.get(mutant.key, {}):
            return {**found, outcome: known[mutant.key][outcome]}
    return {**found, "survived": "no test noticed"}


def line_of(found: dict[str, Any]) -> str:
    """One result in one line."""
    outcome = next(outcome for outcome in OUTCOMES if outcome in found)
    return (
        f"{outcome.replace('_', ' ')}: {found[outcome]}\n    {found['file']}:{found['line']}  "
        f"{found['before']}  ->  {found['after']}"
    )


def again(copy: Copy, keep: bool) -> Counter[str]:
    """Plant every kept fault once more, and say what became of it; how often each outcome came.

    Args:
        keep: write the results, with today's lines.
    """
    mutants = generate()
    there: dict[tuple[str, str, str], list[Mutant]] = {}
    for mutant in mutants:
        there.setdefault(mutant.key, []).append(mutant)
    seeds = [int(file.stem.removeprefix("seed-")) for file in sorted(HERE.glob("seed-*.toml"))]
    results = {seed: kept(seed) for seed in seeds}
    order = [(seed, i) for seed in seeds for i in range(len(results[seed]))]

    def cost(place: tuple[int, int]) -> tuple[bool, bool, str]:
        test = results[place[0]][place[1]].get("caught_by", "")
        return not test, test.startswith(SLOW), test

    counts: Counter[str] = Counter()
    for number, (seed, i) in enumerate(sorted(order, key=cost), 1):
        began = time.monotonic()
        was = results[seed][i]
        same = there.get(key_of(was))
        if same:
            mutant = min(same, key=lambda one: abs(one.line - was["line"]))
        else:
            taken = {key_of(found) for each in results.values() for found in each}
            mutant = instead_of(was["area"], was["file"], [m for m in mutants if m.key not in taken], seed)
            lost = f"{was['file']}:{was['line']}  {was['before']}  ->  {was['after']}"
            print(f"gone: {lost}; in its place", flush=True)
        found = judge(copy, mutant, {key_of(was): was})
        if same and "survived_at_first" in was:
            found["survived_at_first"] = True
        outcome = next(outcome for outcome in OUTCOMES if outcome in found)
        counts[outcome] += 1
        moved = " (another than before)" if same and found[outcome] != was.get(outcome) else ""
        print(f"{number:3} {time.monotonic() - began:4.0f} s  {line_of(found)}{moved}", flush=True)
        results[seed][i] = found
        if keep:
            write(seed, results[seed])
    return counts


def summary(counts: Counter[str]) -> str:
    """How many were caught, in words."""
    return ", ".join(f"{counts[outcome]} {outcome.replace('_', ' ')}" for outcome in OUTCOMES)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--area", choices=AREAS, help="draw from one area only, to mend its tests")
    parser.add_argument("--keep", action="store_true", help="write seed-N.toml, and go on from it")
    parser.add_argument("--again", action="store_true", help="plant every kept fault once more, drawing none")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for one test file")
    chosen = parser.parse_args()
    if chosen.area and chosen.keep:
        parser.error("--keep is for faults drawn from all areas: leave out --area, or --keep")
    if chosen.again:
        with Copy.made(chosen.limit) as copy:
            counts = again(copy, chosen.keep)
        print(summary(counts))
        return 1 if counts["survived"] else 0

    mutants = [mutant for mutant in generate() if chosen.area in (None, mutant.area)]
    drawn = draw(mutants, chosen.seed, chosen.count)
    known = {key_of(found): found for found in kept()}
    held = {key_of(found): found for found in kept(chosen.seed) if "survived" not in found}
    print(
        f"{len(mutants)} faults could be planted; {len(drawn)} are, drawn by seed {chosen.seed}", flush=True
    )
    results: list[dict[str, Any]] = []
    with Copy.made(chosen.limit) as copy:
        for i, mutant in enumerate(drawn, 1):
            began = time.monotonic()
            found = held.get(mutant.key) if chosen.keep else None
            if not found:
                found = judge(copy, mutant, known)
                if "survived" in known.get(mutant.key, {}) and "caught_by" in found:
                    found["survived_at_first"] = True
            results.append(found)
            print(f"{i:3} {time.monotonic() - began:4.0f} s  {line_of(found)}", flush=True)
            if chosen.keep:
                seen = {key_of(result) for result in results}
                write(chosen.seed, [*results, *(f for key, f in held.items() if key not in seen)])
        if chosen.keep:
            write(chosen.seed, results)
    counts = Counter(outcome for found in results for outcome in OUTCOMES if outcome in found)
    print(summary(counts))
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
