"""The command behind ``nox -s read``: show what nobody has read as it stands, beside what it prints, and ask.

Whoever answers did not write it. Options go after ``--``.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from course_site.lint import unread
from course_site.lint.unread import Unread
from course_site.pages.passages import files, passages
from course_site.pages.placeholders import PLACEHOLDER
from course_site.records.record import write_atomically
from course_site.site.course import load_course
from course_site.site.render.page import define_course
from course_site.values.values import ExpressionError, Scope, evaluate, format_value

_COMMITS = 20  # of a file's history, in which its passage is looked for
_LONG = 4000  # characters; whose changes are marked by lines
_ALIKE = 0.3  # what has less in common is another passage
_NAME = re.compile(r"(?<![\w./\"'])[A-Za-z_]\w*(?:\.\w+)+(?![\w(/])")
_GROUP = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)\.\*")
_DRAWN = re.compile(r"^[xy]: (\w+)$", re.MULTILINE)


def main(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run the command with the options after ``--``; returns the exit code."""
    options = _parse(arguments)
    root = (root or Path.cwd()).resolve()
    try:
        ledger = unread.load(root)
        chosen = _chosen(root, ledger, options.files)
    except ValueError as error:
        print(f"read: {error}", file=sys.stderr)
        return 2
    found = list(unread.unread(root, ledger, chosen))
    left = len(found)
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if options.all_read:
        for path in {one.path for one in found}:
            note(root, ledger, [one for one in found if one.path == path])
        print(f"read: {_many(left)} marked as read")
    else:
        left -= _shown(root, ledger, found, asks)
        print(f"read: {_many(left)} left to read" if left else "read: everything is read")
    return 0


def _shown(root: Path, ledger: dict[str, list[str]], found: Sequence[Unread], asks: bool) -> int:
    """Show every passage, ask of each where somebody is there to answer, and return how many were read."""
    beside = Beside(root) if found else None
    done = 0
    with contextlib.suppress(KeyboardInterrupt, EOFError):
        for number, one in enumerate(found, 1):
            print(f"\n{number} of {len(found)}: {one.place}: {one.why}")
            print(textwrap.indent("\n".join(beside.lines(one) if beside else ()), "    "))
            answer = _answer() if asks else "n"
            if answer == "q":
                break
            if answer == "y":
                note(root, ledger, [one])
                done += 1
    return done


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s read --", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="only what is in these files and folders")
    add(
        "--all-read",
        action="store_true",
        help="mark all of these files as read: somebody has read them elsewhere",
    )
    options = parser.parse_args(arguments)
    if options.all_read and not options.files:
        parser.error("--all-read: name the files that were read")
    return options


def _chosen(root: Path, ledger: unread.Ledger, named: Sequence[str]) -> list[str]:
    """Return the paths with something to read among the files and folders that were named; all where none was.

    Raises:
        ValueError: one of them has nothing to read.
    """
    known = sorted({*files(root), *ledger})
    if not named:
        return known
    found: set[str] = set()
    for name in named:
        path = os.path.relpath(os.path.join(root, name), root)
        inside = {one for one in known if path == "." or one == path or one.startswith(f"{path}/")}
        if not inside:
            raise ValueError(f"{name}: there is nothing to read in it, or no such file")
        found |= inside
    return sorted(found)


def _many(count: int) -> str:
    return f"{count} passage{'s' * (count != 1)}"


def _answer() -> str:
    while (said := input("so, as printed? [y]es, [n]o: leave it, [q]uit  ").strip().lower()) not in (
        "y",
        "n",
        "q",
    ):
        pass
    return said


# --- what was read --------------------------------------------------------------------------------------------


def note(root: Path, ledger: dict[str, list[str]], read: Sequence[Unread]) -> None:
    """Note in the ledger that these passages of one file were read."""
    path = read[0].path
    now = unread.passages_of(root, path)
    gone = any(one.gone for one in read)
    ledger[path] = unread.noted(now, ledger.get(path, []), [one.passage for one in read], gone=gone)
    if not ledger[path] and not (root / path).exists():
        del ledger[path]
    _write(root, ledger, unread.ledger_of(path))


def _write(root: Path, ledger: unread.Ledger, name: str) -> None:
    text = unread.text_of(ledger, name)
    if not (root / name).exists() or _text(root / name) != text:
        write_atomically(root / name, text)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace")


# --- what it was, and what it prints --------------------------------------------------------------------------


