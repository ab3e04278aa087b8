"""Markdown as its reader sees it, with a map from each character to its offset in the source; used by the lints."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from course_site.pages.fences import FENCED
from course_site.pages.placeholders import BRACES

HELD = "\ufffc"  # stands where a value, an address or a piece of code was: no digit, no letter


@dataclass(frozen=True)
class Text:
    """Text after some rewriting; `at[i]` is the place of character i in the original."""

    text: str
    at: tuple[int, ...] | range

    @classmethod
    def of(cls, text: str) -> Text:
        """Return the text as it stands in the file."""
        return cls(text, range(len(text)))

    def sub(self, pattern: re.Pattern[str], replace: str | Callable[[re.Match[str]], str]) -> Text:
        """Like re.sub; replaced characters all come from the start of their match, unless lengths agree."""
        pieces: list[str] = []
        at: list[int] = []
        end = 0
        always = replace if isinstance(replace, str) and "\\" not in replace else None
        for match in pattern.finditer(self.text):
            if always is not None:
                new = always
            else:
                new = match.expand(replace) if isinstance(replace, str) else replace(match)
            pieces += (self.text[end : match.start()], new)
            at += self.at[end : match.start()]
            same = len(new) == match.end() - match.start()
            at += self.at[match.start() : match.end()] if same else self._spread(match, new)
            end = match.end()
        if not pieces:
            return self
        pieces.append(self.text[end:])
        at += self.at[end:]
        return Text("".join(pieces), tuple(at))

    def _spread(self, match: re.Match[str], new: str) -> list[int]:
        # What survives of the match keeps its own place, so a finding in a paragraph of TeX has its line.
        inside = match[0].find(new) if len(new) > 1 else -1
        start = match.start() + max(inside, 0)
        return list(self.at[start : start + len(new)]) if inside >= 0 else [self.at[match.start()]] * len(new)

    def slice(self, start: int, end: int) -> Text:
        """Return a part of it, still with its places."""
        return Text(self.text[start:end], self.at[start:end])


# --- from Markdown to plain text ---------------------------------------------------------------------

CITE = re.compile(r"\[\^([\w.:-]+)\](?!:)")
DEFINITION = re.compile(r"^[ ]{0,3}\[\^([\w.:-]+)\]:", re.MULTILINE)

_TITLE = re.compile(r"\btitle\s*=\s*[\"']([^\"']*)[\"']")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_BLOCK_TAG = re.compile(
    r"</?(?:p|li|td|th|tr|div|h[1-6]|ul|ol|dl|dt|dd|table|thead|tbody|figure|figcaption|summary|details|section"
    r"|text|title|desc|option|button|caption)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[A-Za-z](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")
_ATTRIBUTE = re.compile(
    r"\b(?:alt|title|aria-label|content|placeholder|summary|label)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#\d+|#[xX][\da-fA-F]+|\w+);")
_LINK = re.compile(
    r"\]\(\s*(?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+[\"']([^\"'\n]*)[\"'])?\s*\)"
)
_ADDRESS = re.compile(r"https?://[^\s<>)\]]+|^\[[^\]^]+\]:\s*\S+", re.MULTILINE)
_TEX_TEXT = re.compile(
    r"\\(?:text|textrm|textbf|mathrm|mathbf|mathit|mathsf|operatorname|mbox|unit|si)\*?\s*\{([^{}]*)\}"
)
_TEX_FRACTION = re.compile(r"\\[td]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_TEX_SIGNS = {
    "times": "×", "cdot": "·", "mu": "µ", "approx": "≈", "sim": "~", "quad": " ", "qquad": " ", "%": "%", ",": " ",
    ";": " ", ":": " ", "!": "", " ": " ", "ge": "≥", "le": "≤", "geq": "≥", "leq": "≤", "pm": "±",
}  # fmt: skip
_TEX = re.compile(r"\\([A-Za-z]+|[%,;:! ])[ \t]?")
_MATH = re.compile(
    r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+(?:\n[^$\n]+)*?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
_MARKS = re.compile(
    r"(?<!\s)\*+(?!\w*\*?\d)|(?<![\d\s])\*+|\*+(?=\S)(?<!\d\*)|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|==|~~|\^\^"
)
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
# Marks of editors: the site gives them no meaning, and a reader reads over them.
_CRITIC = re.compile(r"\{(?:\+\+|--|==|>>|~~)|(?:\+\+|--|==|<<|~~)\}|(?<=\w)\+\+(?=\s?\+\+|\s)")
_STRUCK = re.compile(r"~~|\\\s+")
_ODD = re.compile(r"[^\x00-\x7f]")
_HTML_COMMENT = re.compile(r"<!--|-->")
_ESCAPED = re.compile(r"\\([%$*_#|~])")


def lowered(text: str) -> str:
    """Return a text in small letters, with those that a search without case takes for one as this one."""
    low = text.replace("İ", "i").lower()
    return (
        low
        if low.isascii()
        else low.replace("ſ", "s").replace("ı", "i").replace("\N{GREEK SMALL LETTER MU}", "µ")
    )


def without_code(markdown: str) -> str:
    """Markdown without its fenced and inline code; every other character keeps its place and its line."""

    def blank(match: re.Match[str]) -> str:
        return "\n".join(" " * len(line) for line in match[0].split("\n"))

    if "```" in markdown or "~~~" in markdown:
        markdown = FENCED.sub(blank, markdown)
    return _CODE.sub(blank, markdown)


def without_marks(text: str) -> str:
    """Return words of a Markdown string that has its values already: no marks, no citations, no addresses."""
    text = re.sub(r"\[\^[\w.:-]+\]", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    text = re.sub(r"(?<!\w)([*_]{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    return " ".join(text.replace("`", "").split())


def _tex_sign(match: re.Match[str]) -> str:
    return _TEX_SIGNS.get(match[1], " " if match[1].isalpha() else match[0])


def _plain_math(match: re.Match[str]) -> str:
    inner = next(group for group in match.groups() if group is not None)
    while _TEX_TEXT.search(inner):
        inner = _TEX_TEXT.sub(r" \1", inner)
    inner = _TEX_FRACTION.sub(r"\1/\2", inner)
    return _TEX.sub(_tex_sign, inner).replace("{", "").replace("}", "").replace("~", " ")


def _plain_character(match: re.Match[str]) -> str:
    sign = match[0]
    kind = unicodedata.category(sign)
    if kind == "Zs":
        return " "
    if kind in ("Cf", "Mn", "Me"):
        return ""
    odd_letters = "\uff00" <= sign <= "\uff60" or "\U0001d400" <= sign <= "\U0001d7ff"
    if kind in ("Nd", "Nl") or odd_letters or sign in "㎲㎳㎱":
        return unicodedata.normalize("NFKC", sign).replace("μ", "µ")
    return {"μ": "µ", "∕": "/", "⁄": "/", "‐": "-", "‑": "-", "⨯": "×"}.get(sign, sign)


def _plain_tag(match: re.Match[str]) -> str:
    if re.match(r"<br\b", match[0], re.IGNORECASE):
        return " "  # a sentence goes on in the next line
    shown = [first or second for first, second in _ATTRIBUTE.findall(match[0])]
    return (
        "\n\n" + "\n\n".join(shown) + "\n\n" if shown else ("\n\n" if _BLOCK_TAG.fullmatch(match[0]) else "")
    )


def plain_words(text: str) -> str:
    """Return what stands on a built page, with the signs of its formulas and its odd characters as plain ones."""
    if "$" in text or "\\" in text:
        text = _MATH.sub(lambda match: _plain_math(match), text)
    if not text.isascii():
        text = _ODD.sub(_plain_character, text)
    text = _CRITIC.sub("", text.replace("~>", " "))
    return _STRUCK.sub("", text) if "~" in text or "\\" in text else text


def plain(source: Text, prose: re.Pattern[str]) -> tuple[Text, list[Text], list[tuple[int, str]]]:
    """Prose as a reader sees it, the pieces of code taken out of it, and values that name no data.

    Args:
        prose: what is no code although it stands in a code span.
    """
    code: list[Text] = []
    empty: list[tuple[int, str]] = []

    def value(match: re.Match[str]) -> str:
        expression = match["inside"].rsplit(":", 1)[0]
        if not re.search(r"(?<![\w.])[A-Za-z_]", expression) and expression.strip(" .…"):
            empty.append((text.at[match.start()], match[0]))
        return HELD

    def fence(match: re.Match[str]) -> str:
        code.append(text.slice(match.start("code"), match.end("code")))
        title = _TITLE.search(match["says"])
        return f"\n\n{title[1]}\n\n" if title else "\n\n"

    def span(match: re.Match[str]) -> str:
        if prose.fullmatch(match[2]):
            return match[2]
        code.append(text.slice(match.start(2), match.end(2)))
        return HELD

    # Each search is spared a text without the sign that it needs.
    text = source
    if "```" in text.text or "~~~" in text.text:
        text = text.sub(FENCED, fence)
    if "`" in text.text:
        text = text.sub(_CODE, span)
    if "{{" in text.text:
        text = text.sub(BRACES, value)
    if "&" in text.text:
        text = text.sub(_ENTITY, lambda match: html.unescape(match[0]))
    if not text.text.isascii():
        text = text.sub(_ODD, _plain_character)
    if "--" in text.text:
        text = text.sub(_HTML_COMMENT, "\n\n")
    if "<" in text.text:
        text = text.sub(_TAG, _plain_tag)
    if "](" in text.text:
        text = text.sub(_LINK, lambda match: f"] {match[1]} " if match[1] else "]")
    if "]:" in text.text or "://" in text.text:
        text = text.sub(_ADDRESS, HELD)
    if "$" in text.text or "\\" in text.text:
        text = text.sub(_MATH, _plain_math)
    if ">" in text.text:
        text = text.sub(_QUOTED, "")
    text = text.sub(_CRITIC, "")
    if "\\" in text.text:
        text = text.sub(_ESCAPED, r"\1")
    return text.sub(_MARKS, ""), code, empty


_STARTS = re.compile(
    r"\s*(?:[-*+•]\s|\d{1,3}[.)]\s|#{1,6}\s|(?:!!!|\?\?\?\+?|===)\s|:\s+|\|)|[ ]{0,3}\[\^[\w.:-]+\]:|///"
)
_ALONE = re.compile(r"\s*(?:#{1,6}\s|\||(?:!!!|\?\?\?\+?|===)\s)|///")
_RULE_LINE = re.compile(r"\s*(?:-{3,}|={3,}|\|?\s*:?-{2,}:?\s*(?:\|.*)?)\s*$")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?:\s?\[\^[\w.:-]+\])*(?=\s+|$)")
_SHORT = re.compile(
    r"(?:^|[\s(\[])(?:e\.g|i\.e|cf|vs|v|fig|figs|eq|eqs|sec|secs|ch|chs|no|nos|approx|al|ca|incl|excl|resp|p|pp|dr|mr|ms|prof|st|vol|ed|eds|ref|refs"
    r"|tab|min|max|avg|est|[A-Z])\.$",
    re.IGNORECASE,
)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of the sentences: a heading, a list item and a table row each stand for themselves."""
    place, start, alone = 0, 0, False
    spans: list[tuple[int, int]] = []
    for line in text.splitlines(keepends=True):
        is_rule = bool(_RULE_LINE.match(line))
        new = alone or is_rule or not line.strip() or bool(_STARTS.match(line))
        if new and place > start:
            spans.append((start, place))
            start = place
        alone = is_rule or bool(_ALONE.match(line))
        place += len(line)
    spans.append((start, place))
    for first, last in spans:
        item = re.match(r"\s*\d{1,3}[.)]\s", text[first:last])
        begin = first
        for end in _SENTENCE_END.finditer(text, first, last):
            if end[0] == "." and _SHORT.search(text[begin : end.end()]):
                continue
            if item and end.start() < first + item.end():
                continue  # the dot of "3." that opens a list item
            after = text[end.end() : last].lstrip()
            if after[:1].islower() and end[0].startswith((".", "…")):
                continue
            if text[begin : end.end()].strip():
                yield begin, end.end()
            begin = end.end()
        if text[begin:last].strip():
            yield begin, last
