"""Files that Classroom 50 takes for our labs: a template repository and an autograder for each.

Its form is that of its pages *Assignment Templates* and *Advanced Autograding* and of its schemas `assignments-v1` and
`result-v1`, read on 2026-11-30 at https://github.com/foundation50/classroom50. Nothing here asks a network.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_classroom.kept import put
from course_classroom.roster import ClassError
from course_classroom.rules import NAME as RULES_NAME
from course_classroom.rules import RULES
from course_labs.diagnosis import RECORD, recorded, table
from course_labs.lab import GIVEN, LABS, SUFFIXES, Lab, given_files, has_given_kernels, load_file
from course_labs.wrong_answers import FOLDER as WRONG_FOLDER
from course_labs.wrong_answers import TABLE as WRONG_TABLE

PYTHON = "3.12"
LABELS = ("self-hosted", "gpu")
HERE = Path(__file__).resolve().parent
PACKAGES = ("course_classroom", "course_labs", "course_judge")  # taken whole: they are the grader
MODULES = ("course_kernels.measure", "course_kernels.cuda")  # of the kernels: what the judge stands on
LEFT_OUT = "Left out: grading does not need it.\n"
# What a door needs: the module that tells whether it is there, and what pip calls it. As in noxfile.py.
NUMPY = {"numpy": "numpy==2.4.6"}
TORCH = {**NUMPY, "torch": "torch==2.13.0", "triton": "triton==3.7.1"}
NEEDS = {
    "python": NUMPY,
    "numpy": NUMPY,
    "triton": TORCH,
    "cuda": {**TORCH, "cuda.core": "cuda-core[cu13]>=1.0,<2"},
}
# Without a card: PyTorch's wheels for the CPU are small, the others bring CUDA along.
WITHOUT_A_CARD = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
_SHORT = re.compile(r"[a-z0-9][a-z0-9-]{1,38}")


@dataclass(frozen=True)
class Plan:
    """Organisation and classroom that the labs go to.

    Attributes:
        org, classroom: as Classroom 50 names them.
        gpu: grading runs on a runner of one's own, with a card.
    """

    org: str
    classroom: str
    gpu: bool


def slug_of(lab: Lab) -> str:
    """Return the assignment's short name."""
    return lab.name.replace("_", "-")


def write(labs: Sequence[Lab], door: str, plan: Plan, to: Path, root: Path) -> list[str]:
    """Write templates, autograders, assignments and the words on what to do with them.

    Args:
        door: of the starter; each lab's first if empty.
    Returns:
        Lines for the teacher.
    Raises:
        ClassError: no such door, or a name that Classroom 50 does not take.
    """
    if not _SHORT.fullmatch(plan.classroom):
        raise ClassError(f"--classroom {plan.classroom!r}: small letters, digits and -, 2 to 39 of them")
    for lab in labs:
        if door and door not in lab.doors:
            raise ClassError(f"{lab.name} has no door {door!r}; it has {', '.join(lab.doors)}")
    if to.exists() and not (to / "assignments.json").exists() and any(to.iterdir()):
        raise ClassError(f"{to}: is there, and holds something else: name another folder with --to")
    entries = []
    for lab in labs:
        _write_anew(to / "templates" / slug_of(lab), _template(lab, door or next(iter(lab.doors)), root))
        _write_anew(to / plan.classroom / "autograders" / slug_of(lab), _bundle(lab, plan, root))
        entries.append(_entry(lab, plan))
    put(to / "assignments.json", _json({"schema": "classroom50/assignments/v1", "assignments": entries}))
    put(to / "runtime.json", _json(_runtime(plan)))
    put(to / "README.md", _words(labs, plan))
    names = ", ".join(slug_of(lab) for lab in labs)
    return [f"wrote {to}: templates and autograders of {names}", f"what to do with them: {to / 'README.md'}"]


