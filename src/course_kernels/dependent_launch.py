"""Programmatic dependent launch: a kernel that begins while the one before it on the stream ends."""

from __future__ import annotations

import torch

LEAST = (9, 0)  # Hopper


def check_early(pdl: bool, device: torch.device) -> None:
    """Refuse to begin early where no card can.

    Args:
        pdl: whether a caller asks for it.
        device: where its tensors are.
    Raises:
        ValueError: it does, and the device is no GPU of compute capability 9.0 or later.
    """
    if not pdl:
        return
    found = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    if found is None or found < LEAST:
        name = f"{device}" if found is None else f"one of {found[0]}.{found[1]}"
        raise ValueError(f"pdl: expected a GPU of compute capability 9.0 or later, got {name}")
