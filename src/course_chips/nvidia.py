"""Our multiply and our attention for NVIDIA cards that are not here: by NVRTC, Triton, cuTile and CuTe-DSL."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_chips import kept, listing
from course_kernels.cuda.disassemble import sass
from course_kernels.rungs import Compiled

PACKAGES = (
    "triton",
    "torch",  # what the kernels' launchers import
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-cuda-crt",
    "nvidia-cuda-nvdisasm",
    "cuda-core",
    "cuda-tile",
    "nvidia-cuda-tileiras",
    "nvidia-cuda-nvcc",  # its ptxas, which cuTile's compiler calls
    "nvidia-nvvm",
    "nvidia-cutlass-dsl",
)
# With the instructions of this card alone, where it has such.
ARCH = {"sm_80": "sm_80", "sm_89": "sm_89", "sm_90": "sm_90a", "sm_100": "sm_100a", "sm_120": "sm_120a"}
_REGISTER = re.compile(r"\bR(\d+)\b")


def make(chip: str) -> dict[str, Any]:
    """Return what a record says of a chip: `kernels`, `refused`, and what was `checked` on the CPU.

    Raises:
        ImportError, CudaMissingError: a compiler is not installed. CompileError: a source is refused.
    """
    from triton.backends.compiler import GPUTarget

    from course_chips import our_triton, tile_languages
    from course_kernels.cuda.compile import compile_cubin
    from course_kernels.gemm import k03_mma_sync

    made: dict[str, Any] = {}
    for problem, source in our_triton.SOURCES.items():
        result, tile = our_triton.compiled(problem, GPUTarget("cuda", int(chip.removeprefix("sm_")), 32))
        told = {"source": source, "dtype": "bfloat16", "tile": tile} | _told(sass(result.asm["cubin"]))
        told["resources"]["shared_bytes"] = result.metadata.shared
        made[f"{problem}_triton"] = told
    capability = int(chip[3:-1]), int(chip[-1])
    shape = k03_mma_sync.SHAPES.get(capability, k03_mma_sync.ELSEWHERE)
    folder = kept.ROOT / "src/course_kernels"
    mma: dict[str, str | int] = {"TYPE": "Bf16", "WHOLE": 1, **asdict(shape)}
    sources: dict[str, tuple[Path, dict[str, str | int], str]] = {
        "multiply_plain": (
            folder / "gemm/k01_cuda_cores.cu",
            {"TYPE": "__nv_bfloat16", "WHOLE": 1},
            "bfloat16",
        ),
        "multiply_mma": (folder / "gemm/k03_mma_sync.cu", mma, "bfloat16"),
        "attention_plain": (folder / "attention/k02_teaching.cu", {"D": 128}, "float32"),
    }
    for name, (path, macros, dtype) in sources.items():
        head = {"source": path.relative_to(kept.ROOT).as_posix(), "dtype": dtype, "macros": macros}
        made[name] = head | _told(sass(compile_cubin(path, ARCH[chip], macros)))
    made["multiply_mma"]["resources"]["shared_bytes"] = shape.shared_bytes
    for problem, source in tile_languages.CUTILE.items():
        made[f"{problem}_cutile"] = _of_tiles(source, tile_languages.in_cutile(problem, ARCH[chip]))
    refused: dict[str, Any] = {}
    for name, source in tile_languages.CUTE.items():
        answer = tile_languages.in_cute(name, ARCH[chip])
        if isinstance(answer, str):
            refused[name] = {"source": source, "said": answer}
        else:
            made[name] = _of_tiles(source, answer)
            if name == tile_languages.CHECKED:
                checked = tile_languages.checked(answer[0].ptx)
    return {"checked": checked, "kernels": made, "refused": refused}


def _of_tiles(source: str, answer: tuple[Compiled, dict[str, Any]]) -> dict[str, Any]:
    """Return what is kept of a kernel of a language of tiles."""
    compiled, tile = answer
    told = {"source": source, "dtype": "bfloat16", "tile": tile} | _told(sass(compiled.cubin))
    told["resources"]["shared_bytes"] = compiled.shared_bytes
    return told


def _told(text: str) -> dict[str, Any]:
    """Return what is kept of a disassembled kernel."""
    lines = listing.lines_of_nvidia(text)
    registers = 1 + max(int(number) for line in lines for number in _REGISTER.findall(line))
    return {
        "lines": len(lines),
        "counts": listing.counts("nvidia", lines),
        "excerpt": listing.excerpt("nvidia", lines),
        "resources": {"registers": registers},
        "listing": kept.packed(lines),
    }
