"""NVFP4 by hand: codes, bytes, scales, a block and a tensor. What is right is worked out here, and so are usual slips.

Numbers of the cases are such that every order of the operations rounds alike: powers of two where there is a tie, and
numbers by chance that are far from any.
"""

import random
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from course_labs.hints import NEXT_OF_NONE
from course_labs.interactive_cases import Asked, Play, Slip

MAGNITUDES = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
MIDDLES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5)
BLOCK = 16

NEXT_OF_AWAY = "0.75 is as near to 0.5 as to 1: of two such codes take the even one, whichever is larger."
NEXT_OF_THE_SECOND = (
    "the second scale: what the codes stand for is multiplied by it, so a number is divided by it."
)
NEXT_OF_SWAPPED = "which of the two codes is in the low four bits, the first or the second?"
NEXT_OF_HALVES = (
    "neighbours share a byte. An element and the one half a block further on do so in GGUF alone."
)
NEXT_OF_SUBNORMAL = (
    "with an exponent of 0 there is no leading one: the mantissa counts alone, with the next exponent."
)
NEXT_OF_E8M0 = "E4M3 has three bits of mantissa below its exponent; E8M0 is nothing but an exponent."
NEXT_OF_THE_LARGEST = "the largest is the one furthest from zero, whatever its sign."
NEXT_OF_THE_NEIGHBOUR = "which scale belongs to this block? Count the blocks from 0, and the scales too."

Slips = Mapping[str, list[Any]]  # what to say -> the answers for which it is said


def cases() -> list[Play]:
    """From a code to a tensor and back."""
    tie = [6, *MIDDLES, *(-x for x in MIDDLES), -0.1]
    return [
        *(Play(f"code {code}", lambda a, _, code=code: a_number(a, code)) for code in (2, 1, 0, 5, 7, 9, 15)),
        *(Play(f"the number {x:g}", lambda a, _, x=x: a_code(a, x)) for x in (1, 2.2, 5.5, -3, 0.1, -0.1, 7, -100)),
        *(Play(f"the number {x:g}, midway", lambda a, _, x=x: a_code(a, x)) for x in (*MIDDLES, -0.75, -2.5)),
        Play("all codes, and numbers by chance", codes_by_chance, again=2),
        Play("two codes", lambda a, _: bytes_of(a, [1, 2])),
        Play("four codes", lambda a, _: bytes_of(a, [1, 2, 15, 0])),
        Play("a block of codes", lambda a, _: bytes_of(a, list(range(16)))),
        Play("codes by chance", lambda a, draw: bytes_of(a, [draw.randrange(16) for _ in range(32)]), again=2),
        *(Play(f"scale {code} of E4M3", lambda a, _, code=code: a_scale(a, code)) for code in (56, 60, 126, 1, 7, 8)),
        Play("all scales of E4M3", lambda a, _: [a_scale(a, code) for code in range(127)]),
        *(Play(f"scale {code} of E8M0", lambda a, _, code=code: a_power(a, code)) for code in (127, 130, 0, 254)),
        Play("a block whose largest is 6", lambda a, _: chosen(a, [6, 1, -2], 1.0)),
        Play("a block whose largest is negative", lambda a, _: chosen(a, [1, -12, 3], 1.0)),
        Play("a block with a second scale of 1/4", lambda a, _: chosen(a, [6, 1, -2], 0.25)),
        Play("a largest midway between two scales", lambda a, _: chosen(a, [6 * 1.0625, 1], 1.0)),
        Play("a largest midway, the other way", lambda a, _: chosen(a, [6 * 1.1875, 1], 1.0)),
        Play("a block of zeros", lambda a, _: chosen(a, [0.0, 0.0], 1.0)),
        Play("a block too small for its scale", lambda a, _: chosen(a, [2.0**-12, 0], 1.0)),
        Play("a block too large for its scale", lambda a, _: chosen(a, [1e5, 0], 1.0)),
        Play("scales by chance", scales_by_chance, again=2),
        *(Play(f"a power of two for {x}", lambda a, _, x=x: power_for(a, [1e-9, x])) for x in (4, 6, 7.9, 8, -3)),
        Play("a power of two for zeros", lambda a, _: power_for(a, [0.0, 0.0])),
        Play("a block back, with a scale of 1", lambda a, _: block_back(a, list(range(16)), 56, 1.0)),
        Play("a block back, with a scale of 1.5", lambda a, _: block_back(a, list(range(16)), 60, 1.0)),
        Play("a block back, with a second scale", lambda a, _: block_back(a, list(range(16)), 60, 0.25)),
        Play("a block with every tie", lambda a, _: block_there(a, tie, 1.0)),
        Play("a block with a second scale", lambda a, _: block_there(a, [x * 0.25 for x in tie], 0.25)),
        Play("a block whose scale is rounded", lambda a, _: block_there(a, [6.2, 5.2, -2.55, 0.3], 1.0)),
        Play("blocks by chance", blocks_by_chance, again=3),
        Play("the second scale of a tensor", lambda a, _: second_scale(a, [1.5, -2688 * 0.5, 3])),
        Play("the second scale of zeros", lambda a, _: second_scale(a, [0.0] * 16)),
        Play("a tensor of two blocks", lambda a, _: tensor(a, [2688, *[0] * 15, 1, 2, -3, *[0.5] * 13])),
        Play("tensors by chance", tensors_by_chance, again=3),
    ]  # fmt: skip


