"""Rounding errors: what FP8, NVFP4, MXFP4 and INT4 make of numbers, and what helps.

    how = Rounding("NVFP4", rule="error", rotation=16)
    back = rounded(x, how)
    errors(x, back)

A number is rounded and decoded again at once: all that counts here is what the format made of it. NumPy, on the host.

    FP8     E4M3, one scale in float32 for the tensor: its largest becomes 448
    NVFP4   E2M1, blocks of 16, scales in E4M3, and a second one for the tensor
    MXFP4   E2M1, blocks of 32, powers of two for scales
    INT4    whole numbers from -8 to 7, groups of 128, scales in BF16

*Rotation*: a Hadamard matrix H, of entries 1 and -1 over the root of its size, spreads each number over its whole
block, so that none of a block is far larger than the others. H is its own inverse: (x H)(H w) = x w, so a product stays
the same if both factors are rotated. Here x is rotated, rounded and rotated back: a product with that has the error of
one whose other factor is rotated and not rounded.

Source  Ashkboos et al. 2024, QuaRot, arXiv:2404.00456, section 4; NVIDIA 2025, Pretraining Large Language Models with
        NVFP4, arXiv:2509.25149 (Hadamard matrices of 16 x 16)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from course_kernels.nvfp4 import blocks, formats
from course_kernels.nvfp4.blocks import MXFP4, NVFP4, Rule
from course_kernels.nvfp4.formats import BF16, E4M3

Array = np.ndarray[Any, Any]
Name = Literal["FP8", "NVFP4", "MXFP4", "INT4"]

NAMES: tuple[Name, ...] = ("FP8", "NVFP4", "MXFP4", "INT4")
IN_BLOCKS = {"NVFP4": NVFP4, "MXFP4": MXFP4}
GROUP = 128  # of INT4
ROTATIONS = (16, 32, 128)
COMPARED = (
    32  # numbers of a block whose error is looked at: the same for all formats, a multiple of NVFP4's 16
)


@dataclass(frozen=True)
class Rounding:
    """A format, and the choices that it leaves.

    Attributes:
        name: one of `NAMES`.
        rule: how the scale of a block is chosen, as `blocks.encode` says; of NVFP4 and MXFP4. The format's own if None.
        second: whether the tensor has a scale of its own; False takes 1 for it. Of NVFP4.
        rotation: numbers of a block that a Hadamard matrix mixes, one of `ROTATIONS`; 0 for none.
    Raises:
        ValueError: an unknown name, a choice that the format does not leave, or another size of the rotation.
    """

    name: Name
    rule: Rule | None = None
    second: bool = True
    rotation: int = 0

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(f"name: expected one of {', '.join(NAMES)}, got {self.name!r}")
        if self.rule is not None and self.name not in IN_BLOCKS:
            raise ValueError(f"rule: expected None for {self.name}, got {self.rule!r}")
        if not self.second and self.name != "NVFP4":
            raise ValueError(f"second: expected True for {self.name}, got False")
        if self.rotation not in (0, *ROTATIONS):
            raise ValueError(f"rotation: expected 0, {', '.join(map(str, ROTATIONS))}, got {self.rotation!r}")

    @property
    def bits_per_number(self) -> float:
        """Bits for a number and its share of the block's scale; a tensor's own scale is not counted."""
        if self.name in IN_BLOCKS:
            return IN_BLOCKS[self.name].bits_per_number
        return 4 + BF16.bits / GROUP if self.name == "INT4" else 8.0

    @property
    def multiple(self) -> int:
        """Number that a row's length must be a multiple of."""
        own = IN_BLOCKS[self.name].block if self.name in IN_BLOCKS else GROUP if self.name == "INT4" else 1
        return max(own, self.rotation)  # powers of two: the larger is a multiple of the smaller


