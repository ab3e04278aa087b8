"""The labels of charts and tables are those of what is drawn: whose kernel it is, and in what an axis is measured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from course_kernels.measure.derive import ATTRIBUTES
from course_site.lint.speed_words import LIBRARY
from course_site.lint.value_words import (
    is_library,
    neighbours,
    numerator_of,
    other_name,
    other_size,
    upside_down,
)
from course_site.lint.values_in_prose import units_said
from course_site.pages.placeholders import PLACEHOLDER
from course_site.values.claims import NAMED, what_stands_behind
from course_site.values.units import unit_of
from course_site.values.values import ExpressionError, Scope, parse, written_out

_ITEMS = ("bars", "steps", "series", "points", "references")
_OURS = re.compile(r"\b(?:ours|our|k\d\d)\b", re.IGNORECASE)
_SHEET = re.compile(r"\b(?:data[\s-]sheets?'?s?|brochure)\b", re.IGNORECASE)
_BY_HAND = re.compile(
    r"\b(?:by\s+(?:hand|pencil)|on\s+paper|worked\s+out|forecasts?|expected)\b", re.IGNORECASE
)
_PEAK = re.compile(r"\b(?:peaks?|data[\s-]sheets?|roofs?)\b", re.IGNORECASE)
_OF_PEAK = re.compile(r"(?:^|\s)(?:%\s*)?of\s+(?:the\s+)?(?:data\s+sheet's\s+)?peak\b", re.IGNORECASE)
_SPELLED = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12,
}  # fmt: skip
_SHARES = re.compile(r"\.of_(?:peak|compute|bandwidth)$")
_MEASURED = frozenset(ATTRIBUTES) - {
    "floor_us",
    "memory_floor_us",
    "compute_floor_us",
    "intensity",
    "gflop",
    "hbm_gb",
    "hbm_mb",
}


def faults_of_chart(settings: dict[str, Any], scope: Scope) -> Iterator[str]:
    """Yield what is wrong with the labels of a chart, a line each."""
    axis = str(settings.get("x_label" if "bars" in settings else "y_label", ""))
    drawn = [(kind, item) for kind in _ITEMS for item in settings.get(kind, []) if isinstance(item, dict)]
    names = {id(item): _names(item, scope) for _, item in drawn}
    for kind, item in drawn:
        label, mine = str(item.get("label", "")), names[id(item)]
        others = {name for _, other in drawn if other is not item for name in names[id(other)]}
        yield from _of_whom(label, mine, others, scope)
        if kind == "references" and item.get("value") == 100:
            yield from _of_the_end(label, axis)
        elif _SHEET.search(label) and (
            timed := _timed(str(item.get("value") or item.get("name") or ""), scope)
        ):
            yield f"{label!r} is drawn from {timed}, which was measured: a data sheet's number is a given one"
        elif _BY_HAND.search(label) and (
            met := next(filter(None, map(partial(_met, scope=scope), mine)), "")
        ):
            yield f"{label!r} is drawn from {met}, which a run found: what is worked out needs no card"
        text = str(item.get("value") or item.get("name") or "")
        if ".*" not in text and (fault := upside_down(text, axis, scope)):
            yield f"{label!r}, {text}, {fault}"
    if "series" in settings:
        yield from _axes(settings, scope)
        yield from _unspoken_axis(settings)
    yield from _wrong_way(settings)
    yield from _not_drawn(settings, [item for _, item in drawn], scope)
    if ranks := _RANKS.search(_bare(settings.get("title"))):
        yield f"its title ranks ({ranks[0]!r}), and nothing tests a title: say what is drawn, and rank in a claim"


_RANKS = re.compile(
    r"\b(?:beats?|outr[ua]ns?|outperforms?|overtakes?|wins?|won|fastest|quickest|slowest|faster|quicker|slower|ahead|leads"
    r"|catch(?:es)?\s+up|caught\s+up|on\s+par|level\s+with|as\s+(?:fast|good|quick)\s+as|unbeaten|record|champion|first\s+place"
    r"|best\s+(?:of|in|on)|nobody|nothing\s+is)\b",
    re.IGNORECASE,
)
_LESS = r"(?:lower|less|smaller|shorter|fewer|lowest|least|shortest|smallest|down)"
_MORE = r"(?:higher|more|larger|longer|bigger|highest|longest|largest|up|taller)"
_GOOD = r"(?:better|best|faster|quicker|good)"
_DOWN = re.compile(
    rf"\b{_LESS}\b(?:\s+\w+)?\s+(?:is|are|means?)\s+{_GOOD}|\bthe\s+{_LESS}[^.;]{{0,20}}\bthe\s+{_GOOD}",
    re.IGNORECASE,
)
_UP = re.compile(
    rf"\b{_MORE}\b(?:\s+\w+)?\s+(?:is|are|means?)\s+{_GOOD}|\bthe\s+{_MORE}[^.;]{{0,20}}\bthe\s+{_GOOD}",
    re.IGNORECASE,
)
_SPEEDS = re.compile(r"(?:/s\b|FLOPS?\b|%\s+of|\bper\s+second|\bspeed)", re.IGNORECASE)
_COSTS = re.compile(
    r"(?:\btime\b|µs|\bms\b|\bns\b|\bticks?\b|\bcycles\b|\berror\b|\bloss\b|\bseconds\b)", re.IGNORECASE
)
_TEXTS = ("title", "alt", "caption", "x_label", "y_label")


def _unspoken_axis(settings: dict[str, Any]) -> Iterator[str]:
    """Yield an x axis of which neither the alternative text nor the title or the caption has a word."""
    label, alt = str(settings.get("x_label", "")), str(settings.get("alt", ""))
    said = " ".join(_bare(settings.get(key)) for key in ("alt", "title", "caption")).casefold()
    words = re.findall(r"[a-z0-9]{2,}", label.casefold())
    if alt and words and not any(word.rstrip("s") in said for word in words):
        yield f"its x axis says {label!r}, and neither title, caption nor alternative text has a word of that"


def _bare(text: Any) -> str:
    return PLACEHOLDER.sub(" ", str(text or ""))


def _wrong_way(settings: dict[str, Any]) -> Iterator[str]:
    """Yield *lower is better* over a rate or a share of a peak, and *higher is better* over a time."""
    axis = str(settings.get("x_label" if "bars" in settings else "y_label", ""))
    said = " ".join(_bare(settings.get(key)) for key in _TEXTS)
    speeds = bool(_SPEEDS.search(axis))
    if speeds and (found := _DOWN.search(said)):
        yield f"it says {found[0]!r} over {axis!r}, where more is better"
    elif not speeds and _COSTS.search(axis) and (found := _UP.search(said)):
        yield f"it says {found[0]!r} over {axis!r}, where less is better"


def _not_drawn(settings: dict[str, Any], drawn: list[dict[str, Any]], scope: Scope) -> Iterator[str]:
    """Yield a library, or a measured kernel, that the words of a chart compare with, and that is not drawn."""
    if not drawn:
        return
    leaves = [leaf for item in drawn for leaf in _leaves(item, scope)]
    shown = " ".join(
        [*(str(leaf.get("kernel", "")) for leaf in leaves), *(_drawn_words(item, scope) for item in drawn)]
    ).casefold()
    for key in ("title", "alt", "caption"):
        for found in re.finditer(LIBRARY, _bare(settings.get(key))):
            word = found[0].casefold()
            name = next((name for name in sorted(NAMED, key=len, reverse=True) if name in word), "")
            parts = NAMED["the library"] if "librar" in word else NAMED.get(name, (word,))
            if "attention" not in word and not any(part in shown for part in (word, *parts)):
                yield f"its {key} speaks of {found[0]!r}, and no bar, line or reference draws it"
                break
    kernels = {str(leaf["kernel"]) for leaf in leaves if leaf.get("kernel")}
    for found in PLACEHOLDER.finditer(str(settings.get("alt", ""))):
        for name in _resolved(found["expression"], scope):
            kernel = str((scope.resolve(name).leaf or {}).get("kernel", ""))
            if kernels and kernel and kernel not in kernels:
                yield f"its alternative text tells of {name}, and no bar, line or reference draws {kernel}"
                return


def _drawn_words(item: dict[str, Any], scope: Scope) -> str:
    """Return what an item is called and what it draws, without the rate that a data sheet's line is worked out from."""
    texts = [str(item[key]) for key in ("name", "tflops", "value", "intensity") if item.get(key) is not None]
    names = [" ".join(_resolved(text, scope)) if "/" in text else text for text in texts]
    return " ".join([str(item.get("label", "")), str(item.get("note", "")), *names])


