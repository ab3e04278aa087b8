"""Our multiply and our attention for an Intel GPU that is not here: ocloc, Intel's compiler of OpenCL C, from Debian.

Its disassembler asks for a library by a name that Debian does not give it. But the compiler writes the text itself when
it is told to dump its shaders, and that text is read.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from math import e, log2, sqrt
from pathlib import Path
from typing import Any

# mypy: allow-untyped-defs
from course_chips import kept
from course_chips.counting import counts

PACKAGES = ("torch", "numpy")  # for the truth; the compiler is a program, see [tool.chips.programs]
DEVICES = {"intel_xe_hpc": "pvc", "intel_xe_hpg": "dg2"}
HERE = f"{kept.HERE}/opencl"
D = 128
# By kernel: its file, what is said at the end of its C++ to run it, and a fault: an index that is wrong.
_MULTIPLY = "void* c, int M, int N, int K) {{ {how}({columns}, {rows}, [=] {{ multiply({given}); }}); }}"
_GIVEN = "(ushort*)a, (ushort*)b, (ushort*)c, M, N, K"
KERNELS = {
    "multiply_plain": (
        "multiply_plain.cl",
        "void run(void* a, void* b, "
        + _MULTIPLY.format(how="everywhere", columns="N", rows="M", given=_GIVEN),
        ("B[k * N + column]", "B[column * N + k]"),
    ),
    "multiply_dpas": (
        "multiply_dpas.cl",
        "void run(void* a, void* b, "
        + _MULTIPLY.format(how="by_sub_groups", columns="N", rows="M / 8", given=_GIVEN),
        ("B[(k + 2 * j) * N + column]", "B[(k + 2 * j + 1) * N + column]"),
    ),
    "attention_plain": (
        "attention_plain.cl",
        "void run(void* q, void* k, void* v, void* o, int N, float scale) { everywhere(N, 1, [=] "
        "{ attention((ushort*)q, (ushort*)k, (ushort*)v, (ushort*)o, N, scale); }); }",
        ("V[n * D + d]", "V[n * D + (d + 1) % D]"),
    ),
}
SIZES = {"multiply": {"M": 64, "N": 64, "K": 64}, "attention": {"B": 1, "H": 1, "N": 256, "D": D}}

_INSTRUCTION = re.compile(
    r"^(?:\([^)]*\)\s+)?(?P<name>[a-z][\w.]*)\s(?:\([^)]*\)[^:]*:(?P<type>[a-z]\w*)\s)?"
)
_WIDTH = re.compile(r"_simd(\d+)_")
_SPILL = re.compile(r"^//\.spill size (\d+)", re.MULTILINE)
_REGISTERS = re.compile(r"^//\.thread_config numGRF=(\d+)", re.MULTILINE)
_BYTES = re.compile(r"^//\.declare BuiltInR0 .* size=(\d+) ", re.MULTILINE)


def lines_of(text: str) -> list[str]:
    """Return the instructions and labels of a text of Intel's compiler, without comments.

    Raises:
        ValueError: there is no instruction.
    """
    bare = (" ".join(line.split("//", 1)[0].split()) for line in text.splitlines())
    found = [line for line in bare if line]
    if not any(map(names, found)):
        raise ValueError(f"no instruction in {len(text)} characters")
    return found


def names(line: str) -> list[str]:
    """Return the instruction of a line, with the type that it writes: ["mad:f"], ["sync.nop"]; [] for a label."""
    found = None if line.endswith(":") else _INSTRUCTION.match(f"{line} ")
    return [":".join(filter(None, found.group("name", "type")))] if found else []


def programs() -> dict[str, str]:
    """Return the programs that compile, by name and version, after a look at what is installed.

    Raises:
        FileNotFoundError: one is not installed. ValueError: another one is.
    """
    project = tomllib.loads((kept.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["tool"]["chips"]["programs"]
    for name, one in wanted.items():
        file = Path(one["file"])
        if not file.exists():
            raise FileNotFoundError(
                f"{name} is not installed: apt-get install {one['package']}={one['version']}"
            )
        if hashlib.sha256(file.read_bytes()).hexdigest() != one["sha256"]:
            raise ValueError(f"{name}: expected version {one['version']}, and {file.name} is of another")
    return {name: one["version"].partition("-")[0] for name, one in wanted.items()}


def make(chip: str) -> dict[str, Any]:
    """Return what a record says of a chip: `checked` and `kernels`.

    Raises:
        FileNotFoundError: ocloc or g++ is not installed. ValueError: it refuses a source, an answer is wrong, or a
            fault was not seen.
    """
    return {"checked": _checked(), "kernels": {name: _told(name, DEVICES[chip]) for name in KERNELS}}


def _told(name: str, device: str) -> dict[str, Any]:
    """Compile a kernel, and return what is kept of it."""
    file, _, _ = KERNELS[name]
    with tempfile.TemporaryDirectory() as folder:
        for source in ("bf16.h", file):
            shutil.copy(kept.ROOT / HERE / source, folder)
        done = subprocess.run(
            [
                "ocloc",
                "compile",
                "-file",
                file,
                "-device",
                device,
                "-options",
                f"-I . -D D={D}",
                "-output",
                "out",
            ],
            cwd=folder,
            env=os.environ | {"IGC_ShaderDumpEnable": "1", "IGC_DumpToCustomDir": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        texts = [one for one in Path(folder).glob("*_entry_*.asm") if _WIDTH.search(one.name)]
        if done.returncode != 0 or len(texts) != 1:
            raise ValueError(f"{file} for {device}: {(done.stdout + done.stderr).strip().splitlines()[:1]}")
        text = texts[0].read_text(encoding="utf-8")
        width = int(_WIDTH.findall(texts[0].name)[0])
    lines = lines_of(text)
    spilled = _SPILL.search(text)
    return {
        "source": f"{HERE}/{file}",
        "dtype": "bfloat16",
        "lines": len([line for line in lines if names(line)]),
        "counts": counts(names, lines),
        "excerpt": excerpt(lines),
        "resources": {
            "lanes": width,
            "registers": int(_REGISTERS.findall(text)[0]),
            "register_bytes": int(_BYTES.findall(text)[0]),
            "spilled_bytes": int(spilled[1]) if spilled else 0,
        },
        "listing": kept.packed(lines),
    }


def excerpt(lines: list[str], length: int = 12) -> list[str]:
    """Return lines in a row with most products in them: of matrices, or of numbers where there are none of those."""
    for wanted in ("dpas", "mad:f"):
        has = [any(name.startswith(wanted) for name in names(line)) for line in lines]
        if any(has):
            break
    sums = [sum(has[at : at + length]) for at in range(max(1, len(lines) - length + 1))]
    at = sums.index(max(sums))
    return lines[at : at + length]


def _checked() -> dict[str, Any]:
    """Return the errors of all kernels, built as C++ and run here, and of each with a wrong index."""
    found = {}
    for name, (file, runs, (right, wrong)) in KERNELS.items():
        text = (kept.ROOT / HERE / file).read_text(encoding="utf-8")
        if text.count(right) != 1:
            raise ValueError(f"{file}: expected {right!r} once")
        found[name] = _tried(name, text + f'\nextern "C" {runs}\n')
        found[f"planted: {name}, {wrong}"] = _tried(
            name, text.replace(right, wrong) + f'\nextern "C" {runs}\n'
        )
    for name, one in found.items():
        if (one["error"] > one["allowed"]) != name.startswith("planted"):
            raise ValueError(f"{name}: {one}")
    return found


def _tried(name: str, text: str) -> dict[str, Any]:
    import torch

    from course_kernels.attention.problem import PROBLEM as ATTENTION
    from course_kernels.gemm.problem import PROBLEM as GEMM
    from course_kernels.problem import Workload, worst_error

    kind = name.partition("_")[0]
    problem, size = (GEMM if kind == "multiply" else ATTENTION), SIZES[kind]
    workload = Workload.of("bfloat16", **size)
    given = problem.make_inputs(workload, torch.Generator().manual_seed(48), "cpu")
    truth = problem.reference(*given)
    answer = torch.zeros(truth.shape, dtype=torch.bfloat16)
    arguments = [ctypes.c_void_p(x.data_ptr()) for x in (*given, answer)]
    if kind == "multiply":
        arguments += [ctypes.c_int(size[length]) for length in "MNK"]  # type: ignore[misc]
    else:
        arguments += [ctypes.c_int(size["N"]), ctypes.c_float(log2(e) / sqrt(D))]  # type: ignore[list-item]
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "kernel.cpp", Path(folder) / "kernel.so"
        source.write_text(text, encoding="utf-8")
        command = ["g++", "-std=c++20", "-O2", "-w", "-shared", "-fPIC", "-pthread", f"-DD={D}"]
        opencl = kept.ROOT / HERE
        command += [f"-I{opencl}", "-include", str(opencl / "on_a_cpu.h"), str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error:" in line]
            raise ValueError(f"{name} as C++: {errors[:1]}")
        ctypes.CDLL(str(library)).run(*arguments)
    return {"sizes": size, "error": worst_error(answer, truth), "allowed": problem.max_error(workload)}
