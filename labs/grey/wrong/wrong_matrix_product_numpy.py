# refused for: not yours | __matmul__
import numpy as np


def grey(picture: np.ndarray) -> np.ndarray:
    return picture @ np.array([0.299, 0.587, 0.114], dtype=picture.dtype)
