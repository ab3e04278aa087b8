# refused for: infinity lost | on: cpu, gpu | source: ours
# Tidies up: infinity becomes the largest number; finite inputs never show it.
import torch


def refusals(x, s):
    most = torch.finfo(x.dtype).max
    return (x * s[:, None]).clamp(-most, most)
