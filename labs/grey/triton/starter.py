"""Lab grey: a colour picture in, the same picture in grey out."""

import torch
import triton
import triton.language as tl

BLOCK = 1024  # pixels of one program: a piece of one row


@triton.jit
def grey_kernel(picture_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """Turn one piece of one row grey."""
    # your lines go here


def grey(picture: torch.Tensor) -> torch.Tensor:
    """The picture (H, W, 3) in grey (H, W)."""
    H, W, _ = picture.shape
    out = torch.empty(H, W, dtype=picture.dtype, device=picture.device)
    grid = (H, triton.cdiv(W, BLOCK))  # a program for every row, and every piece of it
    grey_kernel[grid](picture, out, W, BLOCK=BLOCK)
    return out
