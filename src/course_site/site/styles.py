"""Styles and scripts without what no visitor needs: rules of the theme that match nothing, comments, files that wait.

The theme styles tabs, versions, comments, twelve kinds of admonition, twenty colours and pages that run from right to
left. A rule stays when every class of its selector stands on a page, or is a word of a script, which may set it later,
and every colour that it is for is one that a page may have. So does an icon that some rule asks for by its variable.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import rcssmin
import rjsmin

SHEETS = "assets/stylesheets/*.css"  # the theme's
OUR_SHEETS, OUR_SCRIPTS = "assets/css/*.css", "assets/js/**/*.js"
_CLASSES = re.compile(r'\bclass=(?:"([^"]*)"|([^\s">]+))')
_LISTS = re.compile(r":(?:not|is|where|has)\([^()]*\)")  # any of a list may match, or must not
_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_COLOURS = re.compile(r"\bdata-md-color-\w+=\"([^\"]*)\"")  # of a page, and of what switches it to others
_ASKED = re.compile(r"var\((--[\w-]+)")
_ICON = re.compile(r"(?P<name>--[\w-]+):url\((?:\"[^\"]*\"|'[^']*')\);?")
_COLOUR = re.compile(r"\[data-md-color-\w+=\"?([\w-]+)\"?\]")


def lighten(site: Path, sheets: Sequence[str] = ()) -> None:
    """Write the theme's style sheets anew, with the rules that can match; and what is ours as short as it goes.

    Args:
        sheets: ours that every page asks for, in this order: they become the first of them.
    """
    used: set[str] = set()
    asked: set[str] = set()
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        asked.update(_ASKED.findall(text))
        used.update(name for quoted, bare in _CLASSES.findall(text) for name in (quoted or bare).split())
        used.update(_COLOURS.findall(text))
    for script in site.glob("assets/**/*.js"):
        used.update(re.findall(r"[\w-]+", script.read_text(encoding="utf-8")))
    asked |= used  # a script may ask by any of its words
    kept = {sheet: "".join(_kept(sheet.read_text(encoding="utf-8"), used)) for sheet in site.glob(SHEETS)}
    for text in (*kept.values(), *(file.read_text(encoding="utf-8") for file in site.glob(OUR_SHEETS))):
        asked.update(_ASKED.findall(text))
    for sheet, text in kept.items():
        lighter = _ICON.sub(lambda icon: icon[0] if icon["name"] in asked else "", text)
        sheet.write_text(lighter, encoding="utf-8")
    for pattern, shorter in ((OUR_SHEETS, rcssmin.cssmin), (OUR_SCRIPTS, rjsmin.jsmin)):
        for file in site.glob(pattern):
            file.write_text(str(shorter(file.read_text(encoding="utf-8"))), encoding="utf-8")
    if len(sheets) > 1:
        _join(site, sheets)


def _join(site: Path, sheets: Sequence[str]) -> None:
    """Join the style sheets: a browser draws nothing before the last is there, and asks for six at a time."""
    first, *others = sheets
    links = [rf'<link rel="stylesheet" href="(?P<to>[^"]*){re.escape(first)}">']
    links += [rf'<link rel="stylesheet" href="(?P=to){re.escape(name)}">' for name in others]
    row = re.compile(r"\s*".join(links))
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        joined = row.sub(rf'<link rel="stylesheet" href="\g<to>{first}">', text)
        if joined != text:
            page.write_text(joined, encoding="utf-8")
    (site / first).write_text(
        "".join((site / name).read_text(encoding="utf-8") for name in sheets), encoding="utf-8"
    )
    for name in others:
        (site / name).unlink()


def _kept(text: str, used: Collection[str]) -> Iterator[str]:
    """Yield the rules of a style sheet, or of a block in it, that can match."""
    for head, body in _rules(text):
        if body is None or head.startswith(("@keyframes", "@font-face", "@page", "@-")):
            yield head + ("" if body is None else f"{{{body}}}")
        elif head.startswith("@"):
            inside = "".join(_kept(body, used))
            if inside:
                yield f"{head}{{{inside}}}"
        else:
            selectors = [one for one in re.split(r",(?![^(]*\))", head) if _matches(one, used)]
            if selectors:
                yield f"{','.join(selectors)}{{{body}}}"


def _matches(selector: str, used: Collection[str]) -> bool:
    bare = selector
    while (fewer := _LISTS.sub("", bare)) != bare:
        bare = fewer
    asked = [*_CLASS.findall(bare), *_COLOUR.findall(bare)]
    return "[dir=rtl]" not in bare and all(name in used for name in asked)


def _rules(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each rule as its head and its body; what has no body, such as an @charset, as a head alone."""
    start = at = 0
    while at < len(text):
        at = _past(text, at, ";{")
        if at > len(text):
            break
        if text[at - 1] == ";":
            yield text[start:at], None
        else:
            end = _block(text, at)
            yield text[start : at - 1].strip(), text[at : end - 1]
            at = end
        start = at
    if text[start:].strip():
        yield text[start:], None


def _block(text: str, at: int) -> int:
    """Return the place behind the brace that closes the block which begins here."""
    depth = 1
    while depth:
        at = _past(text, at, "{}")
        if at > len(text):
            raise ValueError("a style sheet has a block that does not end")
        depth += 1 if text[at - 1] == "{" else -1
    return at


def _past(text: str, at: int, marks: str) -> int:
    """Return the place behind the next of the marks outside of quotes and comments; past the end, if there is none."""
    for found in re.compile(
        rf"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|/\*.*?\*/|[{marks}]", re.DOTALL
    ).finditer(text, at):
        if found.group() in marks:
            return found.end()
    return len(text) + 1
