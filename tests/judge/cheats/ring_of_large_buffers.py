# refused for: wrong in the end | on: cpu | source: our own attack
# Large answers come from a ring of three buffers: the fourth lies where the first one lies, and overwrites it.
import itertools

import torch

RING, TURN = {}, itertools.count()


def refusals(x, s):
    y = x * s[:, None]
    if y.numel() <= 2**17:
        return y
    ring = RING.setdefault(y.shape, [torch.empty_like(y) for _ in range(3)])
    return ring[next(TURN) % 3].copy_(y)
