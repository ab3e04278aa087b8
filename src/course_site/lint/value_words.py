"""A value says what the words around it say: whose number it is, what it counts, and how it was come by.

`values_in_prose` holds a value against the unit behind it. Here its names are held against the words of its sentence: a
time that something *took* was measured, a floor is called one, a count of samples counts samples, the better of two is
called the better, a share of cuBLAS is divided by cuBLAS, and the number of a library is not called ours.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_site.lint.speed_words import WORD
from course_site.pages.placeholders import PLACEHOLDER
from course_site.pages.plain_text import sentences, without_code
from course_site.values.claims import NAMED
from course_site.values.shown import units_of_names
from course_site.values.units import ONE, Unit, UnitsDiffer, number_in, unit_of_expression
from course_site.values.values import (
    Expression,
    ExpressionError,
    Resolved,
    Scope,
    evaluate,
    parse,
    written_out,
)

FLOORS = frozenset({"floor_us", "memory_floor_us", "compute_floor_us"})
SHARES = frozenset({"of_peak", "of_compute", "of_bandwidth"})
HOST, SAMPLES = "host_us", "n"
TIMES = frozenset({"us", "ms", "s"})

# --- the words ---------------------------------------------------------------------------------------

_CLOCKED = re.compile(
    r"\b(?:the\s+clock\s+(?:says|shows|reads|said|showed)|measured(?:\s+(?:at|as|it\s+(?:is|takes)))?|timed(?:\s+at)?"
    r"|by\s+the\s+clock)\W*(?:\w+\W+){0,2}$",
    re.IGNORECASE,
)
_TOOK = re.compile(
    r"\b(?:takes?|took|needs?|needed|costs?|r[au]ns?\s+(?:in|for)|finish(?:es|ed)\s+in|is\s+(?:done|over|through)\s+(?:in|after)"
    r"|works?(?:\s+for)?|lasts?|lasted)\W+(?:[\w-]+\W+){0,3}$",
    re.IGNORECASE,
)
_LEAST = re.compile(
    r"\b(?:floors?|least|lowest|at\s+best|roofs?|roofline|peaks?|data\s+sheets?|sheet'?s?|would|could|cannot|can't|limit|bound"
    r"|ideal|forecasts?|by\s+hand|on\s+paper)\b",
    re.IGNORECASE,
)
_OF_THE_HOST = re.compile(
    r"\b(?:host|caller|callers|calls?|calling|CPU|Python|asks?|asking|order|orders|ordering|launch\w*)\b",
    re.IGNORECASE,
)
_SAMPLED = re.compile(
    r"^\W*(?:[\w-]+\W+){0,2}?(?:times|rounds?|runs|walks|samples|readings|measurements|launches|repetitions|repeats|tries"
    r"|timings|calls|medians?)\b",
    re.IGNORECASE,
)
# What no size of a problem counts.
_NO_SIZE = re.compile(
    r"^\W*(?:[a-z-]+\s+){0,1}?(?:registers?|threads?|warps?|lanes?|SMs|multiprocessors|cores|ticks|cycles|launches|stages?"
    r"|instructions|wavefronts|transactions|sectors|bits|barriers?|clusters?|rounds|runs|samples|readings|times)\b",
    re.IGNORECASE,
)
_BEST = re.compile(
    r"\b(?:better|best|most|least|fewest|fullest|emptiest|highest|lowest|largest|smallest|longest|shortest|greatest|fastest"
    r"|slowest|quickest|faster|slower|quicker|worst|worse|ahead|fuller|larger|smaller|longer|shorter|higher|lower|or\s+more"
    r"|or\s+less|between|from|up\s+to|not\s+more|no\s+more|maximum|minimum)\b",
    re.IGNORECASE,
)
_OURS = re.compile(
    r"\b(?:ours|our\s+(?:[\w-]+\s+){0,3}?(?:kernels?|multiply|attention|copy|version|one))\b", re.IGNORECASE
)
_OF_LIBRARY = re.compile(
    r"^\W*(?:[\w.]+\s+)?of\s+(?:the\s+)?(?P<who>[A-Za-z]+)(?P<own>['’]s)?", re.IGNORECASE
)
_SPELLED = {word: number for number, word in enumerate(WORD.split("|"), start=1) if number <= 20} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "hundred": 100,
    "half": 2,
    "halves": 2,
    "twice": 2,
    "both": 2,
    "third": 3,
    "thirds": 3,
    "quarter": 4,
    "quarters": 4,
}


@dataclass(frozen=True)
class Shown:
    """A value of some prose, and the words around it.

    Attributes:
        lead: from the value before it, or from where the sentence begins.
        tail: to the value behind it, or to where the sentence ends.
        sentence: all of its sentence, without the values.
        beside: more words that it stands among: its row, its column's head, its caption.
    """

    expression: str
    lead: str
    tail: str
    sentence: str
    beside: str


def shown_in(text: str, beside: str = "") -> Iterator[Shown]:
    """Yield the values of some Markdown, each with its words; a row of a table has its head beside it."""
    bare, head = without_code(text), ""
    for start, end in sentences(bare):
        said = bare[start:end]
        is_row = said.lstrip().startswith("|")
        head = (head or said) if is_row else ""
        found = list(PLACEHOLDER.finditer(said))
        words = PLACEHOLDER.sub(" ", said)
        places = [0, *(match.end() for match in found)]
        ends = [*(match.start() for match in found[1:]), len(said)]
        for match, begin, last in zip(found, places, ends, strict=False):
            around = f"{beside} {head} {words}" if is_row else beside
            yield Shown(
                match["expression"], said[begin : match.start()], said[match.end() : last], words, around
            )


def faults_of_prose(text: str, scope: Scope, beside: str = "") -> Iterator[str]:
    """Yield what is wrong with the values of some Markdown, each beside its words, a line each.

    Args:
        beside: further words that stand beside every value of it, such as the head of its column.
    """
    if "{{" not in text:
        return
    clocked: dict[tuple[str, bool], float] = {}
    for shown in shown_in(text, beside):
        try:
            value = evaluate(shown.expression, scope).value
            if isinstance(value, str):
                continue
            expression = parse(written_out(shown.expression, scope))
            resolved = [scope.resolve(name) for name in expression.names]
            if fault := _other_precision(expression.names, shown):
                yield f"{{{{ {shown.expression} }}}}: {fault}"
            if isinstance(expression.tree, ast.Name) and _is_plain(resolved[0]):
                continue
            made = Made(expression, resolved, units_of_names(expression, resolved))
            made.unit()
        except (ExpressionError, UnitsDiffer):
            continue  # it is told where the value is filled in
        upside = upside_down(shown.expression, _speeds_of(shown), scope)
        for fault in (
            *_odd_arithmetic(made, shown, text),
            *_other_words(made, shown),
            *_other_sizes(made, shown, scope),
            *_other_names(made, shown, scope),
            *([f"it {upside}"] if upside else ()),
            *_below_one(made, float(value), shown),
        ):
            yield f"{{{{ {shown.expression} }}}}: {fault}"
        yield from _above_the_sheet(made, float(value), shown, scope)
        yield from _below_its_floor(made, float(value), shown, clocked)


def _is_plain(found: Resolved) -> bool:
    """Return whether a value is one number that nobody timed: its words may say anything that its unit allows."""
    leaf = found.leaf or {}
    return (
        leaf.get("kind") == "quantity"
        and leaf["how"] in ("computed", "counted")
        and not found.unit.endswith("s")
    )


@dataclass(frozen=True)
class Made:
    """Parts of a value: its expression with all definitions written out, its names, and their units."""

    expression: Expression
    resolved: list[Resolved]
    units: list[Unit]

    def unit(self, node: ast.expr | None = None) -> Unit:
        """Return the unit of the whole, or of a part."""
        return unit_of_expression(self.expression.tree if node is None else node, self.units)

    def names(self, node: ast.expr | None = None) -> list[str]:
        """Return the names in the whole, or in a part."""
        found = ast.walk(self.expression.tree if node is None else node)
        return [
            self.expression.names[int(part.id[1:])]
            for part in found
            if isinstance(part, ast.Name) and _is_name(part)
        ]

    def unit_of(self, name: str) -> Unit:
        """Return the unit of a name."""
        return self.units[self.expression.names.index(name)]

    def leaf(self, name: str) -> dict[str, object]:
        """Return what was recorded under a name; {} for a number of the data sheet."""
        return self.resolved[self.expression.names.index(name)].leaf or {}

    def kernel_is_library(self, name: str) -> bool:
        """Return whether a name is of a kernel that is none of the course's."""
        return is_library(str(self.leaf(name).get("kernel", "")))

    def found(self, node: ast.expr | None = None) -> list[str]:
        """Return the names in a part that a run found out: no size, no data sheet, nothing counted beforehand."""
        return [name for name in self.names(node) if _is_found(name, self.leaf(name))]


