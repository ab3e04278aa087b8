"""Lines of source behind machine code: of every line of SASS and PTX the place that the compiler made it from.

A compiler says it only when asked. Triton always asks; for NVRTC, `compile_with_lines` does, and changes no instruction
by it. Nothing that is timed is compiled here.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_kernels.cuda.compile import CORE_MISSING, CompileError
from course_kernels.cuda.disassemble import disassembler
from course_kernels.cuda.headers import CudaMissingError, nvrtc_file, package_of, toolkit_headers
from course_kernels.cuda.includes import IncludeRefused, project_folders, texts_of, toolkit_includes


@dataclass(frozen=True)
class Place:
    """One line of a source file, counted from 1; the file as the compiler names it."""

    file: str
    line: int


@dataclass(frozen=True)
class MachineLine:
    """One line of SASS or PTX.

    Attributes:
        text: an instruction without its address, or a label or a declaration.
        name: of the instruction with all that hangs on it, "LDG.E.128"; "" for what is none.
        places: where it was written, then where that was inlined, from the inside out; () where the compiler does not
            say. Triton's SASS names the inside alone.
    """

    text: str
    name: str
    places: tuple[Place, ...]

    @property
    def stem(self) -> str:
        """The name alone: "LDG"."""
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class WithLines:
    """Product of `compile_with_lines`: machine code, and the PTX that it was made of."""

    cubin: bytes
    ptx: str


# --- SASS ---------------------------------------------------------------------------------------------------

_SECTION = re.compile(r"^\.text\.(\S+?):")
_FILE = re.compile(r'^\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:(?P<guard>@!?U?P[\dT])\s+)?(?P<name>[A-Z][\w.]*)\s*(?P<rest>[^;]*);"
)
_LABEL = re.compile(r"^\.L_\w+:")


def sass_lines(cubin: bytes) -> dict[str, list[MachineLine]]:
    """Return the SASS of every kernel of a cubin: its instructions and labels, in their order.

    What can never happen (@!PT) is left out.

    Raises:
        CudaMissingError: there is no nvdisasm.
        ValueError: nvdisasm cannot read the cubin.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        command = [
            disassembler(),
            "-c",
            "-gi",
            str(file),
        ]  # -gi: lines of source, and where they were inlined
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"nvdisasm: {done.stderr.strip() or 'failed without a word'}")
    return _sass_lines(done.stdout)


def _sass_lines(text: str) -> dict[str, list[MachineLine]]:
    found: dict[str, list[MachineLine]] = {}
    lines: list[MachineLine] | None = None
    places: list[Place] = []
    said = False  # the last line named a place: the next one that does goes on with it
    for line in text.splitlines():
        if begins := _SECTION.match(line):
            lines, places, said = found.setdefault(begins[1], []), [], False
        elif line.startswith("//---"):
            lines = None
        elif place := _FILE.match(line):
            places = [*(places if said else ()), Place(place["file"], int(place["line"]))]
            said = True
        elif lines is not None:
            if one := _INSTRUCTION.match(line):
                said = False
                if one["guard"] != "@!PT":
                    words = [one["guard"] or "", one["name"], one["rest"].strip()]
                    lines.append(MachineLine(" ".join(filter(None, words)), one["name"], tuple(places)))
            elif _LABEL.match(line):
                lines.append(MachineLine(line.strip(), "", ()))
    return found


# --- PTX ----------------------------------------------------------------------------------------------------

_ENTRY = re.compile(r"^\s*(?:\.\w+\s+)*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?(?P<name>[\w$]+)\s*\(")
_NUMBERED = re.compile(r'^\s*\.file\s+(?P<number>\d+)\s+"(?P<folder>[^"]*)"(?:\s+"(?P<name>[^"]*)")?')
_LOC = re.compile(
    r"^\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+(?P<column>\d+)"
    r"(?:.*\binlined_at\s+(?P<of>\d+)\s+(?P<at>\d+)\s+(?P<in>\d+))?(?P<rest>.*)$"
)
_OUTSIDE = re.compile(r"@\[\s*(?P<file>[^\s:]+):(?P<line>\d+):\d+")  # a comment of Triton's
_OPCODE = re.compile(r"^(?:@!?%?\w+\s+)?(?P<name>[a-z][\w.:]*)\s")


