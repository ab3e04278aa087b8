"""Blocks of numbers that a wrong encoder gets wrong: ties, both ends of every range, zeros, infinities, NaN."""

import numpy as np

MIDDLES = np.float32([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5])  # between the numbers of E2M1
F = np.float32


def of_16(*numbers):
    """A block of 16 that begins with these numbers."""
    return np.resize(F([*numbers, *[0] * (-len(numbers) % 16)]), 16)


def blocks():
    """(n, 32) float32, to be encoded with a second scale of 1: two blocks of 16 a row, or one of 32."""
    one = F(1)
    rows = [of_16(0), of_16(-0.0), of_16(*[-0.0, 0.0] * 8)]
    for scale in (one, F(448), F(2.0**-9), F(2.0**-6), F(1.875), F(240)):  # with 6 the scale is exactly this
        ties = MIDDLES * scale
        rows.append(of_16(6 * scale, *ties, *-ties))
        above, below = np.nextafter(ties, F(np.inf)), np.nextafter(ties, F(0))
        rows.append(of_16(6 * scale, *above, *-above))
        rows.append(of_16(-6 * scale, *below, *-below))
    # The largest on a tie of two scales, normal and subnormal ones, and one float32 beside it.
    steps = [F((code % 8 + 8 + 0.5) * 2.0 ** (code // 8 - 10)) for code in range(8, 126)]
    for middle in [*steps, *(F((n + 0.5) * 2.0**-9) for n in range(8))]:
        beside = np.nextafter(6 * middle, F([0, 9e9]))
        rows += [of_16(m, middle, -middle / 3) for m in (6 * middle, *beside)]
    rows += [
        of_16(largest, 1, -largest) for largest in F([2688, 2784, 2785, 5376, 1e30, 3.4028235e38])
    ]  # no larger scale
    rows += [of_16(x, -x / 2, x / 4) for x in F([2e-3, 1e-4, 2.0**-126, 2.0**-127, 2.0**-149, 3e-45, 1e-38])]
    rows += [of_16(1, 2, 3, x, 4) for x in F([np.inf, -np.inf, np.nan, -np.nan])]
    # Powers of two for E8M0: below, on and above one; 6 and more of a power saturates.
    rows += [of_16(x, 1.7 * x, -1.5 * x) for k in (-126, -125, -124, -3, 0, 1, 100, 126) for x in [F(2.0**k)]]
    rows += [of_16(7, 7.5, 6.9999995, 5, 5.0000005), of_16(np.nextafter(F(8), F(0)), 5, 1)]
    found = np.stack(rows)
    # Beside each block of 16 a quiet one and a row of its own: a scale of the neighbour is another scale.
    quiet = np.broadcast_to(of_16(0.5, 0.25, -0.125), found.shape)
    found = np.stack([found, quiet], axis=1)
    found[1::2] = found[1::2, ::-1]
    return found.reshape(-1, 32)


def tensors():
    """Tensors (M, 32) float32 whose second scale matters: a large one, tiny ones, with infinities, zeros."""
    draw = np.random.default_rng(3)
    usual = draw.standard_normal((4, 32)).astype(F)
    with_outlier = usual.copy()
    with_outlier[1, 3] = 1e5  # the other blocks' scales are subnormal, or the smallest
    lost = usual.copy()
    lost[0, 1], lost[2, 31], lost[3, 2] = np.inf, np.nan, -np.inf
    return {
        "usual": usual,
        "an outlier": with_outlier,
        "infinities and NaN": lost,
        "nothing finite": np.full((1, 32), np.nan, F),
        "zeros": np.zeros((2, 32), F),
        "subnormal": usual * F(2.0**-130),
        "the smallest of all": np.full((1, 32), 2.0**-149, F),
        "huge": usual / np.abs(usual).max() * F(3.4028235e38),
    }