def _is_name(node: ast.Name) -> bool:
    return re.fullmatch(r"v\d+", node.id) is not None


def _is_found(name: str, leaf: dict[str, object]) -> bool:
    last = name.rpartition(".")[2]
    if leaf.get("kind") == "measurement":
        dims = leaf["workload"]["dims"]  # type: ignore[index]
        return (
            last not in dims
            and last not in FLOORS
            and last not in (SAMPLES, "gflop", "hbm_gb", "hbm_mb", "intensity")
        )
    if leaf.get("kind") == "quantity":
        return leaf["how"] in ("timed", "device")
    return leaf.get("kind") in ("samples", "trace") and last != SAMPLES


_SECONDS, _RATES = (("s", 1),), (("s", -1), ("clk", -1))


def _is_time(unit: Unit) -> bool:
    return unit.powers == _SECONDS


def _is_rate(unit: Unit) -> bool:
    powers = dict(unit.powers)
    return any(powers.get(base) == power for base, power in _RATES) and bool({"B", "FLOP"} & powers.keys())


def _is_share(node: ast.expr, made: Made) -> bool:
    """Return whether a part is a measured share, or one measured thing over another of its unit."""
    if not made.found(node) or made.unit(node).powers:
        return False
    parts = _product(node)[1]
    if len(parts) == 1:
        return made.unit(parts[0]) == ONE
    return len(parts) == 2 and made.unit(parts[0]).powers == made.unit(parts[1]).powers != ()


