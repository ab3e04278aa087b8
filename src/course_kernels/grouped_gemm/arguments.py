"""Checks shared by the launchers of this folder: refuse what no kernel takes. Both forms of groups: problem.py."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor

EIGHT_BITS = (torch.float8_e4m3fn,)
BLOCK = 128  # numbers of K that share a scale, and rows that a contiguous group is padded to
PLACES = 4  # 16 bytes of scales
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels
MAX_GROUPS = 65535  # the grid's third dimension


class Sizes(NamedTuple):
    """The form of the groups, and the lengths of a call.

    Attributes:
        masked: A is (G, M, K), and groups (G,) counts rows; else A is (M, K), and groups (M,) names each row's group.
        G, M, N, K: as in problem.py.
    """

    masked: bool
    G: int
    M: int
    N: int
    K: int


def sizes_of(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    groups: torch.Tensor,
) -> Sizes:
    """Return the sizes of a call.

    Args:
        a: (M, K) float8_e4m3fn, contiguous, M a multiple of 128; or (G, M, K), M a multiple of 4. K is one of 128.
        b: (G, N, K), the same type, contiguous. M, N and K <= 1073741824, G <= 65535.
        scale_a: (K / 128, M) or (G, K / 128, M) float32, contiguous.
        scale_b: (G, ceil(N / 128), K / 128) float32, contiguous.
        groups: (M,) or (G,) int32. What is in it is not looked at: that would be a wait for the GPU.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit each other, a length that is no such multiple or out of range, not
            contiguous, or not on the current GPU.
    """
    masked = isinstance(a, torch.Tensor) and a.dim() == 3
    sizes: dict[str, int] = {}
    check_tensor("a", a, "GMK" if masked else "MK", sizes, dtypes=EIGHT_BITS)
    check_tensor("b", b, "GNK", sizes, dtypes=EIGHT_BITS, device=a.device)
    for letter, multiple in (("K", BLOCK), ("M", PLACES if masked else BLOCK)):
        if sizes[letter] % multiple:
            raise ValueError(f"a: expected {letter} a multiple of {multiple}, got {letter}={sizes[letter]}")
    for name, letter in (("a", "M"), ("b", "N"), ("a", "K")):
        check_size(name, letter, sizes[letter], MAX_SIZE)
    check_size("b", "G", sizes["G"], MAX_GROUPS)
    sizes |= {"K / 128": sizes["K"] // BLOCK, "N / 128": -(-sizes["N"] // BLOCK)}
    # Names of several letters: a string would give a dimension to each.
    of_a: Any = ("G", "K / 128", "M") if masked else ("K / 128", "M")
    of_b: Any = ("G", "N / 128", "K / 128")
    check_tensor("scale_a", scale_a, of_a, sizes, dtypes=(torch.float32,), device=a.device)
    check_tensor("scale_b", scale_b, of_b, sizes, dtypes=(torch.float32,), device=a.device)
    of_groups = "G" if masked else "M"
    check_tensor("groups", groups, of_groups, sizes, dtypes=(torch.int32,), device=a.device)
    return Sizes(masked, *(sizes[letter] for letter in "GMNK"))


def output(sizes: Sizes, out: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    """Return where C goes: `out` once it is checked, or new memory, of zeros where rows are left as they were.

    Args:
        sizes: of the call.
        out: (M, N) or (G, M, N) bfloat16, contiguous; None for new memory.
        device: of the call.
    Raises:
        TypeError: another type.
        ValueError: another shape, not contiguous, or on another device.
    """
    shape = (sizes.G, sizes.M, sizes.N)[not sizes.masked :]
    if out is None:
        make = torch.zeros if sizes.masked else torch.empty
        return make(shape, dtype=torch.bfloat16, device=device)
    letters = "GMN" if sizes.masked else "MN"
    check_tensor("out", out, letters, sizes._asdict(), dtypes=(torch.bfloat16,), device=device)
    return out
