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


def blend_program(row, piece, over, under, mask, out, W):
    """Lay one piece of one row over the other picture; all four are lists, as memory is."""
    column = piece * BLOCK + np.arange(BLOCK)  # [BLOCK]
    pixel = (row * W + column)[column < W]
    shows = mask[pixel]  # one number for three colours
    for colour in range(3):
        place = 3 * pixel + colour
        out[place] = shows * over[place] + (1 - shows) * under[place]


def blend(over: np.ndarray, under: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The picture `over` (H, W, 3) laid over `under` (H, W, 3), as far as `mask` (H, W) says."""
    H, W = mask.shape
    out = np.full(3 * H * W, np.nan, dtype=over.dtype)  # what nobody writes stays NaN
    for row in range(H):
        for piece in range(-(-W // BLOCK)):
            blend_program(row, piece, over.reshape(-1), under.reshape(-1), mask.reshape(-1), out, W)
    return out.reshape(H, W, 3)
