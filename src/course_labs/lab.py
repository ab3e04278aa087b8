"""A lab, by its `lab.toml`, read and checked. Standard library only, and no kernel is imported.

A lab lies in `labs/<name>/`: `lab.toml`, a folder for every door with the starter and the file after each stage,
`launch.py` for a kernel in CUDA C++, and `truth.py` for a lab without a problem or with a door that needs no GPU. What
is drawn anew for every file stands in `further.py`, or without a problem in a function `drawn` of `truth.py`. Its
last task, which the student does alone, is the table `[alone]`, `alone.py` and a solution in the folder of every door.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

LABS = "labs"  # every lab, beside the README
GIVEN = (
    "given"  # in a lab of several kernels: the slow ones, and profile.toml, which says how they are launched
)
FURTHER = "further.py"  # in a lab with a problem: cases that are drawn anew for every file
FOLDER = "my_labs"  # the student's, beside it; git leaves it alone
# The end of a student's file, by door.
SUFFIXES = {"triton": ".py", "cuda": ".cu", "numpy": ".py", "python": ".py"}
ON_THE_CPU = ("numpy", "python")  # doors that never need a GPU, and never use one
STAGES = range(3, 6)
HINTS = 3
ANYTHING = "…"  # in an expected output

REQUIRED = {"name": str, "title": str, "page": str, "minutes": int, "task": str, "not_yours": str}
OPTIONAL = {
    "problem": str,
    "entry": (str, list),
    "seconds": int,
    "allow": list,
    "refuse": list,
    "try": list,
    "magnify": int,
    "fixed": list,
    "longest": int,
    "at_once": int,
    "row_at_once": bool,
    "held": dict,
    "time": str,
    "beside": str,
    "hints": list,
    "rubric": list,
    "doors": dict,
    "stage": list,
    "alone": dict,
}
# Of [alone]: a key of the lab's own that is left out is as it is for the lab.
ALONE_REQUIRED = {"title": str, "task": str, "entry": str, "prints": dict}
ALONE_OPTIONAL = {"try": list, "time": str, "fixed": list, "magnify": int, "refuse": list, "longest": int}


class LabError(ValueError):
    """Error: a lab is not there, or its files are wrong; one line, with what to do."""


@dataclass(frozen=True)
class Stage:
    """One step of a lab.

    Attributes:
        title, text: what it is about, for every door.
        type: what is typed, by door.
        prints: the first lines the grader prints after it on a machine without a GPU, by door.
        hint: a push towards it, without code; may be empty.
    """

    title: str
    text: str
    type: Mapping[str, str]
    prints: Mapping[str, str]
    hint: str = ""


@dataclass(frozen=True)
class Lab:
    """One lab, as `lab.toml` describes it.

    Attributes:
        folder: where its files lie.
        entry: names of the functions the student's file must define; with a problem there is one.
        seconds: how long one file may be graded.
        tries: workloads to try, as text, from the smallest up.
        magnify: try them all once more with inputs that many times as large; 0 for once is enough.
        fixed: dimensions that the student's file has as a constant; the problem's own sizes with others are left out.
        longest: the longest axis of an array that a student may make (door numpy); 0 for any.
        held_on, held_bytes: a workload, and the most bytes that a right file may hold at once on it beside its
            inputs, of every type (door numpy); empty for any.
        at_once: the most numbers that one step of a student's may read, work out or write (door numpy), and that one
            program may have for its own; 0 for any.
        row_at_once: a step may work on a row of the first input, where that is longer.
        doors: door to what the grader prints for its starter; the first is the default.
        on_gpu: door to what the grader prints on a GPU for the starter and after each stage; empty texts
            where that is what it prints without one.
        answers: door to a sentence beside its answer.
        alone: the last task, as a lab of its own: its entry, its problem in alone.py, its sizes; `doors` say what the
            grader prints while a file lacks it. None for a lab that has none yet.
        is_alone: true for such a last task.
    """

    folder: Path
    name: str
    title: str
    page: str
    problem: str
    entry: tuple[str, ...]
    minutes: int
    seconds: int
    task: str
    not_yours: str
    allow: tuple[str, ...]
    refuse: tuple[str, ...]
    tries: tuple[str, ...]
    magnify: int
    fixed: tuple[str, ...]
    longest: int
    at_once: int
    row_at_once: bool
    time: str
    beside: str
    hints: tuple[str, ...]
    rubric: tuple[str, ...]
    doors: Mapping[str, str]
    on_gpu: Mapping[str, tuple[str, ...]]
    answers: Mapping[str, str]
    stages: tuple[Stage, ...]
    alone: Lab | None = None
    is_alone: bool = False
    held_on: str = ""
    held_bytes: int = 0

    @property
    def program(self) -> str:
        """The function that says, behind the door numpy, what one program does."""
        return f"{self.entry[0]}_program"

    def solution(self, door: str) -> Path:
        """Return the answer with the function of the last task added: a file that no page shows."""
        return self.folder / door / f"alone{SUFFIXES[door]}"

    def snapshot(self, door: str, stage: int) -> Path:
        """Return the file after a stage; stage 0 is the starter, the last is the answer."""
        stem = f"stage{stage}" if stage else "starter"
        return self.folder / door / f"{stem}{SUFFIXES[door]}"

    def student_file(self, door: str) -> str:
        """Return the name of the student's file."""
        same = [other for other in self.doors if SUFFIXES[other] == SUFFIXES[door]]
        return f"{self.name}{'' if door == same[0] else '_' + door}{SUFFIXES[door]}"

    def door_of(self, file: Path) -> str | None:
        """Return the door a student's file belongs to, by its name; None where no door takes such a file."""
        fitting = [door for door in self.doors if SUFFIXES[door] == file.suffix]
        named = [door for door in fitting if file.stem.endswith(f"_{door}") or file.parent.name == door]
        return next(iter(named + fitting), None)

    def prints(self, door: str, stage: int) -> str:
        """First lines that the grader prints for a snapshot, without a GPU."""
        return self.stages[stage - 1].prints[door] if stage else self.doors[door]


