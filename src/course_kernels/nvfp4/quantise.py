"""A tensor into blocks of four-bit numbers, on the GPU: NVFP4 and MXFP4.

Contract  blocks.encode, bit for bit, with each format's own rule
Idea      rounding is done on the bits of a float32, by whole numbers and comparisons: the same for every compiler, and
          in Triton's interpreter, whose conversions to 8 bits are others than the card's
Against   `.to(tl.float8e4nv)`, one instruction on a card; and `cvt` to E2M1, which Blackwell has and Hopper does not
Cost      reads the tensor, for NVFP4 twice: the second scale must be known before the first block is rounded. Writes
          half a byte a number and a byte a block
Limits    a division and some twenty other instructions for each number: more than memory leaves time for
Next      the kernel that wrote the tensor knows its largest already, and can spare the first reading
Source    OCP Microscaling Formats (MX) v1.0, section 6.3; arXiv:2509.25149, appendix B
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_size, check_tensor
from course_kernels.nvfp4.blocks import NVFP4, BlockFormat

NUMBERS = (
    2048  # of a program: two vectors of 16 bytes for each of its 128 threads, four where they are float32
)
WARPS = 4
MAX_NUMBERS = 2**40  # programs are counted with 31 bits
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@triton.jit
def largest_kernel(x_ptr, largest_ptr, N, NUMBERS: tl.constexpr):
    """Find the largest finite magnitude, as bits: of numbers without a sign the larger has the larger bits."""
    n = tl.program_id(0).to(tl.int64) * NUMBERS + tl.arange(0, NUMBERS)
    x = tl.load(x_ptr + n, mask=n < N, other=0.0).to(tl.float32)
    size = x.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    tl.atomic_max(largest_ptr, tl.max(tl.where(size < 0x7F800000, size, 0), 0))


@triton.jit
def second_kernel(largest_ptr, second_ptr):
    """Make the second scale of the largest magnitude. torch would multiply by a rounded 1 / 2688, on a GPU."""
    largest = tl.load(largest_ptr).to(tl.float32, bitcast=True)
    second = tl.maximum(tl.div_rn(largest, 2688.0), 1.1754943508222875e-38)
    tl.store(second_ptr, tl.where(largest == 0.0, 1.0, second))


@triton.jit
def e4m3_of(x):
    """Round numbers >= 0 to E4M3 with ties to even: their codes, saturated, and never that of zero."""
    bits = x.to(tl.int32, bitcast=True)
    # Half of what falls off, and one less where the last bit that stays is 0; a carry goes on into the exponent.
    normal = (bits + 0x7FFFF + (bits >> 20 & 1) >> 20) - (127 - 7 << 3)
    # Near 2**14 a float32 has steps of 2**-9, as E4M3 has below its normal numbers: adding rounds.
    subnormal = (x + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    code = tl.where(bits < 0x3C800000, subnormal, normal)  # below 2**-6
    return tl.minimum(tl.maximum(code, 1), 0x7E)


@triton.jit
def e4m3_to_float(code):
    """Return what codes of E4M3 stand for, in float32."""
    size = code & 0x7F
    normal = (size + (127 - 7 << 3) << 20).to(tl.float32, bitcast=True)
    x = tl.where(size < 8, size.to(tl.float32) * 0.001953125, normal)
    # The sign as a bit: -x is 0 - x in Triton, which has no minus for a zero.
    x = (x.to(tl.int32, bitcast=True) | (code & 128) << 24).to(tl.float32, bitcast=True)
    return tl.where(size == 0x7F, float("nan"), x)


@triton.jit
def e8m0_to_float(code):
    """Return what codes of E8M0 stand for, in float32, where 2**-127 has no exponent of its own."""
    bits = tl.where(code == 0, 0x00400000, code << 23)
    return tl.where(code == 255, 0x7FC00000, bits).to(tl.float32, bitcast=True)


@triton.jit
def quantise_kernel(
    x_ptr, second_ptr, codes_ptr, scales_ptr, BLOCKS,
    BLOCK: tl.constexpr, PROGRAM: tl.constexpr, NV: tl.constexpr,
):  # fmt: skip
    """Round PROGRAM blocks of BLOCK numbers each."""
    b = tl.program_id(0).to(tl.int64) * PROGRAM + tl.arange(0, PROGRAM)
    n = b[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]  # [PROGRAM, BLOCK]
    x = tl.load(x_ptr + n, mask=(b < BLOCKS)[:, None], other=0.0).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    largest = tl.max(size, 1)  # NaN and infinities have the largest bits of all
    lost = largest >= 0x7F800000
    if NV:
        second = tl.load(second_ptr)
        scale = e4m3_of(tl.div_rn(largest.to(tl.float32, bitcast=True), second * 6.0))
        step = e4m3_to_float(scale) * second
        scale = tl.where(lost, 0x7F, scale)
    else:
        scale = tl.maximum((largest >> 23) - 2, 0)  # E8M0 is the exponent of a float32
        step = e8m0_to_float(scale)
        scale = tl.where(lost, 0xFF, scale)
    y = tl.div_rn(size.to(tl.float32, bitcast=True), tl.broadcast_to(step[:, None], (PROGRAM, BLOCK)))
    # A tie goes to the even code: past it where the code below is odd, not where it is even.
    code = (y > 0.25).to(tl.int32) + (y >= 0.75).to(tl.int32) + (y > 1.25).to(tl.int32)
    code += (y >= 1.75).to(tl.int32) + (y > 2.5).to(tl.int32) + (y >= 3.5).to(tl.int32)
    code += (y > 5.0).to(tl.int32)
    code |= bits >> 28 & 8
    code = tl.where(lost[:, None], 0, code)
    first, other = tl.split(tl.reshape(code, (PROGRAM, BLOCK // 2, 2)))
    pairs = b[:, None] * (BLOCK // 2) + tl.arange(0, BLOCK // 2)[None, :]
    tl.store(codes_ptr + pairs, (first | other << 4).to(tl.uint8), mask=(b < BLOCKS)[:, None])
    tl.store(scales_ptr + b, scale.to(tl.uint8), mask=b < BLOCKS)


def quantise(
    x: torch.Tensor, form: BlockFormat = NVFP4, *, second: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a matrix in blocks of four-bit numbers.

    Args:
        x: (M, K) float32, bfloat16 or float16, contiguous, K a multiple of the block; at most 2**40 numbers.
        form: NVFP4 or MXFP4.
        second: (1,) float32, the matrix's own scale, a normal number above zero; nobody checks its value. Without it:
            the largest magnitude / 2688, and 1 for zeros alone. Never with MXFP4.
    Returns:
        (M, K/2) uint8, the first of two codes in the low four bits; (M, K/block) uint8, codes of E4M3 or E8M0; (1,)
        float32, the second scale, 1 for MXFP4.
    Raises:
        TypeError: another type.
        ValueError: another shape, not contiguous, too long, not on the current GPU, or a second scale for MXFP4.
    """
    # region launcher
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=DTYPES)
    M, K = sizes["M"], sizes["K"]
    if K % form.block:
        raise ValueError(f"x: expected (M, K) with K a multiple of {form.block}, got K={K}")
    check_size("x", "M * K", M * K, MAX_NUMBERS)
    if second is not None:
        if not form.has_second:
            raise ValueError(f"second: expected None, since {form.name} has no second scale, got a tensor")
        check_tensor("second", second, "1", {"1": 1}, dtypes=(torch.float32,), device=x.device)
    elif form.has_second:
        largest = torch.zeros(1, dtype=torch.int32, device=x.device)
        second = torch.empty(1, dtype=torch.float32, device=x.device)
        largest_kernel[(triton.cdiv(M * K, NUMBERS),)](x, largest, M * K, NUMBERS=NUMBERS, num_warps=WARPS)
        second_kernel[(1,)](largest, second, num_warps=1)
    else:
        second = torch.ones(1, dtype=torch.float32, device=x.device)

    blocks, program = M * K // form.block, NUMBERS // form.block
    packed = torch.empty((M, K // 2), dtype=torch.uint8, device=x.device)
    scales = torch.empty((M, K // form.block), dtype=torch.uint8, device=x.device)
    quantise_kernel[(triton.cdiv(blocks, program),)](
        x,
        second,
        packed,
        scales,
        blocks,
        BLOCK=form.block,
        PROGRAM=program,
        NV=form.has_second,
        num_warps=WARPS,
    )
    # endregion
    return packed, scales, second
