"""Matrix multiply, what kernels 2 to 11 share: one launcher. They differ on the device only.

Contract  problem.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.sgemm.arguments import check_asynchronous_copies, in_vectors, product_of
from course_kernels.sgemm.tiles import tiles_here

ANY = "sgemm_any"  # beside a kernel that moves 16 bytes at a time: the same, an element at a time


def sgemm_by_tiles(
    source: Path,
    kernel: str,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    tile: tuple[int, int],
    threads: int | tuple[int, int],
    vectors: bool = False,
    defines: Mapping[str, str | int] | None = None,
) -> torch.Tensor:
    """Return the product a @ b in fp32, by one of the kernels that give a block to every tile of C.

    Args:
        source: the `.cu` file.
        kernel: its name there.
        a: (M, K) float32, contiguous.
        b: (K, N) float32, contiguous.
        tile: rows and columns of C in one block.
        threads: of one block.
        vectors: the kernel moves 16 bytes at a time; rows that begin elsewhere are left to `sgemm_any` of the file.
        defines: macros of the source.
    Returns:
        (M, N) float32; every element is one running fp32 sum over K.
    Raises:
        TypeError: a or b is not float32.
        ValueError: see `product_of`.
    """
    c, M, N, K = product_of(a, b, tile_m=tile[0])
    grid = (-(-N // tile[1]), -(-M // tile[0]))
    loaded = load_kernel(source, ANY if vectors and not in_vectors(a, b) else kernel, defines)
    launch(loaded, grid, threads, a, b, c, np.int32(M), np.int32(N), np.int32(K))
    return c


def sgemm_by_tiles_of_the_card(source: Path, kernel: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply in the shape of tiles for the current GPU, for the kernels that leave the shape to the launcher.

    Raises:
        TypeError, ValueError: as `sgemm_by_tiles`, and see `check_asynchronous_copies`.
    """
    check_asynchronous_copies()
    tiles = tiles_here()
    return sgemm_by_tiles(
        source, kernel, a, b, tile=tiles.block, threads=tiles.threads, vectors=True, defines=tiles.defines
    )
