"""Blocks of four-bit numbers that share a scale: encoder and decoder in NumPy, the truth for every kernel.

    x[i]  is about  E2M1 code[i] * scale[i // block] * second

    NVFP4   blocks of 16, a scale in E4M3 for each, and one more in float32 for the whole tensor
    MXFP4   blocks of 32, a scale in E8M0 for each, no second one
    INT4    groups of 128 whole numbers from -8 to 7, a scale in BF16 or FP16 for each

Everything between two roundings is in float32, in this order, so that a kernel can do exactly the same:

    second  = largest of the tensor / 2688, where 2688 = 6 * 448: the largest code times the largest scale.
              At least 2**-126, and 1 for a tensor of zeros
    scale   = E4M3(largest of the block / (6 * second)), to nearest. At least 2**-9, the smallest: what would be zero
              would lose the block. MXFP4: 2 to the power of floor(log2(largest)) - 2, as the MX specification has it
    step    = scale * second
    code    = E2M1(x / step), to nearest, ties to even
    decoded = code * step

A block with an infinity or NaN in it has NaN for its scale and zeros for its codes: everything that it is multiplied
into shows it. The second scale leaves such numbers out, so that the harm stays in their blocks.

Two codes to a byte, the first in the low four bits, as in torch, ONNX and CUDA. GGUF alone has another order.

Source  OCP Microscaling Formats (MX) v1.0, section 6.3; NVIDIA 2025, Pretraining Large Language Models with NVFP4,
        arXiv:2509.25149, appendix B
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from course_kernels.nvfp4 import formats
from course_kernels.nvfp4.formats import BF16, E2M1, E4M3, E8M0, Minifloat

Array = np.ndarray[Any, Any]
Rule = Literal["nearest", "up", "power", "error"]

SMALLEST_SECOND = np.float32(2.0**-126)  # below it float32 has fewer digits, and at last none


@dataclass(frozen=True)
class BlockFormat:
    """Numbers in blocks, with a scale for each block.

    Attributes:
        name: as papers call it.
        element: the format of a number.
        block: how many share a scale.
        scale: the format of a scale.
        has_second: whether the tensor has a scale of its own, in float32.
        rule: how a scale is chosen unless somebody asks for another rule.
        candidates: by how many codes below and above the nearest the rule "error" looks for a better scale: an octave.
    """

    name: str
    element: Minifloat
    block: int
    scale: Minifloat
    has_second: bool
    rule: Rule
    candidates: int

    @property
    def bits_per_number(self) -> float:
        """Bits for a number and its share of the block's scale."""
        return self.element.bits + self.scale.bits / self.block


NVFP4 = BlockFormat("NVFP4", E2M1, 16, E4M3, has_second=True, rule="nearest", candidates=8)
MXFP4 = BlockFormat("MXFP4", E2M1, 32, E8M0, has_second=False, rule="power", candidates=1)


class Encoded(NamedTuple):
    """A tensor in blocks.

    Attributes:
        codes: the shape of the tensor, uint8: one code in each byte, not packed.
        scales: the same but for the last dimension, which has a number for each block, uint8: codes of the scales.
        second: float32, the tensor's own scale; 1 in a format without one.
    """

    codes: Array
    scales: Array
    second: np.float32


def second_scale(x: Array, form: BlockFormat = NVFP4) -> np.float32:
    """Return the scale of a whole tensor: its largest becomes the largest code times the largest scale.

    Args:
        x: any shape, float32. Infinities and NaN are left out.
        form: the format; 1 where it has no second scale.
    Returns:
        float32, at least 2**-126; 1 for zeros alone.
    Raises:
        TypeError: x is not float32.
    """
    _check_type(x)
    finite = np.abs(x[np.isfinite(x)])
    largest = finite.max(initial=np.float32(0))
    if not form.has_second or largest == 0:
        return np.float32(1)
    range_of_both = np.float32(form.element.largest * form.scale.largest)
    return np.float32(max(largest / range_of_both, SMALLEST_SECOND))


