"""Colour to grey, kernel 2: Triton, one program for a run of pixels.

Contract  problem.py
Idea      a picture is one long list of pixels: a program takes a run of them and never asks for row or column
Against   k01_pixels.cu, whose grid has the two dimensions of the picture
Cost      reads every pixel once, 12 bytes; writes 4
Source    Triton tutorial 01
"""

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor
from course_kernels.problem import Workload

BLOCK = 1024  # pixels of one program


@triton.jit
def grey_kernel(picture_ptr, out_ptr, PIXELS, BLOCK: tl.constexpr):
    """Weigh the colours of one run of pixels."""
    pixel = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    mask = pixel < PIXELS
    red = tl.load(picture_ptr + 3 * pixel, mask=mask)
    green = tl.load(picture_ptr + 3 * pixel + 1, mask=mask)
    blue = tl.load(picture_ptr + 3 * pixel + 2, mask=mask)
    tl.store(out_ptr + pixel, 0.299 * red + 0.587 * green + 0.114 * blue, mask=mask)


def supports(w: Workload) -> bool:
    """Return whether a workload leaves the block to the kernel: here it is a run of pixels, not X by Y."""
    return "X" not in w.dims


def grey(picture: torch.Tensor) -> torch.Tensor:
    """Return the picture in grey.

    Args:
        picture: (H, W, 3) float32, contiguous: red, green and blue of every pixel.
    Returns:
        (H, W) float32: 0.299 red + 0.587 green + 0.114 blue.
    Raises:
        TypeError: picture is not float32.
        ValueError: picture is no contiguous (H, W, 3) on the GPU.
    """
    sizes = {"C": 3}
    check_tensor("picture", picture, "HWC", sizes, dtypes=(torch.float32,))
    H, W = sizes["H"], sizes["W"]

    out = torch.empty(H, W, dtype=picture.dtype, device=picture.device)
    grey_kernel[(triton.cdiv(H * W, BLOCK),)](picture, out, H * W, BLOCK=BLOCK)
    return out
