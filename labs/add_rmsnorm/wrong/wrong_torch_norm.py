# refused for: not yours | torch.add
import torch


def add_rmsnorm(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    s = x + r
    return torch.nn.functional.rms_norm(s, (s.shape[1],), g, 1e-5), s
