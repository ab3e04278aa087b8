"""Every microbenchmark checks its own answer: a load the compiler removed is a wrong number, not a fast one."""

from __future__ import annotations

import time
from typing import Any

import torch

WARM_UP_S = 0.1  # cycles past the L1 depend on how fast the multiprocessor runs beside the rest of the card
CACHES = 4  # the buffer that empties the L2 cache, in units of that cache


class WrongAnswer(RuntimeError):
    """A microbenchmark did not do the work it timed; one line: what, expected, got."""


def expect(what: str, got: int, expected: int) -> None:
    """Raise `WrongAnswer` unless the two numbers are the same."""
    if got != expected:
        raise WrongAnswer(
            f"{what}: expected {expected}, got {got}: the loads that were timed are not the ones meant"
        )


def require_gpu() -> None:
    """Raise one clear RuntimeError where torch finds no GPU."""
    if not torch.cuda.is_available():
        raise RuntimeError("no GPU: torch cannot use CUDA on this machine; run this where a GPU is")


def require_room(kernel: Any, grid: int, threads: int) -> None:
    """Raise ValueError unless all blocks of a launch fit on the card at once: they wait for each other.

    Args:
        kernel: what `load_kernel` returned, with no dynamic shared memory.
        grid: blocks.
        threads: of a block.
    """
    multiprocessors = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    most = multiprocessors * kernel.occupancy.max_active_blocks_per_multiprocessor(threads, 0)
    if grid > most:
        raise ValueError(
            f"grid: at most {most} blocks of {threads} threads fit on this card at once, got {grid}: they wait for "
            "each other, and the last would never begin"
        )


def warm_up_and_empty_l2() -> None:
    """Bring the card's clocks up, and leave nothing of what is measured next in the L2 cache.

    Reads a buffer of four times the cache, again and again until the clocks are up. Read, not written: dirty lines
    would be written back during what is timed.
    """
    l2_bytes = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    buffer = torch.ones(CACHES * l2_bytes // 4, dtype=torch.float32, device="cuda")
    total = torch.empty((), dtype=torch.float32, device="cuda")
    started = time.perf_counter()
    while time.perf_counter() - started < WARM_UP_S:
        torch.sum(buffer, dim=0, out=total)
        torch.cuda.synchronize()
