"""Whole pages kept as files: what is written is compared with what stood there when somebody read it.

What is meant to be different is written down anew with RENEW=1, and read before it is kept.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "word_for_word"


def same_as_kept(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("RENEW"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
