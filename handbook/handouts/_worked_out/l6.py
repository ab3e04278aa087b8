"""Fragments and roundings of L6."""

from fractions import Fraction

STEPS = ("cuda_cores", "wmma", "mma_sync", "wgmma", "triton", "cublas")
NAMES = ("the lanes", "WMMA", "mma.sync", "wgmma", "Triton", "the library")
BEFORE = ("cuda_cores", *STEPS[:-1])


def lanes_of_a():
    """The tile of A; solved, the lanes of row 0."""
    return [[str(k % 8 // 2) for k in range(16)]] + [["!"] * 16] * 15


def plain(rows, columns):
    """A tile to draw."""
    return [["!"] * columns] * rows


def orders(m, n):
    """Instructions of 16 × 8 in a warp tile, for one step of 16 along k."""
    return (m // 16) * (n // 8)


def bytes_each(m, n):
    """Bytes of A and B for one instruction, in bf16."""
    return 2 * (m + n) * 16 / orders(m, n)


def fed(m, n):
    """Whether the tray keeps up."""
    return "fed" if bytes_each(m, n) <= 128 else "hungry"


def rounded(bits):
    """One third with so many bits of fraction, nearest, ties to even."""
    step = Fraction(1, 4) / 2**bits
    return round(Fraction(1, 3) / step) * step


def third(bits):
    """The bits as they are, printed, and as they are kept."""
    given = ["!1", "!."] + [f"!{i % 2}" for i in range(12)]
    kept = rounded(bits) * 4 - 1
    digits = [str(int(kept * 2 ** (i + 1)) % 2) for i in range(bits)]
    return [given, ["1", "!.", *digits, *["!"] * (12 - bits)]]


def fraction(bits):
    """As numerator and denominator."""
    return str(rounded(bits)).replace("/", " / ")


def off(bits):
    """One third over the miss: one in so many."""
    return float(Fraction(1, 3) / abs(rounded(bits) - Fraction(1, 3)))


def _work(m, n, k):
    """FLOPs of one instruction, as they are multiplied."""
    return 2, m, n, k, 2 * m * n * k


def _tiles(size, m, n, k):
    """Bytes of A and B for it, likewise."""
    return size, m, k, k, n, size * (m * k + k * n)


_TENTH = round(Fraction(1, 10) * 16 * 128)  # to seven bits, times 2⁻⁴
_PAIR = (128 + 256) * 64 * 2 // 1024  # KiB
ANSWERS = {
    "TF32 and FP8": (
        (_work(16, 8, 8), _tiles(4, 16, 8, 8)),
        (_work(16, 8, 32), _tiles(1, 16, 8, 32)),
        (768, 16 * 8 * 4 // 32 // 4, 2, 1 / 2, 2),
    ),
    "How wide?": (64, 256, 128, 64 * 256 // 128, 1 / 2, 255, 512, 64 * 512 // 128),
    "Four buffers": (
        2,
        _PAIR * 1024,
        _PAIR,
        4,
        4 * _PAIR,
        227 // _PAIR + 1,
        3,
        3 * _PAIR,
    ),
    "Which type?": (
        ("(a) fp32, and bf16", 2, 14),
        "(b) fp16 and bf16",
        ("(c) only fp32", 2**8, 2**11),
        "(d) none of the short ones",
    ),
    "Six suspects": 16,
    "Rehearse": (
        1.1001100,
        1,
        1 / 2,
        float(f"1.{_TENTH - 128:07b}"),
        _TENTH,
        128,
        16,
        _TENTH / 128 / 16,
    ),
}
EXIT_ANSWERS = ((_work(16, 8, 16), 2, 16, 16, 16, 8, 2 * (16 * 16 + 16 * 8)),)
BOARDS = {
    "You are here: at the wall": 32,
    "One instruction, by hand": (4, 2 * 16 * 8 * 16, 2 * (16 * 16 + 16 * 8)),
    "Fed or hungry": (16, 8),
    "One call": (16, 16, 16, 48),
    "Walk along k": 48,
    "Through shared memory": (33, 65, 17),
    "One third, in sixteen bits and in eight": (
        (1.0101010, 1010, 1.0101011),
        (1.010, 1010, 1.011),
        rounded(7).as_integer_ratio(),
        rounded(3).as_integer_ratio(),
    ),
    "When the tensor cores are idle": (1, 2, 3),
}
CHECK_ANSWERS = {
    "You are here: at the wall": False,
    "One instruction, by hand": 16 * 8 * 16 // 32,
    "Fed or hungry": (64 * 256 // 32, 4),
    "Through shared memory": (2 * 2, 2 * 2),
    "What a type costs, what it buys": (2**3, 2, 2, 2, 2),
}
_BITS = {
    "fp32": (8, 23),
    "tf32": (8, 10),
    "fp16": (5, 10),
    "bf16": (8, 7),
    "e4m3": (4, 3),
}
BLANKS = {
    "fragments": (16 * 8 * 16, 2 * 16 * 8 * 16, 2 * (16 * 16 + 16 * 8)),
    "bits": (
        list(_BITS.values()),
        (
            "bf16, or fp32",
            "fp16 or bf16 as they are",
            "only fp32",
            "none of the short ones",
        ),
    ),
    "the climb, and idle tensor cores": 16,
}
