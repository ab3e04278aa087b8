"""Bars, gaps and waits of L7."""

SHIFT = (6, 3, 1)  # oven, sink, till
ORDER = 4
KERNELS = ("cuda_cores", "wmma", "mma_sync", "wgmma")  # the rows of L6's table
NAMES = ("CUDA cores", "WMMA", "mma.sync", "wgmma")
# The profiler's name, what it is, and a cure; in the order of `waits`.
REASONS = (
    (
        "long scoreboard",
        "HBM or L2",
        "fetch ahead, more bytes in flight, a tile used more often",
    ),
    (
        "short scoreboard",
        "shared memory",
        "fewer words from shared memory, no queues",
    ),
    ("MIO throttle", "its queue", "wider loads, fewer of them"),
    ("barrier", "each other", "more buffers, fewer barriers, roles"),
    (
        "math pipe throttle",
        "the tensor core itself",
        "a wider instruction, if tensor cores are at work; else not in this table",
    ),
    (
        "an order in flight",
        "its own product",
        "none by itself: read how busy the tensor cores are",
    ),
)


def bars():
    """Three bars of ten squares."""
    rows = []
    for oven in (6, 3, 0):
        bar = ["O"] * oven + ["K"] * SHIFT[1] + ["T"] * SHIFT[2]
        rows.append(bar + ["!"] * (sum(SHIFT) - len(bar)))
    return rows


def gain(saved):
    """The shift over what is left of it."""
    return sum(SHIFT) / (sum(SHIFT) - saved)


def timeline(kernel, launches=4, width=40):
    """Orders above, kernels below; an idle square between two kernels is shaded."""
    above = ["!"] * width
    below = ["!"] * width
    end = 0
    for i in range(launches):
        ordered = ORDER * (i + 1)
        above[ORDER * i : ordered] = ["O"] * ORDER
        start = max(ordered, end)
        for square in range(end if i else start, min(start, width)):
            below[square] = "#"
        for square in range(start, min(start + kernel, width)):
            below[square] = "K"
        end = start + kernel
    return [above, below]


def idle(kernel):
    """Shaded squares."""
    return timeline(kernel)[1].count("#")


def waits(*ticks):
    """Ticks of waiting for each instruction issued, in the order of REASONS."""
    return ticks


def longest(ticks):
    """The reason with the most ticks."""
    return REASONS[max(range(len(ticks)), key=lambda i: ticks[i])]


_NUMBERS = 8192 * 16384
_UNDER_WAY = 9 * 32 * 10 * 4
ANSWERS = {
    "The forecast": (
        _NUMBERS,
        4 * _NUMBERS / 1e6,
        3 * 4 * _NUMBERS / 1e9,
        1 + 1 + 1 + 2 + 2,
        3 * 4,
        2 * 3 + 1,
    ),
    "Two things changed": 1 / 2,
    "Enough for the hall?": (32, _UNDER_WAY, _UNDER_WAY // 2, 2, 1 / 3, 1 / 3),
    "Whose turn is it?": (6 // 2, sum(SHIFT) - 3, sum(SHIFT) - 3 - 3),
    "What would you leave out?": (2, 3, 2 * 2 + 1, 2 * 3 + 1),
    "Read a report": (
        "(a) done",
        "(b) something is carried twice",
        "(c) too few bytes",
        "(d) the card waits",
    ),
    "Rehearse": (8 + 2, 2 + 2, 10 / 4, 10 / 2, 1 / 2, 1 / 2),
}
EXIT_ANSWERS = ((10 - 6, 10, 10 - 6, 10 / 4), (), ("the last", 2))
BOARDS = {
    "Bytes, operations, two roofs": 16,
    "Amdahl at the counter": (
        SHIFT,
        (3, *SHIFT[1:]),
        (0, *SHIFT[1:]),
        10,
        7,
        10,
        4,
    ),
    "Gaps between the kernels": (
        ([ORDER] * 4, [3] * 4, 9),
        (10, ORDER, 3, ORDER, 10, 3),
        (idle(3), idle(9), 10 * ORDER + 3, ORDER + 10 * 3),
    ),
}
BLANKS = {"bars, gaps, waits": (10 - 3, 10 - 6, 10 * ORDER + 3, ORDER + 10 * 3)}
