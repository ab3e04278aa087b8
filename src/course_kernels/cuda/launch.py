"""Put a compiled kernel on the GPU and run it on torch's current stream."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import compile_cubin


def load_kernel(path: Path, name: str, defines: Mapping[str, str | int] | None = None) -> Any:
    """The kernel `name` of a `.cu` file, compiled for the current GPU and kept for the next call.

    Args:
        path: the source file.
        name: a function declared `extern "C" __global__`.
        defines: macros, as `-D NAME=VALUE`; each set of them is a kernel of its own.
    Raises:
        CompileError, CudaMissingError, FileNotFoundError: see `compile_cubin`.
        ValueError: the file has no kernel of that name.
    """
    return _load(path, name, tuple((defines or {}).items()), arch_of(torch.cuda.get_device_capability()))


@functools.cache
def _load(path: Path, name: str, defines: tuple[tuple[str, str | int], ...], arch: str) -> Any:
    from cuda.core import ObjectCode

    code = ObjectCode.from_cubin(compile_cubin(path, arch, dict(defines)))
    try:
        return code.get_kernel(name)
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
    from cuda.core import LaunchConfig, Stream
    from cuda.core import launch as launch_on_stream

    config = LaunchConfig(grid=grid, block=block, shmem_size=shared_bytes)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    launch_on_stream(stream, config, kernel, *(_argument(a) for a in args))


def _argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if not value.is_cuda or value.device.index != torch.cuda.current_device():
            here = f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "a GPU"
            raise ValueError(f"launch: expected a tensor on {here}, the current device, got {value.device}")
        return value.data_ptr()
    if isinstance(value, np.generic):
        return value
    raise TypeError(f"launch: expected a tensor or a NumPy number, such as np.int32(n), got {value!r}")
