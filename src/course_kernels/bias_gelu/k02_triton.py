"""Bias + GELU in Triton: the fused kernel in a dozen lines.

Contract  problem.py
Idea      a program takes a run of columns of a few rows; the sum never leaves its registers
Against   k01_fused, which deals out the threads and the vectors by hand
Cost      reads x once and writes y once; erf as the library of the language has it
Source    Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2
"""

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor

ROWS, COLUMNS = 4, 1024  # elements of one program
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernel


@triton.jit
def bias_gelu_kernel(x_ptr, b_ptr, y_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add the bias to a few rows of a run of columns, and take the GELU."""
    across = tl.cdiv(N, COLUMNS)  # programs side by side
    program = tl.program_id(0)
    m = program // across * ROWS + tl.arange(0, ROWS)[:, None]  # [ROWS, 1]
    n = program % across * COLUMNS + tl.arange(0, COLUMNS)[None, :]  # [1, COLUMNS]
    at = m.to(tl.int64) * N + n  # [ROWS, COLUMNS]
    mask = (m < M) & (n < N)
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + n, mask=n < N).to(tl.float32)
    s = x + b
    y = 0.5 * s * (1.0 + tl.erf(s * 0.7071067811865476))
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


def bias_gelu(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """GELU(x + b), with the bias added to every row.

    Args:
        x: (M, N) float32 or bfloat16, contiguous, M and N <= 2**30.
        b: (N,), the same type, on the same device, contiguous.
    Returns:
        (M, N), the same type; the sum is rounded to it only once, after the GELU.
    Raises:
        TypeError: x is neither float32 nor bfloat16, or b is of another type.
        ValueError: a shape, layout or device other than these, or too long.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MN", sizes, dtypes=(torch.float32, torch.bfloat16))
    check_tensor("b", b, "N", sizes, dtypes=(x.dtype,), device=x.device)

    M, N = sizes["M"], sizes["N"]
    if max(M, N) > MAX_SIZE:
        raise ValueError(f"x: expected M and N <= {MAX_SIZE}, got ({M}, {N})")

    y = torch.empty_like(x)
    programs = triton.cdiv(N, COLUMNS) * triton.cdiv(M, ROWS)
    bias_gelu_kernel[(programs,)](x, b, y, M, N, ROWS=ROWS, COLUMNS=COLUMNS)
    return y
