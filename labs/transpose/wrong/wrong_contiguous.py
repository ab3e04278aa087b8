# refused for: not yours | torch.clone
import torch


def transpose(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous()
