"""The glossary: one TOML table a word; pages get hover definitions for the words they use, one page lists them all.

What a thing is called in the kitchen of the course stands there too: one name per thing, and the key to them all.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.pages.plain_text import lowered, without_code

_FIELDS = frozenset(
    {"term", "also", "short", "more", "see", "hover", "kitchen", "picture", "counted", "retired"}
)
# Where a hover definition would be lost or do harm: addresses, math, values, tags, footnote marks, settings.
_WORD = re.compile(r"\w+")
_NO_PROSE = re.compile(
    r"\{\{.*?\}\}|\$\$.*?\$\$|(?<!\\)\$[^$\n]+\$|\]\([^)\n]*\)|https?://\S+|<[^<>\n]+>|\[\^[^\]]+\]",
    re.DOTALL,
)

OFTEN = 3  # once in brackets, and twice in the story a page opens with
_BLANK = re.compile(r"\[\[?=.*?\]?\]")  # what a sheet works out: a formula, no words
_IN_THE_KITCHEN = "In the kitchen:"
_HEADING = "{ #term-"  # opens the anchor of a word on the glossary page


class GlossaryError(ValueError):
    """A glossary that cannot be used: one line with the file, the word and what to do."""


@dataclass(frozen=True)
class Term:
    """One word of the trade.

    Attributes:
        key: its anchor on the glossary page is `term-<key>`.
        term: as it is written.
        also: plurals and other spellings, which get the same definition.
        short: the definition, one or two plain sentences; this is what hovers.
        more: what only the glossary page tells, may be empty.
        see: keys of related words.
        hover: False for a word that is also plain English ("block", "spread"): it stands on the glossary page only.
        kitchen: what it is called in the kitchen, may be empty.
        picture: that in one word, for a thing of the card that the trade has a word for; may be empty.
        counted: the same where the word is plain English, too: it is the picture only behind a number.
        retired: other kitchen words for it, which no page uses.
        at: its place in the file, which goes from the small to the large.
    """

    key: str
    term: str
    short: str
    also: tuple[str, ...] = ()
    more: str = ""
    see: tuple[str, ...] = ()
    hover: bool = True
    kitchen: str = ""
    picture: str = ""
    counted: str = ""
    retired: tuple[str, ...] = ()
    at: int = 0

    @property
    def forms(self) -> tuple[str, ...]:
        """Every spelling a page may use, with the capital of a sentence's first word; longest first."""
        spelled = [self.term, *self.also]
        capitals = [form[0].upper() + form[1:] for form in spelled if re.match(r"[a-z](?:[a-z]|[ -])", form)]
        return tuple(sorted(dict.fromkeys([*spelled, *capitals]), key=lambda form: (-len(form), form)))


def load(path: Path) -> tuple[Term, ...]:
    """Read a glossary, sorted as a reader looks words up.

    Raises:
        GlossaryError: not TOML, a word or a spelling twice, a field missing or unknown, a `see` that leads nowhere.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise GlossaryError(f"{path}: there is no such file") from None
    except tomllib.TOMLDecodeError as error:
        raise GlossaryError(f"{path}: not TOML, or a word occurs twice: {error}") from None
    terms = [_term(path, key, table, at) for at, (key, table) in enumerate(tables.items())]
    owner: dict[str, str] = {}
    for term in terms:
        for form in term.forms:
            if owner.setdefault(form, term.key) != term.key:
                raise GlossaryError(
                    f"{path}: {form!r} is a spelling of both {owner[form]!r} and {term.key!r}"
                )
        for other in term.see:
            if other not in tables:
                raise GlossaryError(f"{path}: {term.key!r} says see {other!r}, and there is no such word")
    return tuple(sorted(terms, key=lambda term: (term.term.lower(), term.key)))


def _term(path: Path, key: str, table: Any, at: int) -> Term:
    where = f"{path}: {key!r}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", key):
        raise GlossaryError(f"{where} is not a key: small letters, digits and hyphens")
    if not isinstance(table, dict):
        raise GlossaryError(f"{where} must be a table: [{key}]")
    unknown = sorted(set(table) - _FIELDS)
    if unknown:
        raise GlossaryError(
            f"{where} has an unknown field {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}"
        )
    for name in ("term", "short"):
        if not isinstance(table.get(name), str) or not table[name].strip():
            raise GlossaryError(f"{where} lacks {name!r}")
    lists: dict[str, tuple[str, ...]] = {}
    for name in ("also", "see", "retired"):
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise GlossaryError(f"{where}: {name!r} must be a list of words, not {value!r}")
        lists[name] = tuple(value)
    for name in ("kitchen", "picture", "counted"):
        if not isinstance(table.get(name, ""), str) or (name in table and not table[name].strip()):
            raise GlossaryError(f"{where}: {name!r} must be its name in the kitchen, not {table[name]!r}")
    for name in ("picture", "counted", "retired"):
        if name in table and "kitchen" not in table:
            raise GlossaryError(f"{where}: {name!r} asks for a name in the kitchen: kitchen = …")
    if not isinstance(table.get("hover", True), bool):
        raise GlossaryError(f"{where}: 'hover' must be true or false, not {table['hover']!r}")
    texts = {
        name: " ".join(table[name].split())
        for name in ("term", "short", "more", "kitchen", "picture", "counted")
        if name in table
    }
    return Term(key, **{**table, **texts, **lists}, at=at)


def abbreviations(markdown: str, terms: Iterable[Term]) -> str:
    """Markdown's own `*[HBM]: …` lines for the words a page uses in its prose, in the order of the glossary.

    Code, math, values, addresses and tags are not prose. Only spellings that occur are listed, as they occur.
    The glossary page itself gets none: there every word is explained in sight.
    """
    if _HEADING in markdown:
        return ""
    prose = _NO_PROSE.sub(" ", without_code(markdown))
    used = set(_WORD.findall(prose))
    lines = []
    for term in terms:
        if term.hover:
            for form in term.forms:
                if used.issuperset(_words_of(form)) and _stands_in(form, prose):
                    lines.append(f"*[{form}]: {_spoken(term.short)}")
    return "\n".join(lines)


@functools.cache
def _words_of(form: str) -> frozenset[str]:
    """Return the whole words that stand in a text where this does."""
    return frozenset(_WORD.findall(form))


def _stands_in(form: str, prose: str) -> bool:
    """Return True where a text has these letters as a word of its own; an expression would try every place for that."""
    at = prose.find(form)
    while at >= 0:
        end = at + len(form)
        if not (_is_of_a_word(prose[at - 1 : at]) or _is_of_a_word(prose[end : end + 1])):
            return True
        at = prose.find(form, at + 1)
    return False


def _is_of_a_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def by_definition(terms: Iterable[Term]) -> dict[str, Term]:
    """Return the words that pages explain, each by its definition as a page has it."""
    return {_spoken(term.short): term for term in terms if term.hover}


def _spoken(text: str) -> str:
    # A hover is plain text: Markdown marks would be read out.
    return re.sub(r"[`*]|(?<!\w)_|_(?!\w)", "", text)


def glossary_markdown(terms: Iterable[Term]) -> str:
    """Return the glossary page's list: a heading with an anchor for each word, its definition and its neighbours."""
    terms = list(terms)
    names = {term.key: term.term for term in terms}
    parts = []
    for term in terms:
        lines = [f"## {term.term} {_HEADING}{term.key} }}", term.short]
        if term.kitchen and _IN_THE_KITCHEN not in term.more:
            lines.append(f"{_IN_THE_KITCHEN} {term.kitchen}.")
        if term.more:
            lines.append(term.more)
        if term.see:
            lines.append("See also: " + ", ".join(f"[{names[key]}](#term-{key})" for key in term.see) + ".")
        parts.append("\n\n".join(lines))
    return '<div class="glossary" markdown="1">\n\n' + "\n\n".join(parts) + "\n\n</div>"


