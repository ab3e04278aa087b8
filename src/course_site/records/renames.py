"""Renames: `records/renames.toml` says what a file or folder was called before, so that a move makes no record stale.

    "src/course_kernels/gemm/by_address.py" = "src/course_kernels/gemm/launch_cache.py"

A record keeps the paths of its day, and `present` looks them up. A digest is worked out in the oldest names: module
names in imports and strings, paths in strings, includes, and the function that each kernel of a problem exports under
the name of its folder. The map is one to one in every file: an old name that somebody still writes becomes a name that
no file has, and what cannot be told apart keeps its present name. So two sources with different meanings never share
a digest because of a rename; at worst a record is stale that need not be.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import dirname, normpath, relpath

FILE = Path("records/renames.toml")
SOURCE = "src/"
KERNELS = "src/course_kernels"
OF_TABLES = "src/course_judge/"  # its tables have problems for keys
_GONE = "\0gone "  # in front of a name that was renamed away
_UNSORTED = "\0unsorted "  # in front of imports whose order says something
_ELSEWHERE = "\0read in "  # in front of the folder of a file that asks where it lies, and was moved
_TOKEN = re.compile(r"[\w./-]+")
_RELATIVE = re.compile(r"(?:\.\./)*[\w-]+(?:/[\w-]+)*\.\w+")
_MAIN = re.compile(r"__name__\s*==\s*[\"']__main__[\"']")
_ITSELF = re.compile(r"__(?:file|package|spec|path|name)__|#\s*include")
_UPWARDS = re.compile(r"\bparents\b|\bparent\b.*\bparent\b|\.\./|[\"']\.\.[\"']|\bdirname\b", re.DOTALL)


class RenamesWrong(ValueError):
    """A map that does not say for every name which one it is; one line, with what to do."""


class _Names:
    """A map of names in parts, one to one: `present` follows it, `oldest` goes back."""

    def __init__(self, pairs: Iterable[tuple[str, str]], separator: str) -> None:
        self._separator = separator
        self._later = dict(pairs)
        self._earlier = {new: old for old, new in self._later.items()}
        self.present = functools.lru_cache(maxsize=None)(functools.partial(self._follow, self._later))
        self.oldest = functools.lru_cache(maxsize=None)(self._oldest)

    def _follow(self, names: Mapping[str, str], name: str) -> str:
        for _ in range(len(names) + 1):
            parts = name.split(self._separator)
            for n in range(len(parts), 0, -1):
                target = names.get(self._separator.join(parts[:n]))
                if target is not None:
                    name = self._separator.join([target, *parts[n:]])
                    break
            else:
                return name
        raise RenamesWrong(f"{FILE}: {name} is renamed in a circle")

    def first(self, name: str) -> str:
        """Return the oldest name of what a record calls so, in whichever of its names."""
        return self._follow(self._earlier, self.present(name))

    def _oldest(self, name: str) -> str:
        """Return the oldest name of what is called so today.

        A name that was renamed away becomes one that nothing has.
        """
        found = self._follow(self._earlier, name)
        return found if self.present(found) == name else _GONE + name


class Renames:
    """The map of one repository.

    Attributes:
        paths: repository-relative paths of files and folders.
        modules: the same, as the dotted names by which Python imports them.
        problems: of the folders of problems that were renamed, today's name and the oldest.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self.entries = dict(entries)
        self.paths = _Names(entries.items(), "/")
        self.modules = _Names(
            ((_dotted(old), _dotted(new)) for old, new in entries.items() if _is_module(old)), "."
        )
        self.problems = {
            name: oldest
            for new in entries.values()
            if dirname(new) == KERNELS and "." not in new and new not in entries
            for name, oldest in ((Path(new).name, Path(self.paths.first(new)).name),)
            if name != oldest
        }
        # What a source must name to be another one in the oldest names.
        names = {Path(name).stem for pair in entries.items() for name in pair}
        self._named = re.compile("|".join(map(re.escape, sorted(names)))) if names else None

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __reduce__(self) -> tuple[type[Renames], tuple[dict[str, str]]]:
        """Pickle the entries alone: the caches of its names cannot be, and are filled anew."""
        return Renames, (self.entries,)

    def names_any(self, source: str) -> bool:
        """Return True where a text has a word that may be a renamed one."""
        return self._named is not None and self._named.search(source) is not None

    def present(self, path: str) -> str:
        """Return where the file or folder is today that a record calls so."""
        return self.paths.present(path)

    def in_present_names(self, manifest: Mapping[str, str]) -> dict[str, str]:
        """Return files and digests as a record has them, by the paths that the files have today."""
        return {self.present(path): digest for path, digest in manifest.items()}

    def group(self, name: str) -> str:
        """Return the present name of a group of GPU tests, or of a problem."""
        return self.present(f"{KERNELS}/{name}").removeprefix(f"{KERNELS}/")

    def oldest_group(self, name: str) -> str:
        """Return the oldest name of a group of GPU tests: its record lies under it."""
        return self.problems.get(name, name)

    def oldest_problem(self, name: str) -> str:
        """Return the oldest name of the problem of a lab; one that was renamed away becomes a name that nothing has."""
        return self.paths.oldest(f"{KERNELS}/{name}").removeprefix(f"{KERNELS}/")

    def kernel(self, name: str) -> str:
        """Return the present id of a kernel that a record calls so: "gemm/k07_wide", "gemm/library.cublas"."""
        if "/" not in name:
            return name
        stem, dot, function = name.partition(".")
        problem = name.split("/")[0]
        path = self.present(f"{KERNELS}/{stem}.py").removeprefix(f"{KERNELS}/").removesuffix(".py")
        return path + dot + (self.group(function) if function == problem else function)

    def elsewhere(self, path: str, source: str) -> str:
        """Return what tells apart a file that asks where it lies from itself before it was moved.

        It is "" where nothing need.
        """
        here, then = dirname(path), dirname(self.paths.oldest(path))
        if self.paths.oldest(here) != then:
            return _ELSEWHERE + here if _ITSELF.search(_MAIN.sub("", source)) else ""
        while here or then:
            here, then = dirname(here), dirname(then)
            if self.paths.oldest(here) != then:
                return _ELSEWHERE + here if _ITSELF.search(source) and _UPWARDS.search(source) else ""
        return ""

    def relative(self, name: str, path: str) -> str:
        """Return a file's name as a source at ``path`` gives it, in the oldest names of both."""
        folder = dirname(path)
        target = normpath(f"{folder}/{name}" if folder else name)
        oldest = self.paths.oldest(target)
        if oldest == target or normpath(name) != name:
            return name
        if oldest.startswith(_GONE):
            return _GONE + name
        return relpath(oldest, dirname(self.paths.oldest(path)) or ".")

    def words(self, problem: str) -> dict[str, str]:
        """Return what the function of a renamed problem is called, and any string that is that name; one to one."""
        old = self.problems[problem]
        return {problem: old, old: _GONE + old}

    def tokens(self, tokens: Iterable[str], path: str) -> Iterator[str]:
        """Yield the tokens of CUDA C++ in the oldest names.

        These are names that it includes, and those of its problem's function.
        """
        problem = path.removeprefix(f"{KERNELS}/").split("/")[0]
        words = self.words(problem) if problem in self.problems else {}
        before = ""
        for token in tokens:
            if before == "include" and token.startswith('"'):
                yield f'"{self.relative(token[1:-1], path)}"'
            else:
                yield words.get(token, token)
            before = token


