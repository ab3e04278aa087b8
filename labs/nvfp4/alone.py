"""The last task of NVFP4: a block as a file of GGUF has it."""

import random
from typing import Any

from course_labs.interactive_cases import Asked, Play, Slip

MAGNITUDES = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
NEXT_OF_PAIRS = "neighbours share no byte here: where does the high half of byte 0 belong?"
NEXT_OF_SWAPPED = "the low four bits are of the first half of the block."
NEXT_OF_E4M3 = "this block's scale is of E8M0: a power of two."
NEXT_OF_THE_SCALE = "the scale is the first of the 17 bytes, and all numbers are multiplied by it."


def cases() -> list[Play]:
    """A block in which one number alone is not zero, then all codes, then blocks by chance."""
    every = [127, *(low | 15 - low << 4 for low in range(16))]
    fixed = {
        "number 0 alone": [127, 0x02, *[0] * 15],
        "number 16 alone": [127, 0x20, *[0] * 15],
        "number 1 alone": [127, 0, 0x02, *[0] * 14],
        "number 31 alone, times 8": [130, *[0] * 15, 0x70],
        "every code": every,
        "every code, times 1/4": [125, *every[1:]],
        "every code, with the smallest scale": [0, *every[1:]],
    }
    return [
        *(Play(job, lambda asked, _, block=block: look_at(asked, block)) for job, block in fixed.items()),
        Play("blocks by chance", by_chance, again=3),
    ]


def value(code: int) -> float:
    """What a code of E2M1 is."""
    return -MAGNITUDES[code - 8] if code > 7 else MAGNITUDES[code]


def numbers_of(codes: list[int], times: float) -> list[float]:
    """What codes are, times a scale."""
    return [value(code) * times for code in codes]


def look_at(asked: Asked, block: list[int]) -> None:
    """The 32 numbers of a block."""
    scale, rest = block[0], block[1:]
    low, high = [byte & 15 for byte in rest], [byte >> 4 for byte in rest]
    power = 2.0 ** (scale - 127)
    due = numbers_of(low + high, power)
    got = asked.call("from_gguf", block).list("from_gguf", "numbers")
    if is_same(got, due):
        return
    in_pairs = [code for pair in zip(low, high, strict=True) for code in pair]
    as_e4m3 = (scale % 8 + 8 * (scale > 7)) * 2.0 ** (max(scale // 8, 1) - 10)
    slips = {
        NEXT_OF_PAIRS: numbers_of(in_pairs, power),
        NEXT_OF_SWAPPED: numbers_of(high + low, power),
        NEXT_OF_E4M3: numbers_of(low + high, as_e4m3),
        NEXT_OF_THE_SCALE: numbers_of(low + high, 1.0),
    }
    advice = next((says for says, wrong in slips.items() if is_same(got, wrong)), "")
    if len(got) != len(due):
        raise Slip("wrong", f"from_gguf({block}): expected 32 numbers, got {len(got)}", NEXT_OF_THE_SCALE)
    place = next(n for n in range(32) if not is_same(got[n : n + 1], due[n : n + 1]))
    raise Slip(
        "wrong",
        f"from_gguf({block}): number {place}: expected {due[place]:g}, got {str(got[place])[:20]}",
        advice,
    )


def is_same(got: list[Any], due: list[float]) -> bool:
    """Whether numbers are those that are due; each is exact."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in got)
    return numbers and len(got) == len(due) and all(a == b for a, b in zip(got, due, strict=True))


def by_chance(asked: Asked, draw: random.Random) -> None:
    """Ten blocks, each with a scale of its own."""
    for _ in range(10):
        look_at(asked, [draw.randint(100, 150), *(draw.randrange(256) for _ in range(16))])