def kitchen_markdown(terms: Iterable[Term]) -> str:
    """Return the kitchen key: a table of every thing that has a name in the kitchen, in the order of the file."""
    rows = [
        f"| {term.kitchen} | {term.term} |"
        for term in sorted(terms, key=lambda term: term.at)
        if term.kitchen
    ]
    return "\n".join(["| in the kitchen | on the card |", "|---|---|", *rows])


def other_names(text: str, terms: Iterable[Term]) -> Iterator[tuple[int, str]]:
    """Retired kitchen words in a file, whatever it is: the line, and what to write instead."""
    low = lowered(text)
    for term in terms:
        # A search without case tries every place; most texts have not even the letters.
        if any(not word.isascii() or word.split()[0].lower() in low for word in term.retired):
            for found in _any_of(term.retired).finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                yield line, f"{found[0]!r}: one name per thing; {term.term} is {term.kitchen}"


def too_kitchen(page: Iterable[str], terms: Iterable[Term]) -> Iterator[str]:
    """Pictures of which a page that speaks the trade has more than `OFTEN`, in the sources of its prose."""
    prose = _prose("\n".join(page))
    for term in terms:
        times = sum(1 for _ in _pictures(term, prose))
        if times > OFTEN:
            yield (
                f"says {term.picture or term.counted!r} {times} times; from here on the words of the trade lead: "
                f"write {term.term}, and the kitchen's word once in brackets"
            )


def without_the_trade(text: str, terms: Iterable[Term]) -> Iterator[str]:
    """Pictures in what is said, drawn or filled in at one go, without the word of the trade beside them."""
    prose = _prose(text)
    for term in terms:
        found = next(_pictures(term, prose), None)
        if found and not re.search(rf"(?<!\w)(?:{'|'.join(map(re.escape, term.forms))})(?!\w)", prose):
            around = " ".join(prose[max(found.start() - 30, 0) : found.end() + 30].split())
            yield (
                f"says {found[0]!r} and not {term.term!r}, in {around!r}; from here on the words of the trade lead, "
                "with the kitchen's word beside them"
            )


def _prose(text: str) -> str:
    return _NO_PROSE.sub(" ", _BLANK.sub(" ", without_code(text)))


def _pictures(term: Term, prose: str) -> Iterator[re.Match[str]]:
    """Yield where a text calls a thing by its picture."""
    if term.picture:
        yield from _any_of((term.picture,)).finditer(prose)
    if term.counted:
        yield from _behind_a_number(term.counted).finditer(prose)


@functools.cache
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    # A word of two may be broken over a line, where a page has a hash before the second. What has a dot beside it is
    # a recorded name.
    spelled = (r"[\s#]+".join(map(re.escape, word.split())) for word in words)
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(spelled)})s?(?![\w-]|\.\w)", re.IGNORECASE)


@functools.cache
def _behind_a_number(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\d+|[Tt]hirty-two)\s+{re.escape(word)}s?(?![\w-]|\.\w)")
