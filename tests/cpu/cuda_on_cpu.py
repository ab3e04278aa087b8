"""Compile a `.cu` file with g++ and cuda_on_cpu.h, and launch a kernel of it on CPU tensors."""

import contextlib
import ctypes
import functools
import mmap
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from course_kernels.cuda.includes import SHARED

SHIM, RUNTIME = Path(__file__).with_suffix(".h"), Path(__file__).with_suffix(".cpp")
# Shared memory in a template is one object for the whole process, unless the last of these says otherwise.
FLAGS = ("-std=c++17", "-O1", "-w", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique")
# An index that leaves an array is told to a function of cuda_on_cpu.cpp, instead of g++'s own.
CHECKED = "-fsanitize=bounds"
STAND_INS = Path(__file__).with_name("stand_ins")  # headers that a CPU has its own version of
ENTRY = """
extern "C" __attribute__((visibility("default")))
const char *entry(const unsigned *grid, const unsigned *block, unsigned shared_bytes, void **arguments) {
  if (block[0] * block[1] * block[2] > LAUNCH_BOUND) return "more threads than its launch bound allows";
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  fibers::shared_bytes = shared_bytes;
  fibers::fill = SHARED_FILL;
  fibers::launch(KERNEL, arguments);
  return fibers::fault();
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


@functools.cache
def made_ready(gxx):
    """A folder of this process with the shim as g++ reads it fastest, and what runs the fibers, compiled."""
    folder = tempfile.TemporaryDirectory(prefix="cuda_on_cpu-")  # held by the cache; gone at the end
    shim = Path(shutil.copy(SHIM, folder.name))
    subprocess.run([gxx, *FLAGS, CHECKED, "-x", "c++-header", str(shim), "-o", f"{shim}.gch"], check=True)
    runtime = Path(folder.name, "runtime.o")
    subprocess.run([gxx, *FLAGS, "-O2", "-c", str(RUNTIME), "-o", str(runtime)], check=True)
    return folder, shim, runtime


_kept = []  # folders of libraries; gone at the end


@functools.cache
def _library(gxx, text, flags):
    """The library of a source; the same source with the same flags is compiled once."""
    _, shim, runtime = made_ready(gxx)
    _kept.append(tempfile.TemporaryDirectory(prefix="cuda_on_cpu-"))
    name = Path(_kept[-1].name, "kernel.cpp")
    name.write_text(f'#include "{shim}"\n{text}')
    library = name.with_suffix(".so")
    program = name.with_suffix(".o")
    subprocess.run([gxx, *FLAGS, CHECKED, *flags, "-c", str(name), "-o", str(program)], check=True)
    subprocess.run([gxx, "-shared", str(program), str(runtime), "-o", str(library)], check=True)
    return library


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE = mmap.PAGESIZE


@contextlib.contextmanager
def fenced(args):
    """The tensors among the arguments, copied to where the system stops whoever reads or writes beside them.

    Each storage ends where a page ends, but for what keeps it at a multiple of 16 bytes; the next page may not be
    touched, nor the one before its first. Hands out the address of a tensor there; at the end all is copied back.
    """
    places, regions = {}, []
    for tensor in (a for a in args if isinstance(a, torch.Tensor)):
        storage = tensor.untyped_storage()
        if storage.data_ptr() in places or not storage.nbytes():
            continue
        length = -(-storage.nbytes() // PAGE) * PAGE
        region = LIBC.mmap(
            None,
            length + 2 * PAGE,
            mmap.PROT_READ | mmap.PROT_WRITE,
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            -1,
            0,
        )
        assert region not in (None, ctypes.c_void_p(-1).value), "no memory for a fenced tensor"
        for fence in (region, region + PAGE + length):
            LIBC.mprotect(fence, PAGE, 0)
        place = region + PAGE + length - -(-storage.nbytes() // 16) * 16
        ctypes.memmove(place, storage.data_ptr(), storage.nbytes())
        places[storage.data_ptr()] = place
        regions.append((region, length + 2 * PAGE, place, storage))

    def address_of(tensor):
        start = tensor.untyped_storage().data_ptr()
        return places.get(start, start) + tensor.data_ptr() - start

    try:
        yield address_of
    finally:
        for region, length, place, storage in regions:
            ctypes.memmove(storage.data_ptr(), place, storage.nbytes())
            LIBC.munmap(region, length)


def build(folder, source, kernel, defines=None, text=None):
    """A function launch(grid, block, *args, shared_bytes=0) for one kernel; `text` replaces the file's own.

    It raises RuntimeError where a card would hang or fault: threads that wait for ever, shared memory past its end.
    """
    gxx = shutil.which("g++") or pytest.skip("needs g++")
    text = source.read_text() if text is None else text
    text = SHARED_MEMORY.sub(_on_cpu, text)
    # A launch with more threads than a kernel was compiled for fails on a card.
    bound = re.search(rf"__launch_bounds__\s*\(([^,()]+)[^()]*\)\s*{kernel}\s*\(", text)
    defines = {"LAUNCH_BOUND": f"unsigned({bound[1] if bound else 1024})", **(defines or {})}
    macros = [f"-D{n}={v}" for n, v in {"KERNEL": kernel, **defines}.items()]
    where = [f"-I{where}" for where in (STAND_INS, source.parent, SHARED)]
    library = folder / f"{kernel}.so"  # a file of its own, so that its static memory is its own
    shutil.copy(_library(gxx, f"{text}\n{ENTRY}", (*where, *macros)), library)
    entry = ctypes.CDLL(str(library)).entry
    entry.restype = ctypes.c_char_p
    kinds = {
        np.int32: ctypes.c_int32,
        np.uint32: ctypes.c_uint32,
        np.int64: ctypes.c_int64,
        np.float32: ctypes.c_float,
    }

    def launch(grid, block, *args, shared_bytes=0):
        with fenced(args) as address_of:
            run(grid, block, args, address_of, shared_bytes)

    def run(grid, block, args, address_of, shared_bytes):
        held = [
            ctypes.c_void_p(address_of(a)) if isinstance(a, torch.Tensor) else kinds[type(a)](a) for a in args
        ]
        triple = ctypes.c_uint * 3
        sizes = [(*s, 1, 1, 1)[:3] if isinstance(s, tuple) else (s, 1, 1) for s in (grid, block)]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(h) for h in held))
        fault = entry(triple(*sizes[0]), triple(*sizes[1]), ctypes.c_uint(shared_bytes), pointers)
        if fault:
            raise RuntimeError(f"{kernel}: {fault.decode()}")

    return launch
