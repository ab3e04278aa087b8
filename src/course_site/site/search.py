"""The site's search: what every page says, section by section, as one script that is loaded when somebody searches.

A script, as a page opened from a folder may load one and may fetch nothing. What looks things up in it is
docs/assets/js/search_engine.js; words that a beginner uses for the page's own stand in docs/search.toml.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from course_site.pages.glossary import Term

FILE = "search/index.js"
WORDS = Path("docs") / "search.toml"
_BEFORE = "PercentOfPeak.searchIndex="
_HEADINGS = {"h1", "h2", "h3", "h4"}
# What is no sentence of the page, or stands elsewhere in full: drawings, formulas, a chart's numbers once more, the
# ledger's rows, figures in a table, where the page stands and where it was measured, questions about other pages,
# changes in a file.
_SKIPPED_TAGS = {"form", "math", "script", "style", "svg", "template"}
_SKIPPED = {
    "asked", "data", "diff", "footnote", "footnote-ref", "headerlink", "ledger", "minutes",
    "num", "origin", "road", "stamp",
}  # fmt: skip
_VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
# Inside a sentence; every other element ends one.
_INLINE = {
    "a", "abbr", "b", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "small", "span", "strong", "sub",
    "sup", "u", "wbr",
}  # fmt: skip
# A name that somebody may look for: with a mark in it, with a capital or a digit inside, or called.
_NAME = re.compile(r"\b(?=\w*[_.][A-Za-z]|\w+[A-Z0-9]|\w+\()[A-Za-z_]\w+(?:\.\w{2,})*")


@dataclass
class Section:
    """What stands under one heading.

    Attributes:
        anchor: of its heading, "" for a page that begins without one.
        code: the names in its listings, each once.
    """

    anchor: str = ""
    title: str = ""
    text: str = ""
    code: str = ""


@dataclass
class Said:
    """One page, for the index.

    Attributes:
        rank: how early its sections come: 0 for the students' pages, then the mentors', then the evidence.
    """

    url: str
    title: str
    rank: int
    sections: Sequence[Section] = field(default_factory=list)


def sections(html: str) -> list[Section]:
    """The sections of a page's content, those without a word left out."""
    reader = _Reader()
    reader.feed(re.sub(r"<svg\b.*?</svg>", "", html, flags=re.DOTALL))
    reader.close()
    return [found for found in map(_tidy, reader.found) if found.text or found.title]


def _tidy(section: Section) -> Section:
    names = dict.fromkeys(_NAME.findall(section.code))
    return Section(
        section.anchor, " ".join(section.title.split()), " ".join(section.text.split()), " ".join(names)
    )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = [Section()]
        self.open: list[tuple[str, bool]] = []  # every open element, and whether it is skipped
        self.into = "text"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = set((given.get("class") or "").split())
        if tag not in _INLINE:
            self._end()
        if tag in _VOID:
            return
        skipped = self._skips() or tag in _SKIPPED_TAGS or bool(classes & _SKIPPED)
        # The handle of a section beyond the core says how long it takes; that of any other fold is part of its text.
        skipped |= tag == "summary" and self.open[-1:] == [("details.beyond", False)]
        name = "details.beyond" if tag == "details" and "beyond" in classes else tag
        self.open.append((name, skipped or "data-search-exclude" in given))
        if tag in _HEADINGS and given.get("id") and not self._skips():
            self.found.append(Section(anchor=given["id"] or ""))
            self.into = "title"
        elif tag == "pre":
            self.into = "code"

    def handle_endtag(self, tag: str) -> None:
        while any(name.split(".")[0] == tag for name, _ in self.open):
            if self.open.pop()[0].split(".")[0] == tag:
                break
        if tag in _HEADINGS or tag == "pre":
            self.into = "text"
        if tag not in _INLINE:
            self._end()

    def handle_data(self, data: str) -> None:
        if not self._skips():
            section = self.found[-1]
            setattr(section, self.into, getattr(section, self.into) + data)

    def _skips(self) -> bool:
        return bool(self.open) and self.open[-1][1]

    def _end(self) -> None:
        section = self.found[-1]
        setattr(section, self.into, getattr(section, self.into) + " ")


def rank(uri: str, meta: Mapping[str, Any]) -> int:
    """How early a page comes, by the place of its source and its head: see `Said`."""
    if uri.startswith("handbook/"):
        return 1
    return int((meta.get("search") or {}).get("rank", 0))


@dataclass(frozen=True)
class Words:
    """What the search knows of words.

    Attributes:
        means: what a reader may call something, in small letters, and what the pages say.
        plain: words that say nothing about what is looked for.
    """

    means: Mapping[str, Sequence[str]]
    plain: Sequence[str]


def script(pages: Iterable[Said], words: Words) -> str:
    """The index as a script."""
    index: dict[str, Any] = {"pages": [], "sections": [], "means": words.means, "plain": words.plain}
    for number, page in enumerate(sorted(pages, key=lambda page: (page.rank, page.url))):
        index["pages"].append([page.url, page.title, page.rank])
        for section in page.sections:
            index["sections"].append([number, section.anchor, section.title, section.text, section.code])
    return _BEFORE + json.dumps(index, ensure_ascii=False, separators=(",", ":")) + ";\n"


def locations(text: str) -> list[str]:
    """All that an index leads to, relative to the site.

    Raises:
        ValueError: it is no index.
    """
    if not text.startswith(_BEFORE):
        raise ValueError("is no search index")
    index = json.loads(text.removeprefix(_BEFORE).rstrip().removesuffix(";"))
    pages = [url for url, *_ in index["pages"]]
    return [pages[page] + (f"#{anchor}" if anchor else "") for page, anchor, *_ in index["sections"]]


def load_words(root: Path, terms: Iterable[Term] = ()) -> Words:
    """What docs/search.toml says, and for each term of the glossary what it is also called.

    Raises:
        ValueError: one line that names the entry which is not as it should be.
    """
    path = root / WORDS
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is no TOML: {error}") from None
    for key in found.keys() - {"plain", "means"}:
        raise ValueError(f"{key!r} is not known here: write `plain` or `means`")
    plain, means = found.get("plain", []), found.get("means", {})
    if not _texts(plain):
        raise ValueError("`plain` must be a list of words")
    for said, stands in means.items():
        if not _texts(stands) or not stands:
            raise ValueError(f'`{said}` must be a list of what the pages say, such as ["out of memory"]')
        if said != said.lower():
            raise ValueError(f"`{said}`: write it in small letters, as it is looked up")
    other: dict[str, list[str]] = {}
    for term in terms:
        for also in term.also:
            if not also.lower().startswith(term.term.lower()):  # plurals find their word by themselves
                other.setdefault(also.lower(), []).append(term.term)
    return Words({**other, **means}, plain)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)
