"""SwiGLU, kernel 1: silu and the product in one pass.

Contract  problem.py
Idea      a program takes a run of columns of one row of gate and of up; silu never leaves its registers
Against   two operators, which write silu(gate) to memory and read it again: five passes over it instead of three
Cost      reads gate and up once and writes y once. exp and the quotient are two instructions of the special-function
          unit for each number, and memory brings fewer numbers than that unit takes
Limits    a matrix that fits into one wave of programs is a matter of latency: one wait for memory, and the launch
Source    Shazeer 2020, arXiv:2002.05202, equation 6
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from course_kernels.arguments import check_size, check_tensor
from course_kernels.dependent_launch import check_early

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel

# Columns of a program: in half precision each of 128 threads asks for two vectors of 16 bytes of gate and two of up
# before it needs one; with 16 programs on a multiprocessor that is 128 KB under way, several times what one latency
# of an H200 takes.
BLOCK, WARPS = 2048, 4
# Where that gives each multiprocessor of an H200 less than one program: half of one vector a thread, so that the row
# of one token, 14336 numbers, is shared out among 28 of them.
SMALL_BLOCK = 512
FEW_NUMBERS = 132 * BLOCK

# Past so many bytes of one call nothing of it is still in L2 when it is read again (an H200's driver says 60 MiB).
STREAMED_BYTES = 32 * 2**20


# --- on the device -----------------------------------------------------------


# region kernel
@triton.jit
def swiglu_kernel(
    gate_ptr, up_ptr, y_ptr, F, apart, BLOCK: tl.constexpr, ONCE: tl.constexpr, PDL: tl.constexpr
):
    """Compute a run of columns of one row; the rows of gate and of up are `apart` numbers after each other."""
    across = tl.cdiv(F, BLOCK)  # programs side by side
    program = tl.program_id(0)
    m = (program // across).to(tl.int64)  # times F it passes 2**31
    f = program % across * BLOCK + tl.arange(0, BLOCK)
    there = f < F
    if PDL:
        gdc_launch_dependents()  # whoever comes next waits for the end of this kernel by itself
        gdc_wait()
    a = tl.load(gate_ptr + m * apart + f, mask=there, other=0.0, eviction_policy=ONCE).to(tl.float32)
    b = tl.load(up_ptr + m * apart + f, mask=there, other=0.0, eviction_policy=ONCE).to(tl.float32)
    # As a quotient: exp of a large number is infinite, and what is divided by it is nought.
    y = a / (1.0 + tl.exp(-a)) * b
    tl.store(y_ptr + m * F + f, y.to(y_ptr.dtype.element_ty), mask=there, eviction_policy=ONCE)


# endregion


# --- on the host -------------------------------------------------------------


def block_for(M: int, F: int) -> int:
    """Columns of a program."""
    return BLOCK if M * F >= FEW_NUMBERS else SMALL_BLOCK


def swiglu(
    gate: torch.Tensor, up: torch.Tensor | None = None, *, block: int | None = None, pdl: bool = False
) -> torch.Tensor:
    """silu(gate) * up, element by element.

    Args:
        gate: (M, F) bfloat16, float16 or float32, contiguous, M and F <= 2**30; or (M, 2 F), where there is no up: the
            gate is then the first half of each row, and up the second.
        up: (M, F), the same type, contiguous; or None.
        block: columns of a program, a power of two; without it, what suits M and F.
        pdl: begin while the kernel before this one on the stream ends (Hopper and later).
    Returns:
        (M, F), the same type, rounded to it once.
    Raises:
        TypeError: another type, or two different ones.
        ValueError: shapes that do not fit together, an odd number of columns without up, a size out of range, not
            contiguous, or not on the current GPU; or where no kernel can begin early.
    """
    sizes: dict[str, int] = {}
    merged = up is None
    check_tensor("gate", gate, "MN" if merged else "MF", sizes, dtypes=DTYPES)
    if up is not None:
        check_tensor("up", up, "MF", sizes, dtypes=(gate.dtype,), device=gate.device)
    if merged and sizes["N"] % 2:
        raise ValueError(f"gate: expected (M, 2 F) where there is no up, got {tuple(gate.shape)}")
    M, F = sizes["M"], sizes["N"] // 2 if merged else sizes["F"]
    check_size("gate", "M", M, MAX_SIZE)
    check_size("gate", "F", F, MAX_SIZE)
    check_early(pdl, gate.device)

    y = torch.empty((M, F), dtype=gate.dtype, device=gate.device)
    up = gate[:, F:] if up is None else up  # a view: its rows are 2 F apart, as those of gate are
    block = block or block_for(M, F)
    once = "evict_first" if 3 * y.numel() * y.element_size() > STREAMED_BYTES else ""
    swiglu_kernel[(M * triton.cdiv(F, block),)](
        gate, up, y, F, 2 * F if merged else F, BLOCK=block, ONCE=once, PDL=pdl,
        num_warps=WARPS, launch_pdl=pdl,
    )  # fmt: skip
    return y