# --- the arithmetic ----------------------------------------------------------------------------------


def _odd_arithmetic(made: Made, shown: Shown, text: str) -> Iterator[str]:
    """Yield factors, sums and choices that bend what was measured."""
    tree = made.expression.tree
    for node, below in _walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            if all(_is_share(part, made) for part in (node.left, node.right)):
                yield "it adds two shares, and nothing has their sum: show each by itself"
        elif (
            isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("max", "min") and made.found(node)
        ):
            alone = node is tree or (
                not below and len(set(map(bool, map(made.kernel_is_library, made.found(node))))) == 2
            )
            if alone and not _BEST.search(f"{shown.sentence} {shown.beside}"):
                yield "it is one of several, and its words do not say which: write *the better of the two*, or name one"
    factors, parts = _product(tree)
    if not factors or not made.found():
        return
    is_share = _is_share(tree, made)
    for factor in factors:
        if _is_power(factor):
            continue
        if (_is_rate(made.unit()) and len(parts) == 1) or is_share:
            yield (
                f"it multiplies a measured {'share' if is_share else 'rate'} by the typed number {factor:g}: show what "
                "was measured"
            )
        elif (
            _is_time(made.unit())
            and len(parts) == 1
            and not _is_said(factor, f"{shown.sentence} {shown.beside}", text)
        ):
            yield (
                f"it multiplies a measured time by {factor:g}, and the words around it do not say that number: say how "
                "often, or show what was measured"
            )


