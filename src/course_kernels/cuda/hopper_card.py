"""Check that a tensor lies on a card that kernels for Hopper run on."""

from __future__ import annotations

import functools

import torch


@functools.cache
def is_hopper(device: torch.device) -> bool:
    """Return whether a device is a GPU of compute capability 9.0: what is compiled for sm_90a runs on no other."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)
