"""Layouts and the rule of W3."""

from pathlib import Path

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


_ATTENTION = Path(__file__).parents[3] / "src" / "course_kernels" / "attention"
_FLASH = (_ATTENTION / "k03_flash.py").read_text(encoding="utf-8")


def _in_flash(piece):
    """A piece of code that stands in the file whose five holes are filled."""
    return piece if piece in _FLASH else f"not {piece}"


_LAYOUT = (LANES[0], VALUES[0], LANES[1], VALUES[1])
_CORNERS = [
    tuple(reversed(divmod(in_a(lane, value), 16)))
    for lane in (0, 5, 6, 31)
    for value in (0, 2)
]
ANSWERS = {
    "Fill it in yourself first": (
        _in_flash("tl.maximum(m, tl.max(s, 1) * scale)"),
        _in_flash("tl.math.exp2(m - m_new)"),
        _in_flash("l * repair + tl.sum(p, 1)"),
        _in_flash("acc * repair[:, None]"),
        (0, 3),
    ),
    "By hand first": (
        (2, 8, 3, 1, place(2, 3, 8, 1)),
        (2, 1, 3, 4, place(2, 3, 1, 4)),
        (9, (8 + 1, 1)),
    ),
    "Lane 5": (
        (1, 32, 1, 1, in_a(5, 0)),
        16,
        (in_a(5, 0), in_a(5, 0) // 16, in_a(5, 0) % 16),
    ),
    "Ours, and the rows it rests on": (len(JOBS),),
    "Read it": ("xindex % 4096",),
}
BOARDS = {
    "Six jobs, four rungs": 160,
    "Masks in place of an if": 0,
    "One word for two lectures": 1,
    "The last k, and count": (12, 13, 12),
    "A layout is a measuring cup": (place(2, 3, 8, 1), place(2, 3, 1, 4), 16),
    "The odd table in one line": (*_LAYOUT, 16, (0, 5, 6, 31), (0, 2), _CORNERS),
    "Three shapes that they know": (8, 8 * 32, 128, 64, 72),
    "Warp tiles, in two dialects": (128, 128, 8, 32, 64, 8, 8),
    "Make your rule": (1, 2, 3),
}
CHECK_ANSWERS = {
    "Six jobs, four rungs": False,
    "One word for two lectures": (10, 23),
    "The last k, and count": 0,
    "FlashAttention, with five holes": (3, "acc * repair"),
    "The odd table in one line": (4, 7, 8, 8, 16, 8 * 16),
    "Three shapes that they know": (512, 255),
}
BLANKS = {
    "the gap sheet": (1, 1),
    "layouts": (
        (2, 8),
        (16, 1),
        2 * 4,
        8 * 32,
        64 * 64 // 32,
        4 * 8 * 2,
        3 * (128 + 256) * 32 * 2 // 1024,
    ),
}