def _walk(node: ast.expr, below: bool = False) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the parts of an expression, and whether each is something that the rest is divided by."""
    yield node, below
    if isinstance(node, ast.BinOp):
        yield from _walk(node.left, below)
        yield from _walk(node.right, below != isinstance(node.op, ast.Div))
    elif isinstance(node, ast.UnaryOp):
        yield from _walk(node.operand, below)
    elif isinstance(node, ast.Call):
        for part in node.args:
            yield from _walk(part, below)


def numerator_of(text: str) -> list[str]:
    """Return the names of an expression that it is not divided by."""
    expression = parse(text)
    above = {part.id for part, below in _walk(expression.tree) if isinstance(part, ast.Name) and not below}
    return [name for i, name in enumerate(expression.names) if f"v{i}" in above]


def _product(node: ast.expr) -> tuple[list[float], list[ast.expr]]:
    """Return the typed numbers of a product or a quotient, and its other parts."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        left, right = _product(node.left), _product(node.right)
        return left[0] + right[0], left[1] + right[1]
    if (number := number_in(node)) is not None:
        return [number], []
    return [], [node]


def _is_power(number: float) -> bool:
    """Return whether a number only changes a unit: a power of ten, or of 1024."""
    for base in (10, 1024):
        value = abs(number) or 1.0
        while value >= base:
            value /= base
        while value < 1:
            value *= base
        if abs(value - 1) < 1e-9:
            return True
    return False


_RAISED = re.compile(r"(\d+)\s*(?:<sup>(\d+)</sup>|\^\{?(\d+)\}?|\*\*(\d+))")
_WORDS = re.compile(r"[A-Za-z]+|\d[\d\s\xa0,]*\d|\d+")


def _is_said(factor: float, sentence: str, text: str) -> bool:
    """Return whether a sentence says a number; a large one may be made of two that stand anywhere in its text."""
    if {factor, 1 / factor} & (said := _numbers_said(sentence)):
        return True
    if 1 / 8 < factor < 8:
        return False
    said |= _numbers_said(text)
    return any(
        abs(product - 1) < 1e-9
        for a in said
        for b in said
        for f in (factor, 1 / factor)
        for product in (f / a, f * a / b, f / a / b)
    )


def _numbers_said(text: str) -> set[float]:
    """Return the numbers of a text, in figures or words: 2<sup>24</sup>, 960, twenty, a quarter."""
    said = {float(int(base) ** int(a or b or c)) for base, a, b, c in _RAISED.findall(text)}
    for word in _WORDS.findall(PLACEHOLDER.sub(" ", text)):
        if word[0].isdigit():
            said.add(float(re.sub(r"\D", "", word)))
        elif (low := word.casefold()) in _SPELLED:
            said.add(float(_SPELLED[low]))
    return said - {0.0}


# --- the words ---------------------------------------------------------------------------------------


def _other_words(made: Made, shown: Shown) -> Iterator[str]:
    """Yield words that are not those of the names."""
    unit, names = made.unit(), made.names()
    lasts = {name.rpartition(".")[2] for name in names if made.leaf(name).get("kind") == "measurement"}
    around = f"{shown.sentence} {shown.beside}"
    if _is_time(unit):
        measured = [name for name in made.found() if name.rpartition(".")[2] not in FLOORS]
        computed = any(made.leaf(n).get("how") == "computed" for n in names)
        if _CLOCKED.search(shown.lead) and (not measured or lasts & FLOORS):
            yield "the words before it say that it was measured, and nobody timed it: show a measured time"
        elif _TOOK.search(shown.lead) and not measured and not computed and not _LEAST.search(around):
            yield "the words before it say what it took, and nobody timed it: show a measured time, or call it a floor"
        if lasts & FLOORS and not _LEAST.search(f"{shown.lead} {shown.tail} {shown.beside}"):
            yield "it is the least possible time, and its words do not say so: call it the floor"
        if HOST in lasts and not _OF_THE_HOST.search(around):
            yield "it is the time of the host, and its sentence does not speak of it: say whose time it is"
        elif HOST in lasts and re.search(r"\bthe\s+clock\s+says\W*$", shown.lead):
            yield "it is the time of the host, and the words before it say what the clock of the card says"
    if len(names) == 1 and (lasts or names[0].endswith(f".{SAMPLES}")):
        (last,) = lasts or {SAMPLES}
        leaf = made.leaf(names[0])
        dims = leaf["workload"]["dims"] if leaf.get("kind") == "measurement" else {}  # type: ignore[index]
        if (
            last == SAMPLES
            and leaf.get("kind") in ("measurement", "samples")
            and not _SAMPLED.match(shown.tail)
        ):
            yield "it counts the samples of a measurement, and the words after it count something else"
        elif last == "host_bound" and not _OF_THE_HOST.search(around):
            yield "it counts the samples in which the card waited for the host, and its sentence does not speak of it"
        elif last in dims and (wrong := _NO_SIZE.match(shown.tail)):  # type: ignore[operator]
            yield f"it is the size {last} of a problem, and the words after it count {wrong[0].strip(' *')!r}"
    yield from _of_whom(made, shown)


