"""The typed-number lint: a performance number reaches a page through a record, never through a keyboard.

Reads prose, page scripts, Python, CUDA, TOML, SVG and what cells print, and reports every rate, time, percentage
of a peak, ratio or "beats the library" that somebody typed. A sentence that cites the bibliography is exempt:
someone else's number, with its source. Sizes, counts, dates, versions and minutes of a session are no performance
numbers. Run it by hand with `python -m course_site.lint docs handbook src`.
"""

from __future__ import annotations

import ast
import bisect
import html
import io
import re
import sys
import tokenize
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

HELD = "\ufffc"  # stands where a value, an address or a piece of code was: no digit, no letter


@dataclass(frozen=True, order=True)
class Finding:
    """One typed number: `line` and `column` count from 1 in the text that was given."""

    line: int
    column: int
    excerpt: str
    why: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.excerpt!r}: {self.why}"


# --- text that remembers where it came from ----------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """Text after some rewriting; `at[i]` is the place of character i in the original."""

    text: str
    at: tuple[int, ...] | range

    @classmethod
    def of(cls, text: str) -> _Text:
        return cls(text, range(len(text)))

    def sub(self, pattern: re.Pattern[str], replace: str | Callable[[re.Match[str]], str]) -> _Text:
        """Like re.sub; replaced characters all come from the start of their match, unless lengths agree."""
        pieces: list[str] = []
        at: list[int] = []
        end = 0
        for match in pattern.finditer(self.text):
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
        return _Text("".join(pieces), tuple(at))

    def _spread(self, match: re.Match[str], new: str) -> list[int]:
        # What survives of the match keeps its own place, so a finding in a paragraph of TeX has its line.
        inside = match[0].find(new) if len(new) > 1 else -1
        start = match.start() + max(inside, 0)
        return list(self.at[start : start + len(new)]) if inside >= 0 else [self.at[match.start()]] * len(new)

    def slice(self, start: int, end: int) -> _Text:
        return _Text(self.text[start:end], self.at[start:end])


# --- the vocabulary ----------------------------------------------------------------------------------

_WORD = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
    r"|trillion|dozen"
)
_WORDS = rf"(?:\b(?:an?\s+(?=hundred|thousand|million|billion|trillion|dozen))?(?:{_WORD})(?:(?:\s+and)?[\s-]+(?:{_WORD}))*\b)"
_DIGITS = (
    r"(?:(?<![A-Za-z0-9_.^])(?<!RTX )(?<!GTX )(?<!Gaudi )"
    r"\d+(?:[.,' ]\d+)*(?:[eE][+-]?\d+)?(?:\s*[×x·]\s*10\s*\^?\s*[-−]?[\d⁰¹²³⁴-⁹]+)?[⁰¹²³⁴-⁹]*(?:\^\d+)?\+?)"
)
_NUMBER = rf"(?:{_DIGITS}|{_WORDS})"
_MANY = r"(?:(?:tens|dozens|hundreds|thousands|millions|billions|trillions)\s+of)"

_FORMAT = r"(?:bf16|fp16|fp32|fp64|tf32|fp8|fp4|int8|BF16|FP16|FP32|FP64|TF32|FP8|FP4|INT8)"
_QUALIFIER = rf"(?:dense|sparse|effective|sustained|peak|measured|achieved|HBM|tensor|matrix|real|useful|more|{_FORMAT})"
_SECOND = r"(?:s(?:ec(?:onds?)?)?(?![\w⁻])|second\b)"
_PER = rf"\s*(?:/\s*{_SECOND}|per\s+{_SECOND}|(?:a|each|every)\s+second\b|[·⋅]?\s*s\s*(?:⁻¹|\^?[-−]1))"
_RATE = (
    r"(?:"
    # prefixed FLOPS in any spelling but TFLOP (a count), and the plain FLOPS of a rate
    r"[kKMGTPEZ](?:FLOPS|FLOPs|Flops|flops|OPS|ops)\b(?!/)|FLOPS\b|(?i:\b(?:kilo|mega|giga|tera|peta|exa)-?flop(?:/?s)?\b)"
    rf"|[kKMGTPEZ]?(?:FLOPS?|FLOPs|Flops?|flops?|OPS?|Ops?|ops?){_PER}"
    rf"|(?:[kKMGTPE]i?)?(?:B|b|[Bb]ytes?|[Bb]its?){_PER}|[kMGTP]i?[Bb]ps\b|GT/s\b"
    rf"|(?i:(?:kilo|mega|giga|tera|peta)(?:byte|bit)s?){_PER}"
    rf"|(?:[A-Za-z-]+\s+){{0,2}}(?:floating-point\s+)?(?:operations?|additions?|multiplications?|multiply-adds?|FMAs?|tokens?|tok"
    rf"|samples?|images?|frames?|requests?|queries|iterations?|its?|steps?|elements?|instructions?|launches|words?|rows?"
    rf"|transactions?){_PER}"
    r")"
)
_TIME = (
    r"(?:(?:us(?![\w/-])|ns|µs|ms|usecs?|msecs?|nsecs?)(?![\w/])|(?i:(?:nano|micro|milli|pico)-?seconds?\b))"
)
_GAP = r"[\s\-–(\[]{0,3}"

