"""The words of a claim: a sentence that ranks needs an inequality that ranks, between the two that it names.

A condition `ours > 0.95 * library` holds, and the verb *beats* over it is not so. So of every sentence with a word of
ranking and the name of a library in it, the condition must say as much: *beats* and *ahead of* at least 1 on the right
side, *loses* at most 1, *level* and *on par* a bound on both sides. What is named must be in the condition. And no
condition holds for every card, for every size, for ever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from course_site.lint.speed_words import LIBRARY
from course_site.pages.placeholders import PLACEHOLDER
from course_site.pages.plain_text import sentences
from course_site.values.claim_bounds import least_of, ranks_nothing
from course_site.values.claims import NAMED, TIMES, kernels_of, what_stands_behind
from course_site.values.values import Scope, parse, written_out

AHEAD, BEHIND, LEVEL = "ahead", "behind", "level"
_RANKS = {
    LEVEL: (
        r"(?:is|are|stands?|draws?|comes?)?\s*\**\b(?:level|on\s+par|(?<!times\s)as\s+(?:fast|quick|slow)\s+as"
        r"|neck\s+and\s+neck|keeps?\s+(?:up|pace)\s+with|close\s+to|the\s+same\s+(?:speed|time)\s+as|matches)\b"
    ),
    AHEAD: (
        r"\b(?:beats?|outr[ua]ns?|outperforms?|outpaces?|overtakes?|surpass(?:es)?|(?:faster|quicker|sooner)\s+than"
        r"|ahead|in\s+front|wins?|won|dethrones?|leads)\b"
    ),
    BEHIND: (
        r"\b(?:slower\s+than|loses?|lost|trails?|lags?|is\s+behind|are\s+behind|stays?\s+behind|falls?\s+behind)\b"
    ),
}
_RANK = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _RANKS.items()), re.IGNORECASE)
_BARE = re.compile(r"\b(?:fast|slow|quick)(?:er|est)\b(?!\s+than)", re.IGNORECASE)
_SUBJECT = re.compile(
    r"\b(?P<who>[a-z]+)(?:\s+(?:one|kernel|version|copy))?\s+(?:is|are|was|were|runs|comes\s+out)\s+(?:the\s+|\w+\s+the\s+)?$",
    re.IGNORECASE,
)
# A kernel of ours may be called by what it is written in.
_OURS = r"\b(?:Triton|CUDA(?=\s+(?:kernel|version|one)\b)|WMMA|wgmma)\b"
_NAME = re.compile(rf"{LIBRARY}|{_OURS}", re.IGNORECASE)
_ITSELF = re.compile(
    r"\b(?:we|us|ours|it|this|our\s+(?:[\w-]+\s+){0,3}[\w-]+|(?:this|the)\s+(?:[\w-]+\s+){0,2}kernels?)\W*$",
    re.IGNORECASE,
)
_AGAINST = re.compile(r"\b(?:against|beside|with|to|than|of|like)\s+(?:[\w'’-]+\s+){0,3}$", re.IGNORECASE)
_EVERY_CARD = re.compile(
    r"\b(?:no|any|every|each|all)\s+(?:other\s+|the\s+)?(?:cards?|GPUs?|machines?|chips?)\b", re.IGNORECASE
)
_EVER = re.compile(
    r"\b(?:never|always|ever\b|(?:at|for|in|on)\s+(?:no|any|every|all)\b|(?:no|any|every|all)\s+(?:\w+\s+)?"
    r"(?:sizes?|shapes?|lengths?|kernels?|librar(?:y|ies)|formats?|types?)\b)",
    re.IGNORECASE,
)
_GUESSED = re.compile(
    r"\b(?:we\s+expect|do\s+we\s+expect|likely|perhaps|probably|may|might|we\s+think|guess)\b", re.IGNORECASE
)
_PROVEN = re.compile(
    r"\b(?:(?:this|that|which|it|here|page|run|table|chart)\s+proves|(?:is|are|was)\s+(?:thereby\s+|hereby\s+|thus\s+)?(?:proven|proved)"
    r"|is\s+the\s+proof|beyond\s+doubt|without\s+(?:a\s+)?doubt|for\s+certain)\b",
    re.IGNORECASE,
)
_UNNAMED = "and no name of its condition does: name it there, or say it outside"
LEAST_LEVEL = 0.8  # of one speed over the other
SLACK = 0.999


def faults_of(text: str, condition: str, scope: Scope) -> Iterator[str]:
    """Yield what a claim says in words and not in its condition, a line each.

    Args:
        text: prose of its body, with its values still to be filled in.
        condition: as written; what pages define is written out here.
    """
    condition = written_out(condition, scope)
    for start, end in sentences(text):
        said = PLACEHOLDER.sub(" ", text[start:end]).replace("`", "")
        yield from _too_wide(said)
        found = _RANK.search(said)
        names = list(_NAME.finditer(said))
        if not found:
            yield from _bare_ranking(said, names, condition, scope)
            continue
        if other := _other_kernel(said, condition, scope):
            yield f"{_quoted(said)}: speaks of {other!r}, {_UNNAMED}"
            continue
        if not names:
            continue
        if _EVER.search(said):
            yield f"{_quoted(said)}: *{_EVER.search(said)[0]}* is more than one run can test: say what was compared"  # type: ignore[index]
            continue
        if ranks_nothing(condition):
            yield f"{_quoted(said)}: of an `or` either part may be false, so it ranks nothing: make two claims of it"
            continue
        missing = [name[0] for name in names if not _theirs(name[0], condition, scope)]
        if missing:
            yield f"{_quoted(said)}: speaks of {missing[0]!r}, {_UNNAMED}"
            continue
        yield from _not_ranked(said, found, names, condition, scope)


def _bare_ranking(said: str, names: list[re.Match[str]], condition: str, scope: Scope) -> Iterator[str]:
    """Yield *the fastest*, *the slower one*, *slower still* of somebody whom the condition does not rank so."""
    found = _BARE.search(said)
    if not found or _GUESSED.search(said):
        return
    if other := _other_kernel(said, condition, scope):
        yield f"{_quoted(said)}: speaks of {other!r}, {_UNNAMED}"
        return
    for name in names:
        if name.end() <= found.start() and not _theirs(name[0], condition, scope):
            yield f"{_quoted(said)}: speaks of {name[0]!r}, {_UNNAMED}"
            return
    subject = _SUBJECT.search(said[: found.start()])
    who = subject["who"].casefold() if subject else ""
    mine = {name for name in parse(condition).names if who in name.casefold().split(".")}
    if not mine or ranks_nothing(condition):
        return
    bounds = list(_of_us(condition, mine, scope))
    low, high = max((a for a, _ in bounds), default=0.0), min((b for _, b in bounds), default=math.inf)
    is_fast = found[0].casefold().startswith(("fast", "quick"))
    if bounds and not (high * SLACK <= 1 if is_fast else low >= SLACK):
        yield f"{_quoted(said)}: *{found[0]}* is said of {who!r}, and its condition does not rank it so"


def _other_kernel(said: str, condition: str, scope: Scope) -> str:
    """Return a kernel of the page that a ranking names, and its condition does not; "" without one."""
    behind = " ".join(what_stands_behind(name, scope) for name in parse(condition).names)
    words = re.findall(r"\b([a-z]+)\s+(?:one|ones|kernels?|version)\b", said.casefold())
    return next((word for word in words if word in kernels_of(scope) and word not in behind), "")


def _too_wide(said: str) -> Iterator[str]:
    if (found := _EVERY_CARD.search(said)) and not _GUESSED.search(said):
        yield f"{_quoted(said)}: *{found[0]}* is more than one card can test: leave it out, or say that you expect it"
    if found := _PROVEN.search(said):
        yield f"{_quoted(said)}: *{found[0]}*: a condition shows numbers, and proves no cause: say *likely*"


def _not_ranked(
    said: str, found: re.Match[str], names: list[re.Match[str]], condition: str, scope: Scope
) -> Iterator[str]:
    """Yield a ranking that no bound of the condition holds up."""
    kind = str(found.lastgroup)
    libraries = [name for name in names if not re.fullmatch(_OURS, name[0], re.IGNORECASE)]
    behind = [name for name in libraries if found.end() <= name.start() <= found.end() + 45]
    before = [name for name in libraries if name.end() <= found.start()]
    who = behind[0] if behind else before[-1] if before else libraries[0] if libraries else names[-1]
    is_subject = (
        not behind
        and bool(before)
        and not _ITSELF.search(said[: found.start()].rstrip(" *"))
        and not _AGAINST.search(said[: who.start()])
    )
    theirs = _theirs(who[0], condition, scope)
    bounds = list(_of_us(condition, theirs, scope))
    low, high = max((a for a, _ in bounds), default=0.0), min((b for _, b in bounds), default=math.inf)
    if kind == LEVEL:
        right = (low >= LEAST_LEVEL * SLACK and high * SLACK <= 1 / LEAST_LEVEL) or _is_near(
            condition, theirs
        )
        wants = f"a bound on both sides, from {LEAST_LEVEL:g} to {1 / LEAST_LEVEL:g} at most"
    elif (kind == AHEAD) != is_subject:
        right, wants = low >= SLACK, f"that we have at least 1 times the speed of {who[0]}"
    else:
        right, wants = high * SLACK <= 1, f"that we have at most 1 times the speed of {who[0]}"
    if not right:
        yield f"{_quoted(said)}: *{found[0].strip(' *')}* needs a plain inequality in its condition that says {wants}"


def _of_us(condition: str, theirs: set[str], scope: Scope) -> Iterator[tuple[float, float]]:
    """Yield the least and the most of our speed over theirs, of every comparison that has a number of theirs in it."""
    for ratio, bound in least_of(condition).items():
        for part, power in ratio:
            names = parse(part).names
            if theirs & set(names) and (len(ratio) > 1 or _is_ratio(part)):
                # Their time above ours, or our speed above theirs.
                ours_over = (power > 0) == all(_is_time(name, scope) for name in names)
                yield (bound, math.inf) if ours_over else (0.0, 1 / bound if bound else math.inf)


def _is_ratio(part: str) -> bool:
    return "/" in part


def _is_time(name: str, scope: Scope) -> bool:
    unit = scope.resolve(name).unit
    return name.rsplit(".", 1)[-1] in TIMES or unit in ("s", "ms", "µs", "ns")


def _is_near(condition: str, theirs: set[str]) -> bool:
    """Return whether the condition says by `abs(a / b - 1) < x` that something is near what is theirs."""
    return any(
        theirs & set(parse(found).names)
        for found in re.findall(r"abs\((.+?)\s-\s1\)\s*<=?\s*0?\.[01]", condition)
    )


def _theirs(word: str, condition: str, scope: Scope) -> set[str]:
    """Return the names of a condition that are of what a word names."""
    said = word.casefold()
    names = parse(condition).names
    if said == "cuda":
        told = {name: what_stands_behind(name, scope) for name in names}
        return {
            name for name, of in told.items() if re.search(r"/k\d\d_|ours|cuda", of) and "triton" not in of
        }
    key = next((key for key in sorted(NAMED, key=len, reverse=True) if key in said), "")
    library = re.search(r"librar|vendor|nvidia", said) is not None
    parts = NAMED["the library"] if library else NAMED[key] if key else (said,)
    return {name for name in names if any(part in what_stands_behind(name, scope) for part in parts)}


def _quoted(said: str) -> str:
    words = " ".join(said.split())
    return repr(words if len(words) <= 70 else f"{words[:67]}…")


def faults_of_otherwise(text: str) -> Iterator[str]:
    """Yield a ranking in what is said where a condition is false: there is nothing that holds it up."""
    for start, end in sentences(text):
        said = PLACEHOLDER.sub(" ", text[start:end]).replace("`", "")
        found = _RANK.search(said)
        if found and _NAME.search(said):
            yield f"{_quoted(said)}: *{found[0].strip(' *')}* appears where its condition is false: say what was found"