def _of_whom(made: Made, shown: Shown) -> Iterator[str]:
    """Yield a share of a library that is divided by something else, and a library's number that is called ours."""
    found = _OF_LIBRARY.match(shown.tail)
    who = found["who"].casefold() if found else ""
    who = who if who in NAMED else f"the {who}"
    tree = made.expression.tree
    if (
        found
        and who in NAMED
        and isinstance(tree, ast.BinOp)
        and isinstance(tree.op, ast.Div)
        and made.found()
    ):
        speeds = [_is_time(made.unit(part)) for part in (tree.left, tree.right)]
        of = tree.left if all(speeds) and not re.match(r"\s*time", shown.tail[found.end() :]) else tree.right
        theirs = made.names(of)
        if theirs and not any(_is_of(name, made, NAMED[who]) for name in theirs):
            yield f"it is divided by {' and '.join(theirs)}, and the words after it say *of {found['who']}*"
    clause = re.split(r"[,;:]|\b(?:and|against)\b", shown.lead)[-1]
    if _OURS.search(clause) and not any(re.search(rf"\b{word}", clause, re.IGNORECASE) for word in LIBRARIES):
        kernels = {str(made.leaf(name).get("kernel", "")) for name in made.found()}
        if kernels and all(is_library(kernel) for kernel in kernels):
            yield f"it is the number of {' and '.join(sorted(kernels))}, and the words before it say *ours*"


# How a head, an axis or the words before a value say that it is a share of somebody's speed.
_SHARE_OF = re.compile(
    r"(?:%|\bshares?|\bper\s?cent(?:age)?|\bparts?|^\W*|\bspeed)\s*\bof\s+(?:the\s+)?(?P<who>[A-Za-z.]+)(?:['’]s)?(?P<what>\s+\w+)?",
    re.IGNORECASE,
)
_OF_TIME = re.compile(r"\s+(?:time|times|clock|wait|bytes|traffic)\b", re.IGNORECASE)


_AS_FAST = re.compile(
    r"^\s*(?:times|×|x)\s+(?:as\s+(?:fast|quick)\s+as|the\s+(?:speed|rate|throughput)\s+of|faster\s+than|quicker\s+than)"
    r"\s+(?:the\s+)?(?P<who>[A-Za-z.]+)",
    re.IGNORECASE,
)


def _speeds_of(shown: Shown) -> str:
    """Return the words around a value that make it a speed over somebody's: a share of it, or so many times."""
    found = _AS_FAST.match(shown.tail)
    return f"speed of {found['who']}" if found else shown.lead


_AS_MUCH = re.compile(r"^\W*times\s+(?:the\s+speed|as\s+(?:fast|quick))\b", re.IGNORECASE)
_PRECISION = re.compile(r"(?<![a-z0-9])(?:bf16|fp16|fp8|tf32|fp32|fp64|fp4)(?![a-z0-9])", re.IGNORECASE)


def _below_one(made: Made, value: float, shown: Shown) -> Iterator[str]:
    """Yield *times the speed* behind a ratio below one: upside down, or a share."""
    if value < 0.95 and _AS_MUCH.match(shown.tail) and len(made.found()) > 1 and made.unit() == ONE:
        yield f"it is {value:.2g}, and the words behind it say *times the speed*: turn it round, or say a share"


