"""Refusals of a launcher's argument: one line that says what was expected and what came."""

from __future__ import annotations

import os

import torch


def interpreted() -> bool:
    """Return whether Triton runs kernels in Python, on CPU tensors (the variable TRITON_INTERPRET is 1)."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on", "y")


def check_tensor(
    name: str,
    tensor: torch.Tensor,
    letters: str,
    sizes: dict[str, int],
    dtypes: tuple[torch.dtype, ...],
    device: torch.device | None = None,
) -> None:
    """Refuse a tensor that a kernel cannot take; bind its dimensions to letters in `sizes`.

    Args:
        name: what the caller calls the tensor.
        tensor: the tensor.
        letters: one letter a dimension, such as "MK"; the same letter must have the same size in every tensor.
        sizes: the letters bound so far; this call adds its own.
        dtypes: the element types the kernel takes.
        device: where the tensor must be. Without it: the current GPU, or the CPU where Triton interprets.
    Raises:
        TypeError: not a tensor, or its element type is not one of `dtypes`.
        ValueError: wrong number of dimensions, an empty one, a size that differs from an earlier one, a layout
            other than contiguous, or the wrong device.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.dtype not in dtypes:
        raise TypeError(f"{name}: expected {' or '.join(map(_short, dtypes))}, got {_short(tensor.dtype)}")
    shape = tuple(tensor.shape)
    expected = f"({', '.join(letters)}{',' if len(letters) == 1 else ''})"
    if len(shape) != len(letters) or 0 in shape:
        raise ValueError(f"{name}: expected {expected} with no empty dimension, got {shape}")
    for letter, size in zip(letters, shape, strict=True):
        if sizes.setdefault(letter, size) != size:
            raise ValueError(f"{name}: expected {expected} with {letter}={sizes[letter]}, got {shape}")
    if not tensor.is_contiguous():
        raise ValueError(f"{name}: expected contiguous {expected}, got strides {tensor.stride()}")
    if device is not None and tensor.device != device:
        raise ValueError(f"{name}: expected a tensor on {device}, got {tensor.device}")
    if device is None and tensor.device.type != "cuda" and not interpreted():
        raise ValueError(f"{name}: expected a tensor on a GPU, got {tensor.device}")
    # A kernel starts on the current GPU, wherever its tensors are; from there it may not reach the memory of another.
    if tensor.device.type == "cuda" and tensor.device.index != (here := torch.cuda.current_device()):
        raise ValueError(
            f"{name}: expected a tensor on cuda:{here}, the current GPU, got one on {tensor.device}: "
            f"call torch.cuda.set_device({tensor.device.index}) first"
        )


def check_size(name: str, letter: str, size: int, most: int) -> None:
    """Refuse a size that the 32-bit numbers of a kernel, or its grid, do not reach.

    Args:
        name: what the caller calls the tensor.
        letter: its dimension, such as "M", or a product of them, such as "B * H".
        size: what came.
        most: the largest the kernel takes.
    Raises:
        ValueError: it is larger.
    """
    if size > most:
        raise ValueError(f"{name}: expected {letter} <= {most}, got {letter}={size}")


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