_LIBRARY = (
    r"(?:cuBLAS(?:Lt)?|cuDNN|cuFFT|CUTLASS|CuTe|SDPA|PyTorch|[Tt]orch(?:\.\w+)*|FlashInfer|FlashAttention(?:-?\d)?|FA-?[1-4]|Triton"
    r"|TensorRT(?:-LLM)?|vLLM|SGLang|Liger|xFormers|JAX|XLA|NumPy|CuPy|eager|Inductor|NCCL|ThunderKittens|TileLang|Mojo|NVIDIA|AMD"
    r"|(?:the\s+)?(?:vendor|library|libraries|competition))\b"
)
_RIVAL = rf"(?:{_LIBRARY}|(?i:naive|na[iï]ve|materiali[sz]ed|standard|teaching|plain|first|previous|tuned|baseline|reference|kernels?)\b)"
_SPEED = (
    r"(?:speed(?:-?\s?ups?)?|throughput|bandwidth|performance|(?:run(?:ning)?|wall(?:-clock)?)[\s-]?time|runtime"
    r"|time(?!\s+(?:axis|step|budget|limit|slot|line|series|complexity))|latency|rate"
    r"|(?:FL)?OP/s|(?:[kMGTP](?:FLOP|B)/s)|FLOPS|TFLOPS|GFLOPS)(?![\w])"
)
_PEAK = (
    r"(?:(?:peak|roof(?:line)?|ceiling)(?!\s+(?:memory|usage|allocation|footprint|number))"
    r"|speed[\s-]of[\s-]light|SOL|line[\s-]rate|data[\s-]sheet|floor)(?![\w])"
)
_ADJECTIVES = r"(?:(?:the|its|our|their|your|that|this|a|an)\s+)?(?:(?!of\b|and\b|or\b|in\b|for\b|session\b|reading\b|class\b|lecture\b|teaching\b)[\w'’.-]+\s+){0,3}?"
_FASTER = r"(?:faster|slower|quicker|speedier|speed-?\s?ups?|slow-?downs?|sped\s+up)\b"
_BETTER = rf"(?:(?:more|less|higher|lower|better|worse|shorter|longer|greater)\s+{_ADJECTIVES}{_SPEED})"
_AS_FAST = (
    rf"(?:as\s+(?:fast|slow|quick|quickly|slowly)\b|as\s+(?:much|high|low|good|long)\s+{_ADJECTIVES}{_SPEED})"
)
_COMPARED = rf"(?:{_FASTER}|{_BETTER}|{_AS_FAST}|(?:the|its|our|their|that)\s+{_ADJECTIVES}{_SPEED}|{_ADJECTIVES}{_PEAK}|{_LIBRARY})"
_OF_WHAT = rf"of\s+{_ADJECTIVES}(?:{_PEAK}|{_SPEED}|{_LIBRARY})"
_FRACTION = r"(?:half|halves|thirds?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?)"
_DIM = (
    r"(?![\s]*[\d({\[\\" + HELD + r"⟨πε]|\s*[A-Za-z](?:[\s·×*²)^/,.]|$))"
)  # not one more factor of a product

FILL = "fill it from a record with {{ … }}, or cite its source in the same sentence with [^key]"
CLAIM = (
    "put it in a `/// claim` whose condition holds it up, or cite its source in the same sentence with [^key]"
)


@dataclass(frozen=True)
class _Rule:
    """One way to type a performance number.

    kind: "unit" (a number with a unit), "ratio" (a number that compares), "word" (a comparison without one).
    """

    kind: str
    what: str
    pattern: re.Pattern[str]


def _rule(kind: str, what: str, pattern: str) -> _Rule:
    return _Rule(kind, what, re.compile(pattern))


