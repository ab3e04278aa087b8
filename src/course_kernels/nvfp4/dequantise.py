"""Blocks of four-bit numbers back into a tensor, on the GPU: NVFP4 and MXFP4.

Contract  blocks.decode, bit for bit; rounded once more to a type of 16 bits, to nearest with ties to even
Idea      a code is four bits of a float32: two of the exponent, one of the mantissa, the sign; only 0.5 has no exponent
Against   a table of sixteen numbers, which is a load for each number
Cost      reads half a byte a number and a byte a block, writes the tensor
Limits    a tensor in memory that is read once more: a product should decode as it reads
Next      the multiply that reads these codes itself
Source    OCP Microscaling Formats (MX) v1.0, section 5.3.3
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, check_tensor
from course_kernels.nvfp4.blocks import NVFP4, BlockFormat
from course_kernels.nvfp4.quantise import DTYPES, MAX_NUMBERS, e4m3_to_float, e8m0_to_float

NUMBERS = 2048  # of a program: eight bytes of codes for each of its 128 threads
WARPS = 4


@triton.jit
def e2m1_to_float(code):
    """Return what codes of E2M1 stand for, in float32."""
    size = code & 7
    bits = (size << 22) + 0x3F000000  # exponent 1 of E2M1 is 127 of float32
    bits = tl.where(size < 2, size * 0x3F000000, bits)  # 0, and 0.5
    return (bits | (code & 8) << 28).to(tl.float32, bitcast=True)


@triton.jit
def bf16_of(x):
    """Round float32 to bfloat16 with ties to even, on its bits: Triton's interpreter would cut them off."""
    bits = x.to(tl.int32, bitcast=True)
    upper = bits + 0x7FFF + (bits >> 16 & 1) >> 16
    upper = tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, upper)
    return upper.to(tl.int16).to(tl.bfloat16, bitcast=True)


@triton.jit
def dequantise_kernel(
    codes_ptr, scales_ptr, second_ptr, x_ptr, BLOCKS,
    BLOCK: tl.constexpr, PROGRAM: tl.constexpr, NV: tl.constexpr,
):  # fmt: skip
    """Decode PROGRAM blocks of BLOCK numbers each."""
    b = tl.program_id(0).to(tl.int64) * PROGRAM + tl.arange(0, PROGRAM)
    there = b < BLOCKS
    pairs = b[:, None] * (BLOCK // 2) + tl.arange(0, BLOCK // 2)[None, :]
    two = tl.load(codes_ptr + pairs, mask=there[:, None], other=0).to(tl.int32)
    scale = tl.load(scales_ptr + b, mask=there, other=0).to(tl.int32)
    step = e4m3_to_float(scale) * tl.load(second_ptr) if NV else e8m0_to_float(scale)
    code = tl.reshape(tl.join(two & 15, two >> 4), (PROGRAM, BLOCK))
    x = e2m1_to_float(code) * step[:, None]
    x = bf16_of(x) if x_ptr.dtype.element_ty == tl.bfloat16 else x.to(x_ptr.dtype.element_ty)
    n = b[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(x_ptr + n, x, mask=there[:, None])


def dequantise(
    packed: torch.Tensor,
    scales: torch.Tensor,
    second: torch.Tensor,
    form: BlockFormat = NVFP4,
    *,
    dtype: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """Return what a matrix in blocks of four-bit numbers stands for.

    Args:
        packed: (M, K/2) uint8, contiguous, the first of two codes in the low four bits.
        scales: (M, K/block) uint8, contiguous, codes of E4M3 or E8M0.
        second: (1,) float32, the matrix's own scale; not looked at for MXFP4.
        form: NVFP4 or MXFP4.
        dtype: bfloat16, float16 or float32.
    Returns:
        (M, K) of that type.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, not contiguous, too long, or not on the current GPU.
    """
    # region launcher
    if dtype not in DTYPES:
        raise TypeError(
            f"dtype: expected float32, bfloat16 or float16, got {str(dtype).removeprefix('torch.')}"
        )
    sizes: dict[str, int] = {}
    check_tensor("packed", packed, "MP", sizes, dtypes=(torch.uint8,))
    M, K = sizes["M"], 2 * sizes["P"]
    if K % form.block:
        raise ValueError(f"packed: expected (M, K/2) with K a multiple of {form.block}, got K={K}")
    check_size("packed", "M * K", M * K, MAX_NUMBERS)
    sizes["S"] = K // form.block
    check_tensor("scales", scales, "MS", sizes, dtypes=(torch.uint8,), device=packed.device)
    check_tensor("second", second, "1", {"1": 1}, dtypes=(torch.float32,), device=packed.device)

    blocks, program = M * K // form.block, NUMBERS // form.block
    x = torch.empty((M, K), dtype=dtype, device=packed.device)
    dequantise_kernel[(triton.cdiv(blocks, program),)](
        packed,
        scales,
        second,
        x,
        blocks,
        BLOCK=form.block,
        PROGRAM=program,
        NV=form.has_second,
        num_warps=WARPS,
    )
    # endregion
    return x
