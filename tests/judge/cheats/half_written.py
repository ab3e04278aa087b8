# refused for: all NaN | on: cpu, gpu | source: ours
# Writes the upper half; the lower half is whatever the memory held, often the last right answer.
import torch


def refusals(x, s):
    y = torch.empty_like(x)
    half = x.shape[0] // 2
    torch.mul(x[:half], s[:half, None], out=y[:half])
    return y
