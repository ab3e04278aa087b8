# refused for: out of memory | on: gpu | source: ours
# Takes all memory of the GPU; who else works there fails.
import torch


def refusals(x, s):
    held = []
    while True:
        held.append(torch.empty(2**30, dtype=torch.uint8, device=x.device))
