"""Small number formats as data: which number each code stands for, and which code a number gets.

A code is read from its bits alone: a sign where the format has one, then the exponent, then the mantissa.

    E2M1   one number of a block: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; neither infinity nor NaN
    E4M3   the scale of a block of NVFP4: 2**-9 to 448; no infinity; NaN is the code of all ones, with either sign
    E8M0   the scale of a block of MXFP4: 2**-127 to 2**127, powers of two alone; no zero, no sign; NaN is 0xff
    BF16, FP16   scales of INT4

One rule for ties: to the code whose last bit is 0. E8M0 has no mantissa that could be even: there IEEE 754 (4.3.1, one
digit) takes the larger, and so do torch and ml_dtypes.

Too large is saturated, infinities too, as a GPU's conversions do (`cvt.rn.satfinite`). `who_rounds_how.json` has what
libraries do, which differ in nearly all of this.

Source  OCP Microscaling Formats (MX) v1.0, sections 5.3 and 5.4; PTX ISA, alternate floating-point data formats
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Toward = Literal["nearest", "down", "up"]


@dataclass(frozen=True)
class Minifloat:
    """A floating-point format of few bits.

    Attributes:
        name: as papers call it.
        exponent_bits, mantissa_bits: their number; the mantissa has the lowest bits.
        bias: what an exponent's bits are larger by than the exponent.
        signed: whether the highest bit is a sign.
        subnormals: whether the exponent of all zeros means 0 and steps up from it; else it is one as any other.
        ends: which codes, of those with an exponent of all ones, are no numbers: "none", "nan" (the last one of each
            sign), or "ieee" (all: infinity first, then NaN).
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool = True
    subnormals: bool = True
    ends: Literal["none", "nan", "ieee"] = "none"

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def sign(self) -> int:
        """Bit of the sign, as a code: -0 where there are zeros; 0 in a format without a sign."""
        return self.signed << (self.exponent_bits + self.mantissa_bits)

    @property
    def largest(self) -> float:
        """Largest number."""
        return float(magnitudes(self)[-1])

    @property
    def nan(self) -> int:
        """Code of NaN; -1 in a format without one."""
        ones = (1 << (self.exponent_bits + self.mantissa_bits)) - 1
        return -1 if self.ends == "none" else ones


E2M1 = Minifloat("E2M1", 2, 1, bias=1)
E4M3 = Minifloat("E4M3", 4, 3, bias=7, ends="nan")
E8M0 = Minifloat("E8M0", 8, 0, bias=127, signed=False, subnormals=False, ends="nan")
BF16 = Minifloat("BF16", 8, 7, bias=127, ends="ieee")
FP16 = Minifloat("FP16", 5, 10, bias=15, ends="ieee")


@functools.cache
def values(form: Minifloat) -> np.ndarray[Any, Any]:
    """Return what every code of a format stands for.

    Returns:
        (2**bits,) float64, every number exact; read only.
    """
    codes = np.arange(1 << form.bits)
    mantissa = codes & ((1 << form.mantissa_bits) - 1)
    exponent = codes >> form.mantissa_bits & ((1 << form.exponent_bits) - 1)
    subnormal = (exponent == 0) & form.subnormals
    whole = np.where(subnormal, mantissa, mantissa + (1 << form.mantissa_bits))
    power = np.where(subnormal, 1, exponent) - form.bias - form.mantissa_bits
    found = np.ldexp(whole.astype(np.float64), power)
    last = exponent == (1 << form.exponent_bits) - 1
    if form.ends == "nan":
        found[last & (mantissa == (1 << form.mantissa_bits) - 1)] = np.nan
    elif form.ends == "ieee":
        found[last] = np.where(mantissa[last] == 0, np.inf, np.nan)
    found = np.where(codes & form.sign, -found, found) if form.signed else found
    found.flags.writeable = False
    return found


@functools.cache
def magnitudes(form: Minifloat) -> np.ndarray[Any, Any]:
    """Return the numbers of a format that have no minus, from the smallest up: the code of each is its place."""
    positive = values(form)[: form.sign or None]
    return positive[np.isfinite(positive)]


def decode(codes: np.ndarray[Any, Any], form: Minifloat) -> np.ndarray[Any, Any]:
    """Return what codes stand for.

    Args:
        codes: any shape, whole numbers below 2**bits.
        form: their format.
    Returns:
        The same shape, float64, exact.
    Raises:
        TypeError: codes are no whole numbers.
        ValueError: one is out of range.
    """
    if codes.dtype.kind not in "iu":
        raise TypeError(f"codes: expected whole numbers, got {codes.dtype}")
    if codes.size and not 0 <= codes.min() <= codes.max() < 1 << form.bits:
        raise ValueError(f"codes: expected 0 to {(1 << form.bits) - 1}, got {codes.min()} to {codes.max()}")
    return values(form)[codes]


def encode(x: np.ndarray[Any, Any], form: Minifloat, toward: Toward = "nearest") -> np.ndarray[Any, Any]:
    """Return the codes of numbers, rounded once.

    Args:
        x: any shape, a floating-point type up to float64.
        form: the format.
        toward: "nearest" with ties to the even code, "down" to the next smaller magnitude, or "up" to the next larger.
    Returns:
        The same shape, uint8 or uint16. A magnitude above the largest becomes the largest, whatever `toward` says; one
        below the smallest of a format without zero becomes that. NaN becomes the code of NaN or, in a format without
        one, of the largest, as CUDA's `__nv_cvt_float_to_fp4` has it.
    Raises:
        TypeError: x is no array of floating-point numbers.
        ValueError: a number below zero in a format without a sign, or an unknown `toward`.
    """
    if x.dtype.kind != "f":
        raise TypeError(f"x: expected a floating-point type, got {x.dtype}")
    if toward not in ("nearest", "down", "up"):
        raise ValueError(f"toward: expected nearest, down or up, got {toward!r}")
    if not form.signed and (x < 0).any():
        raise ValueError(f"x: expected no number below zero, since {form.name} has no sign, got {x.min()}")
    size, numbers = np.abs(x.astype(np.float64)), magnitudes(form)
    if toward == "nearest":
        middles = (numbers[1:] + numbers[:-1]) / 2  # exact: a bit more than the numbers have
        code = np.searchsorted(middles, size)  # how many of the middles are below
        tie = size == middles[np.minimum(code, len(middles) - 1)]
        odd = (code & 1).astype(bool) if form.mantissa_bits else np.ones_like(tie)
        code = code + (tie & odd)
    elif toward == "down":
        code = np.searchsorted(numbers, size, side="right") - 1
    else:
        code = np.searchsorted(numbers, size)
    code = np.clip(code, 0, len(numbers) - 1) + np.where(np.signbit(x), form.sign, 0)
    code = np.where(np.isnan(x), len(numbers) - 1 if form.nan < 0 else form.nan, code)
    return code.astype(np.uint8 if form.bits <= 8 else np.uint16)
