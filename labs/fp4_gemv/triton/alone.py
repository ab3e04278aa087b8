"""Lab fp4_gemv: c = A b, both in NVFP4."""

import torch
import triton
import triton.language as tl

# On paper. A byte of A is 0xB5, and the code of its block's scale is 0x3C. A has rows of 96 numbers.
FIRST, SECOND = 3.0, -1.5  # what the byte's two codes of E2M1 stand for, in their order
SCALE = 1.5  # what the code of E4M3 stands for
BYTES, SCALES = 48, 6  # from a row of A to the next, and from a row of its scales to the next
assert 7 * FIRST + 5 * SECOND != 4.5, "predict first: which number is in the low four bits?"
assert not 0 < SCALE < 1e-9, "predict first: E4M3 has a mantissa below its exponent; E8M0 has none"
assert BYTES != 96, "predict first: two numbers share a byte"
assert SCALES != 3, "predict first: sixteen numbers share a scale, and not 32"
assert 7 * FIRST + 5 * SECOND + 3 * SCALE + BYTES + 2 * SCALES == 78, "predict first, on paper"


@triton.jit
def number(code):
    """What codes of E2M1 stand for: with these bits a float16 is 2**-14 times the number."""
    bits = (code & 8) << 12 | (code & 7) << 9
    return bits.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32) * 16384.0


@triton.jit
def gemv_kernel(a_ptr, scales_a_ptr, b_ptr, scales_b_ptr, c_ptr, K, ROOM: tl.constexpr):
    """Work out one number of c, of K products; ROOM is a power of two, at least as many as a row has bytes."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, ROOM // 8)  # [ROOM/8], the blocks of a row
    there = block < K // 16
    k = block[:, None] * 8 + tl.arange(0, 8)[None, :]  # [ROOM/8, 8], the bytes of each
    a = tl.load(a_ptr + row * (K // 2) + k, mask=there[:, None], other=0).to(tl.int32)
    b = tl.load(b_ptr + k, mask=there[:, None], other=0).to(tl.int32)
    products = number(a & 15) * number(b & 15) + number(a >> 4) * number(b >> 4)
    scale_a = tl.load(scales_a_ptr + row * (K // 16) + block, mask=there, other=0.0).to(tl.float32)
    scale_b = tl.load(scales_b_ptr + block, mask=there, other=0.0).to(tl.float32)
    tl.store(c_ptr + row, tl.sum(tl.sum(products, axis=1) * (scale_a * scale_b)))


def gemv_fp4(
    a: torch.Tensor, scales_a: torch.Tensor, b: torch.Tensor, scales_b: torch.Tensor
) -> torch.Tensor:
    """c (1, M) of a (1, M, K/2) and b (1, K/2), with their scales (1, M, K/16) and (1, K/16)."""
    _, M, half = a.shape
    c = torch.empty((1, M), dtype=torch.float16, device=a.device)
    gemv_kernel[(M,)](a, scales_a, b, scales_b, c, 2 * half, ROOM=max(16, triton.next_power_of_2(half)))
    return c


@triton.jit
def layer_kernel(packed_ptr, scales_ptr, second_ptr, x_ptr, y_ptr, K, ROOM: tl.constexpr):
    """Work out one number of y."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, ROOM // 8)
    there = block < K // 16
    pair = block[:, None] * 8 + tl.arange(0, 8)[None, :]
    byte = tl.load(packed_ptr + row * (K // 2) + pair, mask=there[:, None], other=0).to(tl.int32)
    even = tl.load(x_ptr + 2 * pair, mask=there[:, None], other=0.0)
    odd = tl.load(x_ptr + 2 * pair + 1, mask=there[:, None], other=0.0)
    in_blocks = tl.sum(number(byte & 15) * even + number(byte >> 4) * odd, axis=1)
    scale = tl.load(scales_ptr + row * (K // 16) + block, mask=there, other=0.0).to(tl.float32)
    tl.store(y_ptr + row, tl.sum(in_blocks * scale) / tl.load(second_ptr))


def layer(packed: torch.Tensor, scales: torch.Tensor, second: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """y (M,) of packed (M, K/2), scales (M, K/16), second (1,) and x (K,)."""
    rows, width = packed.shape
    y = x.new_empty(rows)
    room = max(16, triton.next_power_of_2(width))
    layer_kernel[(rows,)](packed, scales, second, x, y, 2 * width, ROOM=room)
    return y