def encode(
    x: Array, form: BlockFormat = NVFP4, *, second: float | np.float32 | None = None, rule: Rule | None = None
) -> Encoded:
    """Return a tensor in blocks of four-bit numbers.

    Args:
        x: (…, K) float32, K a multiple of the block.
        form: NVFP4 or MXFP4.
        second: the tensor's own scale, a normal float32 above zero; `second_scale(x)` unless given. None or 1 in a
            format without one.
        rule: how a block's scale is chosen: "nearest" to what makes its largest number 6, "up" to the next scale, so
            that nothing saturates, "power" of two, as the MX specification has it, or "error", the scale with the least
            squared error up to an octave around the nearest. The format's own rule unless given.
    Returns:
        Codes, scales and second scale.
    Raises:
        TypeError: x is not float32.
        ValueError: K is no multiple of the block, a second scale out of range or for a format without one, an unknown
            rule, or "power" for scales that are not powers of two.
    """
    _check_type(x)
    rule = form.rule if rule is None else rule
    if x.ndim == 0 or x.shape[-1] % form.block:
        raise ValueError(f"x: expected (…, K) with K a multiple of {form.block}, got {x.shape}")
    if rule not in ("nearest", "up", "power", "error") or (rule == "power" and form.scale.mantissa_bits):
        raise ValueError(f"rule: expected one that {form.name} has, got {rule!r}")
    second = second_scale(x, form) if second is None else np.float32(second)
    if not SMALLEST_SECOND <= second < np.inf or (second != 1 and not form.has_second):
        raise ValueError(
            f"second: expected {'a normal float32 above zero' if form.has_second else '1'}, got {second}"
        )

    shape = *x.shape[:-1], x.shape[-1] // form.block
    blocks = x.reshape(*shape, form.block)
    sound = np.asarray(np.isfinite(blocks).all(axis=-1))
    blocks = np.where(sound[..., None], blocks, np.float32(0))  # what is lost anyway raises no warning
    scales = _scales(blocks, form, second, rule)
    codes = _codes(blocks, form, scales, second)
    scales = np.where(sound, scales, np.uint8(form.scale.nan))
    codes = np.where(sound[..., None], codes, np.uint8(0))
    return Encoded(codes.reshape(x.shape), scales.reshape(shape), second)


def decode(encoded: Encoded, form: BlockFormat = NVFP4) -> Array:
    """Return what a tensor in blocks stands for.

    Args:
        encoded: codes (…, K), scales (…, K/block), and the second scale.
        form: their format.
    Returns:
        (…, K) float32, each product rounded to it.
    Raises:
        TypeError: codes or scales are no whole numbers.
        ValueError: one is out of range, or there is not a scale for each block.
    """
    codes, scales, second = encoded
    if codes.shape != (*scales.shape[:-1], scales.shape[-1] * form.block):
        raise ValueError(
            f"scales: expected one for each {form.block} of codes {codes.shape}, got {scales.shape}"
        )
    numbers = formats.decode(codes, form.element).astype(np.float32).reshape(*scales.shape, form.block)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return (numbers * _steps(scales, form, second)[..., None]).reshape(codes.shape)


def pack(codes: Array) -> Array:
    """Return two codes in each byte, the first in the low four bits.

    Args:
        codes: (…, K) uint8 below 16, K even.
    Returns:
        (…, K/2) uint8.
    Raises:
        ValueError: K is odd, or a code is 16 or more.
    """
    if codes.shape[-1] % 2:
        raise ValueError(f"codes: expected an even number in each row, got {codes.shape[-1]}")
    if codes.size and codes.max() > 15:
        raise ValueError(f"codes: expected 0 to 15, got {codes.max()}")
    return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)


