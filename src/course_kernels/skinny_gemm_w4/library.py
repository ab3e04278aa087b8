"""PyTorch's product with 4-bit weights in a layout of ours: make 16-bit weights of them, and multiply those.

torch has a kernel for 4-bit weights, `torch._weight_int4pack_mm`, for a layout of its own and with zero points: it
solves another problem. To race against cuBLAS with the weights as they were, time `skinny_gemm/library.cublas`.
"""

from __future__ import annotations

import torch

from course_kernels.cuda.four_bits import GROUP, scales_in_order, unpacked


def unpacked_first(x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return the weights are unpacked in torch's operators, rounded to the type of x, and handed to cuBLAS.

    Args:
        x: (M, K) bfloat16 or float16.
        words: (N/16, K/64, 32, 4) int32.
        scales: (N/16, K/128, 16), the type of x.
    Returns:
        (M, N), the same type.
    """
    q, s = unpacked(words), scales_in_order(scales)
    weights = q.to(x.dtype).unflatten(1, (-1, GROUP)) * s[..., None]
    return torch.mm(x, weights.flatten(1).t())