NONE = Renames({})


def _is_module(path: str) -> bool:
    return path.startswith(SOURCE) and (path.endswith(".py") or "." not in path.rpartition("/")[2])


def _dotted(path: str) -> str:
    return path.removeprefix(SOURCE).removesuffix(".py").replace("/", ".")


# --- reading ----------------------------------------------------------------------------------------------


def load(root: Path) -> Renames:
    """Return the map of a repository; an empty one where it has none.

    Raises:
        RenamesWrong: see `read`, and a path that should exist and does not, or the other way round.
    """
    try:
        text = (root / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return NONE
    return _checked(root, text)


def _is_there(path: Path) -> bool:
    """Return whether something has this name; a folder that git left behind for what Python compiled is nothing."""
    return path.is_file() or any(
        each.is_file() and each.parent.name != "__pycache__" for each in path.rglob("*")
    )


@functools.lru_cache(maxsize=64)
def _checked(root: Path, text: str) -> Renames:
    renames = read(text)
    for old, new in renames.entries.items():
        twin = old.removesuffix(".py") if old.endswith(".py") else f"{old}.py"  # the same name in an import
        if _is_there(root / old) or (_is_module(old) and _is_there(root / twin)):
            raise RenamesWrong(
                f"{FILE}: {old} is there: a name that was renamed away is given to nothing else"
            )
        now = renames.present(new)
        if not (root / now).exists():
            raise RenamesWrong(f"{FILE}: {old} is said to be {now} today, which is not there")
        for path in (root / now).rglob("*") if (root / now).is_dir() else ():
            name = path.relative_to(root).as_posix()
            if "__pycache__" not in path.parts and renames.paths.oldest(name).startswith(_GONE):
                raise RenamesWrong(f"{FILE}: {name} has the old name of {renames.present(name)}")
    return renames


@functools.lru_cache(maxsize=64)  # the same object for the same text: digests are kept by it
def read(text: str) -> Renames:
    """Return the map that a text writes, without a look at the files.

    Raises:
        RenamesWrong: no TOML of paths; two names that become one; a circle; a file that becomes a folder.
    """
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RenamesWrong(f"{FILE}: is not TOML: {error}") from None
    seen: dict[str, str] = {}
    for old, new in entries.items():
        for path in (old, new):
            if (
                not isinstance(path, str)
                or path != normpath(path)
                or path.startswith(("/", ".."))
                or path == "."
            ):
                raise RenamesWrong(
                    f"{FILE}: {path!r} is not a path from the root of the repository: write {_EXAMPLE}"
                )
            if path.rpartition("/")[2] == "__init__.py":
                raise RenamesWrong(f"{FILE}: {path}: name its folder, which brings it along")
        if Path(old).suffix != Path(new).suffix:
            raise RenamesWrong(f"{FILE}: {old} and {new} are not of one kind")
        if old == new or new in seen:
            other = f"and {seen[new]} are" if new in seen else "is"
            raise RenamesWrong(f"{FILE}: {old} {other} both said to be {new}: a name has one file")
        seen[new] = old
    renames = Renames(entries)
    for old, new in entries.items():
        for names, name in ((renames.paths, old), (renames.modules, _dotted(old))):
            names.present(name)  # raises where it goes round
        if renames.paths.oldest(renames.present(new)).startswith(_GONE):
            raise RenamesWrong(f"{FILE}: {new} is the name of two files, one of them under a renamed folder")
    return renames


_EXAMPLE = '"src/course_kernels/gemm/old.py" = "src/course_kernels/gemm/new.py"'


# --- a Python source in the oldest names --------------------------------------------------------------------


def in_oldest_names(trees: Sequence[ast.Module], renames: Renames, path: str) -> None:
    """Rewrite the syntax trees of the file at ``path`` as they would be had nothing ever been renamed.

    Args:
        trees: one of a file, those of its cells of a page: what one imports the others use.
        renames: the map.
        path: repository-relative.
    """
    _Source(list(trees), renames, path).rewrite()


# Where statements stand one after the other.
_HAS_BODIES = (ast.Module, ast.stmt, ast.ExceptHandler, ast.match_case)
_BODIES = ("body", "orelse", "finalbody")


def _nodes_of(trees: Iterable[ast.AST]) -> list[ast.AST]:
    """Return every node that has a field, as `ast.walk` does, without its queue and generators."""
    found = list(trees)
    for node in found:  # which grows
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST) and one._fields]
            elif isinstance(value, ast.AST) and value._fields:
                found.append(value)
    return found


