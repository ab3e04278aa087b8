# refused for: holds too much | in one step, and 1024 is the most
import numpy as np


def grey(picture: np.ndarray) -> np.ndarray:
    return 0.299 * picture[:, :, 0] + 0.587 * picture[:, :, 1] + 0.114 * picture[:, :, 2]
