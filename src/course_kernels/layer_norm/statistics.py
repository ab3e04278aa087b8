"""Mean and variance of numbers that come a vector at a time, and of parts that are put together: Welford and Chan.

Every lane of a vector keeps the mean of its own numbers, and the sum of their squared distances from it. Whoever puts
lanes or parts together weighs each with its count. Nowhere are two large numbers subtracted that are nearly equal.

Source    Welford 1962, doi:10.1080/00401706.1962.10490022; Chan, Golub & LeVeque 1983,
          doi:10.1080/00031305.1983.10483115
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def merged(count, mean, squares, total):
    """Put a vector of parts together.

    Args:
        count, mean, squares: of each part its count, its mean, and the sum of its squared distances from that mean; a
            part of count 0 has zeros.
        total: the sum of all counts.
    Returns:
        Mean and sum of squared distances of all.
    """
    rough = tl.sum(mean * count) / total
    centre = rough + tl.sum((mean - rough) * count) / total  # what the first sum has rounded away
    far = mean - centre
    return centre, tl.sum(squares + count * far * far)


@triton.jit
def of_numbers(x_ptr, N, BLOCK: tl.constexpr):
    """Return mean and sum of squared distances of the N numbers that begin at x_ptr."""
    n = tl.arange(0, BLOCK)
    mean = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    steps = N // BLOCK
    for step in tl.range(0, steps):
        x = tl.load(x_ptr + step * BLOCK + n)
        far = x - mean
        mean += far * (1.0 / (step + 1.0))
        squares += far * (x - mean)
    # The last numbers reach some of the lanes.
    left = N - steps * BLOCK
    x = tl.load(x_ptr + steps * BLOCK + n, mask=n < left, other=0.0)
    far = tl.where(n < left, x - mean, 0.0)
    mean += far * (1.0 / (steps + 1.0))
    squares += far * tl.where(n < left, x - mean, 0.0)
    return merged(steps + (n < left).to(tl.float32), mean, squares, tl.cast(N, tl.float32))


@triton.jit
def normalise(x_ptr, y_ptr, g_ptr, b_ptr, N, mean, scale, BLOCK: tl.constexpr):
    """Write the N numbers from x_ptr on, less the mean and times the scale, weighed and shifted, to y_ptr."""
    for first in tl.range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + n, mask=n < N, other=0.0)
        g = tl.load(g_ptr + n, mask=n < N, other=0.0)
        b = tl.load(b_ptr + n, mask=n < N, other=0.0)
        tl.store(y_ptr + n, (x - mean) * scale * g + b, mask=n < N)
