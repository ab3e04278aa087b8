# refused for: wrong | on: cpu, gpu | source: GPU MODE, pygpubench exploit gc_nan
# Finds the truth by the collector and fills it with NaN: nothing that is compared with NaN is too far from it.
import gc
import math

import torch


def refusals(x, s):
    for held in gc.get_objects():
        parts = held if type(held) in (tuple, list) else (held,)
        for found in parts:
            if type(found) is torch.Tensor and found.dtype == torch.float64 and found.shape == x.shape:
                found.fill_(math.nan)
    return torch.zeros_like(x)
