# refused for: not yours | torch.mm
import torch


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b)
