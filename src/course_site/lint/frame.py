"""The frame of every page ranks nothing: style sheets, scripts, templates, settings, and what a page says it is about.

What a style sheet writes before a line, what a script writes into a page and what a template has around it stand on
pages without a record behind them. So they are short labels: no number, no unit of a speed, no name of a library, no
word that ranks. A description may name a library, and still ranks nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import PurePath

from course_site.lint.speed_words import LIBRARY
from course_site.lint.typed_numbers import RATE, TIME

_MOST = 6  # words that a style sheet may write
_RANKS = (
    r"faste[rs]t?|slowe[rs]t?|quicke[rs]t?|speed-?\s?ups?|sped|beat(?:s|en|ing)?|unbeaten|outr[ua]n\w*|outper\w+"
    r"|outpac\w+|overt(?:akes?|ook)|surpass\w*|dethron\w+|trounc\w+|crush\w*|rival(?:s|led)|"
    r"(?:is|are|runs?|stays?|comes?)\s+ahead|ahead\s+of|"
    r"(?:is|are|leaves?|left|fa?ell?s?)\s+(?:[\w’']+\s+){0,3}behind|on\s+par|neck\s+and\s+neck"
    r"|as\s+(?:fast|quick|slow)\s+as|level\s+with|second\s+to\s+none|"
    r"twice|thrice|half|percent|per\s+cent|(?:two|three|four|five|ten|twenty|hundred|\d)-?fold"
    r"|(?:\d|\w+[^s\s]|several)\s+times\s+(?:as|the|that|its|more|less|better|over)|\d[\d.]*\s*(?:times|x)"
    r"|leaves?\s+(?:\w+\s+){1,3}standing|(?:wins?|lo(?:ses?|st))\s+(?:to|over|against)"
    r"|nothing\s+is\s+closer|(?:no|every|any)\s+(?:other\s+)?(?:library|kernel|card|GPU)"
)
_RANK = re.compile(rf"\b(?:{_RANKS})\b", re.IGNORECASE)
_MEASURE = re.compile(rf"(?<![\w/]){RATE}|(?<![\w/%]){TIME}|%(?![\w])|×")
_LIBRARY = re.compile(rf"\b{LIBRARY}")
_OF_A_LIBRARY = re.compile(rf"\b{LIBRARY}|\b(?:librar(?:y|ies)|vendors?|makers?)\b", re.IGNORECASE)
_CONTENT = re.compile(r"(?<![\w-])(?:content|--(?!md-\w+-font)[\w-]+):([^;}]*[\"'][^;}]*)")
# The course's name, and a hole in a template of the run view.
_NO_MEASURE = re.compile(r"percent[\s-]of[\s-]peak|%\w+%", re.IGNORECASE)
_STRING = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"|'((?:\\.|[^'\\\n])*)'")
_SCRIPT_STRING = re.compile(
    r"/\*.*?\*/|(?<![:\"'])//[^\n]*"
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)",
    re.DOTALL,
)
_FONTS = re.compile(r"\b(?:serif|sans-serif|monospace)\s*$")
_ADDRESS = re.compile(r"[\w.-]+(?:/[\w.-]+)+")
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TEMPLATE = re.compile(r"\{#.*?#\}|\{%.*?%\}|<!--.*?-->|<style\b.*?</style>|<script\b.*?</script>", re.DOTALL)
_JINJA = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r"\b(?:title|alt|aria-label|placeholder|content)\s*=\s*\"([^\"]*)\"")
_INLINE = re.compile(r"<(style|script)\b[^>]*>(.*?)</\1>", re.DOTALL)
_IN_LINE = re.compile(r"</?(?:a|b|i|em|strong|span|kbd|code|small|abbr)\b[^>]*>")
_TOLD = "is on pages with no record behind it: say it on a page, with a value or a claim"


def faults_of(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield line, and what is wrong there, of a style sheet, a script, or a template."""
    suffix = PurePath(name).suffix
    if suffix == ".css":
        yield from _of_style(text)
    elif suffix == ".js":
        yield from _of_script(text, draws="explorables" in PurePath(name).parts)
    elif suffix == ".html":
        yield from _of_template(text)


