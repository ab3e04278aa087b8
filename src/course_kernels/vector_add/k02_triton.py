"""Vector add in Triton: one program adds one block of pairs.

Contract  problem.py
Idea      a program speaks of a whole block at once; Triton hands the elements to threads
Against   k01_cuda, which speaks of one element
Cost      two reads, one addition, one write for every element
Source    Triton tutorial 01
"""

# mypy: allow-untyped-defs
import torch
import triton
import triton.language as tl

from course_kernels.arguments import check_tensor

BLOCK = 1024  # elements of one program


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    """Add one block of pairs."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
    mask = i < N  # the last program reaches past the end
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(z_ptr + i, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sum x + y: two (N,) float32 vectors on the GPU in, one out; anything else is refused."""
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    check_tensor("y", y, "N", sizes, dtypes=(torch.float32,), device=x.device)

    z = torch.empty_like(x)
    N = sizes["N"]
    programs = triton.cdiv(N, BLOCK)  # rounded up
    vector_add_kernel[(programs,)](x, y, z, N, BLOCK=BLOCK)
    return z