def _resolved(text: str, scope: Scope) -> tuple[str, ...]:
    try:
        names = parse(written_out(text, scope)).names
    except ExpressionError:
        return ()
    return tuple(name for name in names if _stem(name) not in _shared(names))


def _shared(names: Iterable[str]) -> set[str]:
    """Return what stands in an expression with its own share of a peak: a rate over that is the data sheet's."""
    return (
        {_SHARES.sub("", name) for name in names if _SHARES.search(name)} if len(tuple(names)) > 1 else set()
    )


def _leaves(item: dict[str, Any], scope: Scope) -> list[dict[str, Any]]:
    """Return what was recorded of all that an item draws, what it is divided by too."""
    text = next((str(item[key]) for key in ("name", "tflops", "value") if item.get(key) is not None), "")
    if "*" in text.split("."):
        try:
            return [leaf for _, leaf in scope.group(text)]
        except ExpressionError:
            return []
    found = []
    for name in _resolved(text, scope) or (() if "/" in text else (text,)):
        for attribute in ("", ".us"):
            try:
                found.append(scope.resolve(name + attribute).leaf or {})
                break
            except ExpressionError:
                continue
    return found


_COUNTED = re.compile(r"\b([a-z]+)\s+(?:bars|points|jobs)\b", re.IGNORECASE)


