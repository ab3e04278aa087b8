"""The bytes of a product, read once and added up: the launcher of bare_read.cu. Read that file first.

It computes no product, so it is no competitor. `words_of` is the truth for what it adds up.
"""

from __future__ import annotations

import functools
from pathlib import Path

import torch

from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.gemv_fp4.arguments import sizes_of

SOURCE = Path(__file__).with_suffix(".cu")
THREADS, VECTOR_BYTES = 256, 16  # as in the .cu
WAYS = tuple((vectors, resident) for vectors in (1, 2, 4, 8) for resident in (2, 4, 8))  # worth trying


def bare_read(
    a: torch.Tensor,
    scales_a: torch.Tensor,
    b: torch.Tensor,
    scales_b: torch.Tensor,
    *,
    vectors: int = 4,
    resident: int = 4,
) -> torch.Tensor:
    """Return the sums of all words, one for each warp.

    Args:
        a, scales_a, b, scales_b: see `sizes_of`; each a whole number of 16-byte vectors.
        vectors: 16-byte loads under way in each thread; 1, 2, 4 or 8.
        resident: blocks for each multiprocessor.
    Returns:
        int32; their sum modulo 2**32 is that of `words_of`.
    Raises:
        TypeError, ValueError: see `sizes_of`; or a tensor is no whole number of vectors, or an unknown `vectors`.
    """
    sizes_of(a, scales_a, b, scales_b)
    if vectors not in (1, 2, 4, 8) or resident < 1:
        raise ValueError(
            f"vectors, resident: expected 1, 2, 4 or 8 and at least 1, got {vectors} and {resident}"
        )
    tensors = {"a": a, "scales_a": scales_a, "b": b, "scales_b": scales_b}
    for name, tensor in tensors.items():
        if tensor.numel() % VECTOR_BYTES:
            raise ValueError(f"{name}: expected a multiple of {VECTOR_BYTES} bytes, got {tensor.numel()}")
    blocks = resident * _multiprocessors(a.get_device())
    sums = torch.empty(blocks * THREADS // 32, dtype=torch.int32, device=a.device)
    counts = [tensor.numel() // VECTOR_BYTES for tensor in tensors.values()]
    _prepared(a.get_device(), vectors)(blocks, *tensors.values(), sums, *counts)
    return sums


def words_of(*tensors: torch.Tensor) -> int:
    """Return the sum of all 32-bit words of some tensors, modulo 2**32."""
    flat = (tensor.view(torch.uint8).reshape(-1).view(torch.int32) for tensor in tensors)
    return sum(int(words.sum(dtype=torch.int64)) for words in flat) % 2**32


@functools.cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def _prepared(device: int, vectors: int) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(SOURCE, "bare_read", block=THREADS, defines={"VECTORS": vectors})
