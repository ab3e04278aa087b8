"""Patterns of a typed performance number: the words, the units, and the rules over one plain sentence."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from course_site.lint.number_words import COUNTED
from course_site.lint.required_words import Guarded, words_in
from course_site.lint.speed_words import FRACTION, LIBRARY, WORD, beside_speed
from course_site.pages.plain_text import HELD
from course_site.values.claim_bounds import bounds_of

# --- the words ---------------------------------------------------------------------------------------

_WORDS = (
    r"(?:\b(?:an?\s+(?=hundred|thousand|million|billion|trillion|dozen))?"
    rf"(?:{WORD})(?:(?:\s+and)?[\s-]+(?:{WORD}))*\b(?:\s+and\s+an?\s+(?:half|third|quarter)\b)?)"
)
_DIGITS = (
    r"(?:(?<![A-Za-z0-9_.^])(?<!RTX )(?<!GTX )(?<!Gaudi )"
    r"\d+(?:[.,']\d+| \d{3}(?!\d))*(?:[eE][+-]?\d+)?"
    r"(?:\s*[×x·]\s*10\s*\^?\s*[-−]?[\d⁰¹²³⁴-⁹]+)?[⁰¹²³⁴-⁹]*(?:\^\d+)?\+?"
    r"|(?<![\w)\]])[⁰¹²³⁴-⁹]+/[₀-₉]+)"
)
NUMBER = rf"(?:{_DIGITS}|{_WORDS})"
_MANY = r"(?:(?:tens|dozens|hundreds|thousands|millions|billions|trillions)\s+of)"

_FORMAT = r"(?:bf16|fp16|fp32|fp64|tf32|fp8|fp4|int8|BF16|FP16|FP32|FP64|TF32|FP8|FP4|INT8)"
_QUALIFIER = (
    r"(?:dense|sparse|effective|sustained|peak|measured|achieved|HBM|tensor|matrix|real|useful|more"
    rf"|extra|additional|further|{_FORMAT})"
)
_SECOND = r"(?:s(?:ec(?:onds?)?)?(?![\w⁻])|second\b)"
_PER = rf"\s*(?:/\s*{_SECOND}|per\s+{_SECOND}|(?:a|each|every)\s+second\b|[·⋅]?\s*s\s*(?:⁻¹|\^?[-−]1))"
RATE = (
    r"(?:"
    # prefixed FLOPS in any spelling but TFLOP (a count), and the plain FLOPS of a rate
    r"[kKMGTPEZ](?:FLOPS|FLOPs|Flops|flops|OPS|ops)\b(?!/)|FLOPS\b|(?i:\b(?:kilo|mega|giga|tera|peta"
    r"|exa)-?flop(?:/?s)?\b)"
    rf"|[kKMGTPEZ]?(?:FLOPS?|FLOPs|Flops?|flops?|OPS?|Ops?|ops?){_PER}"
    rf"|(?:[kKMGTPE]i?)?(?:B|b|[Bb]ytes?|[Bb]its?){_PER}|[kMGTP]i?[Bb]ps\b|GT/s\b"
    rf"|(?i:(?:kilo|mega|giga|tera|peta)(?:byte|bit)s?){_PER}"
    r"|(?:(?:floating-point|integer|arithmetic|output|input|new|generated|memory|random|more|useful)\s+){0,2}"
    r"(?:operations?|additions?|multiplications?|multiply-adds?"
    r"|FMAs?|tokens?|tok"
    r"|samples?|images?|frames?|requests?|queries|iterations?|its?|steps?|elements?|instructions?|launches"
    r"|words?|rows?|cycles"
    rf"|transactions?){_PER}|[kMGT]\s+\w+{_PER}|(?:tera|giga|peta)flops\b"
    r")"
)
TIME = (
    r"(?:(?:us(?![\w/-])|ns|µs|ms|usecs?|msecs?|nsecs?)(?![\w/])|(?i:(?:nano|micro|milli|pico)-?seconds?\b))"
)
_GAP = r"[\s\-–(\[]{0,3}"

_RIVAL = (
    rf"(?:{LIBRARY}|(?i:naive|na[iï]ve|materiali[sz]ed|standard|teaching|plain|first|previous|tuned|baseline"
    r"|reference|kernels?)\b)"
)
_SPEED = (
    r"(?:speed(?:-?\s?ups?)?|throughput|bandwidth|performance|(?:run(?:ning)?|wall(?:-clock)?)[\s-]?time|runtime"
    r"|time(?!\s+(?:axis|step|budget|limit|slot|line|series|complexity))|latency|rate"
    r"|(?:FL)?OP/s|(?:[kMGTP](?:FLOP|B)/s)|FLOPS|TFLOPS|GFLOPS)(?![\w])"
)
_PEAK = (
    r"(?:(?:peak|roof(?:line)?|ceiling)(?!\s+(?:memory|usage|allocation|footprint|number))"
    r"|speed[\s-]of[\s-]light|SOL|line[\s-]rate|data[\s-]sheet|floor)(?![\w])"
)
_ADJECTIVES = (
    r"(?:(?:the|its|our|their|your|that|this|a|an)\s+)?(?:(?!of\b|and\b|or\b|in\b|for\b|session\b|reading\b"
    r"|class\b|lecture\b|teaching\b)[\w'’.-]+\s+){0,3}?"
)
_FASTER = r"(?:faster|slower|quicker|speedier|speed-?\s?ups?|slow-?downs?|sped\s+up)\b"
_BETTER = rf"(?:(?:more|less|higher|lower|better|worse|shorter|longer|greater)\s+{_ADJECTIVES}{_SPEED})"
_AS_FAST = (
    rf"(?:as\s+(?:fast|slow|quick|quickly|slowly)\b|as\s+(?:much|high|low|good|long)\s+{_ADJECTIVES}{_SPEED})"
)
_COMPARED = (
    rf"(?:{_FASTER}|{_BETTER}|{_AS_FAST}|(?:the|its|our|their|that)\s+{_ADJECTIVES}{_SPEED}|{_ADJECTIVES}"
    rf"{_PEAK}|{LIBRARY})"
)
_OF_WHAT = rf"of\s+{_ADJECTIVES}(?:{_PEAK}|{_SPEED}|{LIBRARY})"
_DIM = (
    r"(?![(]|[\s]*[\d{\[\\" + HELD + r"⟨πε]|\s*[A-Za-z](?:[\s·×*²)^/,.]|$))"
)  # not one more factor of a product

FILL = "fill it from a record with {{ … }}, or cite its source in the same sentence with [^key]"
CLAIM = (
    "put it in a `/// claim` whose condition holds it up, or cite its source in the same sentence with [^key]"
)


# The ways to type a performance number, in the order in which they are tried: kind, name, patterns. A "unit" is a
# number with a unit, a "ratio" a number that compares, a "word" a comparison without one.
_RULES = tuple(
    (kind, what, re.compile(pattern))
    for kind, what, *patterns in (
        ("unit", "a typed rate",
         rf"(?:{NUMBER}|{_MANY}){_GAP}(?:{_QUALIFIER}\s+){{0,2}}{RATE}"),
        ("unit", "a typed time",
         rf"(?:{NUMBER}|{_MANY}){_GAP}{TIME}",
         r"(?i:\b(?:about|around|roughly|nearly|almost|only|just|under|over|within|than|takes?|took|costs?)\s+"
             rf"(?:half\s+)?an?\s+{TIME})",
         r"(?<![A-Za-z0-9_.])\d+\.\d+\s*(?:s|secs?|seconds?)\b(?!['’/])",
         r"(?i:\b(?:takes?|took|taking|needs?|needed|costs?|finish(?:es|ed)?\s+in|r[au]ns?\s+in|done\s+in"
             r"|completes?d?\s+in))"
             r"\s+(?:only\s+|about\s+|around\s+|roughly\s+|just\s+|under\s+|over\s+|~|≈)*\d+\s*(?:s|secs?"
             r"|seconds?)\b"),
        ("unit", "a typed latency",
         r"(?<![A-Za-z0-9_.])\d[\d,]{2,}\s+(?:clock\s+)?(?:cycles|clocks)\b"),
        ("unit", "a typed number after its unit",
         rf"\b(?:{RATE}|(?:µs|ms|ns)(?![\w/]))\)?\s*(?:[:=≈~]|is|of)\s*{_DIGITS}"),
        ("ratio", "a typed percentage",
         rf"{NUMBER}\s*(?:%|per\s?cent\b|pct\b)\s*(?:{_FASTER}|{_BETTER}|{_OF_WHAT}|{_ADJECTIVES}{_PEAK}"
             r"|(?:utili[sz]ation|efficiency|efficient|MFU|busy)\b|of\s+(?:what|that\s+of)\b)",
         r"(?i:\b(?:reach(?:es|ed)?|hits?|achieve[sd]?|attain(?:s|ed)?|sustain(?:s|ed)?|delivers?|delivered))\s+"
             rf"(?:only\s+|about\s+|around\s+|roughly\s+|just\s+|nearly\s+|~|≈)*{NUMBER}\s*(?:%|per\s?cent\b)",
         rf"(?i:\bspen[dt]s?\s+){NUMBER}\s*(?:%|per\s?cent\b)\s*of\s+(?:its|the)\s+time\b"),
        ("ratio", "a typed fraction of a peak",
         rf"(?<![A-Za-z0-9_.])0?\.\d+\s+{_OF_WHAT}"),
        ("ratio", "a typed ratio",
         rf"(?<![A-Za-z0-9_.^×])\d+(?:[.,]\d+)*\s*(?:[×✕✖]|x\b)\s*-?\s*(?:{_COMPARED}|(?:in|on|over|than|vs\.?)"
             rf"\s+{_ADJECTIVES}{LIBRARY})",
         rf"(?<![A-Za-z0-9_.^×])\d+\.\d+(?:[×✕✖]|x\b){_DIM}",
         r"(?<![A-Za-z0-9_.^×/])(?<![×x] )\d+(?:[.,]\d+)*\s?(?:×|x\b)(?=\s*(?:[.,;:!?)\]|]|$|(?:over|at|vs|than"
             r"|compared|against|by|when|and|or)\b))",
         rf"(?:{NUMBER}|(?<!how )\b(?:several|many)|\b(?:a\s+)?couple\s+of|\ba\s+few)\s+times\s+(?:{_FASTER}|"
             rf"{_BETTER}|{_AS_FAST}"
             rf"|(?:the|its|our|their|that)\s+(?:of\s+)?{_ADJECTIVES}(?:{_SPEED}|{_PEAK})|{LIBRARY})",
         rf"(?i:\b(?:twice|thrice|double|triple|quadruple|half))\s+(?:again\s+)?(?:{_AS_FAST}|{_FASTER}"
             rf"|(?:of\s+)?(?:(?:the|its|our|their|your|that|this)\s+)(?:of\s+)?{_ADJECTIVES}(?:{_SPEED}|{_PEAK})|"
             rf"(?:of\s+)?{LIBRARY})",
         rf"(?i:\b(?:doubl|tripl|quadrupl|halv)(?:es?|ed|ing))\s+(?:the|its|our|their|your|that)\s+{_ADJECTIVES}"
             rf"{_SPEED}"),
        ("ratio", "a typed fraction",
         rf"(?i:(?:\b(?:an?|{WORD})[\s-]+)?\b{FRACTION})\s+(?:of\s+)?(?:(?:the|its|our|their|that|what)\s+)"
             rf"(?:of\s+)?{_ADJECTIVES}"
             rf"(?:{_SPEED}|{_PEAK}|(?:cuBLAS|cuDNN|SDPA)\b)|(?i:\b{FRACTION}\s+of\s+)(?:{_PEAK}|(?:cuBLAS|cuDNN"
             r"|SDPA|PyTorch)\b)"),
        ("ratio", "a typed ratio",
         r"(?i:\b(?:speed-?\s?ups?|slow-?downs?|faster|slower))\s*(?:of|by|:|=|is)\s+(?:a\s+factor\s+of\s+)?"
             rf"(?:about\s+|around\s+|~|≈)*{NUMBER}"
             rf"|(?i:\bsp(?:eeds?|ed)\s+(?:it\s+|them\s+|this\s+)?up\s+by\s+)(?:a\s+factor\s+of\s+)?{NUMBER}",
         rf"(?:{_DIGITS}|{_WORDS})[\s-]?fold\s+(?:{_FASTER}|{_BETTER}|{_ADJECTIVES}{_SPEED})",
         rf"\b(?:two|three|four|five|six|seven|eight|nine|ten|hundred)fold\s+(?:{_FASTER}|{_BETTER}|"
             rf"{_ADJECTIVES}{_SPEED})",
         rf"(?i:\borders?\s+of\s+magnitude)\s+(?:{_FASTER}|{_BETTER})"),
        ("word", "a typed comparison",
         rf"(?i:\b(?:faster|slower|quicker))\s+than\s+{_ADJECTIVES}{_RIVAL}",
         rf"(?i:\bas\s+(?:fast|slow|quick)\s+as)\s+{_ADJECTIVES}{_RIVAL}",
         # With a capital it is a task and behind "to" a goal; behind a subject it is a claim.
         r"(?:\b(?<!to )beat|(?i:\b(?<!to )(?:beats|outperform(?:s|ed)?|outruns?|outpaces?d?|surpass(?:es|ed)?"
             r"|overtakes?|overtook|trails|trailed)))"
             rf"\s+{_ADJECTIVES}{_RIVAL}",
         r"(?i:\b(?:wins?\s+(?:over|against)|lo(?:ses|st)\s+(?:to|against)|lags?\s+behind|on\s+par\s+with"
             rf"|keeps?\s+up\s+with))\s+{_ADJECTIVES}{_RIVAL}",
         rf"{LIBRARY}\s+(?:is|was|gets|got)\s+(?:\w+\s+)?(?:beaten|outperformed|overtaken|surpassed)\b"),
    )
    for pattern in patterns
)  # fmt: skip
_GUARDED = Guarded(*(pattern for _, _, pattern in _RULES))
# Cheap test that spares most sentences the rules above.
_HINTS = r"""
    half halv third quarter fifth tenth twice thrice doubl tripl quadrupl fold\b magnitude times
    an?\s+(?:nano|micro|milli|[µnm]s) faster slower quicker as\s+(?:fast|slow|quick) beat outp outr surpass overt trail
    par\s+with \bwins?\s \blo(?:ses|st)\s lag keeps?\s+up [½⅓⅔¼¾⅕⅛⅜⅝⅞①-⑳] sixth seventh eighth ninth hundredth dozen
    kwh -digit single average low\s high\s mid\s trebl quintupl every\s+other couple barrier
    [IVXLC]+\s+(?:micro|milli|nano|[µmn]s\b) \bsecond\b teenth leventh twelfth tieth [⁰¹²³⁴-⁹]+/[₀-₉]
