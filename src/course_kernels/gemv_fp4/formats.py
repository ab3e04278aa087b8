"""Values of packed NVFP4 numbers as tensors, for this problem's truth; nvfp4/formats.py says what a code is."""

from __future__ import annotations

import torch

from course_kernels.nvfp4.blocks import NVFP4
from course_kernels.nvfp4.formats import E2M1, E4M3, values

BLOCK = NVFP4.block  # numbers that share a scale


def unpacked(packed: torch.Tensor) -> torch.Tensor:
    """Return the numbers of packed E2M1 codes: (…, K/2) uint8 to (…, K) float64.

    The first of two numbers is in the low four bits of its byte.
    """
    codes = torch.stack([packed & 15, packed >> 4], dim=-1)
    return torch.tensor(values(E2M1), device=packed.device)[codes.long()].flatten(-2)


def scales_of(scales: torch.Tensor) -> torch.Tensor:
    """Return what E4M3 codes stand for: float8_e4m3fn of any shape to float64, of the same shape."""
    return torch.tensor(values(E4M3), device=scales.device)[scales.view(torch.uint8).long()]


def values_of(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return the numbers times their scales: (…, K/2) uint8 and (…, K/16) float8_e4m3fn to (…, K) float64."""
    return unpacked(packed) * scales_of(scales).repeat_interleave(BLOCK, dim=-1)
