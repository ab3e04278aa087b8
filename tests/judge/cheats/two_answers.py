# refused for: wrong result | on: cpu, gpu | source: ours
# Two candidates in a tuple: a checker that asks whether any of them fits is content.
import torch


def refusals(x, s):
    return x * s[:, None], torch.zeros_like(x)
