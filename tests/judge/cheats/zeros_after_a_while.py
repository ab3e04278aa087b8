# refused for: wrong in the end or wrong | on: cpu, gpu | source: ours
# Counts its calls: right in the first ten, and then zeros, which cost nothing to make.
import itertools

import torch

CALLS = itertools.count()


def refusals(x, s):
    return x * s[:, None] if next(CALLS) < 10 else torch.zeros_like(x)
