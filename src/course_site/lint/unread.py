"""Passages that nobody has read since they changed: every passage is read by a second person, beside what it prints.

No gate reads sense, so a ledger keeps what a person has read: `records/read/`, a file for each folder of sources, a
line for each passage, as `path name`, in the order of the source. A passage counts as read where its name stands in the
ledger behind its path, in that order: what is new, has other words or stands elsewhere does not. A line without a
passage is something that was read and is gone, which changes what is left: that is read too. The last line is `end`, so
that a file that was cut is seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from course_site.pages.build_cache import KEPT, digest
from course_site.pages.passages import Passage, files, passages

FOLDER = "records/read"
END = "end"
HOW = "nox -s read"
_LINE = re.compile(r"(?P<path>\S(?:.*\S)?) (?P<name>[0-9a-f]{12})")

# The names that were read of a file, by its path, in the order of the source.
Ledger = Mapping[str, list[str]]


class LedgerWrong(ValueError):
    """A ledger that is no ledger: one line, with the file, the cause and what to do."""


@dataclass(frozen=True)
class Unread:
    """A passage that nobody has read as it stands.

    Attributes:
        before: the names of what was read in its file and is gone; its own where it stood elsewhere.
        gone: how many passages of its file were read, and have nothing in their place; it has no words itself.
    """

    path: str
    passage: Passage
    before: tuple[str, ...] = ()
    gone: int = 0

    @property
    def place(self) -> str:
        """Return where it begins."""
        return self.path if self.gone else f"{self.path}:{self.passage.line}"

    @property
    def why(self) -> str:
        """Return what happened to it."""
        if self.gone:
            return (
                "a passage is gone that was read"
                if self.gone == 1
                else f"{self.gone} passages are gone that were read"
            )
        if self.passage.name in self.before:
            return "moved since it was read"
        return "changed since it was read" if self.before else "not yet read"


def ledger_of(path: str) -> str:
    """Return the path of the ledger that keeps what was read of a file."""
    folder, inside, _ = path.partition("/")
    return f"{FOLDER}/{folder if inside else 'top'}.txt"


def load(root: Path) -> dict[str, list[str]]:
    """Read all that there is of the ledger.

    Raises:
        LedgerWrong: a file of it is not text, is cut, or has a line that is none of a ledger.
    """
    found: dict[str, list[str]] = {}
    for file in sorted((root / FOLDER).glob("*.txt")):
        name = file.relative_to(root).as_posix()
        back = f"take it from the last commit: git checkout {name}"
        try:
            lines = file.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError:
            raise LedgerWrong(f"{name}: is not text; {back}") from None
        if lines[-2:] != [END, ""]:
            raise LedgerWrong(f"{name}: is cut, its last line is not `{END}`; {back}")
        for number, line in enumerate(lines[:-2], 1):
            match = _LINE.fullmatch(line)
            if not match:
                raise LedgerWrong(
                    f"{name}:{number}: {line[:60]!r} is not a path and what was read there; {back}"
                )
            found.setdefault(match["path"], []).append(match["name"])
    return found


def text_of(entries: Ledger, name: str) -> str:
    """Return one file of the ledger, such as records/read/docs.txt, from all that was read."""
    lines = (
        f"{path} {one}\n" for path in sorted(entries) if ledger_of(path) == name for one in entries[path]
    )
    return "".join(lines) + f"{END}\n"


class _Compared:
    """Comparison of what a file says now with what was read of it, in order.

    Attributes:
        steps: what is to be done to what was read, as `SequenceMatcher` gives it.
        read: numbers of the passages of today that were read as they stand.
        left: place and name of what was read, is nowhere in its file any more, and has nothing new in its place.
    """

    def __init__(self, names: Sequence[str], before: Sequence[str]) -> None:
        compared = SequenceMatcher(None, before, names, autojunk=False)
        self.steps = compared.get_opcodes()
        self.read = {
            one for _, start, size in compared.get_matching_blocks() for one in range(start, start + size)
        }
        self.left: dict[int, str] = {}
        gone = Counter(before) - Counter(names)
        for _, first, last, start, end in self.steps:
            for number in range(first, last):
                name = before[number]
                if gone[name] > 0:
                    gone[name] -= 1
                    if number - first >= end - start:
                        self.left[number] = name


def unread_of(path: str, now: list[Passage], before: list[str]) -> Iterator[Unread]:
    """Yield the passages of a file that nobody has read as they stand, and at last what is gone."""
    names = [one.name for one in now]
    if names == before:
        return
    compared, gone = _Compared(names, before), tuple(name for name in before if name not in set(names))
    for number, one in enumerate(now):
        if number not in compared.read:
            yield Unread(path, one, (one.name,) if one.name in before else gone)
    if left := tuple(compared.left.values()):
        yield Unread(path, Passage(1, "", ""), left, len(left))


def noted(
    now: list[Passage], before: list[str], read: Collection[Passage], *, gone: bool = False
) -> list[str]:
    """Return what the ledger says of a file once these passages were read.

    What was read and is gone keeps its place: an edit that is taken back was read.

    Args:
        gone: that it is gone was read as well.
    """
    names = [one.name for one in now]
    compared = _Compared(names, before)
    done = compared.read | {number for number, one in enumerate(now) if one in read}
    left = {} if gone else compared.left
    found: list[str] = []
    for _, first, last, start, end in compared.steps:
        for k in range(max(last - first, end - start)):
            if start + k < end and start + k in done:
                found.append(names[start + k])
            elif first + k < last and (start + k < end or first + k in left):
                found.append(before[first + k])
    return found


def passages_of(root: Path, path: str) -> list[Passage]:
    """Return the passages of a file as it stands; none where it is gone."""
    file = root / path
    return passages(path, file.read_bytes().decode("utf-8", "replace")) if file.is_file() else []


def unread(root: Path, ledger: Ledger, only: Iterable[str] | None = None) -> Iterator[Unread]:
    """Yield every passage that nobody has read as it stands, file by file."""
    for path in sorted({*files(root), *ledger}) if only is None else only:
        file, before = root / path, ledger.get(path, [])
        name = digest("read", path, file.read_bytes() if file.is_file() else b"", before)
        if KEPT.is_clean(name):
            continue
        found = list(unread_of(path, passages_of(root, path), before))
        yield from found
        if not found:
            KEPT.clean(name)


def faults(root: Path) -> Iterator[tuple[str, str]]:
    """Yield place and what is to do for every passage that is unread; a file that is new, or a lost ledger, is one."""
    paths = list(files(root))
    wanted = {ledger_of(path) for path in paths}
    missing = {name for name in wanted if not (root / name).is_file()}
    for name in [FOLDER] if missing == wanted else sorted(missing):
        yield name, f"is missing, which says what was read; take it from the last commit, or read: {HOW}"
    try:
        ledger = load(root)
    except LedgerWrong as error:
        place, _, why = str(error).partition(": ")
        yield place, why
        return
    for path in sorted({*paths, *ledger}):
        found = list(unread(root, ledger, [path])) if ledger_of(path) not in missing else []
        if found and path not in ledger:
            yield path, f"nobody has read it yet, {len(found)} passage{'s' * (len(found) != 1)}: {HOW}"
        else:
            for one in found:
                yield (
                    one.place,
                    f"{one.why}: {HOW}" if one.gone else f"{one.passage.begins!r} {one.why}: {HOW}",
                )