"""
_HINT = Guarded(
    *(
        re.compile(hint, re.IGNORECASE)
        for hint in (
            r"\d",
            rf"\b(?:{WORD}|tens|dozens|hundreds|thousands|millions|billions|trillions)\b",
            *_HINTS.split(),
        )
    )
)
_DEFINES = re.compile(
    rf"(?:^|[\s(])(?:1|one|an?)\s*(?:{RATE}|{TIME}|(?:kilo|mega|giga|tera)byte|[kMGT]B)\s*(?:\([^)]*\)\s*)?(?:="
    r"|is|are|equals|means)\s"
    rf"|(?:per|in|to|make)\s+(?:an?|one|1)\s+(?:{TIME}|second)|^\W*(?:an?\s+)?(?:{RATE}|{TIME})\W*(?:\([^)]*\)"
    r"\s*)?(?:=|is|are|means|:)\s",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\?[\"'”’)\]*_\s]*$")
_ANY_NUMBER = re.compile(NUMBER)
_ROUND = re.compile(
    r"(?:an?\s+|one\s+)?(?:thousand|million|billion|trillion)(?:\s+(?:thousand|million|billion|trillion))*\b|"
    r"(?:10*|1[, 0]*|1e\d+|10\^?[\d⁰¹²³⁴-⁹]+|one)(?![\d.,])",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"(?:100|a\s+hundred|one\s+hundred|0|zero)\s*(?:%|per\s?cent)\s+of\s+", re.IGNORECASE)
_SUPPOSED = re.compile(r"\b(?:if|whether|unless|suppose|until|once|when)\b[^,;:]*$", re.IGNORECASE)
_MAYBE = re.compile(r"\b(?:can|could|may|might|must|should|would|to)\s+(?:\w+\s+)?$", re.IGNORECASE)
_NEVER = re.compile(r"\b(?:not|never|cannot)\s+(?:\w+\s+)?$")

_VALUES_OF_WORDS: dict[str, float] = COUNTED | {
    "zero": 0, "hundred": 100, "twice": 2, "double": 2, "doubles": 2, "doubled": 2, "thrice": 3, "triple": 3,
    "triples": 3, "quadruple": 4, "half": 0.5, "halves": 0.5, "halved": 0.5, "third": 1 / 3, "quarter": 0.25,
    "fifth": 0.2, "tenth": 0.1,
}  # fmt: skip

HEADER_UNIT = re.compile(
    rf"(?:^|[\s(,\[/]){RATE}|(?:^|[\s(,\[])(?:µs|us|ms|ns)(?=$|[\s),\]])|%\s*of\s+{_ADJECTIVES}(?:{_PEAK}|"
    rf"{LIBRARY}|{_SPEED})|(?i:speed-?\s?up)|[×x]\s+over\b"
)


# A citation speaks of somebody else's number.
_OURS = re.compile(
    r"\b(?:our|my)\s+(?:own\s+)?(?:[\w-]+\s+){0,3}(?:kernels?|cop(?:y|ies)|versions?|code|implementation|softmax|gemm"
    r"|multiply|transpose|reduction|attention|loops?|ladder|rungs?|card|runs?|measurements?|numbers?)\b|\bours\b"
    r"|\bwe\s+(?:measure|reach|get|run|hit|achieve|see|saw|got|ran|found)\b",
    re.IGNORECASE,
)


def is_excused(sentence: str, cited: bool) -> bool:
    """Return whether a sentence cites the source of its numbers; for ours there is none but a record."""
    return cited and not _OURS.search(sentence)


# --- one sentence ------------------------------------------------------------------------------------


def _amount(words: str) -> float | None:
    """Return the number in a piece of prose, as a factor: 0.25 of "a quarter", 2 of "twice"."""
    whole = 100 if re.search(r"%|per\s?cent", words) else 1
    digits = re.search(r"\d+(?:\.\d+)?", words.replace(",", ""))
    if digits:
        return float(digits[0]) / whole
    counted = (word.removesuffix("fold") for word in re.findall(r"[a-z]+", words.lower()))
    return next((_VALUES_OF_WORDS[word] / whole for word in counted if word in _VALUES_OF_WORDS), None)


_AT_MOST = re.compile(
    r"\b(?:less\s+than|fewer\s+than|under|below|within|at\s+most|up\s+to|(?:no|not)\b[^.;:]*\bmore\s+than"
    r"|(?:not|never|hardly|nowhere)\b[^.;:]*\bas\s+much\s+as|hardly\s+by)\s*(?:\w+\s+)?$",
    re.IGNORECASE,
)


_ABOUT = re.compile(
    r"\b(?:about|around|roughly|nearly|almost|some|close\s+to)\s+(?:[\w.]+\s*){0,2}(?:\W|$)", re.IGNORECASE
)


def _held_up(excerpt: str, condition: str, before: str) -> bool:
    """Return True if a bound of a claim's condition holds up the number that the sentence types, in its direction."""
    amount = _amount(excerpt)
    percent = bool(re.search(r"%|per\s?cent|\bparts?\s+in\b", excerpt))
    if part := re.search(r"(\w+)\s+parts?\s+in\s+(?:an?\s+)?(\w+)", excerpt):
        amount = (_amount(part[1]) or 1.0) / (_amount(part[2]) or 1.0)
    if not amount:
        return False
    at_most, about = bool(_AT_MOST.search(before)), bool(_ABOUT.search(before + excerpt))
    return bounds_of(condition).hold(amount, at_most=at_most, about=about, percent=percent)


