"""Lab grey: a colour picture in, the same picture in grey out."""

import numpy as np

BLOCK = 256  # pixels of one program: a piece of one row


def grey_program(row, piece, picture, out, W):
    """Turn one piece of one row grey; picture (3 * H * W,) and out (H * W,) are lists, as memory is."""
    column = piece * BLOCK + np.arange(BLOCK)  # [BLOCK]
    mask = column < W  # the last piece of a row reaches past its end
    pixel = (row * W + column)[mask]  # rows lie one behind the other
    red = picture[3 * pixel]
    green = picture[3 * pixel + 1]
    blue = picture[3 * pixel + 2]
    out[pixel] = 0.299 * red + 0.587 * green + 0.114 * blue


def grey(picture: np.ndarray) -> np.ndarray:
    """The picture (H, W, 3) in grey (H, W)."""
    H, W, _ = picture.shape
    out = np.full(H * W, np.nan, dtype=picture.dtype)  # what nobody writes stays NaN
    for row in range(H):  # a program for every row, and every piece of it
        for piece in range(-(-W // BLOCK)):
            grey_program(row, piece, picture.reshape(-1), out, W)
    return out.reshape(H, W)