def faults_of_alt(settings: dict[str, Any], scope: Scope) -> Iterator[str]:
    """Yield what the alternative text of bars, steps or points says and the chart does not draw."""
    items = [item for kind in ("bars", "steps", "points") for item in settings.get(kind, [])]
    alt = str(settings["alt"])
    stems = [(str(item["label"]), {_stem(name) for name in _all_names(item, scope)}) for item in items]
    lines = {_stem(name) for item in settings.get("references", []) for name in _all_names(item, scope)}
    drawn = lines.union(*(found for _, found in stems))
    end = 0
    for match in PLACEHOLDER.finditer(alt) if items else ():
        before, end = alt[end : match.start()].casefold(), match.end()
        shown = {_stem(name) for name in _parts(match["expression"], scope)}
        if (timed := _timed(match["expression"], scope)) and not shown & drawn:
            yield f"its alternative text says {timed}, which it does not draw"
            continue
        mine = {label.casefold() for label, found in stems if found & shown}
        others = [label for label, _ in stems if label.casefold() in before and label.casefold() not in mine]
        if mine and others and not any(label in before for label in mine):
            yield f"its alternative text says {match['expression'].strip()} of {others[0]!r}, which belongs to another"
    said = _COUNTED.search(alt)
    count = _SPELLED.get(said[1].casefold()) if said else None
    if said and count and items and count != len(items):
        yield f"its alternative text says {said[0]!r}, and it draws {len(items)}"


def _all_names(item: dict[str, Any], scope: Scope) -> set[str]:
    texts = [str(item[key]) for key in ("name", "tflops", "value", "intensity") if item.get(key) is not None]
    return {name for text in texts for name in _resolved(text, scope)}


def _parts(text: str, scope: Scope) -> tuple[str, ...]:
    try:
        return parse(written_out(text, scope)).names
    except ExpressionError:  # it is told where it is drawn
        return ()


def _stem(name: str) -> str:
    """Return the recorded name without what is asked of it: `a.b` of `a.b.tflops`."""
    stem, _, last = name.rpartition(".")
    return stem if stem and last in ATTRIBUTES else name


def _names(item: dict[str, Any], scope: Scope) -> list[str]:
    """Return the recorded names that an item draws, without what they are divided by."""
    text = next((str(item[key]) for key in ("name", "tflops", "value") if item.get(key) is not None), "")
    try:
        if "*" in text.split(".") or text.endswith(".*"):
            return [name for name, _ in scope.group(text)]
        return numerator_of(written_out(text, scope))
    except ExpressionError:
        return []  # it is told where it is drawn


def _behind(name: str, scope: Scope) -> str:
    for attribute in ("", ".us"):
        try:
            return what_stands_behind(name + attribute, scope)
        except ExpressionError:
            continue
    return name.casefold()


