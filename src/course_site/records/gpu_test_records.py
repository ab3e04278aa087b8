"""The records of the GPU tests: one for every group of them, at records/<gpu>/tests/<group>.json.

A group is a problem with its kernels (`gemm`), a lab with a door that runs on a card (`lab:first_kernel`), or the
subject of a test file (`measure`). What its outcome depends on is listed from the files themselves, in the same way
when it is recorded and when the site is built: a file that is new, gone or changed makes this group stale, and no
other. Needs neither torch nor pytest.
"""

from __future__ import annotations

import ast
import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from course_kernels.cuda.includes import sources_of
from course_labs.lab import FURTHER, GIVEN, ON_THE_CPU, Lab, find_labs, has_given_kernels
from course_labs.wrong_answers import FOLDER as WRONG
from course_labs.wrong_answers import WrongAnswer, wrong_answers
from course_site.records import manifest
from course_site.records.digest import CUDA_SUFFIXES, digest_of, file_digest
from course_site.records.record import edition_of, is_sealed
from course_site.records.renames import NONE, Renames
from course_site.records.renames import load as load_renames

TESTS = Path("tests/gpu")
KERNELS = Path("src/course_kernels")
PACKAGES = (
    "course_kernels",
    "course_models",
    "course_judge",
    "course_labs",
    "course_profile",
    "course_harness",
    "course_capstone",
)  # the site touches no sample and no answer
# What a test file may write in GROUPS instead of names.
EVERY_PROBLEM, EVERY_LAB = "every problem", "every lab"
SHARING = "every problem that shares memory"
LAB = "lab:"
# What several threads write, in CUDA C++ without its comments.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SHARED = re.compile(r"__shared__|\batomic[A-Z]|\b(?:atom|red)\.|\bmbarrier\b")
# What is derived counts for those that it is about, `measure` among them. What only speaks counts for nobody.
DERIVED, SPEAKING = (
    frozenset(f"{manifest.HARNESS}/{stem}.py" for stem in stems)
    for stems in (manifest.DERIVED, manifest.SPEAKING)
)
# Parts that import what is derived for themselves alone: what they measure or grade does not depend on it.
FOR_THEMSELVES = (f"{manifest.HARNESS}/", "src/course_judge/", "src/course_labs/", "labs/", "tests/")


class GroupsUnknown(ValueError):
    """A test file that does not say which groups its tests belong to; one line, with what to do."""


# How the name of a kernel in a language of the ladder begins: its tests are a group of their own, which needs packages.
RUNG = "in_"


def record_path(root: Path, slug: str, group: str) -> Path:
    """Path of a group's record, under the first name that the group had."""
    name = load_renames(root).oldest_group(group).replace(":", "_")
    return root / "records" / slug / "tests" / f"{name}.json"


def run_again(group: str) -> str:
    """Return the command that renews a group's record, on the card."""
    return f"nox -s tests -- tests/gpu --group {group}"