def unpack(packed: Array) -> Array:
    """Return the codes of packed bytes, the inverse of `pack`: (…, K/2) uint8 to (…, K) uint8."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


class Groups(NamedTuple):
    """A tensor in whole numbers of four bits.

    Attributes:
        q: (…, K) int8 from -8 to 7.
        scales: (…, K/group) uint16, codes of `scale`.
        scale: their format, BF16 or FP16.
    """

    q: Array
    scales: Array
    scale: Minifloat


def encode_int4(x: Array, scale: Minifloat = BF16, group: int = 128) -> Groups:
    """Return a tensor in whole numbers of four bits, as `cuda/four_bits.quantised` makes them.

    The largest of a group, by its magnitude, becomes -8: the scale has the sign for that.

    Args:
        x: (…, K) float32, finite, K a multiple of the group.
        scale: the format of the scales, BF16 or FP16.
        group: how many share a scale.
    Returns:
        Whole numbers and scales; the scale of a group whose own would be 0 is 1.
    Raises:
        TypeError: x is not float32.
        ValueError: K is no multiple of the group, an infinity or NaN, or a group too large for its scale.
    """
    _check_type(x)
    if x.ndim == 0 or x.shape[-1] % group:
        raise ValueError(f"x: expected (…, K) with K a multiple of {group}, got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError("x: expected finite numbers: whole numbers have no code for others")
    groups = x.reshape(*x.shape[:-1], -1, group)
    largest = np.take_along_axis(groups, np.abs(groups).argmax(axis=-1, keepdims=True), axis=-1)[..., 0]
    if (np.abs(largest) / 8 > scale.largest).any():
        raise ValueError(f"x: expected at most {8 * scale.largest}, got {np.abs(largest).max()}")
    codes = formats.encode(np.asarray(largest / np.float32(-8)), scale)
    numbers = formats.values(scale).astype(np.float32)
    codes = np.where(numbers[codes] == 0, formats.encode(np.ones(1), scale), codes)
    with np.errstate(over="ignore"):  # by a scale that has lost its digits
        q = np.clip(np.rint(groups / numbers[codes][..., None]), -8, 7)
    return Groups(q.astype(np.int8).reshape(x.shape), codes, scale)


def decode_int4(groups: Groups) -> Array:
    """Return what whole numbers and their scales stand for: (…, K) float32, each product exact but for its range."""
    q, scales, scale = groups
    numbers = q.astype(np.float32).reshape(*scales.shape, -1)
    return (numbers * formats.values(scale).astype(np.float32)[scales][..., None]).reshape(q.shape)


def _check_type(x: Array) -> None:
    if x.dtype != np.float32:
        raise TypeError(f"x: expected float32, got {x.dtype}")


def _steps(scales: Array, form: BlockFormat, second: np.float32) -> Array:
    """Return what a code of 1 stands for in each block: float32."""
    return formats.decode(scales, form.scale).astype(np.float32) * np.float32(second)


def _codes(blocks: Array, form: BlockFormat, scales: Array, second: np.float32) -> Array:
    """Return the code of every number of (…, blocks, block), once the scales are chosen."""
    with np.errstate(over="ignore", under="ignore"):
        return formats.encode(blocks / _steps(scales, form, second)[..., None], form.element)


def _scales(blocks: Array, form: BlockFormat, second: np.float32, rule: Rule) -> Array:
    """Return the code of each block's scale: (…, blocks) uint8."""
    largest = np.abs(blocks).max(axis=-1)
    smallest = np.uint8(0 if formats.values(form.scale)[0] else 1)  # no scale is zero
    if rule == "power":
        power_of_six = 2.0 ** np.floor(np.log2(form.element.largest))
        return formats.encode(largest.astype(np.float64) / power_of_six, form.scale, "down")
    with np.errstate(over="ignore", under="ignore"):
        wanted = largest / (np.float32(form.element.largest) * second)
    chosen = formats.encode(wanted, form.scale, "up" if rule == "up" else "nearest")
    chosen = np.maximum(chosen, smallest)
    return _better(blocks, form, second, chosen) if rule == "error" else chosen


def _better(blocks: Array, form: BlockFormat, second: np.float32, chosen: Array) -> Array:
    """Return each block's scale with the least squared error; of equals the one nearest to `chosen`, then the lower."""
    last = int(formats.encode(np.array([np.inf]), form.scale)[0])
    first = 0 if formats.values(form.scale)[0] else 1
    best, least = chosen, np.full(chosen.shape, np.inf)
    for apart in sorted(range(-form.candidates, form.candidates + 1), key=lambda n: (abs(n), n)):
        code = np.clip(chosen.astype(np.int64) + apart, first, last).astype(np.uint8)
        back = decode(
            Encoded(_codes(blocks, form, code, second).reshape(*code.shape[:-1], -1), code, second), form
        )
        error = np.square(back.reshape(blocks.shape).astype(np.float64) - blocks).sum(axis=-1)
        best, least = np.where(error < least, code, best), np.minimum(error, least)
    return best