def faults_of_description(text: str) -> Iterator[str]:
    """Yield what is wrong with what a page, or the site, says that it is about."""
    found = _RANK.search(_NO_MEASURE.sub("", text))
    if found and _OF_A_LIBRARY.search(text):
        yield f"its description says {found[0]!r} of a library, and nothing holds that up: say what the page asks"


def _of_style(text: str) -> Iterator[tuple[int, str]]:
    bare = _STYLE_COMMENT.sub(_lines, _JINJA.sub(_lines, text))
    for found in _CONTENT.finditer(bare):
        if _FONTS.search(found[1]):
            continue
        said = " ".join(_plain(one or other) for one, other in _STRING.findall(found[1]))
        why = _ranking(said) or (re.search(r"\d", said) and "has a number in it")
        if not why and len(said.split()) > _MOST:
            why = "is longer than a label"
        if why:
            yield _line(bare, found.start()), f"content {said!r} {why}, and {_TOLD}"


def _of_script(text: str, *, draws: bool) -> Iterator[tuple[int, str]]:
    """Yield strings that rank.

    One of an explorable may have a sign of a product: a test holds its numbers against the page's own.
    """
    for found in _SCRIPT_STRING.finditer(text):
        if not found["text"]:
            continue
        said = _plain(found["text"][1:-1])
        why = _ranking(said.replace("×", " ") if draws or said == "×" else said)
        if why:
            yield _line(text, found.start()), f"{said!r} {why}, and {_TOLD}"


def _of_template(text: str) -> Iterator[tuple[int, str]]:
    for found in _INLINE.finditer(text):
        inner = _of_style(found[2]) if found[1] == "style" else _of_script(found[2], draws=False)
        for line, why in inner:
            yield line + text.count("\n", 0, found.start(2)), why
    bare = _TEMPLATE.sub(_lines, text)
    for found in _ATTRIBUTE.finditer(bare):
        yield from _said_in(bare, found.start(), found[1])
    for found in _JINJA.finditer(bare):
        for one, other in _STRING.findall(found[0]):
            yield from _said_in(bare, found.start(), one or other)
    words = _JINJA.sub(_lines, _IN_LINE.sub("", bare))
    at = 0
    for piece in _TAG.split(words):
        yield from _said_in(words, max(words.find(piece, at), 0), piece)
        at = words.find(piece, at) + len(piece)


def _said_in(text: str, at: int, said: str) -> Iterator[tuple[int, str]]:
    plain = " ".join(html.unescape(said).split())
    if plain and (why := _ranking(plain)):
        yield _line(text, at), f"{plain[:70]!r} {why}, and {_TOLD}"


def _ranking(said: str) -> str:
    """Return what in a text of the frame speaks of speeds; "" where nothing does."""
    said = "" if _ADDRESS.fullmatch(said) else _NO_MEASURE.sub(" ", said)
    for pattern, what in ((_RANK, "ranks"), (_MEASURE, "has a measure in it"), (_LIBRARY, "names a library")):
        if found := pattern.search(said):
            return f"{what} ({found[0].strip()!r})"
    return ""


def _plain(text: str) -> str:
    """Return what a string says, its escapes undone: `\\d7`, `\\u00d7` and `\\xd7` are a sign."""
    text = re.sub(r"\\(?:u\{?|x)([0-9a-fA-F]{2,6})\}?|\\([0-9a-fA-F]{2,6})\s?", _sign, text)
    return html.unescape(text.replace("\\n", " ").replace("\\", ""))


def _sign(found: re.Match[str]) -> str:
    return chr(min(int(found[1] or found[2], 16), 0x10FFFF))


def _lines(found: re.Match[str]) -> str:
    """Return the line ends of what is left out, so that what follows keeps its line."""
    return "\n" * found[0].count("\n")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
