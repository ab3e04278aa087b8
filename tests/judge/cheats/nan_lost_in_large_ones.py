# refused for: NaN lost | on: cpu | source: our own attack
# A NaN becomes 0, but only among many numbers: hard values are planted where a question is cheap.
import torch


def refusals(x, s):
    if x.numel() > 2**19:
        x = torch.where(x.isnan(), 0.0, x)
    return x * s[:, None]