def _of_whom(label: str, mine: list[str], others: set[str], scope: Scope) -> Iterator[str]:
    """Yield a library's name on a kernel of ours, *ours* on a library's, and one name on another's number."""
    behind = [_behind(name, scope) for name in mine]
    if not behind:
        return
    library = re.search(LIBRARY, label)
    if (
        library
        and not _OURS.search(label)
        and library[0] != "Triton"
        and "attention" not in library[0].casefold()
    ):
        word = library[0].casefold()
        key = next((key for key in sorted(NAMED, key=len, reverse=True) if key in word), "")
        parts = NAMED["the library"] if "librar" in word else NAMED.get(key, (word,))
        if not any(part in of for part in parts for of in behind) and any(
            re.search(r"/k\d\d_", of) for of in behind
        ):
            yield f"{label!r} names {library[0]}, and what is drawn is {mine[0]}, a kernel of ours"
    elif _OURS.search(label) and not library and all(is_library(of.partition(" ")[2]) for of in behind):
        yield f"{label!r} says that it is ours, and what is drawn is {mine[0]}, a library's"
    called = re.sub(r"\W+", "_", re.sub(r"^\W*\d+\s+", "", label.casefold())).strip("_")
    if called in {part for name in others for part in name.split(".")} - {
        part for name in mine for part in name.split(".")
    }:
        yield f"{label!r} is drawn from {mine[0]}, and another bar or line has that name: are two labels exchanged?"


def _of_the_end(label: str, axis: str) -> Iterator[str]:
    """Yield a name for the end of a scale that is not what the scale is a share of."""
    of = re.search(r"%\s+of\s+(?:the\s+)?(.+)", axis)
    if of and not (_PEAK.search(of[1]) and _PEAK.search(label)):
        words = set(re.findall(r"[a-z]{4,}", of[1].casefold()))
        if not words & set(re.findall(r"[a-z]{4,}", label.casefold())):
            yield f"{label!r} is at 100 on a scale in {axis!r}: name what the scale is a share of"


def _timed(text: str, scope: Scope) -> str:
    """Return a measured name in an expression; "" where it is given, or a rate over its own share of the sheet's."""
    try:
        names = parse(written_out(text, scope)).names
    except ExpressionError:
        return ""
    shares = {_SHARES.sub("", name) for name in names if _SHARES.search(name)}
    for name in names:
        leaf = scope.resolve(name).leaf or {}
        stem, _, last = name.rpartition(".")
        if leaf.get("kind") == "measurement" and last in _MEASURED and stem not in shares:
            return name
        if leaf.get("kind") == "samples" and (len(names) == 1 or leaf.get("how") == "timed"):
            return name
    return ""


def _met(name: str, scope: Scope) -> str:
    """Return a name of something that was timed or counted on a card, not worked out; "" of any other."""
    try:
        leaf = scope.resolve(name).leaf or {}
    except ExpressionError:  # a group's own name: its attribute is drawn
        return _met(f"{name}.us", scope) if not name.endswith(".us") else ""
    if leaf.get("kind") == "measurement":
        return name if name.rpartition(".")[2] in _MEASURED else ""
    if leaf.get("kind") == "quantity":
        return name if leaf["how"] in ("timed", "device") else ""
    return name if leaf.get("kind") in ("samples", "counted", "trace") else ""


def _axes(settings: dict[str, Any], scope: Scope) -> Iterator[str]:
    """Yield a unit at an axis of lines that is not the unit of what is drawn along it."""
    x, y = str(settings.get("x", "")), str(settings.get("y", ""))
    label = str(settings.get("y_label", ""))
    drawn = ATTRIBUTES[y][0] if y in ATTRIBUTES else _unit_of_series(settings, scope)
    unit = unit_of(drawn)
    said = [found for found in units_said(label) if found.powers]
    if unit is not None and unit.powers and said and not any(unit.is_said_by(found) for found in said):
        yield f"its y axis says {label!r}, and what is drawn is in {drawn}"
    beside = str(settings.get("x_label", ""))
    letters = set(re.findall(r"(?<![\w.])[A-Z](?![\w])", beside))
    if len(x) == 1 and letters and x not in letters:
        yield f"its x axis says {beside!r}, and what is drawn along it is {x}"
    if len(x) == 1 and any(
        ("s", -1) in found.powers or found.powers == (("s", 1),) for found in units_said(beside)
    ):
        yield f"its x axis says {beside!r}, and what is drawn along it is {x}, a size"


def _unit_of_series(settings: dict[str, Any], scope: Scope) -> str:
    try:
        leaves = [leaf for item in settings["series"] for _, leaf in scope.group(item["name"])]
    except ExpressionError:
        return ""
    units = {str(leaf.get("unit", "")) for leaf in leaves}
    return units.pop() if len(units) == 1 else ""


