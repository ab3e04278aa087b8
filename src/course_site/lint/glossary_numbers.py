"""The numbers of the glossary are those of the hardware: each stands here, worked out from what is known in code.

A definition is read everywhere, under every page, and no record stands behind it. So a number in one is a number of
`NUMBERS`, and what a card has, such as its multiprocessors, is asked of `machine.py`: a page says that by a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from course_kernels.measure.machine import HOPPER_SMS, LOAD_BYTES
from course_site.lint.number_words import COUNTED, LARGE

# The same on every card of the course, by NVIDIA's programming guide.
WARP = 32  # threads
BANK_BYTES = 4
BANKS = LOAD_BYTES // BANK_BYTES
SECTOR = 32  # bytes
SECTORS_OF_A_LINE = 4
BLOCK_MOST = 1024  # threads
WARPS_OF_A_GROUP = 4
CLUSTER_MOST, CLUSTER_ON_REQUEST = 8, 16  # blocks
WGMMA_ROWS, WGMMA_COLUMNS = 64, 256
LDMATRIX = 8  # rows and columns of a piece
DESCRIPTOR_BITS, TENSOR_MAP_BYTES = 64, 128
BITS = {"fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "e4m3": 8, "e2m1": 4}
EXPONENT = {"fp32": 8, "tf32": 8, "bf16": 8, "fp16": 5, "e4m3": 4, "e2m1": 2}
FRACTION = {name: BITS[name] - EXPONENT[name] - 1 for name in BITS} | {
    "tf32": 10
}  # the rest of tf32 is left out


def _largest(name: str, ieee: bool) -> float:
    """Return the largest number of a format; of one without infinity the topmost exponent is in use."""
    exponent, fraction = EXPONENT[name], FRACTION[name]
    top = 2 ** (exponent - 1) - ieee
    steps = 2 ** (fraction + 1) - (1 if ieee else 2)  # without infinity the topmost code alone is no number
    return 2**top * steps / 2**fraction


def _e2m1() -> tuple[float, ...]:
    """Return every magnitude of four bits, the subnormal one too."""
    fraction = FRACTION["e2m1"]
    normal = [2 ** (e - 1) * (1 + m / 2**fraction) for e in range(1, 4) for m in range(2**fraction)]
    return (0, 1 / 2**fraction, *normal)


NUMBERS: dict[str, tuple[float, ...]] = {
    "arithmetic-lane": (WARP,), "bank": (BANKS, BANK_BYTES), "bank-conflict": (BANKS,), "coalesced": (WARP,),
    "bf16": (BITS["bf16"], EXPONENT["bf16"], FRACTION["bf16"]),
    "block": (BLOCK_MOST,), "cache-line": (SECTOR * SECTORS_OF_A_LINE,), "sector": (SECTOR, BANK_BYTES),
    "compute-capability": (9.0,), "cutlass": (4,),
    "descriptor": (DESCRIPTOR_BITS, TENSOR_MAP_BYTES),
    "e2m1": _e2m1(),
    "fp16": (BITS["fp16"], EXPONENT["fp16"], FRACTION["fp16"], _largest("fp16", ieee=True)),
    "fp32": (BITS["fp32"], EXPONENT["fp32"], FRACTION["fp32"]),
    "fp8": (BITS["e4m3"], EXPONENT["e4m3"], FRACTION["e4m3"], _largest("e4m3", ieee=False)),
    "gb-per-s": (1e9, 1000), "tflops": (1000, 1e6), "lane": (0, WARP - 1), "ldmatrix": (LDMATRIX,),
    "nvfp4": (16,), "sdpa": (2,), "spread": (19, 20), "tf32": (FRACTION["tf32"],),
    "cluster": (CLUSTER_MOST, CLUSTER_ON_REQUEST), "tile": (64, 128), "vector-load": (8, 16),
    "warp": (WARP,), "warpgroup": (WARP * WARPS_OF_A_GROUP,), "wavefront": (WARP,),
    "warpgroup-mma": (WGMMA_ROWS, WGMMA_COLUMNS, BITS["e4m3"]),
    "sm": (HOPPER_SMS.count,),
}  # fmt: skip
_ANYWHERE = frozenset({0.0, 1.0})
_CODE = re.compile(r"`[^`]*`")
_DIGITS = re.compile(r"(?<![\w.])\d+(?:[,\u202f\xa0]\d{3})*(?:\.\d+)?")
_ONES = {word: n for word, n in COUNTED.items() if n < 10}
_TEENS = {word: n for word, n in COUNTED.items() if 13 <= n < 20}
_TENS = {word: n for word, n in COUNTED.items() if n >= 20}
_SPELLED = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<ones>{'|'.join(_ONES)}))?"
    rf"|(?P<whole>{'|'.join([*_TEENS, *LARGE])}))\b",
    re.IGNORECASE,
)


def faults_of(definitions: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield every number of a definition that the hardware does not have.

    Args:
        definitions: key and text of each.
    """
    for key, text in definitions:
        known = {*_ANYWHERE, *map(float, NUMBERS.get(key, ()))}
        for said, number in _numbers(_CODE.sub(" ", text)):
            if number not in known:
                have = ", ".join(f"{value:g}" for value in NUMBERS.get(key, ())) or "no number"
                yield (
                    f"{key!r} says {said}, and lint/glossary_numbers.py has {have} for it: mend the one or the other; "
                    "what one card has is said on a page, by a value such as {{ l1.gpu.sms }}"
                )


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    """Yield numbers, written by digits, or in words from thirteen on."""
    for found in _DIGITS.finditer(text):
        yield found[0], float(re.sub(r"[,\u202f\xa0]", "", found[0]))
    for found in _SPELLED.finditer(text):
        if whole := found["whole"]:
            yield found[0], (_TEENS | LARGE)[whole.casefold()]
        else:
            yield found[0], _TENS[found["tens"].casefold()] + _ONES.get((found["ones"] or "").casefold(), 0.0)