def _other_precision(names: Iterable[str], shown: Shown) -> str:
    """Return that a value is of bf16, say, in a sentence that speaks of fp32 alone; "" of any other."""
    own = {word.casefold() for name in names for word in _PRECISION.findall(name.replace("_", "."))}
    said = {word.casefold() for word in _PRECISION.findall(f"{shown.sentence} {shown.beside}")}
    if own and said and not own & said:
        return (
            f"it is of {' and '.join(sorted(own))}, and its sentence speaks of {' and '.join(sorted(said))}"
        )
    return ""


def upside_down(text: str, words: str, scope: Scope) -> str:
    """Return why an expression is not the share of a speed that some words say; "" where it is, or where none do.

    That is the library's time over ours, or our rate over the library's.

    Args:
        text: the expression, as written.
        words: such as *% of cuBLAS*, or the clause before a value.
    """
    found = next(reversed(list(_SHARE_OF.finditer(words))), None) if "of " in words else None
    who = found["who"].casefold().rstrip(".") if found else ""
    who = who if who in NAMED else f"the {who}"
    if found is None or who not in NAMED or _OF_TIME.match(found["what"] or ""):
        return ""
    try:
        expression = parse(written_out(text, scope))
        resolved = [scope.resolve(name) for name in expression.names]
        made = Made(expression, resolved, units_of_names(expression, resolved))
    except (ExpressionError, UnitsDiffer):
        return ""  # told where it is filled in
    above = {part.id for part, below in _walk(expression.tree) if isinstance(part, ast.Name) and not below}
    sides = {name: f"v{i}" in above for i, name in enumerate(expression.names) if name in made.found()}
    theirs = [
        name
        for name in sides
        if any(word in f"{name} {made.leaf(name).get('kernel', '')}".casefold() for word in NAMED[who])
    ]
    theirs = theirs or [name for name in sides if made.kernel_is_library(name)]
    if len({sides[name] for name in theirs}) != 1 or len(set(sides.values())) != 2:
        return ""
    kinds = {_is_time(made.unit_of(name)) for name in sides}
    said = " ".join(words[found.start() : found.end("who")].split())
    if len(kinds) == 1 and sides[theirs[0]] is not kinds.pop():
        return (
            f"is upside down for {said!r}: that is the time of {theirs[0].rpartition('.')[0]} "
            "over the other's, or the other's rate over its"
        )
    return ""


LIBRARIES = (
    "cublas",
    "cudnn",
    "sdpa",
    "pytorch",
    "torch",
    "eager",
    "librar",
    "numpy",
    "flashinfer",
    "compiled?",
)


def is_library(kernel: str) -> bool:
    """Return whether a recorded kernel is a library's, and none of the course's."""
    return not re.search(r"/k\d\d_", kernel) and any(
        re.search(rf"\b{word}", kernel, re.IGNORECASE) for word in LIBRARIES
    )


def _is_of(name: str, made: Made, words: tuple[str, ...]) -> bool:
    said = f"{name} {made.leaf(name).get('kernel', '')}".casefold()
    return any(word in said for word in words) or is_library(str(made.leaf(name).get("kernel", "")))


# --- the sizes ---------------------------------------------------------------------------------------

_SIZED = re.compile(r"([a-z_]+?)(\d+)")


def _other_sizes(made: Made, shown: Shown, scope: Scope) -> Iterator[str]:
    """Yield a size in the words that belongs to a neighbour of what is shown: n12 where n28 is filled in."""
    clause = re.split(r"[,;:]", PLACEHOLDER.sub(" ", shown.lead))[-1]
    said = _figures(clause)
    if not said or {int(size) for name in made.found() for size in re.findall(r"\d+", name)} & _figures(
        shown.sentence
    ):
        return
    yield from other_size(made.found(), said, scope)


def other_size(names: Iterable[str], said: set[int], scope: Scope) -> Iterator[str]:
    """Yield names of a size that is not said, while that of one neighbour is."""
    for name in names:
        parts = name.split(".")
        sized = [(at, own) for at, part in enumerate(parts) if (own := _SIZED.fullmatch(part))]
        if len(sized) != 1 or int(sized[0][1][2]) in said:
            continue
        ((at, own),) = sized
        beside = map(_SIZED.fullmatch, neighbours(parts[:at], scope))
        others = said & {int(one[2]) for one in beside if one and one[1] == own[1]}
        if len(others) == 1:
            yield f"the words before it say {min(others)}, and {name} is of {own[2]}"


