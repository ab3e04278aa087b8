"""Two conversions in Triton, for who_rounds_how.py: interpreted or compiled as the process decides."""

import triton
import triton.language as tl


@triton.jit
def to_e4m3(x_ptr, y_ptr):
    """A float32 to E4M3, as a byte."""
    tl.store(y_ptr, tl.load(x_ptr).to(tl.float8e4nv).to(tl.uint8, bitcast=True))


@triton.jit
def to_bf16(x_ptr, y_ptr):
    """A float32 to bfloat16."""
    tl.store(y_ptr, tl.load(x_ptr).to(tl.bfloat16))
