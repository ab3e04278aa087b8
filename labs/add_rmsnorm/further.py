"""Cases beside the announced sizes: rows of every kind, many rows, rows of many lengths."""

import random

from course_labs.further_cases import Further, every_size, twins

LONGEST = 16384


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up."""
    zeros = draw.randint(1, 3)

    def without_a_row(x, g, r):
        x[zeros] = 0
        r[zeros] = 0

    told = f"row {zeros} of x and r all zeros"
    return [
        Further(f"dtype=float16,M=4,N={draw.randint(9, 60)}", told, change=without_a_row),
        *drawn(door, draw, slow, 129),
    ]


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task, in which no row is all zeros."""
    return drawn(door, draw, slow, 129, 8)


def rows_of_every_kind(x, g, r):
    """Change the third row and those after it, and g: signs and sizes that usual rows do not have.

    Rows of numbers below the smallest normal one, of one number throughout, of negative ones, of large ones, and of
    numbers that nearly cancel. In an eighth row the largest number of y lies between the smallest number of 16 bits and
    its double: who divides by it once it is rounded is off by a quarter. In g a zero, negative numbers, a small and a
    large one.
    """
    for n in range(x.shape[1]):
        x[2, n], r[2, n] = (n % 50 + 1) * 2.0**-24, (n % 7) * 2.0**-24
        x[3, n], r[3, n] = 40, 60
        x[4, n], r[4, n] = -3 - n % 5, -n % 3
        x[5, n], r[5, n] = 9000 + 8 * (n % 64), -20000 + 16 * (n % 32)
        x[6, n], r[6, n] = 100 + n % 8 / 8, -100
    if len(x) > 7:
        x[7] = r[7] = 0
        x[7, 2] = 5 * 2.0**-24
    g[-1] = -50
    g[1] = 0
    g[2] = 2.0**-10
    g[3] = -1


def large_at_the_end(x, g, r):
    """Exchange the large column, which is somewhere in the first half, for the last one."""
    N = r.shape[1]
    r[:, N // 3], r[:, N - 1] = r[:, N - 1] * 1, r[:, N // 3] * 1


def lengths(draw: random.Random, slow: bool) -> list[int]:
    """Rows of which one number more or less in the mean still shows, rows that fill their seats, and long ones.

    All powers of two and all short ones where there is time.
    """
    powers = [2 ** draw.randint(5, 8)] if slow else [2**power for power in range(10)]
    found = [draw.randint(33, 64), draw.randint(130, 250)]
    if slow:
        found += [powers[0] + draw.randint(0, 1)]
    else:
        found += [*range(1, 34), *powers, *(power + 1 for power in powers)]
    found += [draw.randint(1025, 2047), draw.randint(8193, LONGEST - 1)]
    return sorted({*found, *(() if slow else (draw.randint(2049, 8191), LONGEST))})


def drawn(door: str, draw: random.Random, slow: bool, many: int, kinds: int = 7) -> list[Further]:
    """Cases of both.

    Args:
        many: rows, where each of them takes an interpreter its time.
        kinds: rows of another kind; the eighth is for the last task.
    """
    if not slow or door != "triton":
        many = 257 if slow else 1025
    # In Triton nobody but the kernel sees the numbers by which to keep an answer.
    names = "x" if slow and door == "triton" else "xgr"
    N = draw.randint(20, 60)
    rows, places, values = (
        (0, 1),
        (draw.randrange(4, N - 1), draw.randrange(4, N - 1)),  # where g is as it was
        (draw.randint(34, 60), -draw.randint(34, 60)),
    )

    def every_kind(x, g, r):
        for row, place, value in zip(rows, places, values, strict=True):
            x[row, place] = 1000 * value
            r[row, place] = 0
        rows_of_every_kind(x, g, r)

    told = ", ".join(
        f"x[{row}, {at}] is {1000 * value}" for row, at, value in zip(rows, places, values, strict=True)
    )
    return [
        Further(f"dtype=float16,M={kinds},N={N}", f"{told}, each row of another kind", change=every_kind),
        *twins(f"dtype=float16,M=3,N={draw.randint(9, 20)}", draw, names),
        *(
            Further(f"dtype=float16,M=2,N={length}", change=large_at_the_end)
            for length in lengths(draw, slow)
        ),
        *every_size("dtype=float16,M={},N={}".format, 2, draw, slow),
        Further(f"dtype=float16,M={many + draw.randint(0, 10)},N={draw.randint(2, 5)}"),
    ]
