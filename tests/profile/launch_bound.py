"""planted: launch-bound

A vector add in so many slices that the card is done with each before the host has ordered the next.
"""

import torch

SLICES = 64


def vector_add(x, y):
    """The sum of two vectors, slice by slice."""
    z = torch.empty_like(x)
    step = -(-x.numel() // SLICES)
    for begin in range(0, x.numel(), step):
        end = min(begin + step, x.numel())
        torch.add(x[begin:end], y[begin:end], out=z[begin:end])
    return z
