# refused for: not yours | imports torch
import numpy as np
import torch


def vector_add(x, y):
    return (torch.from_numpy(x) + torch.from_numpy(y)).numpy()
