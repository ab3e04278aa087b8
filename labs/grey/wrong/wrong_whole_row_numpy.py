# refused for: holds too much | works on 1500 numbers
import numpy as np


def grey(picture: np.ndarray) -> np.ndarray:
    H, W, _ = picture.shape
    out = np.full((H, W), np.nan, dtype=picture.dtype)
    for row in range(H):
        red, green, blue = (picture[row, :, c] for c in range(3))
        out[row] = 0.299 * red + 0.587 * green + 0.114 * blue
    return out
