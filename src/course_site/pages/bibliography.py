"""The bibliography: one TOML table a source; a page cites it as `[^key]` and its footnote is made from here.

An unknown key fails the page, a key that nothing uses fails the site: what is listed is what was leaned on.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.pages.plain_text import CITE, DEFINITION, without_code

_KEY = re.compile(r"[a-z][a-z0-9-]*")
_FIELDS = frozenset({"title", "authors", "where", "year", "url", "read", "verified", "note", "figures"})


class BibliographyError(ValueError):
    """A bibliography that cannot be used: one line with the file, the key and what to do."""


@dataclass(frozen=True)
class Entry:
    """One source.

    Attributes:
        key: what a page writes between `[^` and `]`.
        where: venue or publisher, may be empty.
        read: the day somebody here read it; None if nobody did.
        verified: False where the text was not read here, and the figures come second-hand (`note` says from where).
        note: what was read of it, or by which way its figures came.
        figures: its numbers that pages lean on, with the sizes that are said beside them.
    """

    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    url: str
    where: str = ""
    read: datetime.date | None = None
    verified: bool = True
    note: str = ""
    figures: tuple[float, ...] = ()


def load(path: Path, today: datetime.date | None = None) -> dict[str, Entry]:
    """Read a bibliography, in the order of the file.

    Args:
        today: nothing was read later, or appeared later; None asks nothing of the kind.

    Raises:
        BibliographyError: not TOML, a key or an address twice, a field missing, unknown or of the wrong kind, a year or
            a day that another part of the same entry contradicts.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except FileNotFoundError:
        raise BibliographyError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise BibliographyError(f"{path}: is not text") from None
    except tomllib.TOMLDecodeError as error:
        raise BibliographyError(f"{path}: not TOML, or a key occurs twice: {error}") from None
    entries: dict[str, Entry] = {}
    addresses: dict[str, str] = {}
    for key, table in tables.items():
        where = f"{path}:{text[: text.find(f'[{key}]')].count(chr(10)) + 1}: {key!r}"
        entry = _entry(where, key, table)
        if entry.url in addresses:
            raise BibliographyError(f"{where} has the address of {addresses[entry.url]!r}: keep one of them")
        if fault := _contradiction(entry, today or datetime.date.max):
            raise BibliographyError(f"{where}: {fault}")
        addresses[entry.url] = key
        entries[key] = entry
    return entries


def _entry(where: str, key: str, table: Any) -> Entry:
    if not _KEY.fullmatch(key):
        raise BibliographyError(f"{where} is not a key: small letters, digits and hyphens, a letter first")
    if not isinstance(table, dict):
        raise BibliographyError(f"{where} must be a table: [{key}]")
    unknown = sorted(set(table) - _FIELDS)
    if unknown:
        raise BibliographyError(
            f"{where} has an unknown field {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}"
        )
    kinds: dict[str, type] = {"title": str, "authors": list, "year": int, "url": str}
    optional: dict[str, type] = {
        "where": str,
        "read": datetime.date,
        "verified": bool,
        "note": str,
        "figures": list,
    }
    for name, kind in (kinds | optional).items():
        if name in kinds and not table.get(name):
            raise BibliographyError(f"{where} lacks {name!r}")
        if name in table and (
            not isinstance(table[name], kind) or isinstance(table[name], bool) != (kind is bool)
        ):
            raise BibliographyError(f"{where}: {name!r} must be a {kind.__name__}, not {table[name]!r}")
    if not all(isinstance(author, str) and author for author in table["authors"]):
        raise BibliographyError(f"{where}: 'authors' must be a list of names")
    if not all(type(figure) in (int, float) for figure in table.get("figures", ())):
        raise BibliographyError(f"{where}: 'figures' must be a list of numbers")
    if not re.match(r"https?://[^\s<>]+$", table["url"]):
        raise BibliographyError(f"{where}: 'url' must be an http address, not {table['url']!r}")
    verified = table.get("verified", True)
    if verified and "read" not in table:
        raise BibliographyError(
            f"{where} lacks 'read', the day it was read; nobody read it: write verified = false"
        )
    if not verified and "read" in table:
        raise BibliographyError(f"{where} says verified = false and yet was read on {table['read']}")
    lists = {"authors": tuple(table["authors"]), "figures": tuple(map(float, table.get("figures", ())))}
    return Entry(key, **{**table, **lists})


