"""The kernels as machine code for a card that is not here: compiled, disassembled and counted, without any GPU.

What a page shows of it is in KEPT, since a page is built where no CUDA compiler is: "compilers", and by each kernel's
name what `told` told. `python -m course_kernels.blackwell --keep` writes it; a test holds it against the compiler.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm.listing import Instruction, instructions

HERE = Path(__file__).parent
ARCH = "sm_100a"
WAITS = ("SYNCS.PHASECHK", "SYNCS.ARRIVE", "UCGABAR")
KEPT = HERE / "machine_code.json"
# By the names that the refusals use: source, and macros.
KERNELS: dict[str, tuple[Path, dict[str, int]]] = {
    "one_block": (HERE / "one_block.cu", {"FLOAT16": 0}),
    "pair": (HERE / "pair.cu", {"FLOAT16": 0}),
    "nvfp4": (HERE / "scaled.cu", {"EIGHT_BITS": 0}),
    "mxfp8": (HERE / "scaled.cu", {"EIGHT_BITS": 1}),
    "decode_in_hardware": (HERE / "decode.cu", {"IN_HARDWARE": 1}),
    "decode_in_software": (HERE / "decode.cu", {"IN_HARDWARE": 0}),
}
# What the instructions that a kernel of these is about begin with, and what they do.
FRIENDS = {
    "UTCHMMA": "multiply 16-bit numbers",
    "UTCQMMA": "multiply 8-bit numbers, here with block scales",
    "UTCOMMA": "multiply 4-bit numbers, with block scales",
    "UTCCP": "copy scales from shared to tensor memory",
    "UTCBAR": "arrive at an mbarrier when what was asked for is done",
    "UTCATOMSWS": "allocate tensor memory, or give it back",
    "LDTM": "load sums from tensor memory",
    "UTMALDG": "bring a tile",
    "UBLKCP": "bring bytes",
    "F2FP.F16.E2M1": "convert two codes of four bits",
}


def listing(kernel: str, arch: str = ARCH) -> list[Instruction]:
    """Return the instructions of a kernel, compiled for a card that need not be here.

    Args:
        kernel: one of KERNELS.
        arch: "sm_100a", "sm_103a"; the decoder in software for any.
    Raises:
        ValueError: there is no such kernel.
        CompileError, CudaMissingError: see `compile_cubin` and `sass`.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel: expected one of {', '.join(KERNELS)}, got {kernel!r}")
    source, defines = KERNELS[kernel]
    return instructions(sass(compile_cubin(source, arch, defines)))


def friends(lines: list[Instruction]) -> dict[str, int]:
    """Return how often each instruction that these kernels are about is in a listing, by its whole name."""
    names = Counter(line.name for line in lines)
    return {name: count for name, count in sorted(names.items()) if what_for(name)}


def what_for(name: str) -> str:
    """Return what an instruction of FRIENDS does, by its whole name; "" for any other."""
    return next((does for begins, does in FRIENDS.items() if f"{name}.".startswith(f"{begins}.")), "")


def told(kernel: str) -> dict[str, Any]:
    """Return what a page shows of a kernel, compiled for ARCH.

    Returns:
        instructions: how many there are. counts: see `friends`. lines: those, and who waits or arrives at an mbarrier,
        in order, each with its number.
    Raises:
        ValueError, CompileError, CudaMissingError: see `listing`.
    """
    lines = listing(kernel)
    shown = [line for line in lines if what_for(line.name) or line.name.startswith(WAITS)]
    numbers = {line.number: place for place, line in enumerate(lines, start=1)}
    return {
        "instructions": len(lines),
        "counts": friends(lines),
        "lines": [f"{numbers[line.number]:4d} {line}" for line in shown],
    }


def compilers() -> str:
    """Return which compiler and which disassembler are installed, in words: "NVRTC 13.0.88, nvdisasm 13.0.85".

    Raises:
        PackageNotFoundError: one of them is not a wheel here.
    """
    return f"NVRTC {version('nvidia-cuda-nvrtc')}, nvdisasm {version('nvidia-cuda-nvdisasm')}"


def keep() -> None:
    """Write what `told` tells of each kernel.

    Raises:
        CompileError, CudaMissingError: see `listing`. PackageNotFoundError: see `compilers`.
    """
    new = KEPT.with_suffix(".new")
    made = {"compilers": compilers()} | {kernel: told(kernel) for kernel in KERNELS}
    new.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    new.replace(KEPT)
