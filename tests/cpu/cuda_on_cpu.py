"""Compile a `.cu` file with g++ and cuda_on_cpu.h, and launch a kernel of it on CPU tensors."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

SHIM = Path(__file__).with_suffix(".h")
ENTRY = """
extern "C" void entry(const unsigned *grid, const unsigned *block, void **arguments) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  fibers::launch(KERNEL, arguments);
}
"""


def build(folder, source, kernel, defines=None, text=None):
    """A function launch(grid, block, *args) for one kernel; `text` replaces the file's own."""
    gxx = shutil.which("g++") or pytest.skip("needs g++")
    stub, library = folder / f"{kernel}.cpp", folder / f"{kernel}.so"
    text = source.read_text() if text is None else text
    stub.write_text(f'#include "{SHIM}"\n{text}\n{ENTRY}')
    macros = [f"-D{n}={v}" for n, v in {"KERNEL": kernel, **(defines or {})}.items()]
    flags = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-I{source.parent}"]
    subprocess.run([gxx, *flags, *macros, str(stub), "-o", str(library)], check=True)
    entry = ctypes.CDLL(str(library)).entry
    kinds = {np.int32: ctypes.c_int32, np.int64: ctypes.c_int64, np.float32: ctypes.c_float}

    def launch(grid, block, *args):
        held = [
            ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else kinds[type(a)](a) for a in args
        ]
        triple = ctypes.c_uint * 3
        sizes = [(*s, 1, 1, 1)[:3] if isinstance(s, tuple) else (s, 1, 1) for s in (grid, block)]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(h) for h in held))
        entry(triple(*sizes[0]), triple(*sizes[1]), pointers)

    return launch
