"""Numbers in words: the vocabulary of every gate that reads them."""

from __future__ import annotations

_TO_NINETEEN = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"

COUNTED: dict[str, int] = {word: n for n, word in enumerate(_TO_NINETEEN.split(), 1)} | {
    word: 10 * n for n, word in enumerate(_TENS.split(), 2)
}
# What multiplies the word before it.
LARGE: dict[str, float] = {"hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9}
