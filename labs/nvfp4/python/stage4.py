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
    return [codes[i] + 16 * codes[i + 1] for i in range(0, len(codes), 2)]


def unpack(packed):
    """Return the codes of such bytes."""
    codes = []
    for byte in packed:
        codes += [byte % 16, byte // 16]
    return codes


def e4m3(code):
    """Return what a code of E4M3 stands for, 0 to 126."""
    exponent, mantissa = code // 8, code % 8
    if exponent == 0:
        return mantissa / 8 * 2**-6
    return (1 + mantissa / 8) * 2 ** (exponent - 7)


def e8m0(code):
    """Return what a code of E8M0 stands for, 0 to 254."""
    return 2.0 ** (code - 127)


def scale_of(block, second):
    """Return the code of E4M3, 1 to 126, that brings the largest of a block nearest to 6; of two the even code."""
    wanted = max(abs(x) for x in block) / (6 * second)
    return min(range(1, 127), key=lambda code: (abs(e4m3(code) - wanted), code % 2))


def mx_scale_of(block):
    """Return the code of E8M0 of the largest power of two up to a quarter of a block's largest; 0 if there is none."""
    largest = max(abs(x) for x in block)
    code = 0
    while code < 254 and 4 * e8m0(code + 1) <= largest:
        code += 1
    return code


def decode_block(codes, scale, second):
    """Return the numbers of a block of NVFP4: its codes, the code of its scale, and the second scale."""
    step = e4m3(scale) * second
    return [number(code) * step for code in codes]


def encode_block(block, second):
    """Return the codes of a block of NVFP4, and the code of its scale."""
    scale = scale_of(block, second)
    unit = e4m3(scale) * second
    return [nearest(x / unit) for x in block], scale


def second_of(numbers):
    """Return the second scale of a tensor: its largest becomes 6 times 448; 1 for zeros alone."""


def encode(numbers):
    """Return (packed, scales, second) of a tensor in blocks of 16."""


def decode(packed, scales, second):
    """Return the numbers of a tensor in blocks of 16."""
