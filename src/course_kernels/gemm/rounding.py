"""Rounding errors by number type: the distance from the truth after a whole multiply.

The same float32 matrices go into every type: rounded to it, multiplied by the library, given back as the library
gives them back. The truth is the float64 product of the matrices before they were rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_kernels.problem import worst_error

LARGEST = 448.0  # of float8_e4m3fn


def errors(M: int, N: int, K: int, *, seed: int = 0) -> dict[str, dict[str, float]]:
    """Return the error of every type on the current GPU, for normal random matrices of variance 1.

    Args:
        M, N, K: sizes; N and K divisible by 16, for the library's multiply of 8-bit numbers.
        seed: of the random matrices.
    Returns:
        For "fp32", "tf32", "fp16", "bf16" and "fp8": "worst", the largest of |error| / (|truth| + rms of the truth),
        and "rms", rms of the error / rms of the truth.
    Raises:
        ValueError: N or K is not divisible by 16.
    """
    if N % 16 or K % 16:
        raise ValueError(f"sizes: expected N and K divisible by 16, got N={N}, K={K}")
    generator = torch.Generator("cuda").manual_seed(seed)
    a = torch.randn(M, K, generator=generator, device="cuda")
    b = torch.randn(K, N, generator=generator, device="cuda")
    truth = a.double() @ b.double()
    found = {}
    for name, multiply in WAYS.items():
        c = multiply(a, b)
        rms = float((c.double() - truth).square().mean().sqrt() / truth.square().mean().sqrt())
        found[name] = {"worst": worst_error(c, truth), "rms": rms}
    return found


def in_fp32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Products and sums in float32, on the CUDA cores."""
    return _with_precision("highest", a, b)


def in_tf32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Round inputs to TF32 on the way into the tensor cores: 8 bits of exponent, 10 of fraction."""
    return _with_precision("high", a, b)


def in_fp16(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply with inputs and output float16: 5 bits of exponent, 10 of fraction."""
    return a.half() @ b.half()


def in_bf16(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply with inputs and output bfloat16: 8 bits of exponent, 7 of fraction."""
    return a.bfloat16() @ b.bfloat16()


def in_fp8(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply with inputs float8_e4m3fn, one scale for each, fast accumulation, output bfloat16."""
    (a8, scale_a), (b8, scale_b) = rounded_to_fp8(a), rounded_to_fp8(b.t().contiguous())
    return torch._scaled_mm(
        a8, b8.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True
    )


WAYS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "fp32": in_fp32,
    "tf32": in_tf32,
    "fp16": in_fp16,
    "bf16": in_bf16,
    "fp8": in_fp8,
}


def rounded_to_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x as 4 bits of exponent and 3 of fraction, stretched so that the largest is 448; and the scale, (1,) float32."""
    scale = (x.abs().amax() / LARGEST).reshape(1)
    return (x / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scale


def _with_precision(precision: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        return a @ b
    finally:
        torch.set_float32_matmul_precision(before)
