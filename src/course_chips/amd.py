"""Our multiply and our attention for an AMD GPU that is not here: by Triton, and by clang's HIP without a ROCm.

clang comes in Zig's wheel, which is a whole LLVM with AMD's targets in it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from course_chips import kept, listing

PACKAGES = ("triton", "ziglang", "torch")  # torch is what the kernels' launchers import
WAVE = {"gfx942": 64, "gfx950": 64, "gfx1250": 32}
HIP = kept.ROOT / kept.HERE / "hip"
KERNELS = kept.ROOT / "src/course_kernels"
# By name: source, macros, and the chips that have what it asks for.
SOURCES: dict[str, tuple[Path, dict[str, Any], tuple[str, ...]]] = {
    "multiply_plain": (KERNELS / "gemm/k01_cuda_cores.cu", {"TYPE": "__bf16", "WHOLE": 1}, tuple(WAVE)),
    "attention_plain": (KERNELS / "attention/k02_teaching.cu", {"D": 128}, tuple(WAVE)),
    "multiply_hip": (HIP / "multiply.cpp", {}, ("gfx942", "gfx950")),
}
# What the compiler says of registers and shared memory (LDS), at the end of its text.
_RESOURCES = re.compile(
    r"\.(vgpr_count|agpr_count|sgpr_count|vgpr_spill_count|group_segment_fixed_size|wavefront_size|"
    r"max_flat_workgroup_size): +(\d+)"
)


def make(chip: str) -> dict[str, Any]:
    """Return what a record says of a chip: `kernels`.

    Raises:
        ImportError: Triton is not installed. ValueError: clang refuses a source; its first error.
    """
    from triton.backends.compiler import GPUTarget

    from course_chips import our_triton

    made = {}
    for problem, source in our_triton.SOURCES.items():
        result, tile = our_triton.compiled(problem, GPUTarget("hip", chip, WAVE[chip]))
        text = result.asm["amdgcn"]
        told = {"source": source, "dtype": "bfloat16", "tile": tile} | _told(text)
        # Triton asks for its shared memory at the launch.
        told["resources"]["shared_bytes"] = result.metadata.shared
        made[f"{problem}_triton"] = told
    for name, (path, macros, chips) in SOURCES.items():
        if chip in chips:
            source = path.relative_to(kept.ROOT).as_posix()
            dtype = "float32" if name == "attention_plain" else "bfloat16"
            told = {"source": source, "dtype": dtype, "macros": macros} | _told(in_hip(path, chip, macros))
            told["resources"]["shared_bytes"] = told["resources"].pop("group_segment_fixed_size")
            made[name] = told
    return {"kernels": made}


def in_hip(path: Path, chip: str, macros: dict[str, Any]) -> str:
    """Return the assembly text that clang makes of a source.

    Raises:
        ValueError: it refuses; its first error.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernel.s"
        command = [sys.executable, "-m", "ziglang", "clang", "-x", "hip", "-std=c++17", "-O3", "-S"]
        command += [f"--offload-arch={chip}", "--cuda-device-only", "-nogpuinc", "-nogpulib"]
        command += ["-fuse-cuid=none"]  # else a label has a hash of where the source lies
        # Not one name of ours is in the C library's headers, and none of them is read.
        command += [
            "-include",
            str(HIP / "cuda_words.h"),
            f"-I{HIP / 'stand_ins'}",
            "-Wno-unused-command-line-argument",
        ]
        command += [f"-D{name}={value}" for name, value in macros.items()]
        done = subprocess.run(
            [*command, str(path), "-o", str(out)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error:" in line] or [
                "failed without a word"
            ]
            raise ValueError(f"{path.name} for {chip}: {errors[0]}")
        return out.read_text(encoding="utf-8")


def _told(text: str) -> dict[str, Any]:
    """Return what is kept of an assembly text."""
    lines = listing.lines_of_amd(text)
    return {
        "lines": len([line for line in lines if listing.names_of_amd(line)]),
        "counts": listing.counts("amd", lines),
        "excerpt": listing.excerpt("amd", lines),
        "resources": {name: int(number) for name, number in _RESOURCES.findall(text)},
        "listing": kept.packed(lines),
    }
