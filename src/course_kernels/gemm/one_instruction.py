"""A matrix multiply in one instruction: run it, check it, and see it in the machine code.

The kernel is one_instruction.cu.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
M, N, K = 16, 8, 16
WARP = 32


def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product a @ b, by one warp and one instruction of the tensor cores.

    Args:
        a: (16, 16) bfloat16, contiguous.
        b: (16, 8) bfloat16, contiguous.
    Returns:
        (16, 8) float32.
    Raises:
        TypeError: another type.
        ValueError: another shape, not contiguous, or not on the current GPU.
    """
    sizes = {"M": M, "N": N, "K": K}
    check_tensor("a", a, "MK", sizes, dtypes=(torch.bfloat16,))
    check_tensor("b", b, "KN", sizes, dtypes=(torch.bfloat16,), device=a.device)
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    launch(load_kernel(SOURCE, "one_instruction"), 1, WARP, a, b, c)
    return c


def small_numbers(seed: int = 0, device: str = "cuda") -> tuple[torch.Tensor, torch.Tensor]:
    """Return A (16, 16) and B (16, 8), bfloat16, of whole numbers from -8 to 8.

    No product or sum of them is ever rounded.
    """
    generator = torch.Generator(device=device).manual_seed(seed)
    a, b = (
        torch.randint(-8, 9, shape, generator=generator, device=device).to(torch.bfloat16)
        for shape in ((M, K), (K, N))
    )
    return a, b


def is_exact(seed: int = 0) -> bool:
    """Return whether `multiply` gives every element of a product of small whole numbers, without an error."""
    a, b = small_numbers(seed)
    return torch.equal(multiply(a, b).double(), a.double() @ b.double())


def instructions(arch: str | None = None) -> list[str]:
    """Return the kernel's machine instructions in order, as the disassembler writes them: "HMMA.16816.F32.BF16 R4, …".

    Args:
        arch: what to compile for, such as "sm_90a"; without it, the current GPU.
    Raises:
        CompileError, CudaMissingError: see `compile_cubin` and `sass`.
    """
    text = sass(compile_cubin(SOURCE, arch or arch_of(torch.cuda.get_device_capability())))
    lines = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", text)
    return lines[: lines.index("EXIT") + 1]  # behind it stands padding


def multiplications(arch: str | None = None) -> list[str]:
    """Return those of `instructions` that multiply matrices: one."""
    return [line for line in instructions(arch) if re.search(r"\b(HMMA|UTCHMMA|HGMMA)\b", line)]


def report() -> str:
    """Return what came out, how far it is from the truth, and the instruction, as text to print."""
    a, b = small_numbers()
    c, truth = multiply(a, b), a.double() @ b.double()
    found, all_of_them = multiplications(), instructions()
    return "\n".join(
        [
            f"first row of C:  {' '.join(f'{x:5.0f}' for x in c[0].tolist())}",
            f"the truth:       {' '.join(f'{x:5.0f}' for x in truth[0].tolist())}",
            f"wrong elements:  {int((c.double() != truth).sum())} of {c.numel()}",
            f"machine code:    {'; '.join(found)}    ({len(found)} of {len(all_of_them)} instructions)",
        ]
    )
