"""What Markdown leaves as it is: fenced code, code spans, math. So does everything that rewrites a page's text."""

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


def outside_verbatim(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to a Markdown text, leaving fenced code, code spans and math as they are."""
    parts, end = [], 0
    for match in _VERBATIM.finditer(text):
        parts += [change(text[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*parts, change(text[end:])])
