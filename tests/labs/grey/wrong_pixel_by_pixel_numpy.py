# refused for: not in blocks | grey_program is started 1320 times for 1320 numbers
import numpy as np

BLOCK = 256  # pixels of one program: a piece of one row


def grey_program(row, piece, picture, out, W):
    """Turn one piece of one row grey; picture (3 * H * W,) and out (H * W,) are lists, as memory is."""
    pixel = row * W + piece
    red, green, blue = (picture[3 * pixel + colour] for colour in range(3))
    out[pixel] = 0.299 * red + 0.587 * green + 0.114 * blue


def grey(picture: np.ndarray) -> np.ndarray:
    """The picture (H, W, 3) in grey (H, W)."""
    H, W, _ = picture.shape
    out = np.full(H * W, np.nan, dtype=picture.dtype)  # what nobody writes stays NaN
    for row in range(H):  # a program for every row, and every piece of it
        for piece in range(W):
            grey_program(row, piece, picture.reshape(-1), out, W)
    return out.reshape(H, W)
