"""Matrix multiply on tensor cores, kernel 3: the launcher of k03_mma_sync.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.shared_memory import allow_shared_memory
from course_kernels.gemm.arguments import in_vectors, product_of
from course_kernels.gemm.arguments import supports as supports

SOURCE = Path(__file__).with_suffix(".cu")
TYPES = {torch.bfloat16: "Bf16", torch.float16: "Fp16"}


@dataclass(frozen=True)
class Shape:
    """The constants of the kernel.

    Attributes:
        BM, BN, BK: block tile.
        WM, WN: warp tile.
        STAGES: block tiles in shared memory, one of them multiplied, the others on their way.
        GROUP: strips of A that the tiles share which are computed together.
        BLOCKS: on a multiprocessor at a time, at least: the compiler leaves registers for them.
    """

    BM: int
    BN: int
    BK: int
    WM: int
    WN: int
    STAGES: int
    GROUP: int = 8
    BLOCKS: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.BM // self.WM * (self.BN // self.WN) * 32

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        tiles = self.STAGES * (self.BM + self.BN) * self.BK * 2
        return tiles + self.threads // 32 * 16 * (self.WN * 2 + 16)  # 16 rows of every warp on their way out


# A warp tile of 64 x 64 is the largest square whose sums and two steps of fragments fit in the registers of a thread;
# the larger it is, the fewer bytes a multiply takes out of shared memory.
SHAPES = {
    # A row of 64 numbers is 128 bytes, one turn of all 32 banks; rows of 32 would mean twice as many barriers. Three
    # stages, one multiplied and two on their way, take 144 of the 227 KB that a block may have.
    (9, 0): Shape(BM=128, BN=256, BK=64, WM=64, WN=64, STAGES=3),
    # Not measured: 114 KB of the 163 that a block may have.
    (8, 0): Shape(BM=128, BN=256, BK=32, WM=64, WN=64, STAGES=4),
}
# Everywhere else a block may have 99 KB at least; this takes 73.
ELSEWHERE = Shape(BM=128, BN=128, BK=32, WM=64, WN=64, STAGES=4)


def gemm(a: torch.Tensor, b: torch.Tensor, *, shape: Shape | None = None) -> torch.Tensor:
    """Return the product a @ b, sums in fp32.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N <= 2**30. Where N or K is no multiple of 8, or an address none of
            16 bytes, it is slower.
        shape: the kernel's constants; left out, those for the current GPU.
    Returns:
        (M, N), the same type; every element is rounded to it once.
    Raises:
        TypeError, ValueError: see `product_of`.
    """
    c, M, N, K = product_of(a, b)
    if shape is None:
        shape = SHAPES.get(torch.cuda.get_device_capability(), ELSEWHERE)
    kernel = _kernel(shape, TYPES[a.dtype], in_vectors(a, b))
    card = torch.cuda.get_device_properties(a.device)
    grid = min(-(-M // shape.BM) * -(-N // shape.BN), shape.BLOCKS * card.multi_processor_count)
    sizes_of_the_kernel = (np.int32(M), np.int32(N), np.int32(K))
    launch(kernel, grid, shape.threads, a, b, c, *sizes_of_the_kernel, shared_bytes=shape.shared_bytes)
    return c


def _kernel(shape: Shape, type_name: str, whole: bool) -> Any:
    defines = {"TYPE": type_name, "WHOLE": int(whole), **asdict(shape)}
    kernel = load_kernel(SOURCE, "gemm_mma_sync", defines)
    allow_shared_memory(kernel, shape.shared_bytes)
    return kernel
