"""Codes of four bits (E2M1) to float16, in hardware or in software: the launcher of decode.cu. Read that file first.

    numbers[2 * i], numbers[2 * i + 1] = E2M1 of the lower, of the upper half of codes[i]

Shapes    codes (B,), numbers (2 * B,)
Types     uint8 in, float16 out; exact
Cost      read B bytes, write 4 * B
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.blackwell.card import check_card
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256  # as in the source
WORD = 4  # bytes of codes a thread
MAX_BYTES = 2**38  # the grid has a 31-bit number of blocks


def decode(codes: torch.Tensor, *, in_hardware: bool = False) -> torch.Tensor:
    """Return what codes of four bits stand for.

    Args:
        codes: (B,) uint8, contiguous, B a multiple of 4 and <= 2**38, two codes in each byte, the first in the lower
            half; at an address divisible by 16.
        in_hardware: by the card's conversion of E2M1, which data-centre Blackwell has; else in software, on any card.
    Returns:
        (2 * B,) float16.
    Raises:
        TypeError: codes are not uint8.
        ValueError: in hardware on another card, see `check_card`; or shape, layout, device or address not as above.
    """
    if in_hardware:
        check_card("decode_in_hardware")
    sizes: dict[str, int] = {}
    check_tensor("codes", codes, "B", sizes, dtypes=(torch.uint8,))
    B = sizes["B"]
    if B % WORD:
        raise ValueError(f"codes: expected B a multiple of {WORD}, got B={B}")
    check_size("codes", "B", B, MAX_BYTES)
    check_address("codes", codes)
    numbers = torch.empty(2 * B, dtype=torch.float16, device=codes.device)
    kernel = load_kernel(SOURCE, "decode", {"IN_HARDWARE": int(in_hardware)})
    words = B // WORD
    launch(kernel, -(-words // THREADS), THREADS, codes, numbers, np.int64(words))
    return numbers
