"""Checks shared by the launchers of this folder: refuse what no kernel takes, and say how large the answer is."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from course_kernels.arguments import check_size, check_tensor

MOST_PLACES = 2**30  # of all answers of one channel, counted past their end with 32 bits
MOST_PRODUCTS = 2**24  # of one sum: C * R * S
MOST_NUMBERS = 2**31 - 1  # of an image: C * H * W
MOST_SIDE = 2**15  # of an image, padding and all
MOST_FILTERS = 2**20


@dataclass(frozen=True)
class Sizes:
    """The dimensions of a call: those of problem.py."""

    B: int
    C: int
    H: int
    W: int
    K: int
    R: int
    S: int
    P: int
    Q: int


def sizes_of(x: torch.Tensor, f: torch.Tensor, bias: torch.Tensor, stride: int, padding: int) -> Sizes:
    """Return the sizes of a call.

    Args:
        x: (B, C, H, W) float32, contiguous.
        f: (K, C, R, S) float32, contiguous.
        bias: (K,) float32, contiguous.
        stride: 1 or more.
        padding: 0 or more, of zeros on all sides.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, no place for the filter, a size out of range, not contiguous, not
            on the current GPU.
    """
    found: dict[str, int] = {}
    check_tensor("x", x, "BCHW", found, dtypes=(torch.float32,))
    check_tensor("f", f, "KCRS", found, dtypes=(torch.float32,), device=x.device)
    check_tensor("bias", bias, "K", found, dtypes=(torch.float32,), device=x.device)
    for name, value, least in (("stride", stride, 1), ("padding", padding, 0)):
        if value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    for image, of in (("H", "R"), ("W", "S")):
        side = found[image] + 2 * padding
        if side < found[of]:
            raise ValueError(f"f: expected {of} <= {image} + 2 * padding = {side}, got {of}={found[of]}")
        check_size("x", f"{image} + 2 * padding", side, MOST_SIDE)
    check_size("f", "C * R * S", found["C"] * found["R"] * found["S"], MOST_PRODUCTS)
    check_size("x", "C * H * W", found["C"] * found["H"] * found["W"], MOST_NUMBERS)
    check_size("f", "K", found["K"], MOST_FILTERS)
    P = (found["H"] + 2 * padding - found["R"]) // stride + 1
    Q = (found["W"] + 2 * padding - found["S"]) // stride + 1
    check_size("x", "B * P * Q", found["B"] * P * Q, MOST_PLACES)
    return Sizes(**found, P=P, Q=Q)
