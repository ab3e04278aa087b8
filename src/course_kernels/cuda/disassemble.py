"""Machine code back to readable instructions (SASS), without a GPU."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from course_kernels.cuda.headers import CudaMissingError


def sass(cubin: bytes) -> str:
    """Return the instructions of every kernel in a cubin, as nvdisasm prints them.

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
    """Return the path of nvdisasm: from the wheel nvidia-cuda-nvdisasm, the PATH, or the Triton wheel.

    Raises:
        CudaMissingError: none of them has it.
    """
    # By sys.path, not by asking for the package `nvidia`: the CUDA wheels may lie in several of its folders.
    places = [
        file
        for entry in sys.path
        for file in sorted(Path(entry or ".").glob("nvidia/cu*/bin/nvdisasm"), reverse=True)
    ]
    on_path = shutil.which("nvdisasm")
    places += [Path(on_path)] if on_path else []
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin:
        places += Path(triton.origin).parent.glob("backends/nvidia/bin/nvdisasm")
    if not places:
        raise CudaMissingError("nvdisasm: not found; pip install nvidia-cuda-nvdisasm==13.*")
    return str(places[0])
