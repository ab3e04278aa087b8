"""Compile a `.cu` file with g++ and cuda_on_cpu.h, and launch a kernel of it on CPU tensors."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from course_kernels.cuda.includes import SHARED

SHIM = Path(__file__).with_suffix(".h")
STAND_INS = Path(__file__).with_name("stand_ins")  # headers that a CPU has its own version of
ENTRY = """
extern "C" const char *entry(const unsigned *grid, const unsigned *block, unsigned shared_bytes, void **arguments) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  fibers::shared_bytes = shared_bytes;
  fibers::launch(KERNEL, arguments);
  return fibers::fault.c_str();
}
"""
# extern __shared__ float tile[];   and   __shared__ alignas(16) float a[8][128], b[8][128];
SHARED_MEMORY = re.compile(
    r"(extern\s+)?__shared__\s+(?:(?:__align__|alignas)\(\w+\)\s+)?([\w:]+)\s+([^;()={}]+);"
)


def _on_cpu(declaration):
    """The same names for memory of the CPU, in the same line."""
    dynamic, kind, names = declaration.groups()
    if dynamic:
        name = names.partition("[")[0]
        return f"{kind} *{name} = reinterpret_cast<{kind} *>(fibers::dynamic_shared);"
    text = f"alignas(128) static {kind} {names};"
    for name in re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:,|$)", names):
        text += f" static fibers::Shared declared_{name}(&{name}, sizeof {name});"
    return text


def build(folder, source, kernel, defines=None, text=None):
    """A function launch(grid, block, *args, shared_bytes=0) for one kernel; `text` replaces the file's own.

    It raises RuntimeError where a card would hang or fault: threads that wait for ever, shared memory past its end.
    """
    gxx = shutil.which("g++") or pytest.skip("needs g++")
    stub, library = folder / f"{kernel}.cpp", folder / f"{kernel}.so"
    text = source.read_text() if text is None else text
    text = SHARED_MEMORY.sub(_on_cpu, text)
    stub.write_text(f'#include "{SHIM}"\n{text}\n{ENTRY}')
    macros = [f"-D{n}={v}" for n, v in {"KERNEL": kernel, **(defines or {})}.items()]
    # Shared memory in a template is one object for the whole process, unless this flag says otherwise.
    flags = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-gnu-unique"]
    flags += [f"-I{where}" for where in (STAND_INS, source.parent, SHARED)]
    subprocess.run([gxx, *flags, *macros, str(stub), "-o", str(library)], check=True)
    entry = ctypes.CDLL(str(library)).entry
    entry.restype = ctypes.c_char_p
    kinds = {
        np.int32: ctypes.c_int32,
        np.uint32: ctypes.c_uint32,
        np.int64: ctypes.c_int64,
        np.float32: ctypes.c_float,
    }

    def launch(grid, block, *args, shared_bytes=0):
        held = [
            ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else kinds[type(a)](a) for a in args
        ]
        triple = ctypes.c_uint * 3
        sizes = [(*s, 1, 1, 1)[:3] if isinstance(s, tuple) else (s, 1, 1) for s in (grid, block)]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(h) for h in held))
        fault = entry(triple(*sizes[0]), triple(*sizes[1]), ctypes.c_uint(shared_bytes), pointers)
        if fault:
            raise RuntimeError(f"{kernel}: {fault.decode()}")

    return launch
