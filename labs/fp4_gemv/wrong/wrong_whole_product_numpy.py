# refused for: not yours | __matmul__
import numpy as np

NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)


def values(packed: np.ndarray, scales: np.ndarray) -> np.ndarray:
    numbers = NUMBERS[np.stack([packed & 15, packed >> 4], axis=-1)].reshape(*scales.shape, 16)
    steps = (scales.astype(np.uint32) << 20).view(np.float32) * np.float32(2.0**120)
    return (numbers * steps[..., None]).reshape(*packed.shape[:-1], -1)


def gemv_fp4(a: np.ndarray, scales_a: np.ndarray, b: np.ndarray, scales_b: np.ndarray) -> np.ndarray:
    return (values(a, scales_a)[0] @ values(b, scales_b)[0])[None].astype(np.float16)