_RULES = (
    _rule("unit", "a typed rate", rf"(?:{_NUMBER}|{_MANY}){_GAP}(?:{_QUALIFIER}\s+){{0,2}}{_RATE}"),
    _rule("unit", "a typed time", rf"(?:{_NUMBER}|{_MANY}){_GAP}{_TIME}"),
    _rule(
        "unit",
        "a typed time",
        rf"(?i:\b(?:about|around|roughly|nearly|almost|only|just|under|over|within|than|takes?|took|costs?)\s+(?:half\s+)?an?\s+{_TIME})",
    ),
    _rule("unit", "a typed time", r"(?<![A-Za-z0-9_.])\d+\.\d+\s*(?:s|secs?|seconds?)\b(?!['’/])"),
    _rule(
        "unit",
        "a typed time",
        r"(?i:\b(?:takes?|took|taking|needs?|needed|costs?|finish(?:es|ed)?\s+in|r[au]ns?\s+in|done\s+in|completes?d?\s+in))"
        r"\s+(?:only\s+|about\s+|around\s+|roughly\s+|just\s+|under\s+|over\s+|~|≈)*\d+\s*(?:s|secs?|seconds?)\b",
    ),
    _rule("unit", "a typed latency", r"(?<![A-Za-z0-9_.])\d[\d,]{2,}\s+(?:clock\s+)?(?:cycles|clocks)\b"),
    _rule(
        "unit",
        "a typed number behind its unit",
        rf"\b(?:{_RATE}|(?:µs|ms|ns)(?![\w/]))\)?\s*(?:[:=≈~]|is|of)\s*{_DIGITS}",
    ),
    _rule(
        "ratio",
        "a typed percentage",
        rf"{_NUMBER}\s*(?:%|per\s?cent\b|pct\b)\s*(?:{_FASTER}|{_BETTER}|{_OF_WHAT}|{_ADJECTIVES}{_PEAK}"
        r"|(?:utili[sz]ation|efficiency|efficient|MFU|busy)\b|of\s+(?:what|that\s+of)\b)",
    ),
    _rule(
        "ratio",
        "a typed percentage",
        r"(?i:\b(?:reach(?:es|ed)?|hits?|achieve[sd]?|attain(?:s|ed)?|sustain(?:s|ed)?|delivers?|delivered))\s+"
        rf"(?:only\s+|about\s+|around\s+|roughly\s+|just\s+|nearly\s+|~|≈)*{_NUMBER}\s*(?:%|per\s?cent\b)",
    ),
    _rule(
        "ratio",
        "a typed percentage",
        rf"(?i:\bspen[dt]s?\s+){_NUMBER}\s*(?:%|per\s?cent\b)\s*of\s+(?:its|the)\s+time\b",
    ),
    _rule("ratio", "a typed fraction of a peak", rf"(?<![A-Za-z0-9_.])0?\.\d+\s+{_OF_WHAT}"),
    _rule(
        "ratio",
        "a typed ratio",
        rf"(?<![A-Za-z0-9_.^×])\d+(?:[.,]\d+)*\s*(?:[×✕✖]|x\b)\s*-?\s*(?:{_COMPARED}|(?:in|on|over|than|vs\.?)\s+{_ADJECTIVES}{_LIBRARY})",
    ),
    _rule("ratio", "a typed ratio", rf"(?<![A-Za-z0-9_.^×])\d+\.\d+(?:[×✕✖]|x\b){_DIM}"),
    _rule(
        "ratio",
        "a typed ratio",
        r"(?<![A-Za-z0-9_.^×/])(?<![×x] )\d+(?:[.,]\d+)*\s?(?:×|x\b)(?=\s*(?:[.,;:!?)\]|]|$|(?:over|at|vs|than|compared|against|by|when|and|or)\b))",
    ),
    _rule(
        "ratio",
        "a typed ratio",
        rf"(?:{_NUMBER}|(?<!how )\b(?:several|many)|\b(?:a\s+)?couple\s+of|\ba\s+few)\s+times\s+(?:{_FASTER}|{_BETTER}|{_AS_FAST}"
        rf"|(?:the|its|our|their|that)\s+(?:of\s+)?{_ADJECTIVES}(?:{_SPEED}|{_PEAK})|{_LIBRARY})",
    ),
    _rule(
        "ratio",
        "a typed ratio",
        rf"(?i:\b(?:twice|thrice|double|triple|quadruple|half))\s+(?:again\s+)?(?:{_AS_FAST}|{_FASTER}"
        rf"|(?:of\s+)?(?:(?:the|its|our|their|your|that|this)\s+)(?:of\s+)?{_ADJECTIVES}(?:{_SPEED}|{_PEAK})|(?:of\s+)?{_LIBRARY})",
    ),
    _rule(
        "ratio",
        "a typed ratio",
        rf"(?i:\b(?:doubl|tripl|quadrupl|halv)(?:es?|ed|ing))\s+(?:the|its|our|their|your|that)\s+{_ADJECTIVES}{_SPEED}",
    ),
    _rule(
        "ratio",
        "a typed fraction",
        rf"(?i:(?:\b(?:an?|{_WORD})[\s-]+)?\b{_FRACTION})\s+(?:of\s+)?(?:(?:the|its|our|their|that|what)\s+)(?:of\s+)?{_ADJECTIVES}"
        rf"(?:{_SPEED}|{_PEAK}|(?:cuBLAS|cuDNN|SDPA)\b)|(?i:\b{_FRACTION}\s+of\s+)(?:{_PEAK}|(?:cuBLAS|cuDNN|SDPA|PyTorch)\b)",
    ),
    _rule(
        "ratio",
        "a typed ratio",
        rf"(?i:\b(?:speed-?\s?ups?|slow-?downs?|faster|slower))\s*(?:of|by|:|=|is)\s+(?:a\s+factor\s+of\s+)?(?:about\s+|around\s+|~|≈)*{_NUMBER}"
        rf"|(?i:\bsp(?:eeds?|ed)\s+(?:it\s+|them\s+|this\s+)?up\s+by\s+)(?:a\s+factor\s+of\s+)?{_NUMBER}",
    ),
    _rule(
        "ratio",
        "a typed ratio",
        rf"(?:{_DIGITS}|{_WORDS})[\s-]?fold\s+(?:{_FASTER}|{_BETTER}|{_ADJECTIVES}{_SPEED})",
    ),
    _rule(
        "ratio",
        "a typed ratio",
        rf"\b(?:two|three|four|five|six|seven|eight|nine|ten|hundred)fold\s+(?:{_FASTER}|{_BETTER}|{_ADJECTIVES}{_SPEED})",
    ),
    _rule("ratio", "a typed ratio", rf"(?i:\borders?\s+of\s+magnitude)\s+(?:{_FASTER}|{_BETTER})"),
    _rule("word", "a typed comparison", rf"(?i:\b(?:faster|slower|quicker))\s+than\s+{_ADJECTIVES}{_RIVAL}"),
    _rule("word", "a typed comparison", rf"(?i:\bas\s+(?:fast|slow|quick)\s+as)\s+{_ADJECTIVES}{_RIVAL}"),
    _rule(
        "word",
        "a typed comparison",
        r"(?i:\b(?<!to )(?:beats?|outperform(?:s|ed)?|outruns?|outpaces?d?|surpass(?:es|ed)?|overtakes?|overtook|trails|trailed))"
        rf"\s+{_ADJECTIVES}{_RIVAL}",
    ),
    _rule(
        "word",
        "a typed comparison",
        rf"(?i:\b(?:wins?\s+(?:over|against)|lo(?:ses|st)\s+(?:to|against)|lags?\s+behind|on\s+par\s+with|keeps?\s+up\s+with))\s+{_ADJECTIVES}{_RIVAL}",
    ),
    _rule(
        "word",
        "a typed comparison",
        rf"{_LIBRARY}\s+(?:is|was|gets|got)\s+(?:\w+\s+)?(?:beaten|outperformed|overtaken|surpassed)\b",
    ),
)
# Cheap test that spares most sentences the rules above.
_HINT = re.compile(
    rf"\d|\b(?:{_WORD}|tens|dozens|hundreds|thousands|millions|billions|trillions)\b|half|halv|third|quarter|fifth|tenth|twice|thrice|doubl|tripl|quadrupl"
    r"|fold\b|magnitude|times|an?\s+(?:nano|micro|milli|[µnm]s)|faster|slower|quicker|as\s+(?:fast|slow|quick)|beat|outp|outr|surpass|overt|trail|par\s+with"
    r"|\bwins?\s|\blo(?:ses|st)\s|lag|keeps?\s+up",
    re.IGNORECASE,
)
_DEFINES = re.compile(
    rf"(?:^|[\s(])(?:1|one|an?)\s*(?:{_RATE}|{_TIME}|(?:kilo|mega|giga|tera)byte|[kMGT]B)\s*(?:\([^)]*\)\s*)?(?:=|is|are|equals|means)\s"
    rf"|(?:per|in|to|make)\s+(?:an?|one|1)\s+(?:{_TIME}|second)|^\W*(?:an?\s+)?(?:{_RATE}|{_TIME})\W*(?:\([^)]*\)\s*)?(?:=|is|are|means|:)\s",
    re.IGNORECASE,
)
_ANY_NUMBER = re.compile(_NUMBER)
_ROUND = re.compile(
    r"(?:an?\s+|one\s+)?(?:thousand|million|billion|trillion)(?:\s+(?:thousand|million|billion|trillion))*\b|(?:10*|1[, 0]*|1e\d+|10\^?[\d⁰¹²³⁴-⁹]+|one)(?![\d.,])",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"(?:100|a\s+hundred|one\s+hundred|0|zero)\s*(?:%|per\s?cent)\s+of\s+", re.IGNORECASE)
