# refused for: not yours | torch
import torch


def grey(picture):
    weights = torch.empty(3, dtype=picture.dtype, device=picture.device)
    for place, weight in enumerate((0.299, 0.587, 0.114)):
        weights[place].fill_(weight)
    return picture @ weights
