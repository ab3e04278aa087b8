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
