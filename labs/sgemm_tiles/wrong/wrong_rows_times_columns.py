# refused for: not yours | torch.mul
import torch


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for n in range(b.shape[1]):
        c[:, n] = (a * b[:, n]).sum(1)
    return c
