"""Checks shared by the launchers of this folder: refuse what no kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor

DTYPES = (torch.bfloat16, torch.float16)
MAX_SIZE = 2**30  # rows, columns and choices are 32-bit numbers in the kernels
MAX_EXPERTS = 512  # a token's scores are in the registers of one program
MAX_TOP_K = 32  # taken one after the other


class Sizes(NamedTuple):
    """T tokens of D numbers, E experts of F, and how many of them a token goes to."""

    T: int
    D: int
    F: int
    E: int
    TOP_K: int


def sizes_of(
    x: torch.Tensor, router: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, top_k: int
) -> Sizes:
    """Return the sizes of a call.

    Args:
        x: (T, D) bfloat16 or float16, contiguous.
        router: (E, D), the same type, contiguous, E <= 512.
        gate_up: (E, 2 F, D), the same type, contiguous; 2 E F and E D <= 2**30.
        down: (E, D, F), the same type, contiguous.
        top_k: experts of a token, 1 to E and at most 32; T * top_k <= 2**30.
    Raises:
        TypeError: another type, or different ones; a top_k that is no whole number.
        ValueError: shapes that do not fit each other, a size out of range, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "TD", sizes, dtypes=DTYPES)
    check_tensor("router", router, "ED", sizes, dtypes=(x.dtype,), device=x.device)
    check_tensor("gate_up", gate_up, "END", sizes, dtypes=(x.dtype,), device=x.device)
    check_tensor("down", down, "EDF", sizes, dtypes=(x.dtype,), device=x.device)
    T, D, E, F = (sizes[letter] for letter in "TDEF")
    if sizes["N"] != 2 * F:
        raise ValueError(
            f"gate_up: expected (E, 2 F, D) with F={F}, that of down, got {tuple(gate_up.shape)}"
        )
    if isinstance(top_k, bool) or not isinstance(top_k, int):
        raise TypeError(f"top_k: expected a whole number, got {top_k!r}")
    if not 1 <= top_k <= min(E, MAX_TOP_K):
        raise ValueError(f"top_k: expected 1 to {min(E, MAX_TOP_K)}, got {top_k}")
    check_size("router", "E", E, MAX_EXPERTS)
    check_size("x", "D", D, MAX_SIZE)
    check_size("x", "T * TOP_K", T * top_k, MAX_SIZE)
    check_size("gate_up", "2 * E * F", 2 * E * F, MAX_SIZE)
    check_size("down", "E * D", E * D, MAX_SIZE)
    return Sizes(T, D, F, E, top_k)
