"""A rendered page: Markdown with tokens, and the HTML that the tokens stand for."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from course_site.pages.glossary import Term
from course_site.site.render.reading_time import Minutes

_TERM = re.compile(
    r'<h[1-6].*?</h[1-6]>|<a\s.*?</a>|<abbr title="(?P<title>[^"]*)">(?P<word>[^<]*)</abbr>', re.DOTALL
)
_COMMANDS = re.compile(
    r'(?P<head><div class="language-bash\b[^>]*><pre><span></span><code>)(?P<lines>.*?)</code>', re.DOTALL
)
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*(?![^<]*>)")
_CORNER = re.compile(r"<th(?P<aligned>[^>]*)></th>")
_UNITS = r"[kKMGT]?i?B(?:/s)?|[kMGT]Hz|[GT]?FLOP(?:/s)?|[nµm]?s|W|m?J"
_MEASURE = re.compile(rf'(<a class="value"[^>]*>[^<]*</a>)\s+(?=(?:<abbr [^>]*>)?(?:{_UNITS})(?![\w/]))')
_MARK = re.compile(r'\s+(?=<sup id="fnref)')
_PERCENT = re.compile(r"<(?P<code>pre|code)\b.*?</(?P=code)>|(?<=\d)\s%", re.DOTALL)
# What is typed: a unit, groups of three digits, short products and "M = 64". A long product still breaks, for a phone.
_DRAWN = re.compile(
    r"(<(?P<drawn>pre|code|svg|math|script|style)\b.*?</(?P=drawn)>|<[^>]*>)", re.DOTALL | re.IGNORECASE
)
_TYPED = re.compile(
    rf"(?<=\d)[ \n](?=(?:{_UNITS})(?![\w/]))"
    r"|(?<![\w.,])\d{1,3}(?:[ \n]\d{3})+(?![\w]|[.,]\d)"
    r"|(?<![×·÷=] )(?<![\w.,])\d{1,6}(?: × \d{1,6}){1,2}(?![\w]| [×·÷=])"
    r"|(?<![\w.,])(?:\d{1,4}|[A-Za-z])(?: · (?:\d{1,4}|[A-Za-z])){1,3}(?!\w)"
    r"|(?<![\w.,])[A-Za-z] = [−-]?\d+(?:\.\d+)?(?!\w)"
)
_MAY_BE_TYPED = re.compile(r"[\d·]")
# A name with its number: "FlashAttention-4" would break behind the hyphen.
_VERSION = re.compile(r"(?<![\w-])[A-Z][A-Za-z]+-\d+(?![\w-])")
# Where a long name may break: everywhere from so many letters on, in a table's narrow columns any.
_JOINT = re.compile(r"(?<=[/_])(?=[^/_])|(?<=\.)(?=[A-Z]|\w{8})")
_NAME = re.compile(r"<code>(?P<name>[\w./:()-]{25,})</code>")
_CELL = re.compile(r"<td\b[^>]*>(?:(?!</td>).)*<code>.*?</td>", re.DOTALL)
_IN_CELL = re.compile(r"<code>(?P<name>[^<]{8,})</code>")
_FORMULA = re.compile(r"<math\b(?:(?!</math>).)*</math>[,.;:?!)]+", re.DOTALL)
_SCRIPTED = re.compile(r'(<figure class="chart explorable".*?</figure>)', re.DOTALL)
_PLAIN_TOKEN = re.compile(r'<span class="(?:n|o|p|w)">([^<]*)</span>')


@dataclass
class Rendered:
    """One page as Markdown, with the HTML that stands outside of it.

    Attributes:
        markdown: the page; tokens stand where HTML belongs.
        slots: token to HTML.
        words: token to Markdown that says the same, for the published notebook; a token without is left out there.
        pictures: token to a drawing and its alternative text, for the published notebook.
        cells: (kind, text) for the published notebook: prose with plain values, code.
        shown: every value expression on the page with the text it became.
        road: HTML that stands above the page, "" for a page off the road.
        minutes: what it asks of its reader, shown and folded.
        seconds: of the processor that it took to render.
    """

    markdown: str = ""
    slots: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, tuple[str, str]] = field(default_factory=dict)
    cells: list[tuple[str, Any]] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)
    road: str = ""
    minutes: tuple[Minutes, Minutes] = (Minutes(), Minutes())
    seconds: float = field(default=0.0, compare=False)

    def fill(self, content: str) -> str:
        """Swap the tokens in HTML (or Markdown) for what they stand for."""
        for token, raw in self.slots.items():
            content = content.replace(f"<p>{token}</p>", raw).replace(token, raw)
        return content

    def inlined(self) -> str:
        """Return the page as one Markdown text with its HTML inside."""
        return self.fill(self.markdown)


@functools.lru_cache(maxsize=256)  # a page that is served stays as it was when another is edited
def no_break_spaces(content: str) -> str:
    """Return a page's HTML in which no line begins with a unit, with the mark of a source, or with what ends a formula.

    Nor does one end within a number, a short product, "M = 64" or "GPT-2"; and a long name breaks at its joints.

    What a script writes anew stays as the script writes it.
    """
    parts = _SCRIPTED.split(content)
    return "".join(part if n % 2 else _tied(part) for n, part in enumerate(parts))


def _tied(content: str) -> str:
    content = _MARK.sub("", _MEASURE.sub("\\1\N{NO-BREAK SPACE}", content))
    content = _PERCENT.sub(lambda found: found.group() if found["code"] else "\N{NO-BREAK SPACE}%", content)
    content = _NAME.sub(_jointed, content)
    content = _CELL.sub(lambda cell: _IN_CELL.sub(_jointed, cell.group()), content)
    content = "".join(_typed(part) for part in _parts(content))
    return _FORMULA.sub(r'<span class="tied">\g<0></span>', content)


def _jointed(code: re.Match[str]) -> str:
    return f"<code>{_JOINT.sub('<wbr>', code['name'])}</code>"


def _parts(content: str) -> Iterator[str]:
    """Yield text, and what stands between: elements, and whole where what is in them is no prose."""
    start = 0
    for found in _DRAWN.finditer(content):
        yield content[start : found.start()]
        yield found.group()
        start = found.end()
    yield content[start:]


def _typed(part: str) -> str:
    if part.startswith("<") or not _MAY_BE_TYPED.search(part):
        return part
    part = _TYPED.sub(lambda found: re.sub(r"[ \n]", "\N{NO-BREAK SPACE}", found.group()), part)
    return _VERSION.sub(r'<span class="tied">\g<0></span>', part)


def slim(content: str, terms: Mapping[str, Term] | None = None) -> str:
    """Return a page's HTML without what no reader sees or needs.

    A term is explained where it first stands, and never in a heading or in a link, which leads elsewhere; names, blanks
    and brackets of highlighted code have no colour of their own, so they need no element either. The corner above a
    column of names is head of nothing. And commands that wrap on a phone have their lines marked.

    Args:
        terms: the words of the glossary by their definitions, which popover.js is told the place of.
    """
    explained: set[str] = set()

    def once(match: re.Match[str]) -> str:
        if match["title"] is None:
            return re.sub(r"</?abbr[^>]*>", "", match.group())
        if match["title"] in explained:
            return match["word"]
        explained.add(match["title"])
        term = terms.get(html.unescape(match["title"])) if terms else None
        if term is None:
            return match.group()
        kitchen = f' data-kitchen="{html.escape(term.kitchen)}"' if term.kitchen else ""
        return match.group().replace("<abbr", f'<abbr data-term="{term.key}"{kitchen}', 1)

    light = _PLAIN_TOKEN.sub(r"\1", _TERM.sub(once, content))
    return _COMMANDS.sub(_line_by_line, _CORNER.sub(r"<td\g<aligned>></td>", light))


def _line_by_line(commands: re.Match[str]) -> str:
    """Put each command into a span, so that one which wraps is seen to go on.

    No option of it is cut behind its dashes.
    """
    lines = []
    for line in commands["lines"].split("\n"):
        whole = line.count("<span") == line.count("</span")  # no string that goes on
        marked = _OPTION.sub(r'<span class="option">\g<0></span>', line)
        lines.append(f'<span class="command">{marked}</span>' if whole and line else line)
    return "".join([commands["head"], "\n".join(lines), "</code>"])
