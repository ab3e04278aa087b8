"""Blocks of four-bit numbers by hand: sixteen codes, two to a byte, scales, a block, a tensor."""


def number(code):
    """Return what a code of E2M1 stands for, 0 to 15."""
    size = code % 8
    value = size / 2 if size < 2 else (1 + size % 2 / 2) * 2 ** (size // 2 - 1)
    return -value if code >= 8 else value


def nearest(x):
    """Return the code of E2M1 that is nearest to a number; of two as near the even code."""
    size = min(range(8), key=lambda code: (abs(number(code) - abs(x)), code % 2))
    return size + 8 if x < 0 else size


def pack(codes):
    """Return bytes, as a list of numbers from 0 to 255: two codes in each, the first in the low four bits."""


def unpack(packed):
    """Return the codes of such bytes."""


def e4m3(code):
    """Return what a code of E4M3 stands for, 0 to 126."""


def e8m0(code):
    """Return what a code of E8M0 stands for, 0 to 254."""


def scale_of(block, second):
    """Return the code of E4M3, 1 to 126, that brings the largest of a block nearest to 6; of two the even code."""


def mx_scale_of(block):
    """Return the code of E8M0 of the largest power of two up to a quarter of a block's largest; 0 if there is none."""


def decode_block(codes, scale, second):
    """Return the numbers of a block of NVFP4: its codes, the code of its scale, and the second scale."""


def encode_block(block, second):
    """Return the codes of a block of NVFP4, and the code of its scale."""


def second_of(numbers):
    """Return the second scale of a tensor: its largest becomes 6 times 448; 1 for zeros alone."""


def encode(numbers):
    """Return (packed, scales, second) of a tensor in blocks of 16."""


def decode(packed, scales, second):
    """Return the numbers of a tensor in blocks of 16."""
