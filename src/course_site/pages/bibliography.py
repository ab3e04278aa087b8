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
_FIELDS = frozenset({"title", "authors", "where", "year", "url", "read", "verified", "note"})


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


def load(path: Path) -> dict[str, Entry]:
    """Read a bibliography, in the order of the file.

    Raises:
        BibliographyError: not TOML, a key or an address twice, a field missing, unknown or of the wrong kind.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BibliographyError(f"{path}: there is no such file") from None
    except tomllib.TOMLDecodeError as error:
        raise BibliographyError(f"{path}: not TOML, or a key stands twice: {error}") from None
    entries: dict[str, Entry] = {}
    addresses: dict[str, str] = {}
    for key, table in tables.items():
        entry = _entry(path, key, table)
        if entry.url in addresses:
            raise BibliographyError(
                f"{path}: {key!r} has the address of {addresses[entry.url]!r}: keep one of them"
            )
        addresses[entry.url] = key
        entries[key] = entry
    return entries


def _entry(path: Path, key: str, table: Any) -> Entry:
    where = f"{path}: {key!r}"
    if not _KEY.fullmatch(key):
        raise BibliographyError(f"{where} is no key: small letters, digits and hyphens, a letter first")
    if not isinstance(table, dict):
        raise BibliographyError(f"{where} must be a table: [{key}]")
    unknown = sorted(set(table) - _FIELDS)
    if unknown:
        raise BibliographyError(
            f"{where} has an unknown field {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}"
        )
    kinds: dict[str, type] = {"title": str, "authors": list, "year": int, "url": str}
    optional: dict[str, type] = {"where": str, "read": datetime.date, "verified": bool, "note": str}
    for name, kind in (kinds | optional).items():
        if name in kinds and not table.get(name):
            raise BibliographyError(f"{where} lacks {name!r}")
        if name in table and (
            not isinstance(table[name], kind) or isinstance(table[name], bool) != (kind is bool)
        ):
            raise BibliographyError(f"{where}: {name!r} must be a {kind.__name__}, not {table[name]!r}")
    if not all(isinstance(author, str) and author for author in table["authors"]):
        raise BibliographyError(f"{where}: 'authors' must be a list of names")
    if not re.match(r"https?://[^\s<>]+$", table["url"]):
        raise BibliographyError(f"{where}: 'url' must be an http address, not {table['url']!r}")
    verified = table.get("verified", True)
    if verified and "read" not in table:
        raise BibliographyError(
            f"{where} lacks 'read', the day it was read; nobody read it: write verified = false"
        )
    if not verified and "read" in table:
        raise BibliographyError(f"{where} says verified = false and yet was read on {table['read']}")
    return Entry(key, **{**table, "authors": tuple(table["authors"])})


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