class Beside:
    """Texts beside a passage when it is read: what it was, and each value with its name.

    Args:
        root: the repository, whose records fill the values in.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._course = load_course(root, draft=True)
        define_course(self._course)
        self._once: dict[str, dict[str, str]] = {}

    def lines(self, one: Unread) -> Iterator[str]:
        """Yield the lines to read of a passage."""
        if one.gone:
            texts = self._read_before(one.path, one.before)
            yield "\n\n".join(texts.values()) or "git does not know it any more"
            return
        said = one.passage.text
        if one.passage.under:
            yield from (one.passage.under, "")
        was = self._was(one)
        yield _marked(was, said) if was else said
        scope = self._scope(one.path)
        printed = PLACEHOLDER.sub(lambda match: _printed(match, scope), said)
        if printed != said:
            yield f"\nprints: {printed}"
        bare = PLACEHOLDER.sub("", said)
        values = dict.fromkeys([*_NAME.findall(bare), *_in_groups(bare, scope)])
        known = list(filter(None, (_valued(name, scope) for name in values)))
        if known:
            yield "\n" + "\n".join(known)

    def _scope(self, path: str) -> Scope:
        """Return what a page can name; any other text names the values of pages by their ids."""
        scopes = self._course.scopes
        for page in self._course.pages:
            if page.path.as_posix() == path and page.id in scopes:
                return scopes[page.id]
        return Scope("", {}, None, others=scopes.get)

    def _was(self, one: Unread) -> str:
        """Return the words that were read in its place, as git has them; "" where it has none that are alike."""
        texts = self._read_before(one.path, one.before)
        words = one.passage.text.split()
        alike = {name: difflib.SequenceMatcher(None, texts[name].split(), words).ratio() for name in texts}
        best = max(alike, key=alike.__getitem__, default="")
        return texts[best] if best and alike[best] > _ALIKE else ""

    def _read_before(self, path: str, names: Collection[str]) -> dict[str, str]:
        """Return the texts of these names, from the commits that changed a file, newest first."""
        found = self._once.setdefault(path, {})
        if not found.keys() >= set(names):
            for commit in self._git("log", f"-{_COMMITS}", "--format=%H", "--", path).split():
                for one in passages(path, self._git("show", f"{commit}:./{path}")):
                    found.setdefault(one.name, one.text)
                if found.keys() >= set(names):
                    break
        return {name: found[name] for name in names if name in found}

    def _git(self, *arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, check=False)
        except FileNotFoundError:  # without git nothing is known of what was
            return ""
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _marked(before: str, now: str) -> str:
    """Return a text with its changes marked, as git does it: word by word, or line by line where it is long."""
    if len(now) > _LONG:
        lines = difflib.unified_diff(before.split("\n"), now.split("\n"), "was", "is", n=1, lineterm="")
        return "\n".join(lines)
    old, new = (re.findall(r"\s+|[^\s]+", text) for text in (before, now))
    parts: list[str] = []
    for what, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = "".join(old[a:b]), "".join(new[c:d])
        if what == "equal" or not (gone + come).strip():
            parts.append(come)
        else:
            parts += [f"[-{gone}-]" if gone.strip() else "", f"{{+{come}+}}" if come.strip() else come]
    return "".join(parts)


def _printed(match: re.Match[str], scope: Scope) -> str:
    """Return a value as the page prints it, and behind it the name that it has."""
    expression = match["expression"]
    try:
        text = format_value(evaluate(expression, scope).value, match["format"] or "")
    except ExpressionError as error:
        text = f"? ({error})"
    return f"{text} ‹{expression}›"


def _in_groups(text: str, scope: Scope) -> Iterator[str]:
    """Yield the names of what a chart draws of a group, such as `chase.*`."""
    drawn = _DRAWN.findall(text)
    for group in _GROUP.findall(text):
        for name in scope.leaf_names():
            if name.startswith(f"{group}."):
                yield from (name, *(f"{name}.{attribute}" for attribute in drawn))


def _valued(name: str, scope: Scope) -> str:
    """Return a name that a condition, a chart or a table holds, with its value; "" where it is no name of one."""
    try:
        found = scope.resolve(name)
    except ExpressionError:
        return ""
    value = found.value if isinstance(found.value, str) else f"{found.value:.4g}"
    return f"{name} = {value}{f' {found.unit}' if found.unit not in ('', '1') else ''}"
