"""Layouts and the rule of W3."""

LANES, VALUES = ((4, 8), (32, 1)), ((2, 2, 2), (16, 8, 128))

RULE = (
    ("Does a library call do it, near enough to what binds?", "call it"),
    ("Is it about tiles, and is the tool's choice good enough?", "Triton"),
    ("Must I say who waits for whom, or where a number lies?", "CuTe, Gluon"),
    ("Is there an instruction that no tool emits?", "CUDA, PTX"),
)
# The first question that each job answers with yes, in a room that argued well.
FIRST_YES = {
    "a bf16 GEMM, 4096 each way": 0,
    "bias and GELU on a large tensor": 1,
    "attention with a mask of your own": 1,
    "the same, and it must reach cuDNN": 2,
    "a multiply whose sum is promoted every 128 k": 1,
    "an instruction of a card that came out today": 3,
}
JOBS = tuple(FIRST_YES)


def cross(job, rung):
    """A cross where the job belongs, by the rule."""
    return "✗" if FIRST_YES[job] == rung else "–"


def question(i):
    """Of the rule, from the top."""
    return RULE[i][0]


def tool(i):
    """What its yes means."""
    return RULE[i][1]


def place(m, n, down, across):
    """Of (m, n) in a layout with these strides."""
    return m * down + n * across


def grid(down, across):
    """All places of (4, 8); solved, (2, 3) is shaded."""
    return [
        [
            f"{'#' if (m, n) == (2, 3) else ''}{place(m, n, down, across)}"
            for n in range(8)
        ]
        for m in range(4)
    ]


def _digits(index, shape):
    found = []
    for size in shape:
        found.append(index % size)
        index //= size
    return found


def pair(lane):
    """A lane as its coordinate, the first number running first."""
    return str(tuple(_digits(lane, LANES[0])))


def in_a(lane, value):
    """The place of a lane's value in the tile of A."""
    of = zip((lane, value), (LANES, VALUES), strict=True)
    return sum(
        digit * step
        for index, (shape, stride) in of
        for digit, step in zip(_digits(index, shape), stride, strict=True)
    )


def row_column(lane, value):
    """The same as row and column."""
    column, row = divmod(in_a(lane, value), 16)
    return f"({row}, {column})"
