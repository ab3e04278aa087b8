# refused for: same memory twice | on: cpu, gpu | source: ours
# Right each time, but every answer lies where the one before lies: who kept that has lost it.
import torch

ROOM = {}


def refusals(x, s):
    key = x.shape, x.device
    if key not in ROOM:
        ROOM[key] = torch.empty_like(x)
    return torch.mul(x, s[:, None], out=ROOM[key])
