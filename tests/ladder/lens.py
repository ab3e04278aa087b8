"""What compilers made of the loop over k on every rung of W3's ladder, for the page: docs/workshops/w3_lens.json.

Compiled for sm_90a as at 4096 each way, and not run. With all languages of the extra `ladder` and nvcc installed, to
write the file anew; without --anew it says whether it would be the same:

    PYTHONPATH=src python tests/ladder/lens.py --anew

The file, by a rung's name: "compiler"; "kernel", the digest of its lines on the page, without which
nothing here holds; "registers" of a thread and "shared_bytes" of a block; "all" instructions; "lined", whether the
compiler names lines of the kernel; "loops", "sass" and "ptx" of the loop that multiplies and, where another one brings
the tiles, of that: pairs of a line, counted from 0 over all that the page shows of the rung, or null, and an
instruction.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from course_kernels import nvcc
from course_kernels.gemm import (
    in_cute_dsl,
    in_cutile,
    in_cutlass,
    in_gluon,
    in_helion,
    in_tilelang,
    k05_triton,
    k14_tuned,
)
from course_kernels.gemm.plans import plan_of
from course_kernels.line_info import MachineLine, compile_with_lines, ptx_lines, sass_lines
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled
from course_profile.occupancy import resources
from course_site.pages import lens
from course_site.pages.rungs import Rung, read

ROOT = Path(__file__).parents[2]
LADDER, FILE = ROOT / "docs/workshops/w3_rungs.toml", ROOT / "docs/workshops/w3_lens.json"
W, ARCH = Workload.of("bfloat16", M=4096, N=4096, K=4096), "sm_90a"


class Form(NamedTuple):
    """How a text of instructions says where a loop ends, and what ours are known by."""

    label: re.Pattern[str]
    branch: re.Pattern[str]
    multiplies: str
    fetches: str


# BRA.U.ANY, around an order that one lane gives, is no loop of ours.
SASS = Form(
    re.compile(r"^(\.L_\w+):"), re.compile(r"\bBRA (?:!?U?P\d, )?`\((\.L_\w+)\)"), r"HGMMA\.", r"UTMALDG\."
)
PTX = Form(
    re.compile(r"^(\$?\w+):"),
    re.compile(r"\bbra(?:\.uni)?\s+(\$?\w+)"),
    r"wgmma\.mma_async\.",
    r"cp\.async\.bulk\.tensor\.\dd\.shared",
)
# What the pages show of a product: 128 names of registers say nothing.
REGISTERS = re.compile(r"\{(%\w+),[^{}]{40,}?(%\w+)\s*\}")


# --- what was compiled -----------------------------------------------------------------------------------------


def triton() -> Compiled:
    """The kernel in Triton, as a launch at 4096 makes it."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    tile, kernel = k05_triton.HOPPER[2], k05_triton.gemm_kernel
    blocks = {"A": (tile.block_m, tile.block_k), "B": (tile.block_k, tile.block_n)}
    blocks["C"] = (tile.block_m, tile.block_n // tile.strips)
    types = {name: f"tensordesc<bf16[{rows}, {columns}]>" for name, (rows, columns) in blocks.items()}
    constants = {
        "BLOCK_M": tile.block_m,
        "BLOCK_N": tile.block_n,
        "BLOCK_K": tile.block_k,
        "GROUP_M": tile.group_m,
    }
    constants |= {"STRIPS": tile.strips, "DTYPE": tl.bfloat16, "TURNED": False, "TMA": True}
    names = kernel.arg_names
    types |= dict.fromkeys("MNK", "i32")
    source = ASTSource(
        kernel,
        {name: types.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in "MNK"},
    )
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return Compiled(made.asm["cubin"], made.asm["ptx"], shared_bytes=made.metadata.shared)


def cuda() -> Compiled:
    """k14 with the macros of its source."""
    made = compile_with_lines(k14_tuned.SOURCE, ARCH)
    return Compiled(made.cubin, made.ptx, shared_bytes=plan_of(4096, 4096, 4096, 132).shape.shared_bytes)


def version(*packages: str) -> str:
    """Of each package its name and its version."""
    return ", ".join(f"{package} {metadata.version(package)}" for package in packages)


def nvcc_version() -> str:
    """Of nvcc, as it says it."""
    return "nvcc " + re.search(r"cuda_(\d+\.\d+)", nvcc.version())[1]


RUNGS = {
    "helion": (lambda: in_helion.compiled(W, ARCH), lambda: version("helion", "triton")),
    "triton": (triton, lambda: version("triton")),
    "cutile": (lambda: in_cutile.compiled(W, ARCH), lambda: version("cuda-tile", "nvidia-cuda-tileiras")),
    "tilelang": (lambda: in_tilelang.compiled(W, ARCH), lambda: f"{version('tilelang')}, {nvcc_version()}"),
    "gluon": (lambda: in_gluon.compiled(W, ARCH), lambda: version("triton")),
    "cute_dsl": (lambda: in_cute_dsl.compiled(W, ARCH, lines=True), lambda: version("nvidia-cutlass-dsl")),
    "cutlass": (
        lambda: in_cutlass.compiled(W, ARCH),
        lambda: f"CUTLASS {cutlass_version()}, {nvcc_version()}",
    ),
    "cuda": (cuda, lambda: version("nvidia-cuda-nvrtc")),
}


def cutlass_version() -> str:
    """Of CUTLASS's headers."""
    text = (in_cutlass.cutlass_headers() / "cutlass/version.h").read_text()
    return ".".join(re.findall(r"#define CUTLASS_(?:MAJOR|MINOR|PATCH) (\d+)", text))


# --- what is shown of it ---------------------------------------------------------------------------------------


def loops(lines: Sequence[MachineLine], form: Form) -> list[list[MachineLine]]:
    """Return the loop that multiplies, and that which fetches if it is another; of each the first innermost one.

    Raises:
        ValueError: no loop multiplies, or none fetches.
    """
    at = {found[1]: i for i, line in enumerate(lines) if (found := form.label.match(line.text))}
    ends = [
        (at.get(found[1], len(lines)), i)
        for i, line in enumerate(lines)
        if (found := form.branch.search(line.text))
    ]
    spans = [range(first, last + 1) for first, last in ends if first <= last]
    chosen: list[range] = []
    for does in (form.multiplies, form.fetches):
        having = [span for span in spans if any(re.search(does, lines[i].text) for i in span)]
        inner = [
            span for span in having if not any(other != span and set(other) <= set(span) for other in having)
        ]
        if not inner:
            raise ValueError(f"no loop has {does}")
        chosen += [min(inner, key=lambda span: span.start)]
    return [[line for line in (lines[i] for i in span) if line.name] for span in dict.fromkeys(chosen)]


def written_at(line: MachineLine, numbers: dict[tuple[str, int], int]) -> int | None:
    """Return the number of the shown line that an instruction comes from: where it was written, else inlined."""
    return next(
        (numbers[key] for place in line.places if (key := (Path(place.file).name, place.line)) in numbers),
        None,
    )


def helion_lines(source: str) -> dict[int, int]:
    """Return the line of in_helion.py behind each line that Helion wrote: it says so in comments, `src[FILE:LINE]`."""
    found: dict[int, int] = {}
    now, new = 0, True
    for number, line in enumerate(source.splitlines(), start=1):
        if said := re.search(r"# src\[[^:\]]+:(\d+)\]", line):
            now, new = (int(said[1]) if new else now), False  # the first of several begins what follows
        elif not re.search(r"# src\[", line):
            new = True
            found[number] = now
    return found


def numbers_of(name: str, rung: Rung, made: Compiled) -> dict[tuple[str, int], int]:
    """Return the number, over all shown lines, of each line that the compiler may name: by file and line."""
    shown = {
        (part.file, n): at
        for at, (part, n) in enumerate((part, n) for part in rung.shown for n in part.numbers)
    }
    if name != "helion":
        return shown
    (file,) = {
        Path(place.file).name
        for lines in sass_lines(made.cubin).values()
        for line in lines
        for place in line.places
    }
    return {
        (file, written): shown["in_helion.py", line]
        for written, line in helion_lines(made.source).items()
        if ("in_helion.py", line) in shown
    }


def facts(name: str, rung: Rung, digest: str) -> dict[str, Any]:
    """Return what the file has of a rung."""
    compile_it, compiler = RUNGS[name]
    made = compile_it()
    ((kernel, sass),) = sass_lines(made.cubin).items()
    ((_, ptx),) = ptx_lines(made.ptx).items()
    numbers, room = numbers_of(name, rung, made), resources(made.cubin, kernel)
    parts = [
        {"sass": [[written_at(line, numbers), line.text] for line in loop]} for loop in loops(sass, SASS)
    ]
    for part, loop in zip(parts, loops(ptx, PTX), strict=True):
        part["ptx"] = [[written_at(line, numbers), REGISTERS.sub(r"{\1, …, \2}", line.text)] for line in loop]
    return {
        "compiler": compiler(),
        "kernel": digest,
        "registers": room.registers,
        "shared_bytes": max(made.shared_bytes, room.shared_bytes),
        "all": sum(bool(line.name) for line in sass),
        "lined": any(at is not None for part in parts for at, _ in part["sass"]),
        "loops": parts,
    }


def all_facts(names: Iterable[str] = RUNGS) -> dict[str, Any]:
    """Return what the file has of some rungs."""
    ladder = read(ROOT, LADDER)
    return {
        rung.name: facts(rung.name, rung, lens.digest(ladder, rung))
        for rung in ladder.rungs
        if rung.name in names
    }


def main(arguments: Sequence[str]) -> int:
    """Write the file anew, or say which rungs would change; returns the exit code."""
    made = all_facts()
    if arguments == ["--anew"]:
        lines = (
            f"{json.dumps(name)}: {json.dumps(found, ensure_ascii=False)}" for name, found in made.items()
        )
        new = FILE.with_suffix(".new")
        new.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        new.replace(FILE)
        return 0
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    changed = [name for name in made if made[name] != kept.get(name)]
    print("as it is kept" if not changed else f"changed: {', '.join(changed)}")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
