# refused for: wrong | on: cpu, gpu | source: GPU MODE, pygpubench exploit gc_copy
# Cannot multiply; asks the collector for every tensor of the right shape that is neither its input nor its own.
import gc

import torch


def tensors():
    for held in gc.get_objects():
        if type(held) is torch.Tensor:
            yield held
        elif type(held) in (tuple, list, dict):
            yield from (v for v in (held.values() if type(held) is dict else held) if type(v) is torch.Tensor)


def refusals(x, s):
    for found in tensors():
        if found.shape == x.shape and found.dtype == torch.float64:
            return found.to(x.device, x.dtype, copy=True)
    return torch.zeros_like(x)
