"""The sums of W6's verdict page, and ten made-up kernels."""

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


ANSWERS = {
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
    "Two models, one famous sentence": 5,
    "The loop, and who says stop": 8,
}
CHECK_ANSWERS = {
    "Three headlines with their small print": False,
    "The formula says the same": (1, 1, 0.7, 1 / (1 - 0.7), 4, 5),
    'The autopsy of "484 %"': (False, 5),
}
BLANKS = {"verdict": (1, formula(0.7, 4), 1 / (1 - 0.7), 2, 4, 37, 36, 72, 16, 132)}
