# refused for: shares memory
import torch


def transpose(x: torch.Tensor) -> torch.Tensor:
    return x.t()
