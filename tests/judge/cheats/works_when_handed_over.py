# refused for: wrong | on: cpu, gpu | source: ours, after GPU MODE, reference-kernels issue 162 (work in the checker)
# Returns zeros, and does the work where answers are saved, copied to the CPU or turned into bytes: no clock runs.
import pickle

import torch

OWED = {}


def settle(value):
    if isinstance(value, torch.Tensor) and id(value) in OWED:
        y, x, s = OWED.pop(id(value))
        torch.mul(x, s[:, None], out=y)
    elif isinstance(value, dict):
        for part in list(value.values()):
            settle(part)
    elif isinstance(value, list | tuple):
        for part in value:
            settle(part)
    return value


def settling(function):
    return lambda first, *args, **options: function(settle(first), *args, **options)


torch.save, pickle.dump, pickle.dumps = settling(torch.save), settling(pickle.dump), settling(pickle.dumps)
for name in ("cpu", "numpy", "contiguous", "untyped_storage", "data_ptr", "share_memory_", "copy_", "tolist"):
    setattr(torch.Tensor, name, settling(getattr(torch.Tensor, name)))


def refusals(x, s):
    y = torch.zeros_like(x)
    OWED[id(y)] = y, x, s
    return y