@dataclass
class _Source:
    trees: list[ast.Module]
    renames: Renames
    path: str
    words: dict[str, str] = field(default_factory=dict)  # identifiers and strings, everywhere
    strings: dict[str, str] = field(default_factory=dict)  # strings alone
    locals: dict[str, str] = field(default_factory=dict)  # variables, bound by imports alone

    def __post_init__(self) -> None:
        self.nodes = _nodes_of(self.trees)

    def rewrite(self) -> None:
        self._exported_functions()
        self._local_names()
        for node in self.nodes:
            for name in _BODIES if isinstance(node, _HAS_BODIES) else ():
                value = getattr(node, name, None)
                if value and isinstance(value, list):
                    setattr(node, name, list(self._statements(value)))
        for node in _nodes_of(self.trees):
            self._identifiers(node)

    def _exported_functions(self) -> None:
        imported = {module for node in self.nodes for module in _imported(node)}
        for new in self.renames.problems:
            package = f"course_kernels.{new}"
            if self.path.startswith(OF_TABLES):
                self.strings |= self.renames.words(new)
            if self.path.startswith(f"{KERNELS}/{new}/") or any(
                name == package or name.startswith(f"{package}.") for name in imported
            ):
                self.words |= self.renames.words(new)

    def _local_names(self) -> None:
        """Note which variables are called as a renamed module is, since the import of it binds them."""
        by_import: dict[str, set[tuple[str, bool]]] = {}
        for statement in (node for node in self.nodes if isinstance(node, ast.ImportFrom)):
            for alias in statement.names:
                bound = alias.asname or alias.name
                full = f"{statement.module}.{alias.name}"
                by_import.setdefault(bound, set()).add((full, alias.asname is None and not statement.level))
        wanted: dict[str, str] = {}
        for bound, what in by_import.items():
            (full, plain), *more = what
            oldest = self.renames.modules.oldest(full).rpartition(".")[2]
            if plain and not more and oldest != bound and bound not in self.words:
                wanted[bound] = oldest
        if not wanted:
            return
        used: set[str] = set()
        otherwise: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                otherwise.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
            elif not isinstance(node, ast.ImportFrom):
                otherwise.update(_bound_by(node))
            if isinstance(node, ast.Name):
                used.add(node.id)
        wanted = {bound: oldest for bound, oldest in wanted.items() if bound not in otherwise}
        taken = (used | otherwise | set(by_import)) - set(wanted)
        counts = list(wanted.values())
        self.locals = {new: old for new, old in wanted.items() if old not in taken and counts.count(old) == 1}

    # --- imports -----------------------------------------------------------------------------------

    def _statements(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        block: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                block.append(statement)
                continue
            yield from self._block(block)
            block = []
            yield statement
        yield from self._block(block)

    def _block(self, block: list[ast.stmt]) -> Iterator[ast.stmt]:
        """Yield a block of imports: where they are sorted, their order is that of the oldest names."""
        ours = [n for n, statement in enumerate(block) if _is_ours(statement)]
        before = [_Import.of(statement, alias) for n in ours for statement, alias in _aliases(block[n])]
        after = [self._in_oldest_names(one) for one in before]
        if after == before:
            yield from block
            return
        stand = [_said(block[n]) for n in ours]
        together = ours == list(range(ours[0], ours[0] + len(ours)))
        if together and stand == [_said(statement) for statement in _grouped(before)]:
            yield from (*block[: ours[0]], *_grouped(after), *block[ours[-1] + 1 :])
            return
        written = iter(after)
        for statement in block:
            if not _is_ours(statement):
                yield statement
                continue
            for _ in _aliases(statement):
                one = next(written)
                yield _Import(_UNSORTED + one.module, one.name, one.asname).statement()

    def _in_oldest_names(self, one: _Import) -> _Import:
        full = f"{one.module}.{one.name}"
        oldest = self.renames.modules.oldest(full)
        if oldest.startswith(_GONE):
            return _Import(_GONE + one.module, one.name, one.asname)
        module, _, name = oldest.rpartition(".")
        asname = self.words.get(one.asname, one.asname) if one.asname else None
        if name == one.name:  # no module, or one that only lies elsewhere
            return _Import(module, self.words.get(name, name), asname)
        bound = self.locals | self.words  # what else is called so in this file has the old name, too
        return _Import(module, name, one.name if asname is None and one.name not in bound else asname)

    # --- all else ----------------------------------------------------------------------------------

    def _identifiers(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                alias.name = self.renames.modules.oldest(alias.name)
                alias.asname = self.words.get(alias.asname, alias.asname) if alias.asname else None
            return
        if isinstance(node, ast.ImportFrom):
            for alias in node.names if not _is_ours(node) else ():
                alias.name = self.words.get(alias.name, alias.name)
                alias.asname = self.words.get(alias.asname, alias.asname) if alias.asname else None
            return
        if isinstance(node, ast.alias):
            return
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                node.value = self._text(node.value)
            return
        for name, value in ast.iter_fields(node) if self.words else ():
            if isinstance(value, str) and value in self.words:
                setattr(node, name, self.words[value])
            elif isinstance(value, list) and value and isinstance(value[0], str):
                setattr(node, name, [self.words.get(item, item) for item in value])
        if isinstance(node, ast.Name):
            node.id = self.locals.get(node.id, node.id)

    def _text(self, text: str) -> str:
        if text in self.words or text in self.strings:
            return self.words.get(text) or self.strings[text]
        if _RELATIVE.fullmatch(text):
            found = self.renames.relative(text, self.path)
            if found != text:
                return found
        return _TOKEN.sub(lambda match: self._token(match[0]), text)

    def _token(self, token: str) -> str:
        bare = token.rstrip(".")
        end = token[len(bare) :]
        if "/" in bare:
            return self._path(bare) + end
        return (self.renames.modules.oldest(bare) if "." in bare else bare) + end

    def _path(self, name: str) -> str:
        """Return a path from the root, from src/ or from the problems; or a kernel by its id, "gemm/k07_wide"."""
        stem, dot, function = name.partition(".")
        for before, path, behind in (
            ("", name, ""),
            (SOURCE, name, ""),
            (f"{KERNELS}/", name, ""),
            (f"{KERNELS}/", f"{stem}.py", ".py"),
        ):
            found = self.renames.paths.oldest(before + path)
            if found != before + path:
                found = found.replace(before, "", 1)
                return found.removesuffix(behind) + dot + function if behind else found
        return name


@dataclass(frozen=True)
class _Import:
    """One name that `from module import name as asname` binds."""

    module: str
    name: str
    asname: str | None

    @classmethod
    def of(cls, statement: ast.ImportFrom, alias: ast.alias) -> _Import:
        return cls(statement.module or "", alias.name, alias.asname)

    def statement(self) -> ast.ImportFrom:
        return ast.ImportFrom(self.module, [ast.alias(self.name, self.asname)], 0)


def _is_ours(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and not statement.level and _of_the_course(statement.module)


def _of_the_course(module: str | None) -> bool:
    return module is not None and module.startswith("course_")


def _aliases(statement: ast.stmt) -> Iterator[tuple[ast.ImportFrom, ast.alias]]:
    if isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            yield statement, alias


def _said(statement: ast.stmt) -> str:
    return ast.dump(statement)


def _grouped(imports: list[_Import]) -> list[ast.ImportFrom]:
    """Return imports as ruff writes them: one statement for each module, one for each `as`, all in their order."""
    modules: dict[str, list[_Import]] = {}
    for one in imports:
        modules.setdefault(one.module if one.asname is None else f"{one.module} {one}", []).append(one)
    made = []
    for members in modules.values():
        members.sort(key=_of_member)
        made.append((_natural(members[0].module), _of_member(members[0]), members))
    return [
        ast.ImportFrom(members[0].module, [ast.alias(one.name, one.asname) for one in members], 0)
        for _, _, members in sorted(made, key=lambda group: group[:2])
    ]


def _of_member(one: _Import) -> tuple[object, ...]:
    kind = 0 if len(one.name) > 1 and one.name.isupper() else 1 if one.name[:1].isupper() else 2
    return kind, _natural(one.name), one.asname is not None, _natural(one.asname or "")


def _natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return a key that sorts as people do: k2 before k10."""
    parts = re.findall(r"\d+|\D", name.lower())
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts], name


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a node imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the variables that a node binds, an import aside."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif not isinstance(node, ast.alias | ast.Attribute | ast.keyword | ast.Constant):
        for _, value in ast.iter_fields(node):
            if isinstance(value, str):  # a function, a class, an exception, what a pattern catches
                yield value
