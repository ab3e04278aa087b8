"""Subject of a profile: FILE[:function], and where its inputs, its truth and its least bytes come from.

In this order: `profile.toml` beside the file; the lab whose file it is; the folder of the library it lies in; a
function that is named as a problem. Nothing of the file is run here. Needs neither torch nor a GPU.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from course_kernels.cuda.signature import kernels_of
from course_labs.lab import FOLDER, LABS, ON_THE_CPU, Lab, find_labs
from course_profile.errors import Unusable

TABLES = "profile.toml"
ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path("src/course_kernels")

NAMES = {"problem": str, "size": str}
LAUNCH = {"grid": list, "block": list, "outputs": list, "zero": bool, "shared_bytes": (int, str)}
OWN = {
    "reference": str,
    "inputs": list,
    "max_error": float,
    "flops": (int, str),
    "math": str,
    "reads_bytes": (int, str),
    "writes_bytes": (int, str),
}
KEYS: dict[str, Any] = {**NAMES, **LAUNCH, **OWN}


@dataclass(frozen=True)
class Subject:
    """A kernel to profile.

    Attributes:
        file: `.py` or `.cu`.
        function: what is called; in a `.cu` the kernel.
        problem: a problem of the library; empty where the table says all.
        size: a workload as text; empty for the first that the problem times.
        table: its table of profile.toml.
        launcher: the lab's launch.py, for a student's `.cu`.
    """

    file: Path
    function: str
    problem: str
    size: str = ""
    table: Mapping[str, Any] = field(default_factory=dict)
    launcher: str = ""

    @property
    def name(self) -> str:
        """FILE:function, as it was asked for."""
        return f"{self.file.name}:{self.function}"

    @property
    def is_cuda(self) -> bool:
        """True for CUDA C++."""
        return self.file.suffix == ".cu"

    def as_json(self) -> dict[str, Any]:
        """Plain data, for the process that runs it."""
        return asdict(self) | {"file": str(self.file)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Subject:
        """Return the inverse of `as_json`."""
        return cls(**{**data, "file": Path(data["file"])})


def take(text: str, problem: str = "", size: str = "", root: Path = ROOT) -> Subject:
    """Return the kernel behind FILE[:function].

    Args:
        text: what was asked for.
        problem, size: what was said besides; they come first.
    Raises:
        Unusable: no such file or function, or nobody says what it computes.
    """
    file, function = _split(text)
    beside = file.with_suffix(".py")
    if file.suffix == ".cu" and not function and file.is_relative_to(root / LIBRARY) and beside.is_file():
        file = beside  # a kernel of the library is launched by the file of its own name
    names = _defined(file)
    if function and function not in names:
        raise Unusable(f"{file.name} defines no {function}; it has {', '.join(names) or 'none'}")
    lab = _lab(file, root)
    _has_a_kernel(file, lab)
    table = _table(file, function)
    of_lab, launcher, lab_size = _of_lab(file, lab)
    folder = file.parent.name if file.parent.parent == root / LIBRARY else ""
    problems = sorted(path.parent.name for path in (root / LIBRARY).glob("*/problem.py"))
    found = problem or table.get("problem", "") or ("" if "reference" in table else of_lab or folder)
    if not found and "reference" not in table:
        called = [name for name in ([function] if function else names) if name in problems]
        found = called[0] if len(called) == 1 else ""
    if not found and "reference" not in table:
        raise Unusable(
            f"{file.name}: nobody says what it computes; add --problem NAME ({', '.join(problems)}), "
            f"or a table for it in {file.parent / TABLES}"
        )
    if found and found not in problems:
        raise Unusable(f"no problem {found!r}; there are {', '.join(problems)}")
    if not function:
        function = _chosen(file, names, found)
    if file.suffix == ".cu" and not launcher and not {"grid", "block", "outputs"} <= set(table):
        raise Unusable(
            f"{file.name}: nobody says how it is launched; write grid, block and outputs into the table "
            f'["{file.name}"] of {file.parent / TABLES}'
        )
    return Subject(
        file=file,
        function=function,
        problem=found,
        size=size or table.get("size", "") or (lab_size if found == of_lab else ""),
        table=table,
        launcher=launcher if not {"grid", "block"} <= set(table) else "",
    )


def _split(text: str) -> tuple[Path, str]:
    name, colon, function = text.rpartition(":")
    if not colon or not name.endswith((".py", ".cu")):
        name, function = text, ""
    file = Path(name)
    if file.suffix not in (".py", ".cu"):
        raise Unusable(f"{text}: expected FILE[:function], where FILE ends in .py or .cu")
    if not file.is_file():
        raise Unusable(f"there is no file {name}; you are in {Path.cwd()}")
    return file.resolve(), function


def _defined(file: Path) -> list[str]:
    """Return the functions of a file, or the kernels; read and not run."""
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".cu":
            return [
                kernel.name for kernel in kernels_of(text) if kernel.is_extern_c and not kernel.is_template
            ]
        return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    except UnicodeDecodeError as error:
        raise Unusable(f"{file.name}: not UTF-8 text, at byte {error.start}: save it as UTF-8") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" line {line}:" if line else ""
        raise Unusable(f"{file.name}:{where} {getattr(error, 'msg', error)}") from None


def _chosen(file: Path, names: list[str], problem: str) -> str:
    if problem in names:
        return problem
    if file.suffix == ".cu" and len(names) == 1:
        return names[0]
    if not names and file.suffix == ".cu":
        raise Unusable(f'{file.name}: no kernel in it; one begins with extern "C" __global__ void')
    raise Unusable(f"{file.name}: which one? Say {file.name}:NAME; it has {', '.join(names) or 'none'}")


def _table(file: Path, function: str) -> dict[str, Any]:
    """Table for a file in the profile.toml beside it; {} without one."""
    path = file.parent / TABLES
    if not path.is_file():
        return {}
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Unusable(f"{path}: cannot be read: {error}") from None
    table = data.get(f"{file.name}:{function}", data.get(file.name, {}))
    if not isinstance(table, dict):
        raise Unusable(f'{path}: {file.name} is no table; begin it with ["{file.name}"]')
    for key, given in table.items():
        if key not in KEYS:
            raise Unusable(f'{path}: ["{file.name}"] has an unknown key {key}; known: {", ".join(KEYS)}')
        kind = KEYS[key]
        if not isinstance(given, kind) or (isinstance(given, bool) and kind is not bool):
            raise Unusable(f'{path}: ["{file.name}"] {key} is {given!r}, which is not {_kind(kind)}')
    if "reference" in table:
        for key in ("inputs", "outputs", "max_error", "size"):
            if key not in table:
                raise Unusable(f'{path}: ["{file.name}"] has a reference, and so needs {key} too')
    return table


def _kind(kind: Any) -> str:
    names = {str: "a text", list: "a list", bool: "true or false", float: "a number with a point"}
    return names.get(kind, "a whole number or a formula")


def _lab(file: Path, root: Path) -> Lab | None:
    """Return the lab that a file belongs to; None where there is none."""
    if file.parent.name != FOLDER and not file.is_relative_to(root / LABS):
        return None
    for lab in find_labs(root).values():
        names = [lab.student_file(door) for door in lab.doors]
        if file.is_relative_to(lab.folder) or (file.parent.name == FOLDER and file.name in names):
            return lab
    return None


def _of_lab(file: Path, lab: Lab | None) -> tuple[str, str, str]:
    """Return the problem, the launcher and the size that a lab says; empty texts where it says none."""
    if lab is None or not lab.problem:
        return "", "", ""
    launcher = lab.folder / "launch.py"
    return lab.problem, str(launcher) if file.suffix == ".cu" and launcher.is_file() else "", lab.time


def _has_a_kernel(file: Path, lab: Lab | None) -> None:
    """Refuse what runs on the processor alone, before anything of it is run.

    Raises:
        Unusable: a file of a door that never uses a GPU, or one that has NumPy and nothing that could launch.
    """
    door = lab.door_of(file) if lab and file.parent.name in (FOLDER, *lab.doors) else None
    imported = _imported(file) if file.suffix == ".py" else {"cuda"}
    could_launch = imported - set(sys.stdlib_module_names) - {"numpy"}
    if could_launch or not (door in ON_THE_CPU or "numpy" in imported):
        return
    road = "NumPy" if "numpy" in imported else "Python"
    what = "write one in Triton or CUDA C++"
    if lab:
        kernels = [one for one in lab.doors if one not in ON_THE_CPU]
        what = (
            f"begin one with nox -s lab -- {lab.name} --door {kernels[0]}"
            if kernels
            else "this lab asks for none"
        )
    raise Unusable(f"{file.name}: no kernel in it: it runs on the processor, in {road}; {what}")


def _imported(file: Path) -> set[str]:
    """Return the packages that a file names, its own neighbours among them; read and not run."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found
