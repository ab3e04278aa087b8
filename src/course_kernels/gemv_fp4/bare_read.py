"""The bytes of a product, read once and added up, in three ways: the launcher of bare_read.cu and its two neighbours.

It computes no product, so it is no competitor. `words_of` is the truth for what it adds up. Which way is quickest is a
question for the card: try all of `WAYS`.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.gemv_fp4.arguments import sizes_of

SOURCES = {
    name: Path(__file__).with_name(f"{name}.cu") for name in ("bare_read", "bare_read_ring", "bare_read_bulk")
}
THREADS = {"bare_read": 256, "bare_read_ring": 512, "bare_read_bulk": 256}  # as in the .cu files
RING_VECTORS = 4  # of a lane, in a stage of bare_read_ring
VECTOR_BYTES = 16


class Way(NamedTuple):
    """A way to read.

    Attributes:
        kernel: of `SOURCES`.
        vectors: 16-byte loads that a thread asks for at once; of bare_read_bulk, what a lane has of a chunk.
        stages: of a ring; 1 for plain loads.
        resident: blocks for each multiprocessor, there at once if there is room for them.
    """

    kernel: str
    vectors: int
    stages: int
    resident: int

    @property
    def defines(self) -> dict[str, int]:
        """Macros of the kernel."""
        return {
            "bare_read": {"VECTORS": self.vectors},
            "bare_read_ring": {"STAGES": self.stages},
            "bare_read_bulk": {"VECTORS": self.vectors, "STAGES": self.stages},
        }[self.kernel]

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: what can be under way in it."""
        ring = self.kernel != "bare_read"
        return VECTOR_BYTES * self.vectors * self.stages * THREADS[self.kernel] if ring else 0


# Worth trying: from 32 to 256 KB under way for each multiprocessor; k12_ring has 128 KB, and its scales.
WAYS = (
    *(Way("bare_read", vectors, 1, resident) for vectors in (2, 4, 8) for resident in (4, 8)),
    # More than there is room for: they come and go.
    *(Way("bare_read", 4, 1, resident) for resident in (16, 32)),
    *(Way("bare_read_ring", RING_VECTORS, stages, 2) for stages in (2, 3)),
    # Four stages of 16 KB, not three: 48 KB and the barriers would be a little more than a block gets unasked.
    *(Way("bare_read_bulk", vectors, stages, n) for vectors, stages in ((4, 4), (8, 3)) for n in (1, 2)),
)


def bare_read(
    a: torch.Tensor,
    scales_a: torch.Tensor,
    b: torch.Tensor,
    scales_b: torch.Tensor,
    *,
    way: Way = WAYS[0],
) -> torch.Tensor:
    """Return the sums of all words, one for each warp.

    Args:
        a, scales_a, b, scales_b: see `sizes_of`; each a whole number of 16-byte vectors.
        way: how to read.
    Returns:
        int32; their sum modulo 2**32 is that of `words_of`.
    Raises:
        TypeError, ValueError: see `sizes_of`; or a tensor is no whole number of vectors, or a way not in `WAYS`.
    """
    sizes_of(a, scales_a, b, scales_b)
    if way not in WAYS:
        raise ValueError(f"way: expected one of bare_read.WAYS, got {way}")
    tensors = {"a": a, "scales_a": scales_a, "b": b, "scales_b": scales_b}
    for name, tensor in tensors.items():
        if tensor.numel() % VECTOR_BYTES:
            raise ValueError(f"{name}: expected a multiple of {VECTOR_BYTES} bytes, got {tensor.numel()}")
    blocks = way.resident * _multiprocessors(a.get_device())
    sums = torch.empty(blocks * THREADS[way.kernel] // 32, dtype=torch.int32, device=a.device)
    counts = [tensor.numel() // VECTOR_BYTES for tensor in tensors.values()]
    _prepared(a.get_device(), way)((blocks, 1, 1), *tensors.values(), sums, *counts)
    return sums


def words_of(*tensors: torch.Tensor) -> int:
    """Return the sum of all 32-bit words of some tensors, modulo 2**32."""
    flat = (tensor.view(torch.uint8).reshape(-1).view(torch.int32) for tensor in tensors)
    return sum(int(words.sum(dtype=torch.int64)) for words in flat) % 2**32


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def _prepared(device: int, way: Way) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCES[way.kernel],
        way.kernel,
        block=THREADS[way.kernel],
        shared_bytes=way.shared_bytes,
        defines=way.defines,
    )
