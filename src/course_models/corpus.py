"""The text that the small models learn: pieces of Python's own library, the same on every Python, pinned by hash.

Every Python brings some megabytes of text that people wrote for people: the source of its standard library. Most of
it changes from version to version, so `corpus.txt` pins the *pieces* that do not: whole functions and methods, and
what stands between them, that are equal in the Pythons the file was made from. Files are held out whole, so that a
model is never asked about the neighbour of what it learnt.

The text belongs to the Python Software Foundation and is not part of this repository; its pins are.

    PYTHONPATH=src python -m course_models.corpus /usr/lib/python3.12 /usr/lib/python3.13     makes corpus.txt anew
    PYTHONPATH=src python -m course_models.corpus --narrow /usr/lib/python3.12     only what this one has, too
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import os
import sys
import sysconfig
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).with_name("corpus.txt")
# Left out by some distributions or patched by them, made by a program, tables, or tests.
_NOT_TEXT = frozenset(
    {
        "test",
        "tests",
        "idlelib",
        "tkinter",
        "lib2to3",
        "distutils",
        "ensurepip",
        "site-packages",
        "turtledemo",
    }
    | {"pydoc_data", "dist-packages", "msilib", "lib-dynload", "venv", "encodings", "__pycache__"}
)
_LEAST = 200  # bytes of a piece: what is shorter is an import, or says little
_MARK = 6  # hex digits of a piece; the digest of the whole file finds what they confuse
_ENOUGH = 0.98  # of the text to train on: a few files that a later Python changed do no harm
_HELD_OUT = 24  # of 256 files


class CorpusError(ValueError):
    """The text is not there, or is not what was pinned: one line."""


@dataclass(frozen=True)
class Pin:
    """One file of the library: what of it is meant, and what that must be.

    Attributes:
        name: path below the library, such as "json/decoder.py".
        digest: first 16 hex digits of the text's sha256.
        size: of the text, in bytes.
        marks: for every piece the first hex digits of its sha256.
    """

    name: str
    digest: str
    size: int
    marks: tuple[str, ...]

    @property
    def held_out(self) -> bool:
        """Decide by the file's name alone, so for ever, whether no model learns it."""
        return hashlib.sha256(self.name.encode()).digest()[0] < _HELD_OUT


@dataclass(frozen=True)
class Corpus:
    """The text, file by file.

    Attributes:
        train: what models learn.
        held_out: what their loss is measured on; always complete.
        absent: files to train on that this Python has otherwise, or not at all.
    """

    train: tuple[bytes, ...]
    held_out: tuple[bytes, ...]
    absent: tuple[str, ...] = ()

    @property
    def train_bytes(self) -> int:
        """Bytes to train on."""
        return sum(map(len, self.train))

    @property
    def held_out_bytes(self) -> int:
        """Bytes to measure on."""
        return sum(map(len, self.held_out))

    @property
    def sha256(self) -> str:
        """Return the hash of all of it: two corpora with the same one are the same text."""
        whole = hashlib.sha256()
        for part in (self.train, self.held_out):
            for text in part:
                whole.update(b"%d\n" % len(text) + text)
        return whole.hexdigest()


def load(library: Path | None = None, pins: Path = PINS) -> Corpus:
    """Return the text as this Python has it.

    Args:
        library: the folder of a standard library; the running Python's by default.
        pins: a file as `corpus.txt`.
    Raises:
        CorpusError: no pins, a file to measure on that is not what was pinned, or too few to train on.
    """
    library = library or Path(sysconfig.get_path("stdlib"))
    texts: dict[bool, list[bytes]] = {True: [], False: []}
    other: dict[bool, list[Pin]] = {True: [], False: []}
    every = read_pins(pins)
    for pin in every:
        text = _text(library / pin.name, pin)
        if text is None:
            other[pin.held_out].append(pin)
        else:
            texts[pin.held_out].append(text)
    here = f"{library} (Python {sys.version.split()[0]})"
    if other[True]:
        names = ", ".join(pin.name for pin in other[True][:3])
        raise CorpusError(
            f"corpus: {names} of {here} {'is' if len(other[True]) == 1 else 'are'} not what the loss is measured on: "
            "a loss here could not be compared; run it on a Python from 3.11 to 3.13"
        )
    size = sum(pin.size for pin in every if not pin.held_out)
    share = sum(map(len, texts[False])) / max(size, 1)
    if share < _ENOUGH:
        raise CorpusError(
            f"corpus: {here} has {share:.0%} of the text to train on, and {_ENOUGH:.0%} are needed: "
            "run it on a Python from 3.11 to 3.13"
        )
    return Corpus(tuple(texts[False]), tuple(texts[True]), tuple(pin.name for pin in other[False]))