def ptx_lines(ptx: str) -> dict[str, list[MachineLine]]:
    """Return the PTX of every kernel of a text, from its head to its last brace, without comments."""
    files: dict[str, str] = {}
    for line in ptx.splitlines():
        if named := _NUMBERED.match(line):
            files[named["number"]] = "/".join(filter(None, (named["folder"], named["name"])))
    by_name = {Path(file).name: file for file in reversed(files.values())}
    found: dict[str, list[MachineLine]] = {}
    lines: list[MachineLine] | None = None
    places: tuple[Place, ...] = ()
    known: dict[tuple[str, ...], tuple[Place, ...]] = {}  # a place, and what it was inlined into
    depth = 0  # of braces: assembler that a source has between quotes brings its own
    for line in ptx.splitlines():
        if begins := _ENTRY.match(line) if lines is None else None:
            lines, places, known = found.setdefault(begins["name"], []), (), {}
        if lines is None:
            continue
        if loc := _LOC.match(line):
            inside = Place(files.get(loc["file"], ""), int(loc["line"]))
            if loc["of"]:
                call = (loc["of"], loc["at"], loc["in"])
                outside = known.get(call) or (Place(files.get(loc["of"], ""), int(loc["at"])),)
            else:
                outside = tuple(
                    Place(by_name.get(call["file"], call["file"]), int(call["line"]))
                    for call in _OUTSIDE.finditer(loc["rest"])
                )
            places = (inside, *outside)
            known[loc["file"], loc["line"], loc["column"]] = places
            continue
        said = line.partition("//")[0].rstrip()
        if said.strip():
            bare = said.strip()
            opcode = _OPCODE.match(f"{bare.rstrip(';')} ")
            is_label = bare.endswith(":")
            name = opcode["name"] if opcode and not is_label else ""
            lines.append(MachineLine(" ".join(bare.split()), name, places if name else ()))
        depth += said.count("{") - said.count("}")
        if not depth and said.rstrip().endswith(("}", ";")):  # the kernel ends; or it was a declaration
            lines = None
    return {name: lines for name, lines in found.items() if any(line.name for line in lines)}


# --- both ---------------------------------------------------------------------------------------------------


def kinds(lines: Iterable[MachineLine]) -> dict[str, int]:
    """Return how often each instruction stands there, by its stem ("HGMMA"), the most frequent first."""
    counted = Counter(line.stem for line in lines if line.name)
    return dict(sorted(counted.items(), key=lambda one: (-one[1], one[0])))


def files_of(lines: Iterable[MachineLine]) -> list[str]:
    """Return every file that some lines come from, in the order in which they name them."""
    return list(dict.fromkeys(place.file for line in lines for place in line.places))


def compile_with_lines(
    path: Path | str, arch: str, defines: Mapping[str, str | int] | None = None
) -> WithLines:
    """Compile one `.cu` file as `compile_cubin` does, and have NVRTC say which line each instruction comes from.

    Args:
        path: the source file.
        arch: what to compile for, such as "sm_90a".
        defines: macros, as `-D NAME=VALUE`.
    Raises:
        CompileError, CudaMissingError, FileNotFoundError: see `compile_cubin`.
    """
    try:
        texts = texts_of(path)
    except IncludeRefused as error:
        raise CompileError(str(error)) from None
    file, text = next(iter(texts.items()))
    toolkit = tuple(toolkit_headers()) if toolkit_includes(file) else ()
    try:
        from cuda.core import ProgramOptions
    except ImportError as error:
        raise CudaMissingError(f"cuda.core: {error}; {CORE_MISSING}") from error
    options = ProgramOptions(
        name=str(file),
        std="c++17",
        arch=arch,
        include_path=[str(folder) for folder in (*project_folders(file), *toolkit)],
        define_macro=[(name, str(value)) for name, value in (defines or {}).items()] or None,
        lineinfo=True,
    )
    return _compiled(file, text, arch, options.as_bytes("nvrtc"), toolkit)


def _compiled(file: Path, text: str, arch: str, flags: Sequence[bytes], toolkit: Sequence[Path]) -> WithLines:
    """Return what NVRTC makes of a text; not by way of cuda.core, which asks a driver before it gives PTX."""
    from cuda.bindings import nvrtc

    nvrtc_file()  # loads it, where it is carried along
    try:
        fault, program = nvrtc.nvrtcCreateProgram(text.encode(), str(file).encode(), 0, [], [])
    except Exception as error:  # cuda.bindings' error types moved between versions
        raise CudaMissingError(f"NVRTC is missing: {error}; {CORE_MISSING}") from error

    def told(size: str, get: str) -> bytes:
        _, length = getattr(nvrtc, size)(program)
        room = bytes(length)
        getattr(nvrtc, get)(program, room)
        return room.rstrip(b"\0")

    try:
        (fault,) = nvrtc.nvrtcCompileProgram(program, len(flags), list(flags))
        if fault != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = told("nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode(errors="replace")
            if not log or fault == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
                raise CudaMissingError(
                    f"{file.name}: NVRTC does not know {arch}: {fault.name}; {CORE_MISSING}"
                )
            header = re.search(r'(?:cannot|could not) open source file "([^"]+)"', log)
            package = header and package_of(header[1], toolkit)
            if header and package:
                raise CudaMissingError(
                    f"{file.name}: the CUDA header {header[1]} is not installed; pip install {package}"
                )
            raise CompileError(f"{file.name} does not compile for {arch}\n{log}")
        ptx = told("nvrtcGetPTXSize", "nvrtcGetPTX").decode(errors="replace")
        _, length = nvrtc.nvrtcGetCUBINSize(program)
        cubin = bytes(length)  # its last bytes may be zeros, and are its own
        nvrtc.nvrtcGetCUBIN(program, cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return WithLines(cubin, ptx)