def rounded(x: Array, how: Rounding) -> Array:
    """Return numbers as a format keeps them.

    Args:
        x: (…, K) float32, finite, K a multiple of `how.multiple`.
        how: the format.
    Returns:
        (…, K) float32.
    Raises:
        TypeError: x is not float32.
        ValueError: K is no such multiple, or an infinity or NaN.
    """
    if x.dtype != np.float32:
        raise TypeError(f"x: expected float32, got {x.dtype}")
    if x.ndim == 0 or x.shape[-1] % how.multiple:
        raise ValueError(f"x: expected (…, K) with K a multiple of {how.multiple}, got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError("x: expected finite numbers: an error of others is no number")
    if not how.rotation:
        return _rounded(x, how)
    back = _rounded(rotated(x, how.rotation).astype(np.float32), how)
    return rotated(back, how.rotation).astype(np.float32)


def _rounded(x: Array, how: Rounding) -> Array:
    if how.name == "FP8":
        return _fp8(x)
    if how.name == "INT4":
        return blocks.decode_int4(blocks.encode_int4(x, BF16, GROUP))
    form = IN_BLOCKS[how.name]
    second = None if how.second else np.float32(1)
    return blocks.decode(blocks.encode(x, form, second=second, rule=how.rule), form)


def _fp8(x: Array) -> Array:
    """Return what E4M3 makes of a tensor whose largest becomes 448."""
    largest = np.abs(x).max(initial=np.float32(0))
    if largest == 0:
        return x.copy()
    scale = max(np.float32(largest / np.float32(E4M3.largest)), blocks.SMALLEST_SECOND)
    return formats.decode(formats.encode(x / scale, E4M3), E4M3).astype(np.float32) * scale


def rotated(x: Array, block: int) -> Array:
    """Return every block of x times the Hadamard matrix of its size, Sylvester's, over the root of the size.

    Twice gives x again: its own bits where no sum needs more than float64's 53 bits and the root is whole, as that of
    16; else to float64's last digits, so that float32 numbers come back with their own bits unless one is some 10**8
    times smaller than its block's largest.

    Args:
        x: (…, K), a floating-point type, K a multiple of the block.
        block: a power of two.
    Returns:
        (…, K) float64.
    Raises:
        ValueError: the block is no power of two, or K no multiple of it.
    """
    if block < 1 or block & (block - 1):
        raise ValueError(f"block: expected a power of two, got {block}")
    if x.ndim == 0 or x.shape[-1] % block:
        raise ValueError(f"x: expected (…, K) with K a multiple of {block}, got {x.shape}")
    y = x.astype(np.float64)
    half = 1
    while half < block:
        pairs = y.reshape(-1, 2, half)  # of each two neighbours, `half` long, the sum and the difference
        y = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return y.reshape(x.shape) / np.sqrt(block)


# --- errors ------------------------------------------------------------------------------------------


class Errors(NamedTuple):
    """Errors of a rounding, by its numbers and block by block.

    Attributes:
        relative: root mean square of the errors over that of the numbers.
        worst: the same within one block, the largest of all blocks.
    """

    relative: float
    worst: float


def block_errors(x: Array, back: Array, block: int = COMPARED) -> Array:
    """Return the relative error of every block.

    Args:
        x, back: (…, K), the numbers and what became of them, K a multiple of the block.
        block: how many numbers are looked at together.
    Returns:
        (…, K/block) float64: root mean square of the errors of a block over that of its numbers. A block of zeros has 0
        where it was kept, else infinity.
    Raises:
        ValueError: shapes that differ, or K no multiple of the block.
    """
    if x.shape != back.shape:
        raise ValueError(f"back: expected the shape of x, {x.shape}, got {back.shape}")
    if x.ndim == 0 or x.shape[-1] % block:
        raise ValueError(f"x: expected (…, K) with K a multiple of {block}, got {x.shape}")
    wide = x.astype(np.float64).reshape(*x.shape[:-1], -1, block)
    of_error = np.square(back.reshape(wide.shape) - wide).sum(axis=-1)
    of_numbers = np.square(wide).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(of_error == 0, 0.0, np.sqrt(of_error / of_numbers))


def errors(x: Array, back: Array, block: int = COMPARED) -> Errors:
    """Return the errors of a rounding; arguments as for `block_errors`, at least one number."""
    of_blocks = block_errors(x, back, block)
    whole = block_errors(x.reshape(1, -1), back.reshape(1, -1), x.size)
    return Errors(float(whole[0, 0]), float(of_blocks.max()))


# --- numbers to round --------------------------------------------------------------------------------


def normal_weights(rows: int, columns: int, seed: int = 0) -> Array:
    """Return independent normal numbers, as a model begins with: (rows, columns) float32, of size columns**-0.5."""
    drawn = np.random.default_rng(seed).standard_normal((rows, columns))
    return (drawn / np.sqrt(columns)).astype(np.float32)


def outlier_weights(
    rows: int, columns: int, seed: int = 0, *, share: float = 1 / 256, times: float = 20.0
) -> Array:
    """Return `normal_weights` of which some are far larger: outliers, which a block's scale must make room for.

    Args:
        rows, columns, seed: as there; the numbers that stay are the same.
        share: the chance of each to be an outlier.
        times: how many times larger an outlier becomes.
    Returns:
        (rows, columns) float32.
    """
    large = np.random.default_rng((seed, 1)).random((rows, columns)) < share
    return np.where(large, np.float32(times), np.float32(1)) * normal_weights(rows, columns, seed)