def read_pins(path: Path = PINS) -> list[Pin]:
    """Return the pins of a file such as `corpus.txt`.

    Raises:
        CorpusError: there is no such file, or a line of it says something else.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CorpusError(f"corpus: {path}: {error.strerror}: restore it with git") from None
    pins = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            continue
        try:
            name, digest, size, marks = line.split(" ")
            cut = tuple(marks[i : i + _MARK] for i in range(0, len(marks), _MARK))
            pins.append(Pin(name, digest, int(size), cut))
        except ValueError:
            raise CorpusError(f"corpus: {path}: line {number} is no pin: restore it with git") from None
    if not any(pin.held_out for pin in pins) or all(pin.held_out for pin in pins):
        raise CorpusError(f"corpus: {path}: pins nothing to train on or to measure on: restore it with git")
    return pins


def _text(path: Path, pin: Pin) -> bytes | None:
    """Return the pinned pieces of a file; None where it has others."""
    wanted = set(pin.marks)
    text = _joined(piece for piece in pieces(path) if _mark(piece) in wanted)
    return text if _digest(text) == pin.digest and len(text) == pin.size else None


def pieces(path: Path) -> Iterator[str]:
    """Yield a file cut at its functions, methods and classes, each piece once; none of a file that cannot be read."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return
    lines = source.splitlines(keepends=True)
    cuts = {1, len(lines) + 1}
    bodies = [tree.body]
    while bodies:
        for node in bodies.pop():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                cuts |= {
                    min([node.lineno, *(d.lineno for d in node.decorator_list)]),
                    (node.end_lineno or 0) + 1,
                }
            if isinstance(node, ast.ClassDef):
                bodies.append(node.body)
    seen = set()
    places = sorted(cuts)
    for start, end in itertools.pairwise(places):
        piece = "".join(lines[start - 1 : end - 1]).strip("\n")
        if len(piece) >= _LEAST and piece.isascii() and piece not in seen:
            seen.add(piece)
            yield piece


def _joined(found: Iterator[str]) -> bytes:
    return "\n\n".join(found).encode() + b"\n"


def _mark(piece: str) -> str:
    return hashlib.sha256(piece.encode()).hexdigest()[:_MARK]


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


# --- making the pins --------------------------------------------------------------------------------


def make_pins(libraries: Sequence[Path], within: Sequence[Pin] | None = None) -> list[Pin]:
    """Pins of all pieces that several standard libraries have in common.

    Args:
        libraries: their folders.
        within: pins that were made from others: no piece comes in that these do not have.
    Raises:
        CorpusError: marks that confuse two pieces, so that one library would give another text.
    """
    names = set.intersection(*(set(_files(library)) for library in libraries))
    known = None if within is None else {pin.name: frozenset(pin.marks) for pin in within}
    pins = []
    for name in sorted(names if known is None else names & known.keys()):
        each = [list(pieces(library / name)) for library in libraries]
        common = set.intersection(*map(set, each))
        kept = [piece for piece in each[0] if piece in common]
        if known is not None:
            kept = [piece for piece in kept if _mark(piece) in known[name]]
        if not kept:
            continue
        text = _joined(iter(kept))
        pin = Pin(name, _digest(text), len(text), tuple(map(_mark, kept)))
        for library in libraries:
            # A library may have the same pieces in another order, or a foreign one with a known mark.
            if _text(library / name, pin) is None:
                print(f"left out: {name} differs in {library}", file=sys.stderr)
                break
        else:
            pins.append(pin)
    return pins


def _files(library: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(library):
        folders[:] = [name for name in folders if name not in _NOT_TEXT and not name.startswith("config-")]
        for name in files:
            if name.endswith(".py") and not name.startswith("_sysconfigdata"):
                yield (Path(folder) / name).relative_to(library).as_posix()


def main(arguments: Sequence[str]) -> int:
    """Write `corpus.txt` from the standard libraries whose folders are named; `--narrow` keeps within what it has."""
    within = read_pins() if arguments[:1] == ["--narrow"] else None
    arguments = arguments[within is not None :]
    if not arguments or not all(Path(name, "os.py").is_file() for name in arguments):
        print("corpus: name the folders of standard libraries, such as /usr/lib/python3.12", file=sys.stderr)
        return 2
    pins = make_pins([Path(name) for name in arguments], within)
    head = "# Pieces of Python's own library, see corpus.py: file, digest, bytes, marks of its pieces.\n"
    lines = [f"{pin.name} {pin.digest} {pin.size} {''.join(pin.marks)}\n" for pin in pins]
    PINS.write_text(head + "".join(lines), encoding="utf-8")
    train, held_out = (sum(pin.size for pin in pins if pin.held_out is part) for part in (False, True))
    print(f"corpus: {len(pins)} files, {train} bytes to train on, {held_out} to measure on")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
