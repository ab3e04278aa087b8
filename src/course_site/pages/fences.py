"""Code on a page: fenced Markdown that no back tick in the code can close early."""

from __future__ import annotations

import re

LANGUAGES = {".cu": "cuda", ".cuh": "cuda", ".py": "python", ".toml": "toml", ".md": "markdown"}


def fenced(text: str, attributes: str) -> str:
    """A fenced block; `attributes` are its classes and options, such as `.python title="…"`."""
    fence = "`" * max(3, 1 + max((len(m) for m in re.findall(r"`+", text)), default=0))
    return f"{fence} {{ {attributes} }}\n{text}\n{fence}"