def _write_anew(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a folder whose former text is ours as well; what a person put under .git stays."""
    for old in folder.iterdir() if folder.is_dir() else ():
        if old.name != ".git":
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    for name, data in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


# --- the template repository -----------------------------------------------------------------------

_WORKFLOW = """\
# Says within seconds whether {file} can be read at all. The grade comes from the autograder.
name: It can be read
on:
  push:
    paths: ["{file}"]
permissions:
  contents: read
jobs:
  read:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - run: {check}
"""
_CHECKS = {
    ".py": "python3 -m py_compile {file}",
    ".cu": "grep -q 'extern \"C\"' {file}",
}


def _template(lab: Lab, door: str, root: Path) -> Iterator[tuple[str, bytes]]:
    file = lab.student_file(door)
    yield file, lab.snapshot(door, 0).read_bytes()
    yield "README.md", _readme(lab, door).encode()
    yield RULES_NAME, RULES.read_bytes()
    if has_given_kernels(lab):
        truth = load_file(lab.folder / "truth.py", "lab_truth")
        counted = table(truth.SUSPECTS, truth.COUNTERS, recorded(root, truth.SUSPECTS))
        yield f"{lab.name}_counters.txt", counted.encode()
        for path in given_files(lab):
            yield f"{GIVEN}/{path.name}", path.read_bytes()
    yield ".gitignore", b"__pycache__/\nresult.json\nrelease-body.md\n"
    check = _CHECKS[SUFFIXES[door]].format(file=file)
    yield ".github/workflows/read.yaml", _WORKFLOW.format(file=file, check=check).encode()


def _readme(lab: Lab, door: str) -> str:
    stages = [f"{number}. {stage.title}" for number, stage in enumerate(lab.stages, start=1)]
    parts = [
        f"# {lab.title}",
        lab.task,
        f"You type into `{lab.student_file(door)}`, and into no other file. About {lab.minutes} minutes.",
        "## What you may use",
        lab.not_yours,
        "## Stages",
        "Each is a point. The page of this lab takes you through them: "
        f"`{lab.page}` of the course, *Percent of Peak*.\n\n" + "\n".join(stages),
    ]
    if lab.alone is not None:
        parts += [
            f"## The last task, which you do alone: {lab.alone.title}",
            "One more point.",
            lab.alone.task,
        ]
    parts += [
        "## Check it",
        "In the course's own folder, as often as you like, before you hand in:\n\n"
        f"```bash\nnox -s grade -- {lab.name} PATH/TO/{lab.student_file(door)}\n```",
        "Hand in by a push, or with `gh student submit`. The grader's words come with the release of that submission.",
        f"An AI helper finds its rules in `{RULES_NAME}`: it asks and hints, and does not write the kernel.",
    ]
    return "\n\n".join(parts) + "\n"


# --- the autograder --------------------------------------------------------------------------------


def _bundle(lab: Lab, plan: Plan, root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an autograder: the grader, this lab without its answers, and what both stand on."""
    yield "autograder.py", (HERE / "autograder.py").read_bytes()
    settings = {
        "lab": lab.name,
        "gpu": plan.gpu and bool(lab.problem or has_given_kernels(lab)),
        "files": {
            lab.student_file(door): {
                "door": door,
                "starter": hashlib.sha256(lab.snapshot(door, 0).read_bytes()).hexdigest(),
            }
            for door in lab.doors
        },
        "needs": {door: TORCH if has_given_kernels(lab) else NEEDS[door] for door in lab.doors},
        "pip": [] if plan.gpu else list(WITHOUT_A_CARD),
    }
    yield "settings.json", _json(settings).encode()
    taken = set()
    for path in _of_the_lab(lab):
        name = path.relative_to(lab.folder)
        taken.add(path)
        yield f"course/{LABS}/{lab.name}/{name.as_posix()}", path.read_bytes()
    for door in lab.doors:
        for path in [lab.snapshot(door, stage) for stage in range(len(lab.stages) + 1)] + [
            lab.solution(door)
        ]:
            if path.is_file():
                yield f"course/{LABS}/{lab.name}/{door}/{path.name}", LEFT_OUT.encode()
    if has_given_kernels(lab):
        for path in sorted((root / "records").glob(f"*/{RECORD}")):
            yield f"course/{path.relative_to(root).as_posix()}", path.read_bytes()
    for path in sorted(_sources(lab, root, [path for path in taken if path.suffix == ".py"], plan.gpu)):
        yield f"course/{path.relative_to(root).as_posix()}", path.read_bytes()


def _of_the_lab(lab: Lab) -> Iterator[Path]:
    for path in sorted(lab.folder.rglob("*")):
        first = path.relative_to(lab.folder).parts[0]
        if (
            path.is_file()
            and first not in (*SUFFIXES, WRONG_FOLDER, WRONG_TABLE)
            and "__pycache__" not in path.parts
        ):
            yield path


def _sources(lab: Lab, root: Path, own: Sequence[Path], gpu: bool) -> set[Path]:
    """Return the files under `src/` that grading this lab may load, found by what imports what."""
    source = root / "src"
    left = list(own)
    for package in PACKAGES:
        left += (source / package).rglob("*.py")
    for module in MODULES:
        left += [
            path for path in (source / module.replace(".", "/")).rglob("*") if path.suffix in (".py", ".cuh")
        ]
    wanted = [f"course_kernels.{lab.problem}.problem"] if lab.problem else []
    if has_given_kernels(lab):
        wanted += ["course_profile"] + [
            f"course_kernels.{path.parent.name}.problem"
            for path in (source / "course_kernels").glob("*/problem.py")
        ]
    if gpu and lab.beside:
        wanted.append(f"course_kernels.{lab.beside.replace('/', '.')}")
    for name in wanted:
        left += _files_of(name, source)
    found: set[Path] = set()
    while left:
        path = left.pop()
        if path in found or "__pycache__" in path.parts:
            continue
        found.add(path)
        if path.suffix == ".py":
            for name in _imported(path):
                left += [one for one in _files_of(name, source) if one not in found]
            beside = path.with_suffix(".cu")
            left += [beside] if beside.is_file() else []
    return {path for path in found if path.is_relative_to(source)}


@functools.cache
def _imported(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return tuple(found)


def _files_of(module: str, source: Path) -> list[Path]:
    """Return the file of a module of ours, with those of the packages above it."""
    parts = module.split(".")
    if not parts[0].startswith("course_"):
        return []
    inits = [source.joinpath(*parts[:n], "__init__.py") for n in range(1, len(parts) + 1)]
    files = [*inits, source.joinpath(*parts).with_suffix(".py")]
    if parts == ["course_profile"]:
        files += (source / "course_profile").rglob("*.py")
    return [path for path in files if path.is_file()]


# --- what is registered, and the words -------------------------------------------------------------


def _entry(lab: Lab, plan: Plan) -> dict[str, Any]:
    names = [lab.student_file(door) for door in lab.doors]
    return {
        "slug": slug_of(lab),
        "name": lab.title,
        "description": f"{lab.minutes} minutes; {lab.page}",
        "template": {"owner": plan.org, "repo": slug_of(lab), "branch": "main"},
        "mode": "individual",
        "autograder": "default",
        "runtime": _runtime(plan),
        "allowed_files": ["*", *(f"!{name}" for name in names)],
    }


def _runtime(plan: Plan) -> dict[str, Any]:
    return {"runs-on": list(LABELS)} if plan.gpu else {"runs-on": "ubuntu-latest", "python": PYTHON}


def _words(labs: Sequence[Lab], plan: Plan) -> str:
    slugs = [slug_of(lab) for lab in labs]
    adds = "\n".join(
        f"gh teacher assignment add {plan.org} {plan.classroom} {slug_of(lab)} --name {json.dumps(lab.title)} \\\n"
        f"    --template {plan.org}/{slug_of(lab)} --runtime runtime.json \\\n    --allowed-files '*' "
        + " ".join(f"--allowed-files '!{lab.student_file(door)}'" for door in lab.doors)
        for lab in labs
    )
    where = (
        f"on a runner of your own with the labels {' and '.join(LABELS)}. It needs Python {PYTHON} with "
        "PyTorch, Triton, NumPy and cuda-core, and one job at a time: two programs on one card have no times"
        if plan.gpu
        else "on GitHub's own runner, without a card: right or wrong, and no time"
    )
    return f"""# Labs for Classroom 50

Written for the organisation {plan.org} and the classroom {plan.classroom}. Grading runs {where}.
In `templates/` lies a repository for each lab, in `{plan.classroom}/autograders/` what grades it, without answers.

1. Make each template a repository of your organisation, and mark it as a template in its settings:

   ```bash
   for lab in {" ".join(slugs)}; do
     (cd templates/$lab && git init -b main && git add . && git commit -m "Starter" &&
       gh repo create {plan.org}/$lab --private --source . --push)
   done
   ```

2. Register the labs. `assignments.json` here says the same in the form of the file in your repository `classroom50`:

   ```bash
{_indented(adds, 3)}
   ```

3. Copy `{plan.classroom}/autograders/` into your repository `{plan.org}/classroom50`, beside that classroom's
   `assignments.json`, commit, and push. Its Pages site publishes them; the next submission is graded by them.

4. Hand one in yourself before you send out the link.

A changed grader: run `nox -s classroom` again, do step 3 again, and let Classroom 50 grade anew. To keep marks on your
own machine, with late days and marks by hand: download the repositories into a folder, and
`nox -s grade -- --all FOLDER --roster students.csv`, which takes the roster of the classroom as it is.
"""


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())
