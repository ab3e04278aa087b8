"""More than 48 KB of shared memory: a block gets it only after the kernel was allowed to ask."""

from __future__ import annotations

import functools
from typing import Any

import torch

WITHOUT_ASKING = 48 * 1024  # dynamic shared memory every kernel may have, in bytes


def allow_shared_memory(kernel: Any, n_bytes: int, *, carveout: int | None = None) -> None:
    """Let `kernel` be launched on the current GPU with up to `n_bytes` of dynamic shared memory.

    Args:
        kernel: what `load_kernel` returned.
        n_bytes: of a block; nothing is done up to 48 KB.
        carveout: how much of the memory that L1 and shared memory share should be shared memory, in percent;
            left out, the driver decides.
    Raises:
        ValueError: the GPU has less than that; the line says how much it has.
    """
    _allow(kernel, n_bytes, carveout, torch.cuda.current_device())


@functools.cache  # launchers ask at every launch, and the driver's answer holds as long as the kernel does
def _allow(kernel: Any, n_bytes: int, carveout: int | None, number: int) -> None:
    from cuda.bindings import driver
    from cuda.core import Device

    most = Device(number).properties.max_shared_memory_per_block_optin
    if n_bytes > most:
        raise ValueError(f"shared memory: a block wants {n_bytes} bytes, this GPU has {most} for it")
    names = driver.CUfunction_attribute
    settings = {}
    if n_bytes > WITHOUT_ASKING:
        settings[names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = n_bytes
    if carveout is not None:
        settings[names.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = carveout
    for name, value in settings.items():
        (error,) = driver.cuKernelSetAttribute(name, value, kernel.handle, driver.CUdevice(number))
        if error != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"shared memory: the driver refused {name.name} = {value}: {error.name}")
