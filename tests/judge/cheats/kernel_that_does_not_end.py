# refused for: timed out | on: gpu | source: ours
# The GPU spins, and every wait for it waits: no signal of Python's arrives there. About 15 minutes at most.
import torch


def refusals(x, s):
    for _ in range(180):
        torch.cuda._sleep(8_000_000_000)
    return x * s[:, None]
