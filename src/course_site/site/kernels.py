"""The kernels of the library as the records know them: found by where they lie, and by who timed them; never by a list.

A kernel is a file `src/course_kernels/<problem>/kNN_idea.py`, or a function of the `library.py` beside it. Of every
kernel that a page's record of this edition has timed one run is shown, and of a kernel that was timed under several
roofs, one for each: its largest workload, which is the one whose floor takes longest; of several as large, the best.
A library stands there as our rival: only its runs count that were timed in turns with a kernel of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_kernels.measure import roofline
from course_kernels.measure.derive import derive
from course_kernels.measure.machine import Machine
from course_kernels.measure.record_types import Measurement
from course_site.pages.headings import section_at
from course_site.pages.page import Page
from course_site.records.record import MIME
from course_site.site.course import Course
from course_site.values.values import walk_leaves

FOLDER = "src/course_kernels"
KERNELS = "k[0-9][0-9]_*.py"

# How a kernel is written, in the order in which a ladder comes to it.
CUDA, TRITON, GLUON, LIBRARY = "CUDA C++", "Triton", "Gluon", "library"
KINDS = (CUDA, TRITON, GLUON, LIBRARY)

_ID = re.compile(r"(?P<problem>\w+)/(?P<name>k\d\d_\w+|library\.\w+)")
_SHOWN = re.compile(r"^///\s+(?:source\s*\|\s*|diff\s*\|[^|\n]*\|\s*)(?P<path>[^\s|#]+)", re.MULTILINE)
_GLUON = re.compile(r"^\s*(?:from|import) triton\.experimental\b", re.MULTILINE)
_TRITON = re.compile(r"^\s*(?:from|import) triton\b", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """A kernel under one roof, in the run that stands for it.

    Attributes:
        problem: the folder it lies in.
        kernel: what follows in its id: "k03_shared_tiles" or "library.cublas".
        kind: one of `KINDS`.
        page, name: whose record has it, and its name there.
        roof: what limits it: "HBM", or the arithmetic whose peak it counts against.
        counted_bytes: what the counters of the card saw of the same work, None where nobody counted.
        taught: page#anchor of the section that shows its file, or else of the one that timed it.
    """

    problem: str
    kernel: str
    kind: str
    page: Page
    name: str
    leaf: Measurement
    machine: Machine
    roof: str
    counted_bytes: float | None
    taught: str

    @property
    def value(self) -> str:
        """Its name in an expression on any page: `{{ l5.ladder.tuned.of_peak }}`."""
        return f"{self.page.id}.{self.name}"

    @property
    def of_peak(self) -> float:
        """Share of its roof, from 0 to 1."""
        return float(derive(self.leaf, "of_peak", None, self.machine))

    @property
    def intensity(self) -> float:
        """Operations for each byte of the least traffic; 0 for what only moves bytes."""
        return float(derive(self.leaf, "intensity"))

    @property
    def counted_intensity(self) -> float | None:
        """Operations for each byte that the counters saw."""
        return self.leaf.flops / self.counted_bytes if self.counted_bytes and self.leaf.flops else None

    @property
    def is_ours(self) -> bool:
        """False for a function of `library.py`."""
        return not self.kernel.startswith("library.")

    @property
    def words(self) -> str:
        """Its name for people: "shared tiles", "cublas"."""
        return words_of(self.kernel)


def words_of(kernel: str) -> str:
    """Return the name of a kernel for people.

    >>> words_of("k03_shared_tiles"), words_of("library.sdpa_math")
    ('shared tiles', 'sdpa math')
    """
    return re.sub(r"^k\d\d_|^library\.", "", kernel).replace("_", " ")


def files(root: Path) -> list[str]:
    """Return the ids of all kernels of the library, "sgemm/k01_naive" and so on, in their order."""
    return sorted(f"{path.parent.name}/{path.stem}" for path in (root / FOLDER).glob(f"*/{KERNELS}"))


def kind_of(root: Path, problem: str, kernel: str) -> str:
    """Language of a kernel; what is neither CUDA C++ nor Triton calls a library, whoever wrote the call."""
    path = root / FOLDER / problem / f"{kernel}.py"
    if kernel.startswith("library.") or not path.is_file():
        return LIBRARY
    if path.with_suffix(".cu").is_file():
        return CUDA
    text = path.read_text(encoding="utf-8")
    return GLUON if _GLUON.search(text) else TRITON if _TRITON.search(text) else LIBRARY


def runs(course: Course) -> list[Run]:
    """Choose a run for every timed kernel and roof, by problem and by share of the roof, the best first."""
    leaves = list(_recorded(course))
    counted = {
        _work(data): data["read_bytes"] + data["write_bytes"]
        for _, _, data in leaves
        if data["kind"] == "counted"
    }
    races = {data["group"] for _, _, data in leaves if data["kind"] == "measurement" and _is_ours(data)}
    chosen: dict[tuple[str, str, str], tuple[tuple[float, float], Page, str, Measurement, Machine]] = {}
    for page, name, data in leaves:
        if data["kind"] != "measurement" or data["group"] not in races:
            continue
        machine, leaf = course.machine(page), Measurement.from_json(data)
        share = derive(leaf, "of_peak", None, machine)
        if machine is None or share is None:
            continue
        problem, kernel = leaf.kernel.split("/")
        key = problem, kernel, "HBM" if roofline.bound(leaf, machine) == "memory" else leaf.math
        rank = roofline.floor_us(leaf, machine), share
        if key not in chosen or rank > chosen[key][0]:
            chosen[key] = rank, page, name, leaf, machine
    listings, made = _listings(course), []
    for (problem, kernel, roof), (_, page, name, leaf, machine) in chosen.items():
        kind, traffic = kind_of(course.root, problem, kernel), counted.get(_work(leaf.as_json()))
        taught = listings.get(f"{problem}/{kernel}") or _timed_in(course, page, name)
        made.append(Run(problem, kernel, kind, page, name, leaf, machine, roof, traffic, taught))
    return sorted(made, key=lambda run: (run.problem, -run.of_peak, run.kernel))


def untimed(course: Course) -> list[str]:
    """Return the kernels of the library that no run of this edition stands for."""
    timed = {f"{run.problem}/{run.kernel}" for run in runs(course)}
    return [kernel for kernel in files(course.root) if kernel not in timed]


def _recorded(course: Course) -> Iterator[tuple[Page, str, dict[str, Any]]]:
    """Yield timings and counts of kernels of the library on pages whose records hold."""
    for page in course.pages:
        record = course.records.get(page.id)
        if record is not None and record.measured and course.has_numbers(page.id):
            for name, data in walk_leaves(record.names):
                if data["kind"] in ("measurement", "counted") and _lies_there(course.root, data["kernel"]):
                    yield page, name, data


def _lies_there(root: Path, kernel: str) -> bool:
    found = _ID.fullmatch(kernel)
    if found is None:
        return False
    file = "library" if found["name"].startswith("library.") else found["name"]
    return (root / FOLDER / found["problem"] / f"{file}.py").is_file()


def _is_ours(data: Mapping[str, Any]) -> bool:
    return "/library." not in data["kernel"]


def _work(data: Mapping[str, Any]) -> str:
    """Key of what was computed and by whom, so that a count finds the timing of the same."""
    return json.dumps([data["kernel"], data["workload"]], sort_keys=True)


# --- where a kernel is taught --------------------------------------------------------------------


def _listings(course: Course) -> dict[str, str]:
    """page#anchor of the section that first shows a kernel's file, by its id; students' pages before mentors'."""
    found: dict[str, str] = {}
    for page in sorted(course.pages, key=lambda page: page.path.parts[0] != "docs"):
        for number, cell in enumerate(page.cells):
            for shown in _SHOWN.finditer(cell.source) if cell.kind == "markdown" else ():
                path = Path(shown["path"])
                if path.is_relative_to(FOLDER) and len(path.parts) == 4:
                    section = _address(page, section_at(page, number, shown.start()))
                    found.setdefault(f"{path.parent.name}/{path.stem}", section)
    return found


def _timed_in(course: Course, page: Page, name: str) -> str:
    """page#anchor of the section whose cell recorded a name."""
    code = [number for number, cell in enumerate(page.cells) if cell.kind == "code"]
    for number, outputs in zip(code, course.records[page.id].outputs, strict=False):
        for output in outputs:
            node: Any = output.get("data", {}).get(MIME, {}).get("names", {})
            for part in name.split("."):
                node = node.get(part, {}) if isinstance(node, dict) else {}
            if node:
                return _address(page, section_at(page, number))
    return page.path.as_posix()


def _address(page: Page, anchor: str) -> str:
    return f"{page.path.as_posix()}#{anchor}" if anchor else page.path.as_posix()