_SUPPOSED = re.compile(r"\b(?:if|whether|unless|suppose|until|once|when)\b[^,;:]*$", re.IGNORECASE)
_MAYBE = re.compile(
    r"\b(?:can(?:not)?|could|may|might|must|should|would|to|not|never)\s+(?:\w+\s+)?$", re.IGNORECASE
)
_CITE = re.compile(r"\[\^([\w.:-]+)\](?!:)")
_DEFINITION = re.compile(r"^[ ]{0,3}\[\^([\w.:-]+)\]:", re.MULTILINE)

_VALUES_OF_WORDS = {
    word: value
    for value, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]
    )
} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
    "twice": 2, "double": 2, "doubles": 2, "doubled": 2, "thrice": 3, "triple": 3, "triples": 3, "quadruple": 4,
    "half": 0.5, "halves": 0.5, "halved": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1,
}  # fmt: skip


# --- from Markdown to plain sentences ----------------------------------------------------------------

_VALUE = re.compile(r"(?<![\^_\\])\{\{([^{}]*)\}\}")
_FENCE = re.compile(
    r"^[ \t>]*(`{3,}|~{3,})[^\n]*\n(.*?)(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_BARE = re.compile(rf"[\s\d.,~≈×x%+-]+|\s*(?:{_RATE}|{_TIME}|%|×)\s*")
_BLOCK_TAG = re.compile(
    r"</?(?:p|li|td|th|tr|br|div|h[1-6]|ul|ol|dl|dt|dd|table|thead|tbody|figure|figcaption|summary|details|section|text|title|desc|option|button|caption)\b[^<>]*>",
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
_TEX_SIGNS = {"times": "×", "cdot": "·", "mu": "µ", "approx": "≈", "sim": "~", "quad": " ", "qquad": " ", "%": "%", ",": " ", ";": " ",
              ":": " ", "!": "", " ": " ", "ge": "≥", "le": "≤", "geq": "≥", "leq": "≤", "pm": "±"}  # fmt: skip
_TEX = re.compile(r"\\([A-Za-z]+|[%,;:! ])[ \t]?")
_MATH = re.compile(
    r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+(?:\n[^$\n]+)*?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
_MARKS = re.compile(
    r"(?<!\s)\*+(?!\w*\*?\d)|(?<![\d\s])\*+|\*+(?=\S)(?<!\d\*)|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|==|~~|\^\^"
)
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_ODD = re.compile(r"[^\x00-\x7f]")


def _tex_sign(match: re.Match[str]) -> str:
    return _TEX_SIGNS.get(match[1], " " if match[1].isalpha() else match[0])


def _plain_math(match: re.Match[str]) -> str:
    inner = next(group for group in match.groups() if group is not None)
    while _TEX_TEXT.search(inner):
        inner = _TEX_TEXT.sub(r" \1", inner)
    return _TEX.sub(_tex_sign, inner).replace("{", "").replace("}", "").replace("~", " ")


def _plain_character(match: re.Match[str]) -> str:
    sign = match[0]
    kind = unicodedata.category(sign)
    if kind == "Zs":
        return " "
    if kind == "Cf":
        return ""
    if kind == "Nd" or "\uff00" <= sign <= "\uff60" or sign in "㎲㎳㎱":
        return unicodedata.normalize("NFKC", sign).replace("μ", "µ")
    return {"μ": "µ", "∕": "/", "⁄": "/", "‐": "-", "‑": "-", "⨯": "×"}.get(sign, sign)


def _plain_tag(match: re.Match[str]) -> str:
    shown = [first or second for first, second in _ATTRIBUTE.findall(match[0])]
    return (
        "\n\n" + "\n\n".join(shown) + "\n\n" if shown else ("\n\n" if _BLOCK_TAG.fullmatch(match[0]) else "")
    )


def _plain(source: _Text) -> tuple[_Text, list[_Text], list[tuple[int, str]]]:
    """Prose as a reader sees it, the pieces of code taken out of it, and values that name no data."""
    code: list[_Text] = []
    empty: list[tuple[int, str]] = []

    def value(match: re.Match[str]) -> str:
        expression = match[1].rsplit(":", 1)[0]
        if not re.search(r"(?<![\w.])[A-Za-z_]", expression) and expression.strip(" .…"):
            empty.append((text.at[match.start()], match[0]))
        return HELD

    def fence(match: re.Match[str]) -> str:
        code.append(text.slice(match.start(2), match.end(2)))
        return "\n\n"

    def span(match: re.Match[str]) -> str:
        if _BARE.fullmatch(match[2]):
            return match[2]
        code.append(text.slice(match.start(2), match.end(2)))
        return HELD

    text = source
    text = text.sub(_FENCE, fence)
    text = text.sub(_CODE, span)
    text = text.sub(_VALUE, value)
    text = text.sub(_ENTITY, lambda match: html.unescape(match[0]))
    text = text.sub(_ODD, _plain_character)
    text = text.sub(re.compile(r"<!--|-->"), "\n\n")
    text = text.sub(_TAG, _plain_tag)
    text = text.sub(_LINK, lambda match: f"] {match[1]} " if match[1] else "]")
    text = text.sub(_ADDRESS, HELD)
    text = text.sub(_MATH, _plain_math)
    text = text.sub(_QUOTED, "")
    text = text.sub(re.compile(r"\\([%$*_#|~])"), r"\1")
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


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of the sentences: a heading, a list item and a table row each stand for themselves."""
    place, start, alone = 0, 0, False
    spans: list[tuple[int, int]] = []
    for line in text.splitlines(keepends=True):
        new = not line.strip() or bool(_STARTS.match(line)) or bool(_RULE_LINE.match(line)) or alone
        if new and place > start:
            spans.append((start, place))
            start = place
        alone = bool(_ALONE.match(line)) or bool(_RULE_LINE.match(line))
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


# --- one sentence ------------------------------------------------------------------------------------


def _amount(words: str) -> float | None:
    """The number in a piece of prose: 1.4 of "1.4×", 0.8 of "80 %", 2 of "twice"."""
    digits = re.search(r"\d+(?:\.\d+)?", words.replace(",", ""))
    if digits:
        return float(digits[0]) / (100 if re.search(r"%|per\s?cent", words) else 1)
    for word in re.findall(r"[a-z]+", words.lower()):
        if word in _VALUES_OF_WORDS:
            number = float(_VALUES_OF_WORDS[word])
            return number / 100 if re.search(r"%|per\s?cent", words) else number
        if word.endswith("fold") and word[:-4] in _VALUES_OF_WORDS:
            return float(_VALUES_OF_WORDS[word[:-4]])
    return None


def _held_up(excerpt: str, condition: str) -> bool:
    """True if the condition of a claim contains the number the sentence types, or its inverse, within a tenth."""
    amount = _amount(excerpt)
    if amount is None or not amount:
        return False
    literals = [float(text) for text in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", condition)] + [1.0]
    return any(
        abs(amount - number) <= 0.1 * amount or abs(amount - 1 / number) <= 0.1 * amount
        for number in literals
        if number
    )


def _in_sentence(sentence: str, *, in_claim: bool, condition: str | None) -> Iterator[tuple[int, str, str]]:
    """Place, excerpt and reason of every typed number in one plain sentence."""
    if not _HINT.search(sentence):
        return
    asks = bool(re.search(r"\?[\"'”’)\]*_\s]*$", sentence))
    defines = bool(_DEFINES.search(sentence))
    taken: list[tuple[int, int]] = []
    for rule in _RULES:
        for match in rule.pattern.finditer(sentence):
            excerpt = " ".join(match[0].split())
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            if (
                rule.kind == "unit"
                and defines
                and all(_ROUND.fullmatch(n) for n in _ANY_NUMBER.findall(excerpt))
            ):
                continue  # what a unit means, not how fast something is
            if rule.kind == "ratio" and _WHOLE.match(excerpt):
                continue
            typed = bool(re.search(r"\d", excerpt))
            before = sentence[: match.start()]
            if (
                rule.kind != "unit"
                and not typed
                and (asks or (rule.kind == "word" and _SUPPOSED.search(before)))
            ):
                continue  # a question, or a case that is only supposed, states nothing
            if (
                rule.kind == "word"
                and _MAYBE.search(before)
                and not re.search(r"\b(?:not|never|cannot)\s+(?:\w+\s+)?$", before)
            ):
                continue  # a wish or a possibility
            if in_claim and rule.kind == "word":
                continue  # the condition holds it up
            if in_claim and rule.kind == "ratio":
                if condition is None and not typed:
                    continue
                if condition is not None and _held_up(excerpt, condition):
                    continue
            taken.append(match.span())
            yield match.start(), excerpt, f"{rule.what}; {FILL if typed or rule.kind == 'unit' else CLAIM}"


# --- Markdown tables: a unit in the header makes every number below it a performance number ----------

_HEADER_UNIT = re.compile(
    rf"(?:^|[\s(,\[/]){_RATE}|(?:^|[\s(,\[])(?:µs|us|ms|ns)(?=$|[\s),\]])|%\s*of\s+{_ADJECTIVES}(?:{_PEAK}|{_LIBRARY}|{_SPEED})|(?i:speed-?\s?up)|[×x]\s+over\b"
)
_CELL_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:[.,]\d+)*")


def _in_tables(text: str, cited: Callable[[str], bool]) -> Iterator[tuple[int, str, str]]:
    units: dict[int, str] = {}
    place, before, in_table = 0, "", False
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        cells = stripped.strip("|").split("|") if "|" in stripped else []
        if cells and re.fullmatch(r"[\s|:-]+", stripped) and "-" in stripped:
            in_table = True
            heads = before.strip().strip("|").split("|")
            units = {i: head.strip() for i, head in enumerate(heads) if _HEADER_UNIT.search(head)}
        elif in_table and cells:
            if units and not cited(stripped):
                offset = line.index(stripped) + (1 if stripped.startswith("|") else 0)
                for i, cell in enumerate(cells):
                    number = _CELL_NUMBER.search(cell)
                    if i in units and number:
                        yield (
                            place + offset + number.start(),
                            f"{cell.strip()} under {units[i]}",
                            f"a typed number in a table; {FILL}",
                        )
                    offset += len(cell) + 1
        else:
            in_table = False
            units = {}
        before = line
        place += len(line)


# --- the public functions ----------------------------------------------------------------------------


def _findings(source: str, places: Iterable[tuple[int, str, str]]) -> list[Finding]:
    starts = [0] + [match.end() for match in re.finditer("\n", source)]
    found = {}
    for at, excerpt, why in places:
        line = bisect.bisect_right(starts, at)
        found.setdefault((line, excerpt), Finding(line, at - starts[line - 1] + 1, excerpt, why))
    return sorted(found.values())


def _search(
    source: _Text,
    *,
    in_claim: bool = False,
    condition: str | None = None,
    keys: Collection[str] | None = None,
    own: Collection[str] = (),
    code: bool = True,
    guesses: bool = False,
) -> Iterator[tuple[int, str, str]]:
    """The engine behind every function below: places are those of the original text."""
    text, pieces, empty = _plain(source)
    own = {*own, *_DEFINITION.findall(text.text)}

    def cited(sentence: str) -> bool:
        return any(key not in own and (keys is None or key in keys) for key in _CITE.findall(sentence))

    for at, excerpt in empty:
        yield at, excerpt, "a value that names no recorded data is a typed number"
    for start, end in _sentences(text.text):
        sentence = text.text[start:end]
        if cited(sentence) or (guesses and re.match(r"\s*(?:[-*+]|\d{1,3}[.)]|\(?[a-zA-Z][.)])\s", sentence)):
            continue
        for place, excerpt, why in _in_sentence(sentence, in_claim=in_claim, condition=condition):
            yield text.at[start + place], excerpt, why
    for place, excerpt, why in _in_tables(text.text, cited):
        yield text.at[place], excerpt, why
    if code:
        for piece in pieces:
            start = 0
            for line in piece.text.splitlines(keepends=True):
                for place, excerpt, why in _in_sentence(line, in_claim=False, condition=None):
                    if re.search(rf"{_RATE}|{_TIME}", excerpt):
                        yield piece.at[start + place], excerpt, why
                start += len(line)


def find_typed_numbers(
    text: str,
    *,
    in_claim: bool = False,
    condition: str | None = None,
    keys: Collection[str] | None = None,
    code: bool = True,
) -> list[Finding]:
    """Typed performance numbers in Markdown prose, which may hold values, code, math, HTML and tables.

    Args:
        text: prose without directives or a YAML head; `lint_page` takes those apart.
        in_claim: the body of a claim, whose condition holds comparisons up; units and digits it does not.
        condition: the head of that claim; a ratio is allowed if its number stands there (2 for "twice").
        keys: the keys of the bibliography; None takes any `[^key]` that the text does not define itself.
        code: also look for rates and times (nothing else) in fenced and inline code.
    """
    return _findings(
        text, _search(_Text.of(text), in_claim=in_claim, condition=condition, keys=keys, code=code)
    )


_DIRECTIVE = re.compile(r"///(?:[ \t]+(?P<kind>[\w-]+)[ \t]*(?:\|[ \t]*(?P<head>.*?))?)?[ \t]*$")
_SETTINGS = frozenset({"chart", "table", "source", "figure", "define"})
_SPOKEN_HEADS = frozenset({"predict", "exercise"})
_FENCE_LINE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def _search_markdown(source: _Text, keys: Collection[str] | None) -> Iterator[tuple[int, str, str]]:
    """Prose with directives: each kind of block by its own rules."""
    own = _DEFINITION.findall(source.text)
    stack: list[tuple[str, str]] = []  # kind or part, head
    start, place, fence = 0, 0, ""

    def flush(end: int) -> Iterator[tuple[int, str, str]]:
        piece = source.slice(start, end)
        if not piece.text.strip():
            return
        kind, head = stack[-1] if stack else ("", "")
        if kind in _SETTINGS:
            yield from _search_yaml(piece, keys, chart=kind in ("chart", "table"))
        else:
            claims = kind in ("claim", "otherwise")
            condition = head if claims else None
            yield from _search(
                piece, in_claim=claims, condition=condition, keys=keys, own=own, guesses=kind == "predict"
            )

    for line in source.text.splitlines(keepends=True):
        mark = _FENCE_LINE.match(line)
        if mark:
            fence = ("" if mark[1].startswith(fence) else fence) if fence else mark[1]
        block = None if fence else _DIRECTIVE.match(line.rstrip("\n"))
        if block:
            yield from flush(place)
            kind, head = block["kind"], block["head"] or ""
            if kind is None:
                if stack:
                    stack.pop()
            elif kind in ("otherwise", "reveal", "answer") and stack:
                stack[-1] = (kind, stack[-1][1])
            else:
                stack.append((kind, head))
                if kind in _SPOKEN_HEADS:
                    spoken = place + block.start("head") if head else place
                    yield from _search(source.slice(spoken, place + len(line)), keys=keys, own=own)
            start = place + len(line)
        place += len(line)
    yield from flush(place)


def _search_yaml(
    source: _Text, keys: Collection[str] | None, *, chart: bool = False
) -> Iterator[tuple[int, str, str]]:
    """Every string of some YAML; in a chart or table, also a `value` that is a bare number."""
    try:
        root = yaml.compose(source.text)
    except yaml.YAMLError:
        yield from _search(source, keys=keys)  # whoever reads it as YAML says what is wrong with it
        return

    def walk(node: yaml.Node | None, name: str) -> Iterator[tuple[int, str, str]]:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from walk(value, str(key.value))
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield from walk(item, name)
        elif isinstance(node, yaml.ScalarNode):
            start, end = node.start_mark.index, node.end_mark.index
            if node.tag == "tag:yaml.org,2002:str":
                for _, excerpt, why in _search(_Text.of(str(node.value)), keys=keys):
                    first = source.text.find(excerpt.split()[0], start, end)
                    yield source.at[max(first, start)], excerpt, why
            elif chart and name == "value" and float(node.value) not in (0, 1, 100):
                yield (
                    source.at[start],
                    str(node.value),
                    "a number in a chart must name recorded data or the data sheet",
                )

    yield from walk(root, "")


_CELL = re.compile(r"^# %%(?P<rest>.*)$", re.MULTILINE)
_HEAD = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_COMMENT_MARK = re.compile(r"^#[ ]?", re.MULTILINE)


def lint_markdown(text: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers of a Markdown page or a prose cell: YAML head (if any), prose and directives."""
    source = _Text.of(text)
    head = _HEAD.match(text)
    places = [*_search_yaml(source.slice(*head.span(1)), keys)] if head else []
    return _findings(
        text, [*places, *_search_markdown(source.slice(head.end() if head else 0, len(text)), keys)]
    )


def lint_page(text: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers of a page in py:percent: YAML head, prose cells, and all strings and comments of its code."""
    source = _Text.of(text)
    marks = list(_CELL.finditer(text))
    places: list[tuple[int, str, str]] = []
    top = source.slice(0, marks[0].start() if marks else len(text)).sub(_COMMENT_MARK, "")
    head = _HEAD.search(top.text)
    if head:
        places += _search_yaml(top.slice(*head.span(1)), keys)
    code = [(0, 0)] if marks else [(0, len(text))]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        end = following.start() if following else len(text)
        cell = source.slice(min(mark.end() + 1, end), end)
        if "[markdown]" in mark["rest"] or "[md]" in mark["rest"]:
            quoted = re.match(r'\s*r?"""(.*?)"""\s*$', cell.text, re.DOTALL)
            prose = cell.slice(*quoted.span(1)) if quoted else cell.sub(_COMMENT_MARK, "")
            places += _search_markdown(prose, keys)
        else:
            code.append((mark.start(), end))
    for start, end in code:
        line = text.count("\n", 0, start)
        starts = [0] + [match.end() for match in re.finditer("\n", text)]
        for found in lint_python(text[start:end], strings=True, keys=keys):
            places.append((starts[line + found.line - 1] + found.column - 1, found.excerpt, found.why))
    return _findings(text, places)


def lint_python(source: str, *, strings: bool = False, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers in the docstrings and comments of Python; with `strings`, in every other string too."""
    commented = re.sub(r"(?m)^([ \t]*)([%!])", r"\1#\2", source)  # notebook magics are no Python
    try:
        tree = ast.parse(commented)
        tokens = list(tokenize.generate_tokens(io.StringIO(commented).readline))
    except (SyntaxError, tokenize.TokenError) as error:
        return [Finding(getattr(error, "lineno", None) or 1, 1, "", f"cannot be read as Python: {error}")]
    found: list[Finding] = []
    starts = [0] + [match.end() for match in re.finditer("\n", source)]

    def look(text: str, line: int, column: int) -> None:
        for hit in _findings(text, _search(_Text.of(text), keys=keys)):
            found.append(
                Finding(line + hit.line - 1, hit.column if hit.line > 1 else column, hit.excerpt, hit.why)
            )

    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings.add(id(first.value))
                look(first.value.value, first.value.lineno, first.value.col_offset + 1)
    if strings:
        parts = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
        } - {id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr) and id(node) not in parts:
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else HELD for part in node.values
                )
                look(text, node.lineno, node.col_offset + 1)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docstrings | parts
            ):
                look(node.value, node.lineno, node.col_offset + 1)

    comments = [
        (token.start[0], token.start[1], token.string, token.line[: token.start[1]].strip() == "")
        for token in tokens
        if token.type == tokenize.COMMENT
    ]
    places: list[tuple[int, str, str]] = []
    for paragraph in _paragraphs(comments):
        at: list[int] = []
        text = ""
        for line, column, comment, _ in paragraph:
            body = comment.lstrip("#").removeprefix(":")
            first = starts[line - 1] + column + len(comment) - len(body)
            text += body + "\n"
            at += [*range(first, first + len(body)), first + len(body)]
        places += _search(_Text(text, tuple(at)), keys=keys)
    return sorted(found + _findings(source, places))


def _paragraphs(comments: list[tuple[int, int, str, bool]]) -> Iterator[list[tuple[int, int, str, bool]]]:
    """Comments on lines of their own, one under the other, read as one text; one behind code stands alone."""
    group: list[tuple[int, int, str, bool]] = []
    for comment in comments:
        line, column, _, own_line = comment
        follows = group and own_line and group[-1][3] and group[-1][0] == line - 1 and group[-1][1] == column
        if group and not follows:
            yield group
            group = []
        group.append(comment)
    if group:
        yield group


_CUDA = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)


