"""The simplest tokenizer: a token is a byte. One more token says that a text begins; no text has it in it."""

from __future__ import annotations

from collections.abc import Iterable

BEGIN = 256  # stands before every text
VOCAB = (
    264  # 257 rounded up to a multiple of 8, so that every row of a table begins at a multiple of 16 bytes
)


def encode(text: str | bytes) -> list[int]:
    """Return the tokens of a text, with `BEGIN` before them."""
    return [BEGIN, *(text.encode() if isinstance(text, str) else text)]


def decode(tokens: Iterable[int]) -> str:
    """Return the text of tokens as far as the next text begins.

    What is no UTF-8, and what cannot be printed, as U+FFFD.
    """
    found = bytearray()
    for token in tokens:
        if token == BEGIN:
            break
        found += bytes([token]) if token < BEGIN else b"\xff"
    text = found.decode("utf-8", errors="replace")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
