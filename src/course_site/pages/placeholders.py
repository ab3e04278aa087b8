"""The grammar of `{{ expression:format }}`, where a text holds a value that its record fills in."""

from __future__ import annotations

import re
from collections.abc import Iterator

PLACEHOLDER = re.compile(r"\{\{\s*(?P<expression>[^{}:]+?)\s*(?::(?P<format>[^{}]*?))?\s*\}\}")
# The same as its writer may have mistyped it, empty or of two colons: for a lint that must not read what is in it.
BRACES = re.compile(r"(?<![\^_\\])\{\{(?P<inside>[^{}]*)\}\}")


def expressions(text: str) -> Iterator[str]:
    """Return the expression of every value in a text, in their order."""
    return (match["expression"] for match in PLACEHOLDER.finditer(text))
