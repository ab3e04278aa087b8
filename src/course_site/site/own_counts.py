"""Counts of our own things: what a text says of them is what the code and the folders have.

How many cheats the judge is tried on, how many rounds a race has, how many labs start in Triton: such a number is
typed, and it goes stale when the thing grows. Each has a count here that is taken from the thing itself, and the texts
are held against it: the first pages of the repository, the pages of the site, the maps, the labs. So is the share of
resamples in which a claim must hold.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from course_site.lint.number_words import COUNTED
from course_site.pages.build_cache import KEPT, digest
from course_site.sessions.course_road import load_road
from course_site.site.course import Course
from course_site.values.claims import CONFIDENCE
from course_site.values.uncertainty import RESAMPLES

FIRST_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
_FOLDERS = ("handbook", "labs")  # maps, sheets, tasks
_CLOCK = "src/course_kernels/measure/clock.py"
_LARGE = {"dozen": 12, "hundred": 100, "thousand": 1000}
_WORD = rf"(?:{'|'.join([*COUNTED, *_LARGE])})"
_NUMBER = rf"(?:\d[\d,\xa0]*|(?:\ban?\s+)?\b{_WORD}(?:[\s-]+(?:and\s+)?{_WORD})*\b)"
_BOUND = r"(?:(?P<over>more\s+than|over|at\s+least|above)|(?P<under>fewer\s+than|at\s+most|up\s+to|under))"


def _folder(name: str, pattern: str) -> Callable[[Path], int]:
    return lambda root: sum(1 for _ in (root / name).glob(pattern))


def _in_code(file: str, name: str) -> Callable[[Path], int]:
    """Return a count of what a tuple of some code holds, or the whole number that a name of it is."""

    def count(root: Path) -> int:
        names: dict[str, int] = {}
        if not (root / file).is_file():
            return 0
        for node in ast.parse((root / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = node.value
                if isinstance(value, ast.Tuple):
                    names[node.targets[0].id] = len(value.elts)
                elif all(isinstance(part, _WHOLE) for part in ast.walk(value)):
                    names[node.targets[0].id] = _computed(value, names)
        return names.get(name, 0)

    return count


_WHOLE = (ast.Constant, ast.Name, ast.BinOp, ast.Mult, ast.Load)


def _computed(value: ast.expr, names: dict[str, int]) -> int:
    if isinstance(value, ast.BinOp):
        return _computed(value.left, names) * _computed(value.right, names)
    if isinstance(value, ast.Name):
        return names.get(value.id, 0)
    found = value.value if isinstance(value, ast.Constant) else 0
    return found if isinstance(found, int) else 0


def _stops(kind: str) -> Callable[[Path], int]:
    def count(root: Path) -> int:
        return sum(stop.startswith(kind) for stop in load_road(root).stops)

    return count


def _first_doors(root: Path) -> int:
    labs = (tomllib.loads(file.read_text(encoding="utf-8")) for file in (root / "labs").glob("*/lab.toml"))
    return sum(next(iter(lab.get("doors", {})), "") == "triton" for lab in labs)


# What is counted, in words that follow its number, from what number on it is all of them, and its count.
_COUNTS: tuple[tuple[str, int, Callable[[Path], int]], ...] = (
    (r"(?:\w+\s+)?cheats\b(?!\s+(?:are|were)\s+refused)", 20, _folder("tests/judge/cheats", "*.py")),
    (r"ways\s+to\s+(?:fool|cheat|trick)\b", 5, _in_code("src/course_kernels/refusals/cheats.py", "CHEATS")),
    (r"(?:sessions|stops)\b", 10, _stops("")),
    (r"lectures\b", 6, _stops("l")),
    (r"workshops\b", 5, _stops("w")),
    (r"labs\s+start\s+in\s+Triton\b", 1, _first_doors),
    (r"labs\s+(?:with\s+a\s+Triton\s+door|can\s+be\s+typed\s+in\s+Triton)\b", 1, _folder("labs", "*/triton")),
    (r"labs\b(?=\s+(?:in\s+all|of\s+the\s+course))", 1, _folder("labs", "*/lab.toml")),
    (r"resamples\b", 20, lambda root: RESAMPLES),
)
_SAMPLES = re.compile(
    rf"\b(?:never|no|not)\s+(?:fewer|less)\s+than\s+(?P<least>{_NUMBER})(?:\s+(?:samples|rounds))?(?:\s+and|,|\s+nor)?\s+"
    rf"(?:(?:never|no|not)\s+)?more\s+than\s+(?P<most>{_NUMBER})|\bat\s+most\s+(?P<top>{_NUMBER})\s+(?:samples|rounds)\b",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"\b(?:(?P<percent>\d+(?:\.\d+)?)\s*(?:%|per\s?cent)|(?P<of>\d+)\s+(?:of|in)\s+(?:a\s+)?(?:100|hundred)|(?P<all>all|every(?:\s+one)?"
    r"|each))\s+(?:of\s+)?(?:the\s+|its\s+|a\s+thousand\s+)?(?:of\s+them\s+)?(?:resamples?|(?:of\s+)?these\s+runs)\b",
    re.IGNORECASE,
)
_RULES: dict[str, list[tuple[re.Pattern[str], int, Callable[[Path], int]]]] = {}
for _noun, _start, _count in _COUNTS:
    _rule = re.compile(rf"(?:{_BOUND}\s+)?(?P<number>{_NUMBER})\s+{_noun}", re.IGNORECASE), _start, _count
    for _word in ("cheats", "ways", "sessions", "stops", "lectures", "workshops", "labs", "resamples"):
        if _word in _noun:
            _RULES.setdefault(_word, []).append(_rule)
_HINT = re.compile(
    r"\b(?:cheats|ways(?=\s+to\s)|sessions|stops|lectures|workshops|labs|resamples?|these runs|samples|rounds"
    r"|more than)\b"
)
_BEFORE, _AFTER = 70, 45  # characters around such a word that may say how many


def faults_of(text: str, root: Path) -> Iterator[tuple[int, str]]:
    """Yield line, and what is wrong, of every count of our own things that is not their number."""
    told = set()
    for hint in _HINT.finditer(text):
        begin = max(hint.start() - _BEFORE, 0)
        around, line = text[begin : hint.end() + _AFTER], text.count("\n", 0, begin) + 1
        for at, why in _in_window(around, hint[0], root):
            found = line + around.count("\n", 0, at), why
            if found not in told:
                told.add(found)
                yield found


def _in_window(text: str, word: str, root: Path) -> Iterator[tuple[int, str]]:
    shares = list(_SHARE.finditer(text)) if word.startswith(("resample", "these")) else []
    for pattern, start, count in _RULES.get(word, ()) if not shares else ():
        for found in pattern.finditer(text):
            said, have = _amount(found["number"]), _counted(count, root)
            if said < start or not have:  # a part of them; or there is nothing to count
                continue
            right = have > said if found["over"] else have <= said if found["under"] else have == said
            if not right:
                yield _told(found, f"there are {have}")
    if word in ("samples", "rounds", "more than"):
        for found in _SAMPLES.finditer(text):
            least, most = (_counted(_ROUNDS[name], root) for name in ("MIN_ROUNDS", "MAX_ROUNDS"))
            if not most:
                continue
            low = found["least"] and _amount(found["least"])
            if low not in (None, least) or _amount(found["most"] or found["top"]) != most:
                yield _told(found, f"{_CLOCK} takes {least} at least and {most} at most")
    for found in shares:
        share = float(found["percent"] or found["of"] or 100)
        if found["all"] or share != 100 * CONFIDENCE:
            yield _told(found, f"a claim holds in {CONFIDENCE:.0%} of them")


_ROUNDS = {name: _in_code(_CLOCK, name) for name in ("MIN_ROUNDS", "MAX_ROUNDS")}


def check(course: Course) -> None:
    """Note every count of our own things that is not their number."""
    root = course.root
    _counted.cache_clear()  # a served site is built again and again
    files = [root / name for name in FIRST_PAGES]
    files += [file for name in _FOLDERS for file in (root / name).rglob("*.toml")]
    for file in files:
        if file.is_file():
            _check(course, file.relative_to(root), file.read_text(encoding="utf-8"), "line {}: ")
    for page in course.pages:
        _check(course, page.path, "\n\n".join(cell.source for cell in page.cells if cell.kind == "markdown"))
    if (readme := root / FIRST_PAGES[0]).is_file():
        for line, why in faults_of_commands(readme.read_text(encoding="utf-8"), root):
            course.problem(readme.relative_to(root), f"line {line}: {why}")


def _check(course: Course, path: Path, text: str, place: str = "") -> None:
    if not _HINT.search(text):
        return
    counts = [_counted(count, course.root) for _, _, count in _COUNTS]
    name = digest(
        "counts", CONFIDENCE, text, counts, [_counted(count, course.root) for count in _ROUNDS.values()]
    )
    if not KEPT.is_clean(name):
        found = list(faults_of(text, course.root))
        for line, why in found:
            course.problem(path, f"{place.format(line)}{why}")
        if not found:
            KEPT.clean(name)


# The file whose docstring says what the exit codes of a command mean.
_COMMANDS = {
    "docs": "src/course_site/docs.py",
    "judge": "src/course_judge/__main__.py",
    "profile": "src/course_profile/__main__.py",
    "harness": "src/course_harness/__main__.py",
    "serve-model": "src/course_models/serving/__main__.py",
}
_COMMAND = re.compile(r"nox -s ([\w-]+)")
_CODES = re.compile(r"\bexit\s+codes?\b[^.`]*", re.IGNORECASE)
_CLAUSE = re.compile(r"\b(\d+)\b([^\d]*)")
_OPTION = re.compile(r"^\|\s*`(--[\w-]+)", re.MULTILINE)
_OPTION_OF_CODE = re.compile(r"add\(\"(--[\w-]+)\"")


def faults_of_commands(text: str, root: Path) -> Iterator[tuple[int, str]]:
    """Yield line, and what is wrong, of exit codes and options that a command does not have.

    An exit code is one of the command that the text named last; options are those of the table of `nox -s docs`.
    """
    if not all((root / file).is_file() for file in _COMMANDS.values()):
        return
    for found in _CODES.finditer(text):
        command = next(reversed(_COMMAND.findall(text[: found.start()])), "")
        if command in _COMMANDS:
            told = _CODES.search((root / _COMMANDS[command]).read_text(encoding="utf-8"))
            have = {code: _words(clause) for code, clause in _CLAUSE.findall(told[0] if told else "")}
            for code, clause in _CLAUSE.findall(found[0]):
                if code not in have or (_words(clause) and not _words(clause) & have[code]):
                    said = f"says {' '.join(f'{code}{clause}'.split())!r} of `nox -s {command}`"
                    line = text.count("\n", 0, found.start()) + 1
                    yield line, f"{said}, and its docstring does not: mend the text"
    known = set(_OPTION_OF_CODE.findall((root / _COMMANDS["docs"]).read_text(encoding="utf-8")))
    listed = {found[1] for found in _OPTION.finditer(text)}
    for name in sorted(listed - known):
        yield text[: text.find(f"`{name}")].count("\n") + 1, f"lists {name}: `nox -s docs` has no such option"
    for name in sorted(known - listed if listed else ()):
        yield 1, f"does not list {name}, an option of `nox -s docs`"


def _words(clause: str) -> set[str]:
    return {
        word for word in re.findall(r"[a-z]{4,}", clause.casefold()) if word not in ("means", "that", "with")
    }


@functools.cache
def _counted(count: Callable[[Path], int], root: Path) -> int:
    return count(root)


def _told(found: re.Match[str], have: str) -> tuple[int, str]:
    return found.start(), f"says {' '.join(found[0].split())!r}, and {have}: mend the text"


def _amount(words: str) -> int:
    """Return the number that some digits or words say: 1000 of "a thousand", 35 of "thirty-five"."""
    if words[0].isdigit():
        return int(re.sub(r"\D", "", words))
    part = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word in _LARGE:
            part = max(part, 1) * _LARGE[word]
        else:
            part += COUNTED.get(word, 0)
    return part
