# refused for: not yours | torch.copy
import torch


def transpose(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype, device=x.device)
    y.copy_(x.mT)
    return y
