"""Compile a `.cu` file with g++ and cuda_on_cpu.h, and launch a kernel of it on CPU tensors."""

import contextlib
import ctypes
import functools
import mmap
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from once import once

from course_kernels.cuda.includes import SHARED

SHIM, RUNTIME = Path(__file__).with_suffix(".h"), Path(__file__).with_suffix(".cpp")
HOPPER = Path(__file__).with_name("hopper_on_cpu.cpp")  # for kernels that include a header of cuda/hopper/
# Shared memory in a template is one object for the whole process, unless the last of these says otherwise.
FLAGS = ("-std=c++17", "-O1", "-w", "-Wno-psabi", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique")
# An index that leaves an array is told to a function of cuda_on_cpu.cpp, instead of g++'s own.
CHECKED = "-fsanitize=bounds"
STAND_INS = Path(__file__).with_name("stand_ins")  # headers that a CPU has its own version of
ENTRY = """
extern "C" __attribute__((visibility("default")))
const char *entry(const unsigned *grid, const unsigned *block, unsigned shared_bytes, unsigned cluster,
                  void **arguments) {
  if (block[0] * block[1] * block[2] > LAUNCH_BOUND) return "more threads than its launch bound allows";
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  fibers::shared_bytes = shared_bytes;
  fibers::shared_base = SHARED_BASE;
  fibers::blocks_in_cluster = cluster;
  if (grid[0] % cluster) return "a grid that is no multiple of its cluster";
  fibers::fill = SHARED_FILL;
  fibers::launch(KERNEL, arguments);
  return fibers::fault();
}
"""
# extern __shared__ float tile[];   and   __shared__ alignas(16) float a[8][128], b[8][128];
SHARED_MEMORY = re.compile(
    r"(extern\s+)?__shared__\s+(?:(?:__align__|alignas)\((\w+)\)\s+)?([\w:]+)\s+([^;()={}]+);"
)


def _on_cpu(declaration):
    """The same names for memory of the CPU, in the same line."""
    dynamic, _, kind, names = declaration.groups()
    if dynamic:
        name = names.partition("[")[0]
        return f"{kind} *{name} = reinterpret_cast<{kind} *>(fibers::dynamic_shared + fibers::shared_base);"
    text = f"alignas(128) static {kind} {names};"
    for name in re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:,|$)", names):
        text += f" static fibers::Shared declared_{name}(&{name}, sizeof {name});"
    return text


def _shared_base(text):
    """Where dynamic shared memory begins: at a multiple of what the kernel asks for, and of nothing more.

    Only the copy engine and wgmma ask for more than 16 bytes, and only their kernels are tried like that.
    """
    dynamic = [found for found in SHARED_MEMORY.finditer(text) if found[1]] if "hopper/" in text else []
    asked = max((int(found[2]) if (found[2] or "").isdigit() else 16 for found in dynamic), default=1024)
    return asked % 1024


@functools.cache
def made_ready(gxx):
    """The shim as g++ reads it fastest, and what runs the fibers, compiled."""

    def compiled(folder):
        shim, runtime = Path(shutil.copy(SHIM, folder)), folder / "runtime.o"
        subprocess.run([gxx, *FLAGS, CHECKED, "-x", "c++-header", str(shim), "-o", f"{shim}.gch"], check=True)
        subprocess.run([gxx, *FLAGS, "-O2", "-c", str(RUNTIME), "-o", str(runtime)], check=True)

    folder = once(compiled, gxx)
    return folder / SHIM.name, folder / "runtime.o"


@functools.cache
def hopper(gxx):
    """The machine of Hopper's instructions, compiled."""

    def machine(folder):
        how = ("-O3", f"-I{HOPPER.parent}", "-c", str(HOPPER))
        subprocess.run([gxx, *FLAGS, *how, "-o", str(folder / "hopper.o")], check=True)

    return once(machine, gxx) / "hopper.o"


@functools.cache
def _library(gxx, text, flags):
    """The library of a source; the same source with the same flags is compiled once."""

    def library(folder):
        shim, runtime = made_ready(gxx)
        name, program = folder / "kernel.cpp", folder / "kernel.o"
        name.write_text(f'#include "{shim}"\n{text}')
        subprocess.run([gxx, *FLAGS, CHECKED, *flags, "-c", str(name), "-o", str(program)], check=True)
        parts = [program, runtime, *([hopper(gxx)] if "hopper/" in text else [])]
        subprocess.run([gxx, "-shared", *map(str, parts), "-o", str(folder / "kernel.so")], check=True)

    return once(library, gxx, text, flags) / "kernel.so"


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


def _tensor_of(arg):
    """The tensor that an argument leads to: itself, or that of a tensor map (hopper_on_cpu.py)."""
    return arg if isinstance(arg, torch.Tensor) else getattr(arg, "tensor", None)


@contextlib.contextmanager
def fenced(args):
    """The tensors among the arguments, copied to where the system stops whoever reads or writes beside them.

    Each storage ends where a page ends, but for what keeps it at a multiple of 16 bytes; the next page may not be
    touched, nor the one before its first. Hands out the address of a tensor there; at the end all is copied back.
    """
    places, regions = {}, []
    for tensor in (t for t in map(_tensor_of, args) if t is not None):
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
    """A function launch(grid, block, *args, shared_bytes=0, cluster=1) for one kernel; `text` replaces the file's own.

    A cluster is of so many neighbours along x. It raises RuntimeError where a card would hang or fault: threads that
    wait for ever, shared memory past its end.
    """
    gxx = shutil.which("g++") or pytest.skip("needs g++")
    text = source.read_text() if text is None else text
    base = _shared_base(text)
    text = SHARED_MEMORY.sub(_on_cpu, text)
    # A launch with more threads than a kernel was compiled for fails on a card.
    bound = re.search(rf"__launch_bounds__\s*\(([^,()]+)[^()]*\)\s*(?:void\s+)?{kernel}\s*\(", text)
    defines = {
        "LAUNCH_BOUND": f"unsigned({bound[1] if bound else 1024})",
        "SHARED_BASE": base,
        **(defines or {}),
    }
    macros = [f"-D{n}={v}" for n, v in {"KERNEL": kernel, **defines}.items()]
    where = [f"-I{where}" for where in (STAND_INS, source.parent, SHARED, SHIM.parent)]
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

    def held_of(arg, address_of):
        tensor = _tensor_of(arg)
        if tensor is None:
            return kinds[type(arg)](arg)
        if tensor is arg:
            return ctypes.c_void_p(address_of(arg))
        return ctypes.create_string_buffer(arg.encoded(address_of(tensor)))

    def launch(grid, block, *args, shared_bytes=0, cluster=1):
        with fenced(args) as address_of:
            run(grid, block, [held_of(a, address_of) for a in args], shared_bytes, cluster)

    def run(grid, block, held, shared_bytes, cluster):
        triple = ctypes.c_uint * 3
        sizes = [(*s, 1, 1, 1)[:3] if isinstance(s, tuple) else (s, 1, 1) for s in (grid, block)]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(h) for h in held))
        numbers = (ctypes.c_uint(shared_bytes), ctypes.c_uint(cluster))
        fault = entry(triple(*sizes[0]), triple(*sizes[1]), *numbers, pointers)
        if fault:
            raise RuntimeError(f"{kernel}: {fault.decode()}")

    return launch
