"""Checks shared by the launchers of this folder: refuse what no kernel takes, and make room for the product."""

from __future__ import annotations

import torch

from course_kernels.arguments import check_size, check_tensor

# Sizes are 32-bit numbers on the card, and a kernel counts up to a block tile past them.
MAX_SIZE = 2**31 - 1024
MAX_TILES = 65535  # the grid's second dimension ends there


def product_of(
    a: torch.Tensor, b: torch.Tensor, *, tile_m: int | None = None, tile_n: int | None = None
) -> tuple[torch.Tensor, int, int, int]:
    """Room for a @ b, and its sizes.

    Args:
        a: (M, K) float32, contiguous.
        b: (K, N) float32, contiguous.
        tile_m, tile_n: rows, or columns, of C in one block, where the grid's second dimension counts those.
    Returns:
        c (M, N) float32 with nothing in it yet, M, N, K.
    Raises:
        TypeError: a or b is not float32.
        ValueError: shapes that do not fit each other, a size out of range, not contiguous, not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=(torch.float32,))
    check_tensor("b", b, "KN", sizes, dtypes=(torch.float32,), device=a.device)
    M, N, K = sizes["M"], sizes["N"], sizes["K"]
    check_size("a", "M", M, MAX_SIZE if tile_m is None else min(MAX_SIZE, MAX_TILES * tile_m))
    check_size("a", "K", K, MAX_SIZE)
    check_size("b", "N", N, MAX_SIZE if tile_n is None else min(MAX_SIZE, MAX_TILES * tile_n))
    return torch.empty((M, N), dtype=a.dtype, device=a.device), M, N, K


def check_asynchronous_copies() -> None:
    """Refuse a GPU that has no copies from global to shared memory which nobody waits for.

    Raises:
        ValueError: its compute capability is below 8.0.
    """
    major, minor = torch.cuda.get_device_capability()
    if major < 8:
        raise ValueError(
            "a: expected a GPU of compute capability 8.0 or above for asynchronous copies, "
            f"got {major}.{minor}"
        )


def in_vectors(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether every row of a, of b and of a fresh product begins at a multiple of 16 bytes."""
    return all(t.data_ptr() % 16 == 0 and t.shape[1] % 4 == 0 for t in (a, b))
