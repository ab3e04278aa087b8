# refused for: left behind or wrong or out of turn | on: cpu, gpu | source: ours
# Forks, and both processes return: two of them hand over an answer, and the judge cannot know whose it reads.
import os

import torch


def refusals(x, s):
    if os.fork() == 0:
        return torch.zeros_like(x)
    return x * s[:, None]
