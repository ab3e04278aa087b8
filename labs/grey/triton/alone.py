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


@triton.jit
def blend_kernel(over_ptr, under_ptr, mask_ptr, out_ptr, W, BLOCK: tl.constexpr):
    """Lay one piece of one row over the other picture."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    pixel = row * W + column
    inside = column < W
    shows = tl.load(mask_ptr + pixel, mask=inside)  # one number for three colours
    for colour in range(3):
        place = 3 * pixel + colour
        over = tl.load(over_ptr + place, mask=inside)
        under = tl.load(under_ptr + place, mask=inside)
        tl.store(out_ptr + place, shows * over + (1.0 - shows) * under, mask=inside)


def blend(over: torch.Tensor, under: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The picture `over` (H, W, 3) laid over `under` (H, W, 3), as far as `mask` (H, W) says."""
    H, W = mask.shape
    out = torch.empty(H, W, 3, dtype=over.dtype, device=over.device)
    grid = (H, triton.cdiv(W, BLOCK))
    blend_kernel[grid](over, under, mask, out, W, BLOCK=BLOCK)
    return out
