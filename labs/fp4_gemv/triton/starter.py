"""Lab fp4_gemv: c = A b, both in NVFP4."""

import torch
import triton
import triton.language as tl

# On paper. A byte of A is 0xB5, and the code of its block's scale is 0x3C. A has rows of 96 numbers.
FIRST, SECOND = 0, 0  # what the byte's two codes of E2M1 stand for, in their order
SCALE = 0  # what the code of E4M3 stands for
BYTES, SCALES = 0, 0  # from a row of A to the next, and from a row of its scales to the next
assert 7 * FIRST + 5 * SECOND != 4.5, "predict first: which number is in the low four bits?"
assert not 0 < SCALE < 1e-9, "predict first: E4M3 has a mantissa below its exponent; E8M0 has none"
assert BYTES != 96, "predict first: two numbers share a byte"
assert SCALES != 3, "predict first: sixteen numbers share a scale, and not 32"
assert 7 * FIRST + 5 * SECOND + 3 * SCALE + BYTES + 2 * SCALES == 78, "predict first, on paper"


@triton.jit
def number(code):
    """What codes of E2M1 stand for."""
    return code * 0.0  # your lines go here


@triton.jit
def gemv_kernel(a_ptr, scales_a_ptr, b_ptr, scales_b_ptr, c_ptr, K, ROOM: tl.constexpr):
    """Work out one number of c, of K products; ROOM is a power of two, at least as many as a row has bytes."""
    # your lines go here


def gemv_fp4(
    a: torch.Tensor, scales_a: torch.Tensor, b: torch.Tensor, scales_b: torch.Tensor
) -> torch.Tensor:
    """c (1, M) of a (1, M, K/2) and b (1, K/2), with their scales (1, M, K/16) and (1, K/16)."""
    _, M, half = a.shape
    c = torch.empty((1, M), dtype=torch.float16, device=a.device)
    gemv_kernel[(M,)](a, scales_a, b, scales_b, c, 2 * half, ROOM=max(16, triton.next_power_of_2(half)))
    return c