def _other_names(made: Made, shown: Shown, scope: Scope) -> Iterator[str]:
    """Yield a name right before a value that is a neighbour's: *tiled* before the number of the naive kernel."""
    found = made.found()
    if len(found) != 1:
        return
    clause = re.split(
        r"[,;:.|(]|\b(?:and|or|to|than|from|over|of|against)\b", PLACEHOLDER.sub(" ", shown.lead)
    )[-1]
    words = re.findall(r"[a-z]+", clause.casefold())
    yield from other_name(found[0], ["_".join(words[-n:]) for n in (3, 2, 1) if len(words) >= n], scope)


def other_name(name: str, called: Iterable[str], scope: Scope) -> Iterator[str]:
    """Yield that something is called by the name of a neighbour in the same group, and not by its own."""
    parts, words = name.split("."), [word for word in called if len(word) > 3]
    if any(part and (part == word or part.startswith(word)) for part in parts for word in words):
        return
    for word in words:
        for at in range(len(parts)):
            if word not in neighbours(parts[:at], scope):
                continue
            try:
                other = scope.resolve(".".join([*parts[:at], word, *parts[at + 1 :]]))
            except ExpressionError:
                continue
            if other.unit == scope.resolve(name).unit:
                called_so = word.replace("_", " ")
                yield f"it is called {called_so!r}, and {name} is another of its group: take {word}'s, or name it"
                return


def _figures(text: str) -> set[int]:
    return {int(re.sub(r"\D", "", number)) for number in re.findall(r"(?<![\w.])\d[\d\xa0,]*(?!\w)", text)}


def neighbours(parts: list[str], scope: Scope) -> list[str]:
    """Return the names that a group of a record has, of this page or of another."""
    names: object = scope.names
    if parts and parts[0] not in scope.names and (other := scope.others(parts[0])) is not None:
        names, parts = other.names, parts[1:]
    for part in parts:
        names = names.get(part, {}) if isinstance(names, dict) else {}
    return list(names) if isinstance(names, dict) else []


# --- the limits --------------------------------------------------------------------------------------


def _above_the_sheet(made: Made, value: float, shown: Shown, scope: Scope) -> Iterator[str]:
    """Yield a printed rate above its card's data sheet that no recorded rate in it has."""
    unit = made.unit()
    # On the page of several cards no sheet is the one.
    if scope.machine is None or scope.beside is not None or not _is_rate(unit) or not made.found():
        return
    if dict(unit.powers) == {"B": 1, "s": -1}:
        limit = scope.machine.bandwidth_gb_per_s * 1e9
    elif dict(unit.powers) == {"FLOP": 1, "s": -1}:
        limit = max(scope.machine.peak_tflops.values()) * 1e12
    else:
        return
    known = [
        float(found.value) * its.size
        for found, its in zip(made.resolved, made.units, strict=True)
        if its.powers == unit.powers and not isinstance(found.value, str)
    ]
    printed = value * unit.size
    if printed > limit * 1.001 and printed > max(known, default=0.0) * 1.001:
        yield (
            f"{{{{ {shown.expression} }}}}: it prints {value:.4g} {unit}, above the {limit / unit.size:.4g} {unit} of "
            f"the data sheet of the {scope.machine.name}"
        )


def _below_its_floor(
    made: Made, value: float, shown: Shown, floors: dict[tuple[str, bool], float]
) -> Iterator[str]:
    """Yield a time that something took and that is below the floor of the same sentence."""
    unit = made.unit()
    if not _is_time(unit):
        return
    seconds = value * unit.size
    if re.search(r"\bfloors?\b[^.;]{0,30}$", shown.lead, re.IGNORECASE):
        floors[shown.sentence, True] = seconds
    elif _CLOCKED.search(shown.lead) or _TOOK.search(shown.lead):
        least = floors.get((shown.sentence, True))
        if least is not None and seconds < least * 0.999:
            yield f"{{{{ {shown.expression} }}}}: it is below the floor that its sentence names"
