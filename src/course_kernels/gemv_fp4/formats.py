"""Values of the NVFP4 codes that this problem's truth needs: E2M1 and E4M3, made from their definitions.

Idea      a table with one entry for each code, built with whole numbers and powers of two, so that it is exact
Source    OCP Microscaling Formats 1.0, sections 5.3.3 and 5.3.1
"""

from __future__ import annotations

import torch

BLOCK = 16  # numbers that share a scale


def e2m1_values() -> list[float]:
    """Return what the 16 codes of E2M1 stand for, by code: bits s e e m, an exponent bias of 1."""
    found = []
    for code in range(16):
        exponent, mantissa = code >> 1 & 3, code & 1
        size = mantissa / 2 if exponent == 0 else 2.0 ** (exponent - 1) * (1 + mantissa / 2)
        found.append(-size if code & 8 else size)
    return found


def e4m3_values() -> list[float]:
    """Return what the 256 codes of E4M3 stand for, by code: bits s eeee mmm, a bias of 7; all ones is NaN."""
    found = []
    for code in range(256):
        exponent, mantissa = code >> 3 & 15, code & 7
        size = mantissa / 8 * 2.0**-6 if exponent == 0 else 2.0 ** (exponent - 7) * (1 + mantissa / 8)
        size = float("nan") if code & 127 == 127 else size
        found.append(-size if code & 128 else size)
    return found


def unpacked(packed: torch.Tensor) -> torch.Tensor:
    """Return the numbers of packed E2M1 codes: (…, K/2) uint8 to (…, K) float64.

    The first of two numbers is in the low four bits of its byte.
    """
    table = torch.tensor(e2m1_values(), dtype=torch.float64, device=packed.device)
    codes = torch.stack([packed & 15, packed >> 4], dim=-1)
    return table[codes.long()].flatten(-2)


def scales_of(scales: torch.Tensor) -> torch.Tensor:
    """Return what E4M3 codes stand for: float8_e4m3fn of any shape to float64, of the same shape."""
    table = torch.tensor(e4m3_values(), dtype=torch.float64, device=scales.device)
    return table[scales.view(torch.uint8).long()]


def values_of(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return the numbers times their scales: (…, K/2) uint8 and (…, K/16) float8_e4m3fn to (…, K) float64."""
    return unpacked(packed) * scales_of(scales).repeat_interleave(BLOCK, dim=-1)
