"""The sums of W6's verdict page, and ten made-up kernels."""

from math import ceil

from course_kernels.measure.machine import machine_for

HEADS, D, LATENT, POSITION = 128, 128, 512, 64
ALLOWED = 0.01
KERNELS = (  # worst error, its ticks, eager's ticks
    (0.001, 80, 100),
    (0.004, 120, 100),
    (0.300, 10, 100),
    (0.002, 48, 100),
    (0.000, 100, 90),
    (float("nan"), 5, 100),
    (0.009, 95, 100),
    (0.003, 40, 100),
    (0.011, 60, 100),
    (0.005, 300, 100),
)


def kept_by_mha():
    """Numbers of one token's keys and values."""
    return 2 * HEADS * D


def kept_by_mla():
    """Numbers of one token's latent list."""
    return LATENT + POSITION


def decode(heads):
    """Operations a byte of MLA's decode: keys with the position, values without, two bytes a number."""
    return 2 * heads * (kept_by_mla() + LATENT) / (2 * kept_by_mla())


def ridge():
    """Of an H200 in bf16."""
    sheet = machine_for("NVIDIA H200")
    return sheet.peak_tflops["bf16"] * 1e3 / sheet.bandwidth_gb_per_s


def formula(p, k):
    """Tokens of one verification: 1 + p + … + p to the k."""
    return sum(p**i for i in range(k + 1))


def shown(i):
    """The error as it is printed."""
    error = KERNELS[i][0]
    return "NaN" if error != error else f"{error:.3f}"


def own(i):
    """Its ticks."""
    return KERNELS[i][1]


def eager(i):
    """Those of eager PyTorch."""
    return KERNELS[i][2]


def counts(i, p):
    """Right, and eager takes more than p times its ticks; NaN is not right."""
    error, own, eager = KERNELS[i]
    return error <= ALLOWED and eager > p * own


def verdict(i, p):
    """A tick or a cross."""
    return "✓" if counts(i, p) else "✗"


def fast(p):
    """How many of ten."""
    return sum(counts(i, p) for i in range(len(KERNELS)))


def least_heads(ridge):
    """The smallest number of heads with that many operations a byte."""
    return ceil(ridge * kept_by_mla() / (kept_by_mla() + LATENT))


def product(matrix, vector):
    """A matrix times a vector."""
    return tuple(
        sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix
    )


