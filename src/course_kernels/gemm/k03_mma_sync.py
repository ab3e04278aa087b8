"""Matrix multiply on tensor cores, kernel 3: the launcher of k03_mma_sync.cu. Read that file first.

Contract  problem.py
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.shared_memory import allow_shared_memory
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
TYPES = {torch.bfloat16: "Bf16", torch.float16: "Fp16"}
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel


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
    # The best of a sweep on an H200. BK=32 means twice as many barriers and was slower; a fourth stage changed nothing.
    (9, 0): Shape(BM=128, BN=256, BK=64, WM=64, WN=64, STAGES=3),
    # Not measured: 114 KB of the 163 that a block may have.
    (8, 0): Shape(BM=128, BN=256, BK=32, WM=64, WN=64, STAGES=4),
}
# Everywhere else a block may have 99 KB at least; this takes 73.
ELSEWHERE = Shape(BM=128, BN=128, BK=32, WM=64, WN=64, STAGES=4)


def supports(w: Workload) -> bool:
    """Whether the numbers have 16 bits."""
    return w.torch_dtype in TYPES


def gemm(a: torch.Tensor, b: torch.Tensor, *, shape: Shape | None = None) -> torch.Tensor:
    """The product a @ b, sums in fp32.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N <= 2**30. Where N or K is no multiple of 8, or an address none of
            16 bytes, it is slower.
        shape: the kernel's constants; left out, those for the current GPU.
    Returns:
        (M, N), the same type; every element is rounded to it once.
    Raises:
        TypeError: a is neither bfloat16 nor float16, or b is of another type.
        ValueError: shapes that do not fit each other or are too long, not contiguous, not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=tuple(TYPES))
    check_tensor("b", b, "KN", sizes, dtypes=(a.dtype,), device=a.device)
    M, N, K = sizes["M"], sizes["N"], sizes["K"]
    if max(M, N, K) > MAX_SIZE:
        raise ValueError(f"a, b: expected M, N and K <= {MAX_SIZE}, got M={M}, N={N}, K={K}")
    if shape is None:
        shape = SHAPES.get(torch.cuda.get_device_capability(), ELSEWHERE)

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    whole = N % 8 == 0 and K % 8 == 0 and a.data_ptr() % 16 == 0 and b.data_ptr() % 16 == 0
    kernel = _kernel(shape, TYPES[a.dtype], whole, torch.cuda.current_device())
    card = torch.cuda.get_device_properties(a.device)
    grid = min(-(-M // shape.BM) * -(-N // shape.BN), shape.BLOCKS * card.multi_processor_count)
    sizes_of_the_kernel = (np.int32(M), np.int32(N), np.int32(K))
    launch(kernel, grid, shape.threads, a, b, c, *sizes_of_the_kernel, shared_bytes=shape.shared_bytes)
    return c


@functools.cache
def _kernel(shape: Shape, type_name: str, whole: bool, device_number: int) -> Any:
    defines = {"TYPE": type_name, "WHOLE": int(whole), **asdict(shape)}
    kernel = load_kernel(SOURCE, "gemm_mma_sync", defines)
    allow_shared_memory(kernel, shape.shared_bytes)
    return kernel