# --- what is right ---------------------------------------------------------------------------------


def number(code: int) -> float:
    """What a code of E2M1 stands for."""
    return MAGNITUDES[code % 8] * (-1 if code >= 8 else 1)


def nearest(x: float) -> int:
    """The nearest code of E2M1, ties to even."""
    size = abs(x)
    apart = [abs(size - one) for one in MAGNITUDES]
    code = min((code for code in range(8) if apart[code] == min(apart)), key=lambda code: code % 2)
    return code + 8 * (x < 0)


def e4m3(code: int) -> float:
    """What a code of E4M3 stands for."""
    return (code % 8 + 8 * (code > 7)) * 2.0 ** (max(code // 8, 1) - 10)


SCALES = [e4m3(code) for code in range(127)]


def scale_for(largest: float, second: float) -> int:
    """The code of the scale of a block with such a largest magnitude."""
    wanted = largest / 6 / second
    apart = [abs(one - wanted) for one in SCALES[1:]]
    return min((code for code, one in enumerate(apart, 1) if one == min(apart)), key=lambda code: code % 2)


def there(block: list[float], second: float) -> tuple[list[int], int]:
    """Codes and scale of a block."""
    scale = scale_for(max(map(abs, block)), second)
    return [nearest(x / SCALES[scale] / second) for x in block], scale


def is_clear(block: list[float], second: float) -> bool:
    """Whether no number of a block is near a tie, and its scale neither: then every way to divide rounds alike."""
    largest = max(map(abs, block))
    wanted = largest / 6 / second
    between = [(a + b) / 2 for a, b in pairwise(SCALES[1:])]
    step = SCALES[scale_for(largest, second)] * second
    quotients = [abs(x) / step for x in block]
    far = all(abs(wanted / one - 1) > 1e-9 for one in between)
    return far and all(abs(one - middle) > 1e-9 for one in quotients for middle in MIDDLES)


# --- looking at an answer --------------------------------------------------------------------------


def is_same(got: Any, due: Any) -> bool:
    """Whether an answer is what is due: numbers but for a last digit, lists and tuples place by place."""
    if isinstance(due, list | tuple):
        return isinstance(got, list) and len(got) == len(due) and all(map(is_same, got, due))
    is_number = isinstance(got, int | float) and not isinstance(got, bool)
    return is_number and abs(got - due) <= 1e-12 * abs(due)


def look(asked: Asked, name: str, *given: Any, due: Any, slips: Slips | None = None) -> None:
    """The function gives this."""
    shown = ", ".join(map(short, given))
    answer = asked.call(name, *given)
    if isinstance(due, tuple):
        got = answer.list(name, f"{len(due)} things")
    elif isinstance(due, list):
        got = answer.list(name, "numbers")
    else:
        got = answer.value
        if answer.strange or isinstance(got, bool) or not isinstance(got, int | float):
            told = NEXT_OF_NONE if got is None and not answer.strange else ""
            raise Slip("wrong result", f"{name}: expected a number, got {answer.told()}", told)
    if is_same(got, due):
        return
    advice = next(
        (says for says, wrong in (slips or {}).items() if any(is_same(got, one) for one in wrong)), ""
    )
    raise Slip("wrong", f"{name}({shown}): {difference(got, due)}", advice)


def difference(got: Any, due: Any) -> str:
    """Where an answer differs first, in words."""
    if isinstance(due, list) and isinstance(got, list) and len(got) == len(due) > 2:
        place = next(n for n, pair in enumerate(zip(got, due, strict=True)) if not is_same(*pair))
        return f"number {place}: expected {short(due[place])}, got {short(got[place])}"
    if isinstance(due, tuple) and isinstance(got, list) and len(got) == len(due):
        place = next(n for n, pair in enumerate(zip(got, due, strict=True)) if not is_same(*pair))
        part = ("first", "second", "third")[place]
        return f"the {part} of {len(due)}: {difference(got[place], due[place])}"
    return f"expected {short(due)}, got {short(got)}"


def short(value: Any) -> str:
    """A value in a line."""
    text = (
        f"{value:.6g}"
        if isinstance(value, float)
        else str(list(value) if isinstance(value, tuple) else value)
    )
    return text if len(text) <= 90 else f"{text[:70]} … {text[-12:]}"


# --- the cases -------------------------------------------------------------------------------------


def a_number(asked: Asked, code: int) -> None:
    """What a code stands for."""
    as_if = (1 + code % 2 / 2) * 2.0 ** (code % 8 // 2 - 1) * (-1 if code >= 8 else 1)
    slips = {
        NEXT_OF_SUBNORMAL: [as_if],
        "the highest of the four bits is the sign.": [MAGNITUDES[code % 8]],
        "a code is no whole number: two bits of it are the exponent, one is the mantissa.": [code],
    }
    look(asked, "number", code, due=number(code), slips=slips)


def a_code(asked: Asked, x: float) -> None:
    """The code of a number."""
    sign = 8 * (x < 0)
    above = sum(abs(x) >= middle for middle in MIDDLES)
    below = sum(abs(x) > middle for middle in MIDDLES)
    slips = {
        NEXT_OF_AWAY: [above + sign, below + sign],
        "a number below zero keeps its sign, even where nothing else is left of it.": [nearest(abs(x))],
    }
    look(asked, "nearest", x, due=nearest(x), slips=slips)


def codes_by_chance(asked: Asked, draw: random.Random) -> None:
    """Every code there and back, and numbers between."""
    for code in range(16):
        a_number(asked, code)
        if code != 8:
            a_code(asked, number(code))
    for _ in range(30):
        a_code(asked, draw.choice((draw.uniform(-7, 7), draw.choice(MIDDLES) * draw.choice((1, -1)))))


def bytes_of(asked: Asked, codes: list[int]) -> None:
    """Codes into bytes, and back."""
    pairs = list(zip(codes[::2], codes[1::2], strict=True))
    halves = list(zip(codes[: len(codes) // 2], codes[len(codes) // 2 :], strict=True))
    due = [first | second << 4 for first, second in pairs]
    slips = {
        NEXT_OF_SWAPPED: [[second | first << 4 for first, second in pairs]],
        NEXT_OF_HALVES: [[first | second << 4 for first, second in halves]],
    }
    look(asked, "pack", codes, due=due, slips=slips)
    slips = {
        NEXT_OF_SWAPPED: [[code for first, second in pairs for code in (second, first)]],
        NEXT_OF_HALVES: [[*codes[::2], *codes[1::2]]],
    }
    look(asked, "unpack", due, due=codes, slips=slips)


def a_scale(asked: Asked, code: int) -> None:
    """What a scale of E4M3 stands for."""
    slips = {
        NEXT_OF_E8M0: [2.0 ** (code - 127)],
        NEXT_OF_SUBNORMAL: [(1 + code % 8 / 8) * 2.0 ** (code // 8 - 7)],
        "the exponent's bits are larger than the exponent by 7.": [SCALES[code] / 2, 2 * SCALES[code]],
    }
    look(asked, "e4m3", code, due=SCALES[code], slips=slips)


def a_power(asked: Asked, code: int) -> None:
    """What a scale of E8M0 stands for."""
    slips = {"E8M0 has no mantissa: all of its eight bits are the exponent.": [e4m3(code)]}
    look(asked, "e8m0", code, due=2.0 ** (code - 127), slips=slips)


def chosen(asked: Asked, block: list[float], second: float) -> None:
    """The scale of a block."""
    largest = max(map(abs, block))
    wanted = largest / 6 / second
    up = next((code for code in range(1, 127) if SCALES[code] >= wanted), 126)
    slips = {
        NEXT_OF_THE_LARGEST: [scale_for(max(0, *block), second)],
        NEXT_OF_THE_SECOND: [scale_for(largest, 1.0), scale_for(largest, 1 / second)],
        "no scale is zero: what is divided by it would be lost.": [0],
        "take the scale that is nearest, above or below, and of two that are as near the even code.": [
            up,
            up - 1,
        ],
        "the largest becomes 6, the largest that a code stands for.": [scale_for(6 * largest, second)],
    }
    look(asked, "scale_of", block, second, due=scale_for(largest, second), slips=slips)


def scales_by_chance(asked: Asked, draw: random.Random) -> None:
    """Blocks of every size, and blocks whose largest is midway."""
    for _ in range(30):
        second = 2.0 ** draw.randint(-6, 6)
        block = [draw.gauss(0, 1) * 2.0 ** draw.randint(-10, 10) for _ in range(BLOCK)]
        if is_clear(block, second):
            chosen(asked, block, second)
        code = draw.randrange(8, 126)
        middle = (SCALES[code] + SCALES[code + 1]) / 2
        chosen(asked, [draw.choice((6, -6)) * middle * second, second * 2.0**-12], second)


def power_for(asked: Asked, block: list[float]) -> None:
    """The scale of a block of MXFP4."""
    largest = max(map(abs, block))
    code = max((code for code in range(255) if 2.0 ** (code - 127) * 4 <= largest), default=0)
    slips = {
        "that scale is past a quarter of the largest; only the one before it is not too much.": [code + 1],
        "the largest power of two that E2M1 has is 4: how many powers of two is that?": [code + 2],
        NEXT_OF_THE_LARGEST: [0],
    }
    look(asked, "mx_scale_of", block, due=code, slips=slips)


def block_back(asked: Asked, codes: list[int], scale: int, second: float) -> None:
    """A block decoded."""

    def back(step: float) -> list[float]:
        return [number(code) * step for code in codes]

    slips = {
        NEXT_OF_THE_SECOND: [back(SCALES[scale]), back(SCALES[scale] / second)],
        NEXT_OF_E8M0: [back(2.0 ** (scale - 127) * second)],
        "the scale comes as a code: what does it stand for?": [back(scale * second)],
    }
    look(asked, "decode_block", codes, scale, second, due=back(SCALES[scale] * second), slips=slips)


def block_there(asked: Asked, block: list[float], second: float) -> None:
    """A block encoded."""
    codes, scale = there(block, second)

    def by(step: float) -> tuple[list[int], int]:
        return [nearest(x / step) for x in block], scale

    slips = {
        NEXT_OF_THE_SECOND: [by(SCALES[scale]), by(SCALES[scale] / second)],
        "divide by the scale as it is stored, rounded: its own error is then made good.": [
            by(max(map(abs, block)) / 6)
        ],
    }
    look(asked, "encode_block", block, second, due=(codes, scale), slips=slips)


def blocks_by_chance(asked: Asked, draw: random.Random) -> None:
    """Blocks there and back."""
    for _ in range(10):
        second = draw.choice((1.0, 0.5, 2.0**-7, 0.3, 17.0))
        block = [draw.gauss(0, 3) * second for _ in range(BLOCK)]
        if is_clear(block, second):
            block_there(asked, block, second)
        block_back(asked, [draw.randrange(16) for _ in range(BLOCK)], draw.randrange(1, 127), second)


def second_scale(asked: Asked, numbers: list[float]) -> None:
    """The second scale of a tensor."""
    largest = max(map(abs, numbers))
    if largest:
        slips = {
            "the largest becomes 6 times 448: the largest code and the largest scale.": [largest / 448],
            "6 alone would leave the scales of the blocks at 1 and below.": [largest / 6],
            "some libraries store one over this, and divide by it. Here it multiplies.": [2688 / largest],
        }
    else:
        slips = {"nothing can be divided by 0: what is the second scale of zeros?": [0]}
    look(asked, "second_of", numbers, due=largest / 2688 if largest else 1.0, slips=slips)


def tensor(asked: Asked, numbers: list[float]) -> None:
    """A tensor there and back."""
    second_scale(asked, numbers)
    second = max(map(abs, numbers)) / 2688 or 1.0
    blocks = [there(numbers[start : start + BLOCK], second) for start in range(0, len(numbers), BLOCK)]
    codes, scales = [code for part, _ in blocks for code in part], [scale for _, scale in blocks]
    pairs = list(zip(codes[::2], codes[1::2], strict=True))
    packed = [first | other << 4 for first, other in pairs]
    slips = {
        NEXT_OF_SWAPPED: [([other | first << 4 for first, other in pairs], scales, second)],
        "the bytes come first, then the scales, then the second scale.": [(scales, packed, second)],
    }
    look(asked, "encode", numbers, due=(packed, scales, second), slips=slips)

    def back(scales: list[int], second: float, codes: list[int] = codes) -> list[float]:
        return [number(code) * SCALES[scales[n // BLOCK]] * second for n, code in enumerate(codes)]

    others = [*scales[1:], scales[0]], [scales[-1], *scales[:-1]], [scales[0]] * len(scales)
    slips = {
        NEXT_OF_THE_NEIGHBOUR: [back(other, second) for other in others],
        NEXT_OF_THE_SECOND: [back(scales, 1.0), back(scales, 1 / second)],
        NEXT_OF_SWAPPED: [back(scales, second, [code for first, other in pairs for code in (other, first)])],
    }
    look(asked, "decode", packed, scales, second, due=back(scales, second), slips=slips)


def tensors_by_chance(asked: Asked, draw: random.Random) -> None:
    """Tensors whose blocks have very different scales."""
    for _ in range(4):
        sizes = [2.0 ** draw.randint(-6, 3) for _ in range(draw.randint(2, 5))]
        numbers = [draw.gauss(0, 1) * size for size in sizes for _ in range(BLOCK)]
        second = max(map(abs, numbers)) / 2688
        if all(is_clear(numbers[start : start + BLOCK], second) for start in range(0, len(numbers), BLOCK)):
            tensor(asked, numbers)
