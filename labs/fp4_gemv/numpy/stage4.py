"""Lab fp4_gemv: c = A b, both in NVFP4."""

import numpy as np

# On paper. A byte of A is 0xB5, and the code of its block's scale is 0x3C. A has rows of 96 numbers.
FIRST, SECOND = 3.0, -1.5  # what the byte's two codes of E2M1 stand for, in their order
SCALE = 1.5  # what the code of E4M3 stands for
BYTES, SCALES = 48, 6  # from a row of A to the next, and from a row of its scales to the next
assert 7 * FIRST + 5 * SECOND != 4.5, "predict first: which number is in the low four bits?"
assert not 0 < SCALE < 1e-9, "predict first: E4M3 has a mantissa below its exponent; E8M0 has none"
assert BYTES != 96, "predict first: two numbers share a byte"
assert SCALES != 3, "predict first: sixteen numbers share a scale, and not 32"
assert 7 * FIRST + 5 * SECOND + 3 * SCALE + BYTES + 2 * SCALES == 78, "predict first, on paper"


def number(code):
    """What a code of E2M1 stands for, 0 to 15."""
    exponent, mantissa = code >> 1 & 3, code & 1
    size = mantissa * 0.5 if exponent == 0 else (2 + mantissa) * 0.25 * 2**exponent
    return size if code < 8 else -size


def scale(code):
    """What a code of E4M3 stands for, 0 to 127; the last of them is NaN."""
    exponent, mantissa = code >> 3, code & 7
    if code == 127:
        return np.nan
    return mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)


NUMBERS = np.array([number(code) for code in range(16)], dtype=np.float32)
STEPS = np.array([scale(code) for code in range(128)], dtype=np.float32)


def row_times(a, scales_a, b, scales_b):
    """A row of A times b: bytes (K/2,) and scales (K/16,) of both."""
    a, b = a.reshape(-1, 8), b.reshape(-1, 8)  # [K/16, 8], the bytes of each block
    products = NUMBERS[a & 15] * NUMBERS[b & 15] + NUMBERS[a >> 4] * NUMBERS[b >> 4]
    return (products.sum(axis=1) * (STEPS[scales_a] * STEPS[scales_b])).sum()


def gemv_fp4(a: np.ndarray, scales_a: np.ndarray, b: np.ndarray, scales_b: np.ndarray) -> np.ndarray:
    """c (1, M) of a (1, M, K/2) and b (1, K/2), with their scales (1, M, K/16) and (1, K/16)."""
    M = a.shape[1]
    c = np.full((1, M), np.nan, dtype=np.float16)  # what nobody writes stays NaN
    for m in range(M):
        c[0, m] = row_times(a[0, m], scales_a[0, m], b[0], scales_b[0])
    return c
