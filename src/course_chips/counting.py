"""Counts of the names in the lines of a listing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence


def counts(names: Callable[[str], list[str]], lines: Sequence[str]) -> dict[str, int]:
    """Return how often each name is in a listing, the most frequent first.

    Args:
        names: what is in a line, none or several.
    """
    found = Counter(name for line in lines for name in names(line))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
