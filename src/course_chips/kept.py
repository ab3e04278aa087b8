"""The records of other chips: what is in one, which files decide it, and whether it still holds.

`records/chips/NAME.json` has these keys:

    chip, title     its name here, and in words
    packages        what compiled it, by name and version, and the Python that it ran in
    command         what writes the record anew
    sources         the files that decide it, each with a hash of its meaning
    checked         what was run all the same, on the CPU: each with its error, or with what was found
    ran             numbers of what a vendor's own code worked out on the CPU, by name; no time is among them
    kernels         by name: source, sizes, `lines` of code, `counts` of instructions by their whole names, `excerpt`,
                    what the compiler says of resources, and `listing`, the whole code, packed, where it is small
    refused         by name: the source that a compiler does not take for this chip, and the first line it `said`

Nothing in it is a measurement. An estimate is the compiler's, and says so in its name.
"""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = "src/course_chips"
FOLDER = ROOT / "records" / "chips"

# By name: the module that compiles for it, and what it is called.
CHIPS = {
    "tpu_v5e": ("tpu", "TPU v5e"),
    "tpu_v5p": ("tpu", "TPU v5p"),
    "tpu_v6e": ("tpu", "TPU v6e"),
    "tpu_7x": ("tpu", "TPU7x"),
    "gfx942": ("amd", "AMD gfx942 (MI300X)"),
    "gfx950": ("amd", "AMD gfx950 (MI355X)"),
    "gfx1250": ("amd", "AMD gfx1250"),
    "sm_80": ("nvidia", "NVIDIA sm_80 (A100)"),
    "sm_89": ("nvidia", "NVIDIA sm_89 (L40S, RTX 4090)"),
    "sm_90": ("nvidia", "NVIDIA sm_90 (H100, H200)"),
    "sm_100": ("nvidia", "NVIDIA sm_100 (B200)"),
    "sm_120": ("nvidia", "NVIDIA sm_120 (RTX 5090)"),
    "fpga": ("fpga", "FPGA, by hls4ml"),
    "apple": ("apple", "Apple silicon, by MLX and coremltools"),
    "intel_xe_hpc": ("intel", "Intel Xe-HPC (GPU Max)"),
    "intel_xe_hpg": ("intel", "Intel Xe-HPG (Arc A)"),
}
_TRITON = (
    "src/course_kernels/gemm/k05_triton.py",
    "src/course_kernels/attention/k03_flash.py",
    f"{HERE}/our_triton.py",
    f"{HERE}/listing.py",
)
_PLAIN = ("src/course_kernels/gemm/k01_cuda_cores.cu", "src/course_kernels/attention/k02_teaching.cu")
# By module: what decides a record, beside the versions, and with what a .cu includes. What only reads or writes one
# does not.
SOURCES = {
    "tpu": tuple(f"{HERE}/{name}.py" for name in ("tpu", "tpu_multiply", "tpu_attention", "listing")),
    "amd": (
        f"{HERE}/amd.py",
        f"{HERE}/hip/cuda_words.h",
        f"{HERE}/hip/matrix_core.h",
        f"{HERE}/hip/multiply.cpp",
        *_PLAIN,
        *_TRITON,
    ),
    "nvidia": (
        f"{HERE}/nvidia.py",
        "src/course_kernels/gemm/k03_mma_sync.cu",
        "src/course_kernels/gemm/k03_mma_sync.py",  # its shapes
        f"{HERE}/tile_languages.py",
        f"{HERE}/cute_multiply.py",
        f"{HERE}/ptx_on_cpu.py",
        "src/course_kernels/cutile_compiler.py",
        *(f"src/course_kernels/{problem}/in_cutile.py" for problem in ("gemm", "attention")),
        *(f"src/course_kernels/{problem}/in_cute_dsl.py" for problem in ("gemm", "attention", "blackwell")),
        *_PLAIN,
        *_TRITON,
    ),
    "fpga": tuple(f"{HERE}/{name}.py" for name in ("fpga", "fpga_circuits", "counting")),
    "apple": tuple(f"{HERE}/{name}.py" for name in ("apple", "apple_kernels", "counting")),
    "intel": (
        f"{HERE}/intel.py",
        f"{HERE}/counting.py",
        *(f"{HERE}/opencl/{name}" for name in ("bf16.h", "on_a_cpu.h")),
        *(f"{HERE}/opencl/{name}.cl" for name in ("multiply_plain", "multiply_dpas", "attention_plain")),
    ),
}
LARGEST_BYTES = 48 * 1024  # of a packed listing; a longer one is counted and not kept


def path_of(chip: str) -> Path:
    """Return where the record of a chip is kept."""
    return FOLDER / f"{chip}.json"


def read(chip: str) -> dict[str, Any]:
    """Return the record of a chip.

    Raises:
        ValueError: there is no such chip. FileNotFoundError: nobody has compiled for it yet.
    """
    if chip not in CHIPS:
        raise ValueError(f"chip: expected one of {', '.join(CHIPS)}, got {chip!r}")
    found: dict[str, Any] = json.loads(path_of(chip).read_text(encoding="utf-8"))
    return found


def write(chip: str, record: dict[str, Any]) -> None:
    """Write a record whole or not at all: under a temporary name, then renamed."""
    path = path_of(chip)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def packed(lines: list[str]) -> str:
    """Return a listing in letters that JSON takes; "" where it is too large to keep."""
    data = lzma.compress("\n".join(lines).encode(), preset=9)
    return base64.b85encode(data).decode() if len(data) <= LARGEST_BYTES else ""


def unpacked(listing: str) -> list[str]:
    """Return the lines that `packed` was given."""
    return lzma.decompress(base64.b85decode(listing)).decode().split("\n")
