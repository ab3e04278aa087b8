"""Lab grey: a colour picture in, the same picture in grey out."""

import torch
import triton
import triton.language as tl

BLOCK = 1024  # pixels of one program: a piece of one row


@triton.jit
def grey_kernel(picture_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """Turn one piece of one row grey."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    pixel = row * W + column  # rows lie one behind the other
    mask = column < W  # the last piece of a row reaches past its end
    red = tl.load(picture_ptr + 3 * pixel, mask=mask)
    green = tl.load(picture_ptr + 3 * pixel + 1, mask=mask)
    blue = tl.load(picture_ptr + 3 * pixel + 2, mask=mask)
    tl.store(out_ptr + pixel, 0.299 * red + 0.587 * green + 0.114 * blue, mask=mask)


def grey(picture: torch.Tensor) -> torch.Tensor:
    """The picture (H, W, 3) in grey (H, W)."""
    H, W, _ = picture.shape
    out = torch.empty(H, W, dtype=picture.dtype, device=picture.device)
    grid = (H, triton.cdiv(W, BLOCK))  # a program for every row, and every piece of it
    grey_kernel[grid](picture, out, W, BLOCK=BLOCK)
    return out
