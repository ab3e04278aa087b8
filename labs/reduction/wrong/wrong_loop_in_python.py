# refused for: not yours | Tensor.tolist
import torch


def reduction(x: torch.Tensor) -> torch.Tensor:
    return torch.full((1,), sum(x.tolist()), dtype=x.dtype, device=x.device)