def lint_cuda(source: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers in the comments of CUDA C++."""
    text = _Text.of(source)
    places: list[tuple[int, str, str]] = []
    line_comments: list[tuple[int, int, str, bool]] = []
    starts = [0] + [match.end() for match in re.finditer("\n", source)]
    for match in _CUDA.finditer(source):
        if match[0].startswith("/*"):
            body = text.slice(match.start() + 2, match.end() - 2).sub(
                re.compile(r"^[ \t]*\*+", re.MULTILINE), ""
            )
            places += _search(body, keys=keys)
        elif match[0].startswith("//"):
            line = bisect.bisect_right(starts, match.start())
            column = match.start() - starts[line - 1]
            line_comments.append(
                (line, column, match[0], not source[starts[line - 1] : match.start()].strip())
            )
    for paragraph in _paragraphs(line_comments):
        joined, at = "", []
        for line, column, comment, _ in paragraph:
            body = comment.lstrip("/!<")
            first = starts[line - 1] + column + len(comment) - len(body)
            joined += body + "\n"
            at += [*range(first, first + len(body)), first + len(body)]
        places += _search(_Text(joined, tuple(at)), keys=keys)
    return _findings(source, places)


_TOML = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'|"((?:\\.|[^"\\\n])*)"|\'([^\'\n]*)\'|#([^\n]*)', re.DOTALL)


def lint_toml(text: str, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers in the strings and comments of TOML."""
    source = _Text.of(text)
    places: list[tuple[int, str, str]] = []
    for match in _TOML.finditer(text):
        group = next(i for i in range(1, 6) if match[i] is not None)
        piece = source.slice(*match.span(group)).sub(
            re.compile(r"\\u([0-9a-fA-F]{4})"), lambda code: chr(int(code[1], 16))
        )
        places += _search(piece, keys=keys)
    return _findings(text, places)


def lint_svg(text: str) -> list[Finding]:
    """Typed numbers in the words of an SVG figure: what it draws as text, its title and its description."""
    source = _Text.of(text).sub(
        re.compile(r"<style.*?</style>|<defs.*?</defs>|<\?.*?\?>|<!DOCTYPE[^>]*>", re.DOTALL), "\n\n"
    )
    return _findings(text, _search(source, code=False))


_NAMED = re.compile(
    r"\b(?:[a-z_]*(?:tflops|gflops|gb_per_s|tb_per_s|of_peak|of_bandwidth|of_compute|speed_?up)|(?:\w+_)?(?:us|ms|ns))['\"]?\s*[:=]\s*(?:\w+\()?\d[\d.e+-]*"
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def lint_output(text: str) -> list[Finding]:
    """Performance numbers in what a cell printed: every line for itself, and no citation excuses one.

    A header with a unit over a column of numbers, and `tflops=…` as a repr prints it, count too.
    """
    source = _Text.of(text).sub(_ANSI, "")
    places: list[tuple[int, str, str]] = []
    unit = ""
    place = 0
    why = "a cell prints a performance number; record it and let the page show it"
    for line in source.text.splitlines(keepends=True):
        piece = source.slice(place, place + len(line))
        plain, codes, _ = _plain(piece)
        hits = [
            (plain.at[at], excerpt)
            for at, excerpt, _ in _in_sentence(plain.text, in_claim=False, condition=None)
        ]
        for code in codes:
            hits += [
                (code.at[at], excerpt)
                for at, excerpt, _ in _in_sentence(code.text, in_claim=False, condition=None)
            ]
        hits += [(piece.at[match.start()], match[0]) for match in _NAMED.finditer(piece.text)]
        if not line.strip():
            unit = ""
        elif not hits and unit and re.search(r"(?<![\w.])\d+\.\d+|(?:\s{2,}|[|\t]\s*)\d+", line):
            hits.append((piece.at[0], f"{line.strip()} under {unit}"))
        header = _HEADER_UNIT.search(line)
        if header and not hits and re.search(r"\S(?:\s{2,}|\s*[\t|])\s*\S", line):
            unit = header[0].strip(" (,[/")
        places += [(at, excerpt, why) for at, excerpt in hits]
        place += len(line)
    return _findings(text, places)


# --- files -------------------------------------------------------------------------------------------

_SKIP = frozenset({"records", "site", "vendor", "build", "dist", "node_modules", "__pycache__", "tests"})


_SUFFIXES = frozenset([".py", ".md", ".markdown", ".cu", ".cuh", ".h", ".hpp", ".cpp", ".toml", ".svg", ".yml", ".yaml"])


def lint_file(path: Path, *, keys: Collection[str] | None = None) -> list[Finding]:
    """Typed numbers of one file, read by its suffix; a kind of file that is not known has none."""
    if path.suffix not in _SUFFIXES or path.name == "bibliography.toml":  # titles of other people's work
        return []
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        is_page = any(part in ("docs", "handbook") for part in path.parts) and _CELL.search(text)
        return lint_page(text, keys=keys) if is_page else lint_python(text, keys=keys)
    if path.suffix in (".md", ".markdown"):
        return lint_markdown(text, keys=keys)
    if path.suffix in (".cu", ".cuh", ".h", ".hpp", ".cpp"):
        return lint_cuda(text, keys=keys)
    if path.suffix == ".toml":
        return lint_toml(text, keys=keys)
    if path.suffix == ".svg":
        return lint_svg(text)
    if path.suffix in (".yml", ".yaml"):
        return _findings(text, _search_yaml(_Text.of(text), keys))
    return []


def lint_paths(paths: Iterable[Path], *, keys: Collection[str] | None = None) -> list[str]:
    """One line for each typed number in the files and folders given: path:line:column: excerpt: why."""
    lines = []
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            inside = file.relative_to(path).parts if path.is_dir() else ()
            if file.is_file() and not any(part in _SKIP or part.startswith(".") for part in inside):
                lines += [f"{file}:{finding}" for finding in lint_file(file, keys=keys)]
    return lines


def main(arguments: list[str]) -> int:
    """Lint the files and folders named (default: docs handbook src); the exit status is 1 if any holds a typed number."""
    paths = [Path(argument) for argument in arguments] or [
        p for p in map(Path, ("docs", "handbook", "src")) if p.exists()
    ]
    missing = [path for path in paths if not path.exists()]
    if missing:
        print(f"lint: no such file or folder: {', '.join(map(str, missing))}", file=sys.stderr)
        return 2
    found = lint_paths(paths)
    print("\n".join(found) if found else "no typed numbers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