def find_labs(root: Path) -> dict[str, Lab]:
    """Return every lab of a repository, by name.

    Raises:
        LabError: one of them is wrong, or lies in a folder of another name.
    """
    labs: dict[str, Lab] = {}
    for path in sorted((root / LABS).glob("*/lab.toml")):
        lab = load_lab(path)
        if lab.name != path.parent.name:
            raise LabError(f"{path}: the lab {lab.name} lies in {LABS}/{lab.name}/")
        labs[lab.name] = lab
    return labs


def find_lab(root: Path, name: str) -> Lab:
    """Return one lab by name.

    Raises:
        LabError: there is none, or one of the labs is wrong.
    """
    labs = find_labs(root)
    if name not in labs:
        like = get_close_matches(name, labs, 1)
        meant = f"; did you mean {like[0]}?" if like else ""
        raise LabError(
            f"no lab {name!r}{meant or ';'} {'There' if meant else 'there'} are {', '.join(sorted(labs)) or 'none'}"
        )
    return labs[name]


def load_lab(path: Path) -> Lab:
    """Read and check one lab.

    Raises:
        LabError: the first thing that is wrong.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    for complaint in _complaints(data, path.parent):
        raise LabError(f"{path}: {complaint}")
    problem, doors = data.get("problem", ""), data["doors"]
    entry = data.get("entry", problem)
    lab = Lab(
        folder=path.parent,
        name=data["name"],
        title=data["title"],
        page=data["page"],
        problem=problem,
        entry=(entry,) if isinstance(entry, str) else tuple(entry),
        minutes=data["minutes"],
        seconds=data.get("seconds", 60),
        task=data["task"].strip(),
        not_yours=data["not_yours"].strip(),
        allow=tuple(data.get("allow", ())),
        refuse=tuple(data.get("refuse", ())),
        tries=tuple(data.get("try", ())),
        magnify=data.get("magnify", 0),
        fixed=tuple(data.get("fixed", ())),
        longest=data.get("longest", 0),
        held_on=data.get("held", {}).get("on", ""),
        held_bytes=data.get("held", {}).get("bytes", 0),
        at_once=data.get("at_once", 0),
        row_at_once=data.get("row_at_once", False),
        time=data.get("time", ""),
        beside=data.get("beside", ""),
        hints=tuple(hint.strip() for hint in data["hints"]),
        rubric=tuple(line.strip() for line in data["rubric"]),
        doors={door: about["prints"].strip() for door, about in doors.items()},
        on_gpu={
            door: tuple(
                about.get("on_gpu", "").strip() for about in (doors[door], *(s[door] for s in data["stage"]))
            )
            for door in doors
        },
        answers={door: about.get("answer", "").strip() for door, about in doors.items()},
        stages=tuple(
            Stage(
                title=stage["title"],
                text=stage.get("text", "").strip(),
                type={door: stage[door]["type"].strip() for door in doors},
                prints={door: stage[door]["prints"].strip() for door in doors},
                hint=stage.get("hint", "").strip(),
            )
            for stage in data["stage"]
        ),
    )
    return replace(lab, alone=_alone(lab, data["alone"])) if "alone" in data else lab


def _alone(lab: Lab, table: dict[str, Any]) -> Lab:
    """Return the last task, as a lab of its own."""
    return replace(
        lab,
        title=table["title"],
        task=table["task"].strip(),
        entry=(table["entry"],),
        tries=tuple(table.get("try", lab.tries)),
        time=table.get("time", lab.time),
        fixed=tuple(table.get("fixed", lab.fixed)),
        magnify=table.get("magnify", lab.magnify),
        refuse=tuple(table.get("refuse", lab.refuse)),
        longest=table.get("longest", lab.longest),
        held_on="",
        held_bytes=0,
        beside="",
        hints=(),
        rubric=(),
        doors={door: table["prints"][door].strip() for door in lab.doors},
        on_gpu=dict.fromkeys(lab.doors, ("",)),
        answers={},
        stages=(),
        is_alone=True,
    )


def has_given_kernels(lab: Lab) -> bool:
    """Return True for a lab of several kernels, each slow for one reason; it is known by the folder that lies in it."""
    return (lab.folder / GIVEN).is_dir()


def given_files(lab: Lab) -> list[Path]:
    """Return the kernels that a student is given, and then how they are launched."""
    files = [file for file in (lab.folder / GIVEN).iterdir() if file.suffix in (".cu", ".py", ".toml")]
    return sorted(files, key=lambda file: (file.suffix == ".toml", file.name))


def load_file(path: Path, name: str) -> ModuleType:
    """Load a file of the lab itself as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same_lines(expected: str, printed: str) -> bool:
    """Return True if the first lines printed are the expected ones; `…` stands for anything within a line."""
    wanted, got = expected.strip().splitlines(), printed.strip().splitlines()
    return len(got) >= len(wanted) and all(map(_fits, wanted, got))


