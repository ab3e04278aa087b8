"""Machine code back to readable instructions (SASS), without a GPU."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path

from course_kernels.cuda.compile import CudaMissingError


def sass(cubin: bytes) -> str:
    """The instructions of every kernel in a cubin, as nvdisasm prints them.

    Raises:
        CudaMissingError: there is no nvdisasm.
        ValueError: nvdisasm cannot read the cubin, for example because it is older than the card.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        done = subprocess.run([disassembler(), "-c", str(file)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"nvdisasm: {done.stderr.strip() or 'failed without a word'}")
    return done.stdout


@functools.cache
def disassembler() -> str:
    """The path of nvdisasm: from the wheel nvidia-cuda-nvdisasm, the PATH, or the Triton wheel.

    Raises:
        CudaMissingError: none of them has it.
    """
    places: list[Path] = []
    # The CUDA wheels share the folder `nvidia`, which is no package of its own.
    for package, pattern in (("nvidia", "cu*/bin/nvdisasm"), ("triton", "backends/nvidia/bin/nvdisasm")):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            places += sorted(Path(folder).glob(pattern), reverse=True)
        on_path = shutil.which("nvdisasm")
        if package == "nvidia" and on_path:
            places.append(Path(on_path))
    if not places:
        raise CudaMissingError("nvdisasm: not found; pip install nvidia-cuda-nvdisasm==13.*")
    return str(places[0])
