"""Two sites of the same pages by two engines, compared: file by file, and by what a reader has of each page."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Which engine it was, and when a page that measures nothing was executed, which each build does.
_ITS_NAME = re.compile(rb'<meta name="generator"[^>]*>')
_ITS_DATE = re.compile(rb'"date": "[^"]*"')
_ARTICLE = re.compile(r"<article\b[^>]*>(.*)</article>", re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
_BREAK = re.compile(r"<wbr ?/?>")
_TAG = re.compile(r"<[^>]+>")


def _bytes(file: Path) -> bytes:
    data = file.read_bytes()
    if file.suffix == ".html":
        return _ITS_NAME.sub(b"", data)
    return _ITS_DATE.sub(b"", data) if file.name == "ledger.json" else data


def _names(site: Path) -> set[str]:
    return {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}


def differing(ours: Path, theirs: Path) -> list[str]:
    """Return a line for each file that only one of two sites has, or that is another in each."""
    mine, others = _names(ours), _names(theirs)
    lines = [f"{name}: only in {ours.name}" for name in mine - others]
    lines += [f"{name}: only in {theirs.name}" for name in others - mine]
    lines += [f"{name}: differs" for name in mine & others if _bytes(ours / name) != _bytes(theirs / name)]
    return sorted(lines)


def _inside(text: str) -> str:
    found = _ARTICLE.search(text)
    return found[1] if found else ""


def _words(text: str) -> list[str]:
    return html.unescape(_TAG.sub(" ", _BREAK.sub("", _UNSEEN.sub("", _inside(text))))).split()


def _all(pattern: str, where: Callable[[str], str] = str) -> Callable[[str], list[str]]:
    found = re.compile(pattern)
    return lambda text: found.findall(where(text))


# What a reader has of a page, by what an engine can leave out of it.
OF_A_PAGE: Mapping[str, Callable[[str], list[str]]] = {
    "title": _all(r"<title>([^<]*)</title>"),
    "words": _words,
    "headings": _all(r'<h\d id="([^"]+)"', _inside),
    "links": _all(r'<a\b[^>]*\bhref="([^"]+)"', _inside),
    "drawings": _all(r"<(svg|img|math)\b", _inside),
    "boxes": _all(r'<(?:div|details|figure|table|section|aside) class="([^"]+)"', _inside),
    "scripts": _all(
        r'<script src="(?:\.{1,2}/)*(assets/js/[^"?]+|handbook/[^"?]+)'
    ),  # the theme's have other names
    "styles": _all(r'<link rel="stylesheet" href="(?:\.{1,2}/)*(assets/css/[^"?]+)'),
    "navigation": _all(r'<a href="(?:\./)?([^"]+)" class="md-(?:nav|tabs)__link'),
    "foot": _all(r'<a href="(?:\./)?([^"]+)" class="md-footer__link'),
    "switch": _all(r'<meta name="(course-[^"]+)"'),
}


@dataclass
class Lack:
    """A thing that another engine leaves out, or adds.

    Attributes:
        pages: where, in order.
        lost, added: how often each piece, over all pages.
    """

    pages: list[str] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        parts = [f"{len(self.pages)} pages, the first {self.pages[0]}"]
        for word, pieces in (("without", self.lost), ("besides", self.added)):
            if pieces:
                some = ", ".join(f"{piece} ({count})" for piece, count in pieces.most_common(3))
                parts.append(f"{word} {some}" + (f" and {len(pieces) - 3} more" if len(pieces) > 3 else ""))
        return "; ".join(parts)


def lacks(ours: Path, theirs: Path, *, but: tuple[str, ...] = ()) -> dict[str, Lack]:
    """Return what the pages of another site have not, or have besides, by what it is; `files` are whole files.

    Args:
        but: folders and files of ours that the other was not asked for.
    """
    found: dict[str, Lack] = {}
    for name in sorted(_names(ours)):
        if name.startswith(but):
            continue
        if not (theirs / name).is_file():
            lack = found.setdefault("files", Lack())
            lack.pages.append(name)
            lack.lost[f"*{Path(name).suffix}"] += 1
        elif name.endswith(".html"):
            texts = [(site / name).read_text(encoding="utf-8") for site in (ours, theirs)]
            for what, read in OF_A_PAGE.items():
                mine, others = (Counter(read(text)) for text in texts)
                if mine != others:
                    lack = found.setdefault(what, Lack())
                    lack.pages.append(name)
                    lack.lost += mine - others
                    lack.added += others - mine
    return found
