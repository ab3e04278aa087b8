"""Softmax of three tokens, and what the square of scores weighs."""

from math import exp

from course_kernels.measure.machine import machine_for

VALUES = (4, 8, 2)
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
D, BYTES = 128, 4


def powers(*scores):
    """e to each, to two digits."""
    return ", ".join(f"{exp(score):.2f}" for score in scores)


def total(*scores):
    """Of the powers."""
    return sum(map(exp, scores))


def shares(*scores):
    """Of each token."""
    return ", ".join(f"{exp(score) / total(*scores):.2f}" for score in scores)


def answer(*scores):
    """The mixture of the values."""
    return sum(
        exp(score) * value for score, value in zip(scores, VALUES, strict=True)
    ) / total(*scores)


def scores(n):
    """Numbers of the square."""
    return n * n


def square(n):
    """Its bytes in fp32."""
    return BYTES * scores(n)


def thin(n):
    """Bytes of Q."""
    return BYTES * n * D


def peak():
    """TFLOP/s in bf16, by the data sheet."""
    return machine_for("NVIDIA H200").peak_tflops["bf16"]


_SCORES = 64 * scores(8192)
_GB = 2 * _SCORES / 1e9  # one trip of the square in bf16
ANSWERS = {
    "How much is forbidden?": (3 * 2 // 2, 3 * 3, 1, 1, 2, 1 / 2),
    "Which test notices?": (
        ("(a) none of the four", 3, 1),
        "(b) the first and the third, and the fourth. the second does not",
        "(c) the first, if you ask it with the mask, and the fourth",
        "(d) the fourth",
    ),
    "A book": (
        500 * 200,
        float(scores(100_000)),
        2,
        float(scores(100_000)),
        2 * scores(100_000) // 10**9,
    ),
    "Which of the two ran out?": False,
    "Two more trips": (4 + 2, 4 * D, 6 * 2, 4 * D / 12),
    "Smaller blocks": (4, D // 2, D, 16, 2 * D // (4 * 16)),
    "Rows in the hand": (
        4 * 16384 // 1024,
        227 // 64,
        227 // 64,
        4,
        64,
        65536,
        4 * 65536 // 1024,
    ),
    "The kitchen's bill": (
        (64, scores(8192), _SCORES, 2, 2 * _GB),
        (6, _GB, 6 * _GB),
        (8192 // 512, 1 / 16, 2 * _GB / 16, 6 * _GB, 16),
        "(d) by the roof, hardly anything",
    ),
    "Rehearse": (
        scores(2000),
        square(2000),
        32,
        32 * scores(2000),
        32 * square(2000),
    ),
}
EXIT_ANSWERS = (
    (scores(4096), square(4096), round(square(4096) / 1e6)),
    (2**2, 2),
    (False, 2),
)
BOARDS = {
    "Two multiplies and a softmax": 4,
    "Scores and shares": 1,
    "No looking ahead": (0, 0),
    "What the square weighs": LENGTHS[-1],
    "Four trips to HBM": (2, D // 2, D),
}
CHECK_ANSWERS = {
    "Scores and shares": 1,
    "No looking ahead": (4, 1, 0),
    "What the square weighs": scores(4096),
    "Four trips to HBM": D // 2,
}
BLANKS = {
    "three lines, and what the square weighs": (
        (4, 2),
        (4, 4),
        (4, 4),
        (4, 2),
        (4, 2),
        2,
        D // 2,
    ),
}
