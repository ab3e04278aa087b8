"""The shape of the tiles, for each card: the constants of kernels 10, 11 and 12."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Tiles:
    """Tile shapes of a block, a warp and a thread in C.

    Attributes:
        block, warp, register: rows and columns of the block tile, the warp tile and the register tile.
    """

    block: tuple[int, int]
    warp: tuple[int, int]
    register: tuple[int, int]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] // (self.register[0] * self.register[1])

    @property
    def defines(self) -> dict[str, int]:
        """Return them by the names of the .cu files."""
        names = ("BLOCK", "WARP", "REGISTER")
        tiles = (self.block, self.warp, self.register)
        return {
            f"{name}_{letter}": size
            for name, tile in zip(names, tiles, strict=True)
            for letter, size in zip("MN", tile, strict=True)
        }


# 9.0: 16 x 8 sums are half of the registers that a thread may have; 16 x 16 would be all of them. With what it holds
# beside its sums, 256 threads fill an SM: one block tile of 128 x 256. The page L5 races it against five other shapes.
BY_CAPABILITY = {(9, 0): Tiles(block=(128, 256), warp=(64, 64), register=(16, 8))}
# Where nothing was measured: the shape of kernel 9, which leaves room for two blocks on an SM.
OTHERWISE = Tiles(block=(128, 128), warp=(32, 64), register=(8, 8))


def tiles_here() -> Tiles:
    """Return the shape for the current GPU."""
    return BY_CAPABILITY.get(torch.cuda.get_device_capability(), OTHERWISE)