_ARXIV = re.compile(
    r"arxiv(?:\.org/(?:abs|pdf|html)/|[:\s]+)(?P<year>\d\d)(?P<month>\d\d)\.(?P<number>\d+)", re.IGNORECASE
)
_IN_ADDRESS = re.compile(
    r"(?<![\w.])(?P<year>(?:19[89]|20[0-3])\d)(?:[-/]?(?P<month>0[1-9]|1[0-2])[-/]?(?P<day>[0-3]\d))?(?!\d)"
)
_DAY = re.compile(
    r"\b(\d{1,2}) (January|February|March|April|May|June|July|August|September|October|November|December) (20\d\d)"
)
_PRINTED_LATER = 2  # years from a preprint to its venue, at most


def _contradiction(entry: Entry, today: datetime.date) -> str:
    """Return what of an entry contradicts its year, or the day on which it was read; "" where all agree."""
    year = f"'year' says {entry.year}"
    named = re.search(r"(?:19|20)\d\d(?=[a-z]?\d?$)", entry.key)
    if named and int(named[0]) != entry.year:
        return f"{year}, and its key {named[0]}"
    found = _ARXIV.search(entry.url) or _ARXIV.search(entry.where)
    appeared = datetime.date(entry.year, 1, 1)
    if found:
        since, month, digits = 2000 + int(found["year"]), int(found["month"]), len(found["number"])
        if not 1 <= month <= 12 or digits != (5 if since >= 2015 else 4):
            return (
                f"there is no arXiv number {found[0].rpartition('/')[2]}: year and month, and then 5 digits"
            )
        appeared = datetime.date(since, month, 1)
        last = since + (0 if "arxiv" in entry.where.casefold() else _PRINTED_LATER)
        if not since <= entry.year <= last:
            return f"{year}, and its arXiv number {appeared:%B %Y}"
    elif dated := _IN_ADDRESS.search(re.sub(r"/(?:blob|tree|commit)/.*", "", entry.url)):
        if int(dated["year"]) != entry.year:
            return f"{year}, and its address {dated['year']}"
        if dated["month"]:
            appeared = datetime.date(entry.year, int(dated["month"]), max(1, min(28, int(dated["day"]))))
    if max(appeared, datetime.date(entry.year, 1, 1)) > today:
        return f"it appears in {max(appeared.year, entry.year)}, which is to come"
    days = [entry.read] if entry.read else []
    for day, month_name, in_year in _DAY.findall(entry.note):
        days.append(datetime.datetime.strptime(f"{day} {month_name} {in_year}", "%d %B %Y").date())
    for read in days:
        if read > today:
            return f"it says {read}, which is a day to come"
    if entry.read and (entry.read < appeared or entry.read.year < entry.year):
        return f"it was read on {entry.read}, before it appeared"
    return ""


def cited_keys(markdown: str) -> list[str]:
    """Keys a text cites, in the order of first use; code is no citation, nor is a footnote the text defines itself."""
    prose = without_code(markdown)
    own = set(DEFINITION.findall(prose))
    return [key for key in dict.fromkeys(CITE.findall(prose)) if key not in own]


def footnotes(keys: Iterable[str], entries: Mapping[str, Entry]) -> str:
    """Markdown footnote definitions for the keys of one page.

    Raises:
        KeyError: a key that the bibliography does not have.
    """
    return "\n".join(f"[^{key}]: {reference(entries[key])}" for key in keys)


OTHERS = "and others"  # the last of a list of authors that was cut


def reference(entry: Entry) -> str:
    """Return one source as a line of Markdown."""
    names = entry.authors
    if len(names) > 4 or names[-1] == OTHERS:
        people = f"{names[0]} et al."
    else:
        people = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    place = f"{entry.where}, {entry.year}" if entry.where else str(entry.year)
    day = f"Read {entry.read.day} {entry.read:%B %Y}" if entry.read else "(read second-hand)"
    note = (
        f"{day}: {entry.note}"
        if entry.note and entry.read
        else " ".join(filter(None, [entry.note and f"{entry.note[0].upper()}{entry.note[1:]}.", day]))
    )
    return f"{people}, [*{_escaped(entry.title)}*]({entry.url}), {place}. {note}{'' if note.endswith(')') else '.'}"


def _escaped(text: str) -> str:
    return re.sub(r"([*_\[\]`])", r"\\\1", text)


def unknown(cited: Iterable[str], entries: Collection[str]) -> list[str]:
    """Keys that are cited and not in the bibliography, sorted."""
    return sorted(set(cited) - set(entries))


def unused(entries: Collection[str], cited: Iterable[str], *, also_used: Collection[str] = ()) -> list[str]:
    """Keys that no page cites; `also_used` are the keys that the table of data sheets names as its source."""
    return sorted(set(entries) - set(cited) - set(also_used))
