# refused for: not yours | numpy.stack
import numpy as np


def vector_add(x, y):
    return np.stack([x, y]).sum(axis=0)
