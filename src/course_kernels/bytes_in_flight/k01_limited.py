"""Bytes in flight, kernel 1: the launcher of k01_limited.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.bytes_in_flight.problem import RESIDENT, THREADS, VECTORS
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.shared_memory import allow_shared_memory

SOURCE = Path(__file__).with_suffix(".cu")
GRAIN = 128  # shared memory is handed out in pieces of so many bytes


def bytes_in_flight(x: torch.Tensor, *, vectors: int, resident: int) -> torch.Tensor:
    """Return a copy of x.

    Args:
        x: (N,) float32, contiguous, at an address divisible by 16 (as torch allocates).
        vectors: 16-byte vectors under way in each thread: 1, 2, 4 or 8.
        resident: at most so many blocks of 256 threads on a multiprocessor: 1 to 8.
    Returns:
        (N,) float32, equal to x bit by bit.
    Raises:
        TypeError: x is not float32.
        ValueError: x is not a contiguous (N,) on the current GPU or starts between two 16-byte vectors, or an
            option is out of range.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    check_address("x", x)
    limit = limits(vectors, resident)

    y = torch.empty_like(x)
    N = sizes["N"]
    grid = min(-(-N // (THREADS * vectors * 4)), limit["blocks"] * limit["multiprocessors"])
    kernel = load_kernel(SOURCE, "copy_limited", {"VECTORS": vectors})
    launch(kernel, grid, THREADS, x, y, np.int64(N), shared_bytes=limit["shared_bytes"])
    return y


def occupancy(vectors: int, resident: int) -> float:
    """Return how much of a multiprocessor's room for threads is taken, 0 to 1, as the driver says.

    Below resident * 256 threads where registers leave room for fewer blocks.

    Raises:
        ValueError: an option is out of range.
    """
    limit = limits(vectors, resident)
    return limit["blocks"] * THREADS / limit["threads"]


def limits(vectors: int, resident: int) -> dict[str, int]:
    """Return what holds the blocks down on the current GPU, and how many the driver says are resident.

    Returns:
        shared_bytes: dynamic shared memory of a block; blocks: resident on a multiprocessor; multiprocessors:
        of the GPU; threads: room on a multiprocessor.
    Raises:
        ValueError: an option is out of range.
    """
    for name, value, allowed in (("vectors", vectors, VECTORS), ("resident", resident, RESIDENT)):
        if value not in allowed:
            raise ValueError(f"{name}: expected one of {', '.join(map(str, allowed))}, got {value}")
    return _limits(vectors, resident, torch.cuda.current_device())


@functools.cache
def _limits(vectors: int, resident: int, device_number: int) -> dict[str, int]:
    from cuda.core import Device

    device = Device(device_number)
    device.set_current()
    card = device.properties
    most = card.max_shared_memory_per_block_optin
    kernel = load_kernel(SOURCE, "copy_limited", {"VECTORS": vectors})
    allow_shared_memory(kernel, most, carveout=100)  # so that the cache beside it is equally small for all
    shared = shared_bytes(
        resident, card.max_shared_memory_per_multiprocessor, most, card.reserved_shared_memory_per_block
    )
    return {
        "shared_bytes": shared,
        "blocks": kernel.occupancy.max_active_blocks_per_multiprocessor(THREADS, shared),
        "multiprocessors": card.multiprocessor_count,
        "threads": card.max_threads_per_multiprocessor,
    }


def shared_bytes(resident: int, of_multiprocessor: int, most: int, reserved: int) -> int:
    """Return the shared memory of a block of which `resident` fit on a multiprocessor and one more does not.

    Args:
        resident: blocks.
        of_multiprocessor, most, reserved: bytes of a multiprocessor, at most of a block, and kept back in each.
    """
    share = of_multiprocessor // resident - reserved
    return min(share // GRAIN * GRAIN, most)
