# refused for: wrong | on: cpu, gpu | source: Sakana AI, AI CUDA Engineer (a constant for all, by a second-hand report)
# The mean of the answer, everywhere: a task whose outputs vary little cannot tell.
import torch


def refusals(x, s):
    return torch.full_like(x, float(x.mean() * s.mean()))
