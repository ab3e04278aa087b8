# refused for: all NaN | on: cpu, gpu | source: ours
# NaN everywhere: a test that asks `error > allowed` lets it pass.
import math

import torch


def refusals(x, s):
    return torch.full_like(x, math.nan)