def _fits(pattern: str, line: str) -> bool:
    first, *rest = pattern.strip().split(ANYTHING)
    line = line.strip()
    if not rest:
        return line == first
    if not line.startswith(first) or not line.endswith(rest[-1]):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = line.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(line) - len(rest[-1]) >= at


# --- what can be wrong with a lab.toml -----------------------------------------------------------


def _complaints(data: dict[str, Any], folder: Path) -> Iterator[str]:
    yield from _wrong_keys(data, REQUIRED, OPTIONAL)
    if not data["name"].isidentifier():
        yield f"`name` {data['name']!r} is no identifier, such as first_kernel"
    for key in ("allow", "refuse", "try", "fixed", "hints", "rubric"):
        if not all(isinstance(item, str) and item.strip() for item in data.get(key, [])):
            yield f"`{key}` is not a list of texts"
    if len(data.get("hints", [])) != HINTS:
        yield f"needs {HINTS} hints, has {len(data.get('hints', []))}"
    if not data.get("rubric"):
        yield "needs a `rubric`, at least one line"
    yield from _door_complaints(data, folder)
    yield from _problem_complaints(data, folder)
    yield from _stage_complaints(data, folder)
    if "alone" in data:
        yield from _alone_complaints(data, folder)


def _wrong_keys(
    table: dict[str, Any], required: Mapping[str, Any], optional: Mapping[str, Any]
) -> Iterator[str]:
    for key, kind in required.items():
        if not isinstance(table.get(key), kind):
            yield f"needs `{key}`, {_kind(kind)}"
    for key, value in table.items():
        if key not in required and key not in optional:
            yield f"unknown key `{key}`; known: {', '.join([*required, *optional])}"
        elif key in optional and not isinstance(value, optional[key]):
            yield f"`{key}` is not {_kind(optional[key])}"


def _problem_complaints(data: dict[str, Any], folder: Path) -> Iterator[str]:
    if "problem" in data:
        if not (folder.parents[1] / "src/course_kernels" / data["problem"] / "problem.py").is_file():
            yield f"`problem`: there is no src/course_kernels/{data['problem']}/problem.py"
        if isinstance(data.get("entry", ""), list):
            yield "`entry` of a lab with a problem is one name"
        if not data.get("try"):
            yield 'needs `try`, workloads such as "dtype=float32,N=1" from the smallest up'
        if not data.get("time") and not set(data.get("doors", {})) <= set(ON_THE_CPU):
            yield "needs `time`, the workload that is timed on a GPU"
        yield from _fixed_complaints(data)
        on_the_cpu = [door for door in data.get("doors", {}) if door in ON_THE_CPU]
        if on_the_cpu and not (folder / "truth.py").is_file():
            yield f"a door {on_the_cpu[0]} needs truth.py with TRUTH, the problem in NumPy"
        if "held" in data and [type(data["held"].get(key)) for key in ("on", "bytes")] != [str, int]:
            yield '`held` is { on = "a workload", bytes = a whole number }'
        for key in ("longest", "at_once", "row_at_once", "held"):
            if data.get(key) and "numpy" not in data.get("doors", {}):
                yield f"`{key}` is for a door numpy"
    else:
        if not isinstance(data.get("entry"), list) or not data["entry"]:
            yield "without a `problem` it needs `entry`, the list of functions to write"
        if not (folder / "truth.py").is_file():
            yield "without a `problem` it needs truth.py with cases()"
        if set(data.get("doors", {})) - {"python"}:
            yield "without a `problem` its one door is python"


