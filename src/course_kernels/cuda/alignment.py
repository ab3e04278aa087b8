"""Alignment of a tensor's address: loads of 16 bytes, and the copy engine, take no address between two vectors."""

from __future__ import annotations

import torch


def check_address(name: str, x: torch.Tensor, multiple: int = 16) -> None:
    """Refuse a tensor that does not begin at a multiple of so many bytes, as a slice of another one may.

    Raises:
        ValueError: it does not; the line says by how much.
    """
    past = x.data_ptr() % multiple
    if past:
        raise ValueError(f"{name}: expected an address divisible by {multiple}, got one {past} bytes past it")
