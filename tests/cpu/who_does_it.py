"""What W3's page says of who does which job, cell by cell, and the words of each rung's kernel that decide it.

A cell of the proof begins with who does it; then come words of the kernel, or instructions with their counts:

    you: `T.alloc_shared`        set: `num_stages=`; tool: {{ code.triton.SYNCS:.0f}} `SYNCS`
"""

import re
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

from course_kernels.cuda.includes import sources_of
from course_kernels.line_count import spoken_lines

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/workshops/w3_abstraction_ladder.py"
GEMM = ROOT / "src/course_kernels/gemm"
RUNGS = {
    "helion": ("Helion", "in_helion"),
    "triton": ("Triton", "k05_triton"),
    "cutile": ("cuTile", "in_cutile"),
    "tilelang": ("TileLang", "in_tilelang"),
    "gluon": ("Gluon", "in_gluon"),
    "cute_dsl": ("CuTe-DSL", "in_cute_dsl"),
    "cutlass": ("CUTLASS", "in_cutlass"),
    "cuda": ("CUDA C++", "k14_tuned"),
}
GROUPS = {
    "TILE": ("tails", "epilogue"),
    "PLACE": ("shared memory", "swizzle", "accumulator"),
    "THREAD": ("coalescing", "TMA", "pipeline", "roles"),
}
JOBS = tuple(job for jobs in GROUPS.values() for job in jobs)

# What a kernel says that does the job itself. Each of them is found where the page says *you*.
SAYS = {
    "tails": r"mask|padding",
    "epilogue": r"split\(|T\.copy\(acc|shared_to_global|StMatrix|store_matrices",
    "shared memory": r"shared|Smem",
    "swizzle": r"layout|swizzled",  # `use_swizzle` of TileLang is about the order of tiles
    "accumulator": r"Distributed|partition_shape|float d\[",
    "TMA": r"tma|TMA|load_tile",
    "pipeline": r"[Pp]ipeline|stages|barrier",
    "roles": r"specialize|maxreg|registers_up",
}
# What the machine code of every kernel shows that has a job done, and not by a line of its own.
SHOWS = {
    "tails": {"UTMALDG"},
    "epilogue": {"STSM", "UTMASTG"},
    "shared memory": {"UTMALDG"},
    "swizzle": {"HGMMA"},
    "accumulator": {"HGMMA"},
    "coalescing": {"LDG"},
    "TMA": {"UTMALDG"},
    "pipeline": {"SYNCS"},
    "roles": {"USETMAXREG"},
}

# Loads by threads that bring no tile: CUTLASS asks for the factor of the sums, where it is given a pointer to one.
NO_TILES = {"cutlass": {"LDG": 2}}


class Claim(NamedTuple):
    """One part of a cell: who does it, and what proves that."""

    who: str
    words: tuple[str, ...]  # of the kernel
    instructions: tuple[str, ...]


def table_rows(text, first):
    """The rows below the table's head that begins with this, as lists of cells."""
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith(first))
    rows = []
    for line in [lines[at], *lines[at + 2 :]]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def overview(text):
    """{job: {rung: who}}, as the large table has it."""
    head, *rows = table_rows(text, "| | Helion")
    assert head[1:] == [name for name, _ in RUNGS.values()]
    return {job: dict(zip(RUNGS, cells, strict=True)) for job, *cells in rows if any(cells)}


def proofs(text):
    """{job: {rung: [claims]}}, as the three tables of the proof have them."""
    found = {job: {} for job in JOBS}
    for group, jobs in GROUPS.items():
        head, *rows = table_rows(text, f"| **{group}** | {jobs[0]} |")
        assert head[1:] == list(jobs)
        assert [row[0].partition(",")[0].removesuffix(" C++") for row in rows] == [
            name.removesuffix(" C++") for name, _ in RUNGS.values()
        ]
        for rung, (_, *cells) in zip(RUNGS, rows, strict=True):
            for job, cell in zip(jobs, cells, strict=True):
                found[job][rung] = [claim(rung, part) for part in cell.split("; ")]
    return found


def claim(rung, part):
    """A part of a cell, read; a count must be the one of this rung and of the instruction behind it."""
    who, _, proof = part.partition(": ")
    counted = r"\{\{ code\.(\w+)\.(\w+):\.0f\}\} `(\w+)`"
    for of, value, name in re.findall(counted, proof):
        assert (of, value) == (rung, name), part
    words = re.findall(r"`([^`]+)`", re.sub(counted, "", proof))
    return Claim(who, tuple(words), tuple(name for _, _, name in re.findall(counted, proof)))


@cache
def card_text(rung):
    """Code that runs on the card: marked in a Python file; in C++ all of it, with our headers. No comments."""
    _, name = RUNGS[rung]
    if (source := GEMM / f"{name}.cu").exists():
        return "\n".join(_code(file) for file in sources_of(source))
    return "\n".join(line for line, inside in _marked(GEMM / f"{name}.py") if inside)


@cache
def other_text(rung):
    """The rest of the launcher's file."""
    file = GEMM / f"{RUNGS[rung][1]}.py"
    return "\n".join(line for line, inside in _marked(file) if not inside)


def _marked(file):
    inside = False
    for raw, line in zip(file.read_text().splitlines(), _code(file).split("\n"), strict=True):
        inside = (inside or "# region " in raw) and "# endregion" not in raw
        yield line, inside


def _code(file):
    """A file's text without comments and docstrings, line by line."""
    text, spoken = file.read_text(), spoken_lines(file)
    if file.suffix == ".py":
        with file.open("rb") as lines:
            cut = dict(t.start for t in tokenize.tokenize(lines.readline) if t.type == tokenize.COMMENT)
        kept = [line[: cut.get(n)] for n, line in enumerate(text.splitlines(), 1)]
    else:
        kept = [line.partition("//")[0] for line in text.splitlines()]
    return "\n".join(line if n in spoken else "" for n, line in enumerate(kept, 1))


def faults_of_counts(text, rung, counts):
    """What the page says of a rung's machine code and is not so.

    Args:
        counts: {instruction: how often}.
    """
    found = []
    for job, cells in proofs(text).items():
        for one in cells[rung]:
            got = {name: counts[name] - NO_TILES.get(rung, {}).get(name, 0) for name in one.instructions}
            wants_none = one.who == "none" or job == "coalescing"
            if any(bool(count) == wants_none for count in got.values()):
                found.append(f"{job}: {one.who}, and in the machine code: {got}")
    if not (counts["HGMMA"] and counts["UTMALDG"]):
        found.append("no wgmma, or no TMA")
    return found
