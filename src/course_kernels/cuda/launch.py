"""Put a compiled kernel on the GPU and run it on torch's current stream."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.includes import project_folders, sources_of

# A launch asks for its kernel every time, and each look at the files costs the host a few microseconds. Nobody edits
# and runs within this time, so a loop of launches pays once in it.
LOOK_EVERY_S = 0.01


@dataclass
class _Held:
    """A kernel, and what its sources were when it was made."""

    kernel: Any
    watched: tuple[str, ...]
    stamp: tuple[object, ...]
    looked: float  # when, in seconds of the monotonic clock


_HELD: dict[tuple[object, ...], _Held] = {}


def load_kernel(path: Path, name: str, defines: Mapping[str, str | int] | None = None) -> Any:
    """Return the kernel `name` of a `.cu` file, compiled for the current GPU and kept for the next call.

    A file that was edited, or one that it includes, is compiled again; the files are looked at once in
    `LOOK_EVERY_S` at most. The same code is the same object, call after call.

    Args:
        path: the source file.
        name: a function declared `extern "C" __global__`.
        defines: macros, as `-D NAME=VALUE`; each set of them is a kernel of its own.
    Raises:
        CompileError, CudaMissingError, FileNotFoundError: see `compile_cubin`.
        ValueError: the file has no kernel of that name.
    """
    device = torch.cuda.current_device()
    key = (path, name, tuple(defines.items()) if defines else (), device)
    held, now = _HELD.get(key), time.monotonic()
    if held is not None:
        if now - held.looked < LOOK_EVERY_S:
            return held.kernel
        if _stamp(held.watched) == held.stamp:
            held.looked = now
            return held.kernel
    files = sources_of(path)
    # The folders too: a new header in one of them may take the place of another.
    folders = [*project_folders(path), *(file.parent for file in files)]
    watched = tuple(dict.fromkeys(str(file) for file in (*files, *folders)))
    stamp = _stamp(watched)  # before the texts are read: an edit that comes between is seen at the next look
    kernel = _loaded(path, name, compile_cubin(path, _arch(device), defines))
    _HELD[key] = _Held(kernel, watched, stamp, now)
    return kernel


def _stamp(watched: Iterable[str]) -> tuple[object, ...]:
    try:
        return tuple((about.st_mtime_ns, about.st_size, about.st_ino) for about in map(os.stat, watched))
    except FileNotFoundError:
        return ()  # what is gone equals nothing that was


@functools.cache
def _arch(device: int) -> str:
    return arch_of(torch.cuda.get_device_capability(device))


@functools.cache  # never let go: unloading the code of a kernel that is still running ends it
def _loaded(path: Path, name: str, cubin: bytes) -> Any:
    from cuda.core import ObjectCode

    try:
        return ObjectCode.from_cubin(cubin).get_kernel(name)
    except Exception as error:
        raise ValueError(f'{path.name}: no extern "C" __global__ {name} in it ({error})') from error


def launch(
    kernel: Any, grid: int | tuple[int, ...], block: int | tuple[int, ...], *args: Any, shared_bytes: int = 0
) -> None:
    """Run a kernel on torch's current stream; returns before the kernel has finished.

    Args:
        kernel: what `load_kernel` returned.
        grid: blocks, up to three dimensions.
        block: threads of a block, up to three dimensions.
        args: one for each parameter. A tensor passes its address; a number must be a NumPy scalar of the
            parameter's own width, such as `np.int32(N)`, since a plain int has no width.
        shared_bytes: dynamic shared memory of a block.
    Raises:
        TypeError: an argument is neither a tensor nor a NumPy number.
        ValueError: a tensor is not on the current GPU.
    """
    config_of, launch_on_stream = _core()
    device = torch.cuda.current_device()
    config = config_of(grid=grid, block=block, shmem_size=shared_bytes)
    stream = _stream(torch.cuda.current_stream().cuda_stream, device)
    launch_on_stream(stream, config, kernel, *(_argument(a, device) for a in args))


@functools.cache  # the imports of every launch would add up
def _core() -> tuple[Any, Any]:
    from cuda.core import LaunchConfig, launch

    return LaunchConfig, launch


@functools.lru_cache(
    maxsize=64
)  # a wrapper of the handle that owns nothing, and takes longer to make than to use
def _stream(handle: int, device: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


def _argument(value: Any, device: int | None = None) -> Any:
    """Return what a launch on `device` passes for one argument; without a GPU it is None, and no tensor will do."""
    if isinstance(value, torch.Tensor):
        if not value.is_cuda or value.device.index != device:
            here = "a GPU" if device is None else f"cuda:{device}"
            raise ValueError(f"launch: expected a tensor on {here}, the current device, got {value.device}")
        return value.data_ptr()
    if isinstance(value, np.generic):
        return value
    raise TypeError(f"launch: expected a tensor or a NumPy number, such as np.int32(n), got {value!r}")
