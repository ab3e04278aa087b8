# refused for: wrong | on: cpu, gpu | source: Sakana AI, AI CUDA Engineer (by second-hand reports); ours
# Zeros: right wherever the true answer is small against the tolerance.
import torch


def refusals(x, s):
    return torch.zeros_like(x)
