# refused for: wrong | on: cpu, gpu | source: robust-kbench (by a summary); CUDA-L1 (shape matching, second-hand)
# Right for the sizes that the task announces, and for no other.
import torch

ANNOUNCED = {(1, 1), (97, 97), (8192, 8192)}


def refusals(x, s):
    if tuple(x.shape) not in ANNOUNCED:
        return torch.zeros_like(x)
    return x * s[:, None]