def dot(a, b):
    """The sum of products."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def mean(weights, vectors):
    """Vectors added up with weights."""
    return tuple(dot(weights, column) for column in zip(*vectors, strict=True))


# One head in pairs: what makes keys and values, two latents, a query, the weights.
W, V = ((1, 2), (0, 1)), ((1, 0), (1, 1))
LATENTS, QUERY, WEIGHTS = ((1, 1), (2, 0)), (1, 2), (3 / 4, 1 / 4)
KEYS, VALUES = ([product(m, c) for c in LATENTS] for m in (W, V))
SHORT = product(tuple(zip(*W, strict=True)), QUERY)
MIXED = mean(WEIGHTS, LATENTS)
assert [dot(QUERY, k) for k in KEYS] == [dot(SHORT, c) for c in LATENTS]
assert mean(WEIGHTS, VALUES) == product(V, MIXED)

# Three words: the large model's probabilities and the draft's.
LARGE, DRAFTED = (0.5, 0.3, 0.2), (0.7, 0.2, 0.1)
PASSED = [min(p, q) for p, q in zip(LARGE, DRAFTED, strict=True)]
LEFT = [max(p - q, 0) for p, q in zip(LARGE, DRAFTED, strict=True)]
LATE = [(1 - sum(PASSED)) * x / sum(LEFT) for x in LEFT]

INDEX_KEY, ROW, CHOSEN = 2 * 128, 2 * kept_by_mla(), 2048


def rows_with(right=True, faster=0):
    """The rows of the ten that count, p being `faster`; or those that are wrong."""
    return [
        i + 1
        for i in range(len(KERNELS))
        if counts(i, faster if right else 0) == right
    ]


NAN_ROW = 1 + next(i for i, (error, _, _) in enumerate(KERNELS) if error != error)

# Six files by a machine: bytes that must move or operations, and how often the largest input is fetched.
SIX = (
    ("softmax", 2 * 16384 * 8192 * 4, "GB", "once"),
    ("multiply, float16", 2 * 8192**3, "TFLOP", "once a tile"),
    ("bias and GELU", 2 * 32768 * 16384 * 2, "GB", "once"),
    ("SwiGLU", 3 * 16384 * 14336 * 2, "GB", "once"),
    ("attention", 2 * 16 * 16384**2 * 128, "TFLOP", "once a block of rows"),
    ("decode attention", 2 * 32 * 8 * 4096 * 128 * 2, "GB", "once"),
)


def its_name(i):
    """The task of a file."""
    return SIX[i][0]


def its_least(i):
    """What must move, or be done."""
    _, least, unit, _ = SIX[i]
    return f"{least / (1e9 if unit == 'GB' else 1e12):.2f} {unit}"


def its_fetches(i):
    """How often its largest input is fetched, by its code."""
    return SIX[i][3]


ANSWERS = {
    "Two by two, absorbed": (
        (*KEYS[0], *KEYS[1], 3, 2, dot(QUERY, KEYS[0]), 2, 0, dot(QUERY, KEYS[1])),
        (
            1,
            2,
            2,
            *SHORT,
            1,
            4,
            dot(SHORT, LATENTS[0]),
            2,
            0,
            dot(SHORT, LATENTS[1]),
        ),
        (*VALUES[0], *VALUES[1], *mean(WEIGHTS, VALUES), *MIXED),
        (MIXED[0], *MIXED, *product(V, MIXED)),
    ),
    "Operations for a byte": (
        (kept_by_mla() + LATENT, kept_by_mla(), round(1088 / 576, 3)),
        (206, round(1088 / 576, 3), 206 * 576 / 1088, least_heads(206)),
        (295, round(1088 / 576, 3), 295 * 576 / 1088, least_heads(295)),
    ),
    "Four drafts": (1, 2, 8, 1, 1, 0.7),
    "Add up both ways": (
        (
            *PASSED,
            sum(PASSED),
            *LEFT,
            LEFT[1] / sum(LEFT),
            1 - sum(PASSED),
            1 - sum(PASSED),
            LEFT[2] / sum(LEFT),
        ),
        (
            LATE[2],
            LARGE[0],
            PASSED[1],
            LATE[1],
            LARGE[1],
            PASSED[2],
            LATE[2],
            LARGE[2],
        ),
    ),
    "Ten kernels": (
        (fast(0), *rows_with(right=False)),
        (fast(1), *rows_with(faster=1)),
        (fast(2), *rows_with(faster=2)),
        (NAN_ROW, ALLOWED, ALLOWED),
    ),
    "Rewrite it": (2, 4, 37, 100, 36, 72, 10, 92),
    "How many tables are set?": (64, 256, 256, "2²²", 16, 16),
    "Sheet zero": ("third",),
    "Four boxes": ("million", 1, 8),
    "Correct your own board": (1,),
    "From which context on?": (
        (
            ROW,
            INDEX_KEY,
            CHOSEN,
            ROW,
            CHOSEN,
            ROW,
            ROW - INDEX_KEY,
            CHOSEN * ROW / (ROW - INDEX_KEY),
        ),
        (4096, 131072),
    ),
    "A share, and of what?": ((8 + 1, 512, 256 + 1), 50000),
    "Rehearse": (
        (10, 2, 4, 37, 100),
        (1, 0.8, 0.8**2, 0.8**3, formula(0.8, 3), 1, 1 - 0.8, 1 / (1 - 0.8)),
    ),
}
EXIT_ANSWERS = (
    (round(decode(HEADS), -1), HEADS),
    (1, 0.8**4, 1, 0.8, formula(0.8, 3)),
)
BOARDS = {
    "Keep the recipe, not the dishes": (
        (2, LATENT, POSITION),
        (kept_by_mha(), kept_by_mla(), kept_by_mha() / kept_by_mla()),
    ),
    "A decode, weighed again": (
        (kept_by_mla(), LATENT, kept_by_mla(), HEADS),
        (ridge(), 258, 295, decode(HEADS), HEADS, decode(16), 16),
    ),
    "Propose, verify": (2, 1, 0.7, 4, formula(0.7, 4)),
    "The formula says the same": (1, 1, 1, formula(0.7, 4)),
    "What does *solved* mean?": [fast(p) for p in (0, 1, 2)],
    "Six kernels that a machine wrote": 5,
    "The loop, and who says stop": 8,
}
CHECK_ANSWERS = {
    "Three headlines with their small print": False,
    "The formula says the same": (1, 1, 0.7, 1 / (1 - 0.7), 4, 5),
    'The autopsy of "484 %"': (False, 5),
}
BLANKS = {"verdict": (1, formula(0.7, 4), 1 / (1 - 0.7), 16, 132)}