@functools.lru_cache(maxsize=65536)  # a page of mentors is read as a page and as a file
def in_sentence(sentence: str, *, in_claim: bool, condition: str | None) -> tuple[tuple[int, str, str], ...]:
    """Place, excerpt and reason of every typed number in one plain sentence."""
    return tuple(_in_sentence(sentence, in_claim, condition))


def _defines(sentence: str, excerpt: str) -> bool:
    """Return whether a sentence says what a unit means, and the excerpt is a round number of it."""
    is_round = all(map(_ROUND.fullmatch, _ANY_NUMBER.findall(excerpt)))
    return is_round and bool(_DEFINES.search(sentence))


def _in_sentence(sentence: str, in_claim: bool, condition: str | None) -> Iterator[tuple[int, str, str]]:
    words = words_in(sentence)
    if not _HINT.found_in(sentence, words):
        return
    asks = "?" in sentence and bool(_ASKS.search(sentence))
    taken: list[tuple[int, int]] = []
    states_nothing: object
    for kind, what, pattern in map(_RULES.__getitem__, _GUARDED.places(words)):
        for match in pattern.finditer(sentence):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            excerpt, before = " ".join(match[0].split()), sentence[: match.start()]
            typed = bool(re.search(r"\d", excerpt))
            if kind == "unit":  # what a unit means is not how fast something is
                states_nothing = _defines(sentence, excerpt)
            elif kind == "ratio":
                held = not typed if condition is None else _held_up(excerpt, condition, before)
                states_nothing = _WHOLE.match(excerpt) or (asks and not typed) or (in_claim and held)
            else:  # held up by the claim's condition, or a question, a case only supposed, a wish, a possibility
                supposed = not typed and (asks or _SUPPOSED.search(before))
                states_nothing = in_claim or supposed or (_MAYBE.search(before) and not _NEVER.search(before))
            if not states_nothing:
                taken.append(match.span())
                yield match.start(), excerpt, f"{what}; {FILL if typed or kind == 'unit' else CLAIM}"
    if asks or taken:
        return
    for match in beside_speed(sentence, words):
        excerpt = " ".join(match[0].split())
        if _defines(sentence, excerpt):
            continue
        held = in_claim and (
            not re.search(r"\d", excerpt)
            if condition is None
            else _held_up(excerpt, condition, sentence[: match.start()])
        )
        if not held:
            yield match.start(), excerpt, f"a typed quantity beside a word of speed; {FILL}"
            return
