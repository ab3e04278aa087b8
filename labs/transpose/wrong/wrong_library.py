# refused for: not yours | course_kernels.transpose
import importlib

import torch


def transpose(x: torch.Tensor) -> torch.Tensor:
    return importlib.import_module("course_kernels.transpose.k03_padded").transpose(x)
