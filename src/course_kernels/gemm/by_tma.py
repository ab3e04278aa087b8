"""Matrix multiply on Hopper, what the kernels from k06_tma on share on the host.

Contract  problem.py
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import torch

from course_kernels.cuda.prepared import Prepared, Written, prepare, tensor_map
from course_kernels.gemm import arguments
from course_kernels.gemm.launch_cache import EIGHT, Ready, multiply, sizes_of
from course_kernels.problem import Workload

BK = 64  # as in hopper_tiles.cuh: rows of 128 bytes
ROW_BYTES = 128


@dataclass(frozen=True)
class Shape:
    """Constants that a kernel's source states.

    Attributes:
        BM, BN: the tile of C that a block makes at once.
        stages: pairs of tiles of A and B in shared memory.
        threads: threads of a block.
        cluster: blocks one below the other that share what they fetch of B.
        persistent: as many blocks as multiprocessors, each walking over many tiles; else one block a tile.
        c_panels: places of 64 x 64 for C in shared memory; 0 where threads write C.
    """

    BM: int
    BN: int
    stages: int
    threads: int
    cluster: int = 1
    persistent: bool = False
    c_panels: int = 0

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: the stages, the panels of C, two barriers a stage."""
        return self.stages * ((self.BM + self.BN) * ROW_BYTES + 16) + self.c_panels * 64 * ROW_BYTES


def supports(w: Workload) -> bool:
    """Return whether the copy engine takes a workload: 16-bit types, K and N divisible by 8."""
    return arguments.supports(w) and w.N % EIGHT == 0 and w.K % EIGHT == 0


@functools.cache
def multiprocessors(device: int) -> int:
    """Return the number of multiprocessors of a Hopper; asked once.

    Raises:
        ValueError: a GPU of another compute capability than 9.0.
    """
    capability = torch.cuda.get_device_capability(device)
    if capability != (9, 0):
        raise ValueError(
            f"a: expected a GPU of compute capability 9.0 (Hopper, for wgmma), got {'.'.join(map(str, capability))}"
        )
    return torch.cuda.get_device_properties(device).multi_processor_count


def gemm_by_tma(
    source: Path,
    kernel: str,
    shape: Shape,
    a: torch.Tensor,
    b: torch.Tensor,
    defines: tuple[tuple[str, int], ...] = (),
) -> torch.Tensor:
    """Return the product a @ b, by one of the kernels that the copy engine brings tiles to; sums in float32.

    Args:
        source: the `.cu` file.
        kernel: its name there.
        shape: what the source's constants are, with these macros.
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N a multiple of 8, N <= 2**30.
        defines: macros, as pairs.
    Returns:
        (M, N), the same type; every element is rounded to it once.
    Raises:
        TypeError: see `sizes_of`.
        ValueError: see `sizes_of`; or a GPU of another compute capability than 9.0.
    """

    def make(a: torch.Tensor, b: torch.Tensor) -> Ready:
        M, N, K = sizes_of(a, b)
        most = multiprocessors(a.get_device())
        tiles = -(-M // (shape.BM * shape.cluster)) * -(-N // shape.BN) * shape.cluster
        grid = min(tiles, most // shape.cluster * shape.cluster) if shape.persistent else tiles
        macros = (*defines, ("FLOAT16", int(a.dtype is torch.float16)))
        ready = _prepared(a.get_device(), source, kernel, shape, macros)

        def write(
            a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, parts: torch.Tensor | None
        ) -> tuple[Written, ...]:
            to = tensor_map(c, (64, 64)) if shape.c_panels else c
            maps = tensor_map(a, (shape.BM, BK)), tensor_map(b, (BK, 64))
            return (ready.written(grid, *maps, to, M, N, K),)

        return Ready(a, M, N, ready.current, write)

    return multiply((kernel, defines), a, b, make)


@functools.cache
def _prepared(
    device: int, source: Path, kernel: str, shape: Shape, defines: tuple[tuple[str, int], ...]
) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        source,
        kernel,
        block=shape.threads,
        shared_bytes=shape.shared_bytes,
        cluster=shape.cluster,
        defines=dict(defines),
    )
