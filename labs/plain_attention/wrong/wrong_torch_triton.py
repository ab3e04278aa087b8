# refused for: not yours | torch.bmm
from math import sqrt

import torch


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    s = q @ k.transpose(-1, -2) / sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones_like(s).triu(1) == 1, -torch.inf)
    return s.softmax(-1) @ v