@dataclass
class Project:
    """A look at the repository: every file is read at most once, whatever the number of groups."""

    root: Path
    renames: Renames = NONE
    _edges: dict[Path, tuple[Path, ...]] = field(default_factory=dict)
    _digests: dict[Path, str] = field(default_factory=dict)
    _coverages: dict[str, dict[str, str]] = field(default_factory=dict)
    _modules: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    _resolved: dict[Path, Path] = field(default_factory=dict)
    _answers: dict[str, list[WrongAnswer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.root.resolve()
        self.renames = load_renames(self.root)

    @functools.cached_property
    def problems(self) -> list[str]:
        """Folders with a problem and at least one kernel."""
        kernels = self.root / KERNELS
        found = {path.parent.name for path in kernels.glob("*/k[0-9][0-9]_*.py")}
        return sorted(name for name in found if (kernels / name / "problem.py").is_file())

    @functools.cached_property
    def sharing(self) -> list[str]:
        """Problems of which a kernel in CUDA C++, or one of a lab, keeps something that several threads write."""
        return [name for name in self.problems if any(shares(*sources_of(f)) for f in self._cuda_of(name))]

    def _cuda_of(self, problem: str) -> Iterator[Path]:
        """Yield the CUDA files of a problem: its kernels, and the stages of its labs."""
        yield from (self.root / KERNELS / problem).glob("k*.cu")
        for lab in self.every_lab.values():
            if lab.problem == problem:
                yield from lab.folder.glob("cuda/stage*.cu")

    @functools.cached_property
    def labs(self) -> dict[str, Lab]:
        """Labs with a door that runs on a card."""
        return {name: lab for name, lab in self.every_lab.items() if set(lab.doors) - set(ON_THE_CPU)}

    @functools.cached_property
    def every_lab(self) -> dict[str, Lab]:
        """The labs, by name."""
        return find_labs(self.root)

    @functools.cached_property
    def test_files(self) -> dict[Path, tuple[str, ...]]:
        """The test files and the groups that their tests belong to.

        Raises:
            GroupsUnknown: a test file without its GROUPS.
        """
        files = sorted((self.root / TESTS).glob("test_*.py"))
        return {file: self._named(declared_groups(file)) for file in files}

    def _named(self, declared: tuple[str, ...]) -> tuple[str, ...]:
        if declared == (EVERY_PROBLEM,):
            return tuple(self.problems)
        if declared == (EVERY_LAB,):
            return tuple(LAB + name for name in self.labs)
        if SHARING in declared:
            return tuple(sorted({*self.sharing, *declared} - {SHARING}))
        return declared

    @functools.cached_property
    def groups(self) -> list[str]:
        """Groups that must have a record, from what lies in the repository now.

        Raises:
            GroupsUnknown: a test file without its GROUPS.
            LabError: a lab is wrong.
        """
        of_files = {group for named in self.test_files.values() for group in named}
        return sorted({*self.problems, *(LAB + name for name in self.labs), *of_files})

    def files_of(self, group: str) -> list[Path]:
        """Return the test files with tests of a group."""
        return [file for file, named in self.test_files.items() if group in named]

    def looks_at_time(self, group: str) -> bool:
        """Return True where one of a group's test files says ALONE = True.

        Nothing else may run on the card meanwhile.
        """
        return any(_assigned(file, "ALONE") is True for file in self.files_of(group))

    def packages_of(self, group: str) -> set[str]:
        """Return the extras of pyproject.toml whose packages a group needs.

        A test file says it, and has no tests where they are not: PACKAGES = "ladder", `__test__ = …`.
        """
        named = {_assigned(file, "PACKAGES") for file in self.files_of(group)}
        return {str(extra) for extra in named if extra}

    def capability_of(self, group: str) -> str:
        """Return the need of a card that a group has, in the words of a page: "capability 10.0"; "" where any will do.

        A test file says it, and has no tests on other cards: CAPABILITY = "10.0", `__test__ = …`.
        """
        named = {_assigned(file, "CAPABILITY") for file in self.files_of(group)} - {None}
        return f"capability {max(map(str, named))}" if named else ""

    def gpus_of(self, group: str) -> int:
        """Return how many GPUs of one host a group uses at once.

        A test file says it, and has no tests where there are fewer: GPUS = 2, `__test__ = …`.
        """
        named = {_assigned(file, "GPUS") for file in self.files_of(group)} - {None}
        return max((int(number) for number in named), default=1)

    def coverage(self, group: str) -> dict[str, str]:
        """Return files that a group's outcome depends on, repository-relative, and the digest of what it means."""
        if group not in self._coverages:  # every edition asks for it
            self._coverages[group] = self._covered(group)
        return self._coverages[group]

    def _covered(self, group: str) -> dict[str, str]:
        own = set(self._own(group))
        # What lies beside the tests is found by any of their imports, and conftest.py is part of each.
        beside = {file for file in (self.root / TESTS).glob("*.py") if file not in self.test_files}
        files = self._closure(group, own | beside | set(self.files_of(group)))
        found = {}
        for file in files:
            name = file.relative_to(self.root).as_posix()
            if file.is_file() and name not in SPEAKING:
                if file not in self._digests:
                    self._digests[file] = file_digest(self.root, name)
                found[name] = self._digests[file]
        for lab, answer in self._wrong_answers(group):
            name = f"{lab.folder.relative_to(self.root).as_posix()}/{WRONG}/{answer.name}"
            found[name] = digest_of(PurePath(name), answer.text.encode(), self.renames)
        return dict(sorted(found.items()))

    def _wrong_answers(self, group: str) -> Iterator[tuple[Lab, WrongAnswer]]:
        """Answers of a group's lab that a card judges, each as the file that it makes."""
        if group.startswith(LAB):
            lab = self.labs[group.removeprefix(LAB)]
            for answer in self._answers_of(lab):
                if lab.door_of(Path(answer.name)) not in ON_THE_CPU:
                    yield lab, answer
        elif several := self._of_suspects(group):
            yield from ((several, answer) for answer in self._answers_of(several) if answer.gpu_only)

    def _answers_of(self, lab: Lab) -> list[WrongAnswer]:
        if lab.name not in self._answers:
            self._answers[lab.name] = wrong_answers(lab)
        return self._answers[lab.name]

    def _own(self, group: str) -> Iterator[Path]:
        """Yield files that a group is about: its folder of course_kernels, or all that the grader reads of a lab."""
        if not group.startswith(LAB):
            # What its tests read besides: the judge's strangers, for one.
            for folder in (self.root / KERNELS / group, self.root / "tests" / group):
                files = _files_in(folder) if folder.is_dir() else ()
                yield from (file for file in files if not file.name.startswith(RUNG))
            if several := self._of_suspects(group):
                yield from (several.folder / name for name in ("lab.toml", "truth.py", "alone.py"))
                yield from _files_in(several.folder / GIVEN)
                (door,) = several.doors
                yield several.solution(door)
            return
        name = group.removeprefix(LAB)
        lab = self.labs[name]
        yield self.root / "src/course_labs/worker/file.py"  # loaded by its name
        yield from (lab.folder / name for name in ("lab.toml", "launch.py", "alone.py", FURTHER))
        yield self.root / KERNELS / lab.problem / "problem.py"
        if lab.beside:
            yield self.root / KERNELS / f"{lab.beside.split('.')[0]}.py"
        doors = [door for door in lab.doors if door not in ON_THE_CPU]
        for door in doors:
            yield from (lab.snapshot(door, stage) for stage in range(len(lab.stages) + 1))
            yield lab.solution(door)
        for _, answer in self._wrong_answers(group):
            if answer.path:
                yield answer.path

    def _of_suspects(self, group: str) -> Lab | None:
        """Return the lab of this name, if it is one of several kernels: its door runs on a card too."""
        lab = self.every_lab.get(group)
        return lab if lab and has_given_kernels(lab) else None

    def _closure(self, group: str, files: set[Path]) -> set[Path]:
        """Return the files and all of the project that they import or include, without what is only derived."""
        found, left = set(files), list(files)
        while left:
            file = left.pop()
            for target in self._needs(file):
                if target in found or not self._counts(group, file, target):
                    continue
                found.add(target)
                left.append(target)
        return found

    def _counts(self, group: str, file: Path, target: Path) -> bool:
        name = target.relative_to(self.root).as_posix()
        importer = file.relative_to(self.root).as_posix()
        if name in DERIVED and importer.startswith(FOR_THEMSELVES):
            return False
        # A file with the tests of several problems: what it imports of one is no matter of the others.
        several = self.test_files.get(file, ())
        problem = target.parent.name if target.parent.parent == self.root / KERNELS else ""
        return not (len(several) > 1 and problem in several and problem != group)

    def _needs(self, file: Path) -> tuple[Path, ...]:
        if file not in self._edges:
            found = dict.fromkeys(self._resolve(path) for path in self._look_into(file))
            self._edges[file] = tuple(f for f in found if f.is_relative_to(self.root) and f != file)
        return self._edges[file]

    def _resolve(self, path: Path) -> Path:
        if path not in self._resolved:
            self._resolved[path] = path.resolve()
        return self._resolved[path]

    def _look_into(self, file: Path) -> Iterator[Path]:
        if file.suffix in CUDA_SUFFIXES:
            try:
                yield from sources_of(file)
            except (OSError, ValueError):
                return  # a wrong answer may include what is not there; the compiler says so on the card
        if file.suffix != ".py" or not file.is_file() or self._is_an_answer(file):
            return
        beside = file.with_suffix(".cu")
        if beside.is_file():
            yield beside
        for kind, name in _names_in(file.read_text(encoding="utf-8")):
            if kind == "file" and (file.parent / name).is_file():
                yield file.parent / name
            elif kind == "module":
                if name not in self._modules:
                    self._modules[name] = tuple(self._module(name))
                yield from self._modules[name]

    def _is_an_answer(self, file: Path) -> bool:
        """Return whether a file is in a student's place.

        Whatever it names of the project it may not have, and the grader says so.
        """
        of_a_lab = (file.parents[1] / "lab.toml").exists()
        return of_a_lab or file.is_relative_to(self.root / "tests" / "judge")

    def _module(self, name: str) -> Iterator[Path]:
        """Yield the files of a module, or of the module that a name of a package comes from.

        The packages above it are among them.
        """
        parts = name.split(".")
        for n in range(1, len(parts) + 1):
            base = self.root.joinpath("src", *parts[:n])
            if (base / "__init__.py").is_file():
                yield base / "__init__.py"
            elif base.with_suffix(".py").is_file():
                yield base.with_suffix(".py")
                return
            else:
                package = base.parent / "__init__.py"
                home = _homes(package.read_text(encoding="utf-8")).get(parts[n - 1]) if n > 1 else None
                if home:
                    yield base.with_name(f"{home}.py")
                return


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, without caches, what is only written about it, and what only a browser runs."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix in (".pyc", ".md", ".wgsl"):
            continue
        if path.is_dir():
            yield from _files_in(path)
        else:
            yield path


def shares(*files: Path) -> bool:
    """Return True if sources in CUDA C++, headers among them, keep something that several threads write."""
    return any(_SHARED.search(_COMMENT.sub("", file.read_text(encoding="utf-8"))) for file in files)


def declared_groups(file: Path) -> tuple[str, ...]:
    """Read GROUPS of a test file without running it.

    Raises:
        GroupsUnknown: it writes none, something that cannot be read so, or is no Python.
    """
    try:
        declared = _assigned(file, "GROUPS")
    except SyntaxError as error:
        raise GroupsUnknown(
            f"{TESTS.as_posix()}/{file.name}: is not Python: line {error.lineno}: {error.msg}"
        ) from None
    if declared and isinstance(declared, tuple) and all(isinstance(name, str) for name in declared):
        return declared
    raise GroupsUnknown(
        f'{TESTS.as_posix()}/{file.name}: does not say whose tests it holds: write GROUPS = ("gemm",) at its top, '
        f'or ("{EVERY_PROBLEM}",), ("{SHARING}",), or ("{EVERY_LAB}",)'
    )


def _assigned(file: Path, name: str) -> Any:
    """Return the constant that a file gives to a name at its top, read without running it; None without one.

    Raises:
        SyntaxError: it is no Python.
    """
    return _constants(file.read_text(encoding="utf-8")).get(name)


@functools.lru_cache(maxsize=256)
def _constants(source: str) -> dict[str, Any]:
    """Return what a file gives to each name at its top, where that can be read without running it."""
    found: dict[str, Any] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id not in found:
                try:
                    found[target.id] = ast.literal_eval(node.value)
                except (ValueError, TypeError):
                    found[target.id] = None
    return found


@functools.lru_cache(maxsize=1024)  # a page that is served is checked again after every edit
def _names_in(source: str) -> tuple[tuple[str, str], ...]:
    """Return names in Python source: modules it imports, or runs by name, and CUDA files as strings."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a wrong answer of a lab
        return ()
    return tuple(dict.fromkeys(_walk(tree)))


# Of these a tree has most, and none of them has a node in it, or is looked at.
_SAYS_NO_NAME = (ast.Name, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.alias)


def _walk(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] in PACKAGES:
                yield "module", alias.name
    elif isinstance(node, ast.ImportFrom) and not node.level:
        if node.module and node.module.split(".")[0] in PACKAGES:
            for alias in node.names:
                yield "module", f"{node.module}.{alias.name}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
        if Path(text).suffix in CUDA_SUFFIXES and "\n" not in text and len(text) < 100:
            yield "file", text
        elif text.split(".")[0] in PACKAGES and all(part.isidentifier() for part in text.split(".")):
            yield "module", text
    elif isinstance(node, ast.List | ast.Tuple):  # the words of a command
        words = [word.value if isinstance(word, ast.Constant) else None for word in node.elts]
        for flag, word in itertools.pairwise(words):
            if flag == "-m" and isinstance(word, str):
                yield "module", f"{word}.__main__"
    elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        for statement in node.orelse:
            yield from _walk(statement)
        return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _SAYS_NO_NAME):
            yield from _walk(child)


@functools.lru_cache(maxsize=64)
def _homes(source: str) -> dict[str, str]:
    """_HOME of a package that loads its names late: the module of each."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME":
            homes: dict[str, str] = ast.literal_eval(node.value)
            return homes
    return {}


# --- what a record says ---------------------------------------------------------------------------------------


MISSING = "is missing"


@dataclass(frozen=True)
class Verdict:
    """Reason not to trust a group's record; empty where there is none.

    Attributes:
        why: one line; "" while the record holds.
        seconds: what its last run took; None where no record says so.
        edition: of what the record is; None without one.
        failed: its tests failed on these very files: no other card's pass stands in for that.
        needs: the card that its tests are for, "capability 10.0"; "" for any. Other cards collect none of them.
        gpus: how many of one host it uses at once; where there are fewer, none of its tests is collected.
    """

    group: str
    why: str
    seconds: float | None = None
    edition: dict[str, str] | None = None
    failed: bool = False
    needs: str = ""
    gpus: int = 1

    @property
    def awaits_its_card(self) -> bool:
        """Return whether it is for a kind of card, and its edition, of another kind, has no record of it."""
        return bool(self.needs) and self.why == MISSING


def verdicts(root: Path | Project, slug: str, *, clean: bool) -> list[Verdict]:
    """Hold the record of every group against the files that are here.

    Args:
        root: the repository, or one look at it, which serves several editions.
        slug: the edition, e.g. nvidia-h200.
        clean: a record must have been made from committed files.
    Raises:
        GroupsUnknown, LabError: see `Project.groups`; both are ValueErrors of one line.
    """
    project = root if isinstance(root, Project) else Project(root)
    return [
        replace(
            _verdict(project, slug, group, clean),
            needs=project.capability_of(group),
            gpus=project.gpus_of(group),
        )
        for group in project.groups
    ]


def _verdict(project: Project, slug: str, group: str, clean: bool) -> Verdict:
    try:
        data = json.loads(record_path(project.root, slug, group).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Verdict(group, MISSING)
    except ValueError:
        return Verdict(group, "is cut short or not JSON")
    if not isinstance(data, dict) or not is_sealed(data):
        return Verdict(group, "was changed by hand (its checksum does not match)")
    try:
        seconds = sum(float(test["seconds"]) for test in data["tests"])
        why, failed = _against(project, data, group, clean)
        return Verdict(group, why, seconds, edition_of(data["provenance"]), failed)
    except (KeyError, TypeError):
        return Verdict(group, "is not a record that this version reads")


def _against(project: Project, data: dict[str, Any], group: str, clean: bool) -> tuple[str, bool]:
    """Return why a record does not hold, and whether tests failed on the files that are here."""
    if project.renames.group(data["group"]) != group:
        return f"is the record of {data['group']}", False
    names = [test["id"] for test in data["tests"] if test["outcome"] != "passed"]
    counted = len(names), len(data["tests"]) - len(names)
    if counted != (data["failed"], data["passed"]):
        said = f"says that {data['failed']} tests failed and {data['passed']} passed"
        return f"{said}, and its list has {counted[0]} and {counted[1]}: restore it with git", False
    reasons = differences(project.renames.in_present_names(data["coverage"]), project.coverage(group))
    if data["failed"] or not data["passed"]:
        first = f" ({names[0]}{', …' * (len(names) > 1)})" if names else ""
        why = f"{data['failed']} GPU tests failed{first}, {data['passed']} passed; mend them"
        return why, bool(names) and not reasons
    if reasons:
        more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
        return f"is stale: {', '.join(reasons[:3])}{more} since the GPU tests ran", False
    if clean and data["provenance"]["dirty"]:
        return "was made from files that differ from their commit; commit those files", False
    return "", False


def differences(then: dict[str, str], now: dict[str, str]) -> list[str]:
    """Differences between two coverages, in a few words for each file."""
    words = []
    for file in sorted({*then, *now}):
        if file not in now:
            words.append(f"{file} is gone")
        elif file not in then:
            words.append(f"{file} is new")
        elif then[file] != now[file]:
            words.append(f"{file} changed")
    return words


def left_over(root: Path, slug: str, known: Iterable[str]) -> list[Path]:
    """Return the records of groups that are there no more."""
    wanted = {record_path(root, slug, group) for group in known}
    return sorted(set((root / "records" / slug / "tests").glob("*.json")) - wanted)
