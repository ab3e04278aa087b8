"""The site's search: every page's text, section by section, as scripts that are loaded when somebody searches.

Scripts, as a page opened from a folder may load one and may fetch nothing. The index names the pages and the parts that
hold their sections: first those of the students' pages, which come when the search is opened, then the others, which
come with the first question. docs/assets/js/search_engine.js looks things up in them; docs/search.toml lists words
that a beginner uses for the page's own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_site.pages.glossary import Term
from course_site.pages.html_reader import HtmlReader

FILE = "search/index.js"
WORDS = Path("docs") / "search.toml"
PART = "search/part{}.js"
PART_BYTES = 250_000  # as much as a page or two: what comes with the first letter on a slow line
_BEFORE = "PercentOfPeak.searchIndex="
_BEFORE_PART = "PercentOfPeak.searchPart("
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
    """A heading and the text under it.

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
    """A page, for the index.

    Attributes:
        rank: how early its sections come: 0 for the students' pages, then the mentors', then the evidence.
    """

    url: str
    title: str
    rank: int
    sections: Sequence[Section] = field(default_factory=list)


def sections(html: str) -> list[Section]:
    """Return the sections of a page's content, those without a word left out."""
    reader = _Reader()
    reader.feed(re.sub(r"<svg\b.*?</svg>", "", html, flags=re.DOTALL))
    reader.close()
    return [found for found in map(_tidy, reader.found) if found.text or found.title]


def _tidy(section: Section) -> Section:
    names = dict.fromkeys(_NAME.findall(section.code))
    return Section(
        section.anchor, " ".join(section.title.split()), " ".join(section.text.split()), " ".join(names)
    )


class _Reader(HtmlReader):
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
        if self.open and self.open[-1][0] == tag:  # as nearly always
            self.open.pop()
        elif any(name.split(".")[0] == tag for name, _ in self.open):
            while self.open.pop()[0].split(".")[0] != tag:
                pass
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
    """Rank of a page, by the place of its source and its head: see `Said`."""
    if uri.startswith("handbook/"):
        return 1
    return int((meta.get("search") or {}).get("rank", 0))


@dataclass(frozen=True)
class Words:
    """Words that the search knows.

    Attributes:
        means: what a reader may call something, in small letters, and what the pages say.
        plain: words that say nothing about what is looked for.
    """

    means: Mapping[str, Sequence[str]]
    plain: Sequence[str]


def scripts(pages: Iterable[Said], words: Words) -> dict[str, str]:
    """Return the index and its parts, by their place in the site.

    The index names its parts in the order in which they count, and says how many of them are the students' own.
    """
    ordered = sorted(pages, key=lambda page: (page.rank, page.url))
    parts: dict[str, str] = {}
    core = 0
    for students in (True, False):
        rows = [
            [number, section.anchor, section.title, section.text, section.code]
            for number, page in enumerate(ordered)
            if (page.rank == 0) is students
            for section in page.sections
        ]
        for part in _parts(rows):
            parts[PART.format(len(parts) + 1)] = f"{_BEFORE_PART}[{','.join(part)}]);\n"
        core = core if not students else len(parts)
    index = {
        "pages": [[page.url, page.title, page.rank] for page in ordered],
        "parts": list(parts),
        "core": core,
        "means": words.means,
        "plain": words.plain,
    }
    return {FILE: f"{_BEFORE}{_json(index)};\n", **parts}


def _parts(rows: Iterable[list[Any]]) -> Iterator[list[str]]:
    """Yield the rows as JSON, in as few parts as PART_BYTES allows."""
    part: list[str] = []
    size = len(_BEFORE_PART) + len("[]);\n")
    room = PART_BYTES - size
    for row in map(_json, rows):
        length = len(row.encode()) + 1
        if part and length > room:
            yield part
            part, room = [], PART_BYTES - size
        part.append(row)
        room -= length
    if part:
        yield part


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def locations(read: Callable[[str], str]) -> Iterator[str]:
    """Yield the places that an index and its parts lead to, relative to the site.

    Args:
        read: gives the text of a file of the site.
    Raises:
        ValueError: it is no index, or a part of it is none; the line names the file.
        OSError: a part is not there.
    """
    index = _inside(FILE, read(FILE), _BEFORE, ";")
    pages = [url for url, *_ in index["pages"]]
    for name in index["parts"]:
        for page, anchor, *_ in _inside(name, read(name), _BEFORE_PART, ");"):
            yield pages[page] + (f"#{anchor}" if anchor else "")


def _inside(name: str, text: str, before: str, behind: str) -> Any:
    try:
        if text.startswith(before):
            return json.loads(text.removeprefix(before).rstrip().removesuffix(behind))
    except ValueError:
        pass
    raise ValueError(f"{name}: is not a search index")


def load_words(root: Path, terms: Iterable[Term] = ()) -> Words:
    """Read docs/search.toml, and for each term of the glossary what it is also called.

    Raises:
        ValueError: one line that names the entry which is not as it should be.
    """
    path = root / WORDS
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from None
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
