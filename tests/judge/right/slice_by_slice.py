# right | on: cpu, gpu
# Writes its output in slices of rows, the last of them shorter.
import torch


def refusals(x, s):
    y = torch.empty_like(x)
    for begin in range(0, x.shape[0], 40):
        end = begin + 40
        y[begin:end] = x[begin:end] * s[begin:end, None]
    return y
