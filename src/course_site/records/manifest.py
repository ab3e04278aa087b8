"""Dependencies of a record: the project files that ran, and nothing that only speaks or is derived afterwards.

Found when a page ran, from the list of files that it and its children opened; looked at again when its record is
checked, because a file that is new may stand where another one was found.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from course_kernels.cuda.includes import sources_of
from course_site.pages.page import Page
from course_site.records.artifacts import SUFFIX

# What is derived after the samples exist, and so never makes a page stale.
DERIVED_FOLDER = "src/course_site/"
MEASURE = "course_kernels.measure"
HARNESS = "src/course_kernels/measure"
DERIVED = frozenset({"derive", "roofline", "machine", "provenance", "gate"})
SPEAKING = frozenset({"__init__", "messages"})  # names for imports, and the words of refusals
DERIVED_FILES = frozenset(f"{HARNESS}/{stem}.py" for stem in DERIVED | {"__init__"})
# Never sources: build products, caches, environments, records.
NOT_SOURCES = frozenset({"site", "build", "wheelhouse", "records"})
TOLD = frozenset({"harness.jsonl"})  # a record that no page made, and a page tells
TOLD_FOLDER = "records/chips"  # likewise all of these
MACHINE_CODE = frozenset({".so", ".pyd", ".dylib", ".pyc"})
# What pages import and a machine that only builds the site may lack.
LIBRARIES = frozenset({"torch", "triton", "numpy", "cuda", "pynvml", "flashinfer"})


def project_files(files: Iterable[str], root: Path, page: Page | None = None) -> list[str]:
    """Return the sources of this project among ``files`` that make a page stale, repository-relative.

    Left out: what is derived after the samples exist, the page itself (its cells are hashed one by one),
    caches and build products, anything hidden, anything that no longer exists. A derived file is in where the
    cells of the page, or a file that is in and no part of the harness, import it: then it made what was recorded.
    With a CUDA source comes everything it includes.

    Raises:
        ValueError: a CUDA source whose includes cannot be followed.
    """
    found, derived = set(), set()
    for file in files:
        path = Path(os.path.realpath(file))
        if not path.is_relative_to(root) or not path.is_file():
            continue
        relative = path.relative_to(root)
        name = relative.as_posix()
        # A page may begin with what another one made, or tell what was recorded apart; its record then depends on it.
        made = relative.parts[0] == "records" and (
            relative.parent.name.endswith(SUFFIX)
            or path.name in TOLD
            or relative.parent.as_posix() == TOLD_FOLDER
        )
        hidden = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
        if hidden or (relative.parts[0] in NOT_SOURCES and not made) or name.startswith(DERIVED_FOLDER):
            continue
        if path.suffix in MACHINE_CODE or "site-packages" in relative.parts:
            continue
        if page is not None and relative == page.path:
            continue
        if relative.parent.as_posix() == HARNESS and path.stem in DERIVED | SPEAKING:
            derived.add(path.stem)
        else:
            found.add(name)
    for name in sorted(found):
        if name.endswith(".cu"):
            found.update(_includes_of(name, root))
    sources = [cell.source for cell in page.code] if page is not None else []
    sources += [
        (root / name).read_text(encoding="utf-8")
        for name in found
        if name.endswith(".py") and Path(name).parent.as_posix() != HARNESS
    ]
    wanted = list({stem for source in sources for stem in derived_imports(source)})
    while wanted:
        stem = wanted.pop()
        if stem in derived:
            derived.remove(stem)
            name = f"{HARNESS}/{stem}.py"
            found.add(name)
            wanted += derived_imports((root / name).read_text(encoding="utf-8"))
    return sorted(found)


@functools.lru_cache(maxsize=1024)
def derived_imports(source: str) -> frozenset[str]:
    """Return the derived files that a Python source imports, by their stems; by name where it does not parse."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with IPython magic
        return frozenset(stem for stem in DERIVED if re.search(rf"\b{stem}\b", source))
    names: set[str] = set()
    attributes: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
            names.add(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # import_module("…")
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
    if names & {MEASURE, "course_kernels"}:
        names.update(f"{MEASURE}.{name}" for name in attributes)
    short = {
        name.removeprefix(f"{MEASURE}.").split(".")[0] for name in names if name.startswith(f"{MEASURE}.")
    }
    if "*" in short:
        return DERIVED
    return frozenset({_home_of(name) for name in short} & DERIVED)


def _home_of(name: str) -> str:
    """Return the file of a name that `from course_kernels.measure import` hands over."""
    from course_kernels.measure import _HOME

    return _HOME.get(name, name)


def _includes_of(name: str, root: Path) -> list[str]:
    """Return the project files a CUDA source is made of, itself among them.

    Raises:
        ValueError: one does not exist, or is named in a way that cannot be followed; one line.
    """
    try:
        sources = sources_of(root / name)
    except FileNotFoundError as error:
        raise ValueError(str(error).replace(f"{root}{os.sep}", "")) from None
    return [path.relative_to(root).as_posix() for path in sources if path.is_relative_to(root)]


def new_includes(manifest: Iterable[str], root: Path) -> list[str]:
    """Headers that the CUDA sources of a manifest include now and did not when the record was made, a line each."""
    known, reached, reasons = set(manifest), set(), []
    # A header is followed from the source that is compiled; by itself only where no source includes it.
    for name in sorted(known, key=lambda name: (name.endswith(".cuh"), name)):
        if not name.endswith((".cu", ".cuh")) or name in reached or not (root / name).is_file():
            continue
        try:
            now = _includes_of(name, root)
        except ValueError as error:
            reasons.append(f"{name} cannot be followed ({error})")
            continue
        reached.update(now)
        reasons += [f"{name} now includes {file}, which no record knows" for file in now if file not in known]
    return reasons


# --- what no record would see ---------------------------------------------------------------------------------


def strangers(root: Path) -> Iterator[tuple[str, str]]:
    """Yield files that Python would import in the place of something else: the path, and what to do."""
    source = root / "src"
    packages = _packages(root)
    for path in sorted(source.iterdir()) if packages and source.is_dir() else ():
        ours = (
            path.name in packages or path.name.startswith(".") or path.suffix in (".egg-info", ".dist-info")
        )
        if not ours and path.name != "__pycache__":
            name = path.relative_to(root).as_posix()
            yield (
                name,
                f"src/ holds {', '.join(sorted(packages))} alone: {path.stem!r} would shadow a library",
            )
    for folder, folders, files in os.walk(source):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        place = Path(folder).relative_to(root).as_posix()
        for name in sorted(files):
            stem, suffix = os.path.splitext(name)
            if suffix in MACHINE_CODE:
                yield f"{place}/{name}", "is machine code, which no record can tell the meaning of: delete it"
            elif suffix == ".py" and stem in folders and (Path(folder) / stem / "__init__.py").exists():
                yield f"{place}/{name}", f"is never imported beside the package {stem}/: delete one of them"
    for path in sorted(root.iterdir()):
        is_package = path.is_dir() and (path / "__init__.py").exists()
        stem = path.name.split(".")[0]
        if (is_package or path.suffix in (".py", *MACHINE_CODE)) and _is_elsewhere(stem, root):
            yield (
                path.name,
                f"would shadow the library {stem} where a command runs here: give it another name",
            )


def _packages(root: Path) -> frozenset[str]:
    """Return the packages that pyproject.toml says the project is made of."""
    try:
        table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        listed = table["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    except (OSError, KeyError):
        return frozenset()
    return frozenset(Path(name).name for name in listed)


def _is_elsewhere(name: str, root: Path) -> bool:
    """Return True where Python, or what is installed, has a module of that name."""
    if name in sys.stdlib_module_names or name in LIBRARIES:
        return True
    paths = [path for path in sys.path if path and Path(path).resolve() not in (root, root / "src")]
    return PathFinder.find_spec(name, paths) is not None
