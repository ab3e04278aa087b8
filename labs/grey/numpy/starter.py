"""Lab grey: a colour picture in, the same picture in grey out."""

import numpy as np

BLOCK = 256  # pixels of one program: a piece of one row


def grey_program(row, piece, picture, out, W):
    """Turn one piece of one row grey; picture (3 * H * W,) and out (H * W,) are lists, as memory is."""
    # your lines go here


def grey(picture: np.ndarray) -> np.ndarray:
    """The picture (H, W, 3) in grey (H, W)."""
    H, W, _ = picture.shape
    out = np.full(H * W, np.nan, dtype=picture.dtype)  # what nobody writes stays NaN
    for row in range(H):  # a program for every row, and every piece of it
        for piece in range(-(-W // BLOCK)):
            grey_program(row, piece, picture.reshape(-1), out, W)
    return out.reshape(H, W)
