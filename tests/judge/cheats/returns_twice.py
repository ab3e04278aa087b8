# refused for: left behind or wrong or out of turn or crashed | on: cpu, gpu | source: ours
# Forks, and both return: two hand over an answer, and the judge cannot know whose it reads. A fork has no card.
import os

import torch


def refusals(x, s):
    if os.fork() == 0:
        return torch.zeros_like(x)
    return x * s[:, None]