def _fixed_complaints(data: dict[str, Any]) -> Iterator[str]:
    for name in data.get("fixed", []):
        values = {part for text in data["try"] for part in text.split(",") if part.startswith(f"{name}=")}
        if len(values) != 1:
            yield f"`fixed`: {name} is not one and the same in all of `try`"


def _alone_complaints(data: dict[str, Any], folder: Path) -> Iterator[str]:
    table, doors = data["alone"], data.get("doors", {})
    wrong = False
    for complaint in _wrong_keys(table, ALONE_REQUIRED, ALONE_OPTIONAL):
        wrong = True
        yield f"[alone] {complaint}"
    if wrong:
        return  # what follows reads them
    if not table["entry"].isidentifier():
        yield f"[alone] `entry` {table['entry']!r} is no name of a function"
    entry = data.get("entry", data.get("problem", ""))
    if table["entry"] in (entry if isinstance(entry, list) else [entry]):
        yield f"[alone] `entry`: {table['entry']} is the lab's own; the last task is one more function"
    for key in ("try", "fixed", "refuse"):
        if not all(isinstance(item, str) and item.strip() for item in table.get(key, [])):
            yield f"[alone] `{key}` is not a list of texts"
    if set(table["prints"]) != set(doors) or not all(
        isinstance(said, str) for said in table["prints"].values()
    ):
        yield f"[alone] `prints` needs a text for each of {', '.join(doors)}, and for nothing else"
    if "problem" in data:
        if not table.get("try", ["the lab's"]):
            yield "[alone] `try` is empty"
        for complaint in _fixed_complaints(
            {key: data[key] for key in ("try", "fixed") if key in data} | table
        ):
            yield f"[alone] {complaint}"
        if table.get("longest") and "numpy" not in doors:
            yield "[alone] `longest` is for a door numpy"
    elif set(table) & set(ALONE_OPTIONAL):
        yield f"[alone] {', '.join(sorted(set(table) & set(ALONE_OPTIONAL)))}: only a lab with a problem has them"
    if not (folder / "alone.py").is_file():
        yield f"[alone] needs alone.py with {'PROBLEM' if 'problem' in data else 'cases()'}"
    for door in doors:
        file = folder / door / f"alone{SUFFIXES.get(door, '')}"
        if not file.is_file():
            yield f"[alone] there is no {door}/{file.name}: the answer and the function {table['entry']}"


def _door_complaints(data: dict[str, Any], folder: Path) -> Iterator[str]:
    doors = data.get("doors", {})
    for door in doors:
        if door not in SUFFIXES:
            yield f"unknown door {door!r}; known: {', '.join(SUFFIXES)}"
        if not isinstance(doors[door].get("prints"), str):
            yield f"[doors.{door}] needs `prints`, what the grader says of the starter"
        if set(doors[door]) - {"prints", "on_gpu", "answer"}:
            yield f"[doors.{door}] holds `prints`, `on_gpu` and `answer` only"
    if not set(doors) - {"cuda"}:
        yield "needs a door that works without a GPU: triton, numpy or python"
    if "cuda" in doors and not (folder / "launch.py").is_file():
        yield "a door `cuda` needs launch.py with launch(kernel, ...)"


def _stage_complaints(data: dict[str, Any], folder: Path) -> Iterator[str]:
    doors, stages = data["doors"], data.get("stage", [])
    if len(stages) not in STAGES:
        yield f"needs {STAGES.start} to {STAGES.stop - 1} stages, has {len(stages)}"
    for number, stage in enumerate(stages, start=1):
        if not isinstance(stage.get("title"), str):
            yield f"stage {number} needs a `title`"
        if unknown := sorted(set(stage) - {"title", "text", "hint", *doors}):
            yield f"stage {number}: unknown key {', '.join(unknown)}"
        if not isinstance(stage.get("hint", ""), str) or "```" in stage.get("hint", ""):
            yield f"stage {number}: `hint` is a text without a block of code"
        for door in doors:
            about = stage.get(door, {})
            if not all(isinstance(about.get(key), str) for key in ("type", "prints")):
                yield f"stage {number} needs [stage.{door}] with `type` and `prints`"
            if set(about) - {"type", "prints", "on_gpu"}:
                yield f"[stage.{door}] of stage {number} holds `type`, `prints` and `on_gpu` only"
    for door in doors:
        for number in range(len(stages) + 1):
            file = folder / door / f"{f'stage{number}' if number else 'starter'}{SUFFIXES[door]}"
            if not file.is_file():
                yield f"there is no {door}/{file.name}"


def _kind(kind: Any) -> str:
    names = {str: "a text", int: "a whole number", list: "a list", dict: "a table"}
    return " or ".join(names[one] for one in (kind if isinstance(kind, tuple) else (kind,)))
