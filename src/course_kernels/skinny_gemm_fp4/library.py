"""PyTorch's product with NVFP4 weights in a layout of ours: make bfloat16 weights of them, and multiply those.

torch multiplies NVFP4 by NVFP4 alone, on cards that have it in hardware: that is another problem. To race against
cuBLAS with the weights as they were, time `skinny_gemm/library.cublas`.
"""

from __future__ import annotations

import torch

from course_kernels.skinny_gemm_fp4.layout import values_of


def unpacked_first(
    x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor, second: torch.Tensor
) -> torch.Tensor:
    """Return the product by cuBLAS, of weights unpacked in torch's operators and rounded to bfloat16.

    Args:
        x: (M, K) bfloat16.
        words: (N/16, K/64, 32, 4) int32.
        scales: (N/16, K/128, 32, 4) uint8.
        second: (1,) float32.
    Returns:
        (M, N) bfloat16.
    """
    return torch.mm(x, (values_of(words, scales) * second).to(x.dtype).t())
