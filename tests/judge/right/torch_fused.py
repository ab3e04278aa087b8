# right | on: cpu, gpu
# One operator that multiplies and stores, into memory of its own.
import torch


def refusals(x, s):
    y = torch.empty_like(x)
    torch.mul(x, s.unsqueeze(1), out=y)
    return y
