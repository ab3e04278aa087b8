"""Verbatim parts of Markdown: fenced code, code spans, math.

Whatever rewrites a page's text leaves them as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from course_site.pages.fences import FENCED

_VERBATIM = re.compile(
    rf"(?P<fence>{FENCED.pattern})"
    r"|(?P<span>(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`))"
    r"|(?P<block>\$\$.+?\$\$|\\\[.+?\\\])"
    r"|(?P<math>(?<![\\$])\$(?![\s$])[^$\n]*?(?<![\s\\])\$(?!\d)|\\\(.+?\\\))",
    re.DOTALL | re.MULTILINE,
)


def outside_verbatim(
    text: str, change: Callable[[str], str], formula: Callable[[str, bool], str] | None = None
) -> str:
    """Apply `change` to a Markdown text, leaving fenced code, code spans and math as they are.

    Args:
        formula: what becomes of math: (TeX without its marks, does it stand on a line of its own) -> text.
    """
    parts, end = [], 0
    for match in _VERBATIM.finditer(text):
        kept = match.group()
        if formula and (math := match["block"] or match["math"]):
            marks = 1 if math.startswith("$") and not match["block"] else 2
            kept = formula(math[marks:-marks].strip(), bool(match["block"]))
        parts += [change(text[end : match.start()]), kept]
        end = match.end()
    return "".join([*parts, change(text[end:])])
