"""Launchers of the two multiplies of 16-bit numbers; what differs is how many blocks make a tile.

Contract  ../gemm/problem.py
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import torch

from course_kernels.blackwell.card import check_card
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.gemm.arguments import product_of
from course_kernels.problem import Workload

BK = 64  # as in the sources: rows of 128 bytes
ROW_BYTES = 128
EIGHT = 8  # numbers of 16 bits in 16 bytes: the copy engine's rows, and the vectors that C is written in
THREADS = 128


@dataclass(frozen=True)
class Shape:
    """Constants that a kernel's source states.

    Attributes:
        kernel: its name in the source.
        blocks: blocks that make a tile together: 1, or 2, which are a cluster.
        BM, BN: the tile of C that they make.
        stages: pairs of tiles of A and B in shared memory.
    """

    kernel: str
    blocks: int
    BM: int
    BN: int
    stages: int

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: stages, two barriers for each, one more, and TMEM's address."""
        return self.stages * ((self.BM + self.BN) // self.blocks * ROW_BYTES + 16) + 16


def supports(w: Workload) -> bool:
    """Return whether the copy engine takes a workload: 16-bit types, K and N divisible by 8."""
    return w.dtype in ("bfloat16", "float16") and w.N % EIGHT == 0 and w.K % EIGHT == 0


def multiply(source: Path, shape: Shape, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b on data-centre Blackwell; sums in float32.

    Args:
        source: the `.cu` file; its stem is the kernel's name in `machine_code.KERNELS`.
        shape: what the source's constants are.
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N a multiple of 8, N <= 2**30.
    Returns:
        (M, N), the same type; every element is rounded to it once.
    Raises:
        TypeError: a is of another type, or b of another than a.
        ValueError: another card, see `check_card`; or shapes, sizes, layout, device or address not as above.
    """
    check_card(source.stem)
    c, M, N, K = product_of(a, b)
    for name, letter, size in (("a", "K", K), ("b", "N", N)):
        if size % EIGHT:
            raise ValueError(f"{name}: expected {letter} a multiple of {EIGHT}, got {letter}={size}")
    maps = tensor_map(a, (shape.BM // shape.blocks, BK)), tensor_map(b, (BK, 64))
    tiles = -(-M // shape.BM) * -(-N // shape.BN)
    kernel = _prepared(a.get_device(), source, shape, a.dtype is torch.float16)
    kernel(tiles * shape.blocks, *maps, c, M, N, K)
    return c


@functools.cache
def _prepared(device: int, source: Path, shape: Shape, float16: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        source,
        shape.kernel,
        block=THREADS,
        shared_bytes=shape.shared_bytes,
        cluster=shape.blocks,
        defines={"FLOAT16": int(float16)},
    )