def faults_of_table(head: list[str], caption: str) -> Iterator[str]:
    """Yield *lower is better* over columns that are all rates or shares, and *higher is better* over times."""
    said = " ".join([*map(_bare, head), _bare(caption)])
    speeds, costs = ([title for title in head[1:] if kind.search(title)] for kind in (_SPEEDS, _COSTS))
    if speeds and not costs and (found := _DOWN.search(said)):
        yield f"it says {found[0]!r} over {speeds[0]!r}, where more is better"
    elif costs and not speeds and (found := _UP.search(said)):
        yield f"it says {found[0]!r} over {costs[0]!r}, where less is better"


def faults_of_row(head: list[str], cells: list[str], scope: Scope) -> Iterator[str]:
    """Yield what is wrong with a row: a share of a library under *of peak*, and a size that is another row's."""
    for title, cell in zip(head, cells, strict=False):
        for expression in re.findall(r"\{\{\s*([^{}:]+?)\s*(?::[^{}]*)?\}\}", cell):
            try:
                text = written_out(expression, scope)
                if fault := upside_down(expression, title, scope):
                    yield f"{{{{ {expression} }}}} {fault}"
                if cell is not cells[0]:
                    for fault in _of_row(cells[0], text, scope):
                        yield f"{{{{ {expression} }}}}: {fault}"
                if _OF_PEAK.search(title) and (rival := _rival(text, scope)):
                    yield f"{{{{ {expression} }}}} is divided by {rival}, and its column says {title!r}"
            except ExpressionError:
                continue
            if cell is not cells[0] and (fault := _other_letter(cells[0], text, scope)):
                yield f"{{{{ {expression} }}}}: {fault}"
            row = re.fullmatch(r"\W*(?:[A-Z]\s*=\s*)?(\d[\d\xa0 ,]*)\W*", cells[0])
            if row and cell is not cells[0]:
                size = int(re.sub(r"\D", "", row[1]))
                for fault in other_size(numerator_of(text), {size}, scope):
                    yield f"{{{{ {expression} }}}}: {fault}"


def _other_letter(head: str, text: str, scope: Scope) -> str:
    """Return that a row of *V = 4* shows what was recorded under v2, where v4 stands beside it; "" of any other."""
    said = re.fullmatch(r"\W*([A-Z])\s*=\s*(\d+)\W*", head)
    for name in numerator_of(text) if said else ():
        parts = name.split(".")
        for at, part in enumerate(parts):
            own = re.fullmatch(rf"{said[1].casefold()}(\d+)", part)  # type: ignore[index]
            right = f"{said[1].casefold()}{said[2]}"  # type: ignore[index]
            if own and part != right and right in neighbours(parts[:at], scope):
                return f"its row says {said[0].strip()}, and {name} is of {part}"  # type: ignore[index]
    return ""


def _of_row(head: str, text: str, scope: Scope) -> Iterator[str]:
    """Yield that a row is called by the name of a neighbour of what it shows."""
    called = re.sub(r"\W+", "_", re.sub(r"^\W*(?:k?\d+\s+)?", "", head.casefold())).strip("_")
    if len(called) < 4 or "{{" in head or called in text:
        return
    if called == "the_library":
        yield from _no_library(text, scope)
        return
    for name in parse(text).names:
        if (scope.resolve(name).leaf or {}).get("kind") == "measurement":
            yield from other_name(name, [called], scope)
            return


def _no_library(text: str, scope: Scope) -> Iterator[str]:
    """Yield a name under *the library* that is not a library's, where a neighbour of it is."""
    for name in parse(text).names:
        parts = name.split(".")
        for at, part in enumerate(parts):
            beside = neighbours(parts[:at], scope)
            theirs = [other for other in beside if any(word in other for word in NAMED["the library"])]
            if part in beside and theirs and part not in theirs and not is_library(_behind(name, scope)):
                yield f"it is called the library, and {name} is not: {theirs[0]} stands beside it"
                return


def _rival(text: str, scope: Scope) -> str:
    """Return a measured name that an expression is divided by; "" where it is a share of a peak."""
    names = parse(text).names
    if any(_SHARES.search(name) for name in names):
        return ""
    below = [name for name in names if name not in numerator_of(text)]
    kinds = {name: (scope.resolve(name).leaf or {}) for name in below}
    return next(
        (
            name
            for name, leaf in kinds.items()
            if leaf.get("kind") == "measurement" and is_library(str(leaf["kernel"]))
        ),
        "",
    )
