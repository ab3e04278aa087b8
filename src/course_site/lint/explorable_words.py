"""The words of an explorable are those of its cases, and its data come from where they say.

What a script works out is tested against its twin. What a page gives it is not: sentences for its cases, names of
records for its data, and an alternative text of the state that it begins with. So each case has words of its own, each
of its data has a piece of the recorded name, and a number in the alternative text is one that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.(?:\w+|\*))+|[A-Za-z_]\w*")
_PARTS = re.compile(r"[a-z]+|\d+")
_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?")
_SPELLED = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    )
}
_FEW = 3  # so many, in words, are counted in a picture without being shown


def faults_of_cases(
    cases: Iterable[Mapping[str, tuple[str, ...]]], texts: Mapping[str, str]
) -> Iterator[str]:
    """Yield texts that are not those of their case: what tells it is missing, or it has what tells another one."""
    for group in cases:
        for name, own in group.items():
            text = " ".join(texts[name].split())
            told = {
                word for other, words in group.items() if other != name for word in words if "{" not in word
            }
            missing = [word for word in own if not _has(text, word)]
            foreign = [word for word in sorted(told - {*own}) if _has(text, word)]
            if missing or foreign:
                what = f"has {missing[0]!r} in it" if missing else f"has no {foreign[0]!r} in it"
                yield f"`{name}:` says {text!r}: a text of this case {what}: are two of them exchanged?"


def _has(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def faults_of_data(wanted: Mapping[str, tuple[str, ...]], data: Mapping[str, Any]) -> Iterator[str]:
    """Yield data whose names are not of what they are called."""
    for name, pieces in wanted.items():
        tables = _written(data[name])
        for key, text in tables.items():
            found = [part for one in _NAME.findall(text) for part in one.split(".")]
            if missing := [piece for piece in pieces if not any(piece in part for part in found)]:
                yield f"`{key or name}` of `data: {name}:` is {text!r}, a name without {missing[0]!r}: is it another's?"
            if len({one.split(".")[0] for one in _NAME.findall(text)}) > 1:
                yield f"`{key or name}` of `data: {name}:` is {text!r}, of two groups of names: take one"
        yield from _exchanged(name, tables)
    yield from _apart({name: _written(data[name]) for name in wanted})


def _written(said: Any, key: str = "") -> dict[str, str]:
    """Return the expressions of some data by the page's names for them, without their formats."""
    if isinstance(said, dict):
        return {
            inner: text for name, below in said.items() for inner, text in _written(below, str(name)).items()
        }
    return {key: str(said).removeprefix("{{").removesuffix("}}").partition(":")[0].strip()}


def _exchanged(name: str, tables: Mapping[str, str]) -> Iterator[str]:
    """Yield an entry that is called as the record of another one is."""
    parts = {key: set(_PARTS.findall(text.casefold())) for key, text in tables.items()}
    for key, mine in parts.items():
        for other, theirs in parts.items():
            called = set(_PARTS.findall(key.casefold())) - set(_PARTS.findall(other.casefold()))
            if other != key and called & (theirs - mine) and not called & (mine - theirs):
                yield f"`{key}` of `data: {name}:` is {tables[key]!r}, and {tables[other]!r} has its name: exchanged?"


def _apart(tables: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield entries of one name that two tables of the same names take from two records."""
    names = list(tables)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            if len(tables[one]) < 2 or tables[one].keys() != tables[other].keys():
                continue
            stems = [
                {key: text.rpartition(".")[0] for key, text in tables[name].items()} for name in (one, other)
            ]
            if any("*" in stem for found in stems for stem in found.values()) or _by_table(
                tables[one], tables[other]
            ):
                continue
            for key in tables[one]:
                if stems[0][key] != stems[1][key]:
                    both = f"{stems[0][key]!r} in `{one}:` and {stems[1][key]!r} in `{other}:`"
                    yield f"`{key}` is {both}: take one of them"


def _by_table(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether two tables take no entry from the same record, such as of two runs of the same kernels."""
    return not any(one[key].rpartition(".")[0] == other[key].rpartition(".")[0] for key in one)


def faults_of_alt(
    alt: str, shown: Iterable[str], says: Iterable[str], words: Mapping[str, str]
) -> Iterator[str]:
    """Yield what an alternative text says that the state the page begins with does not show.

    Args:
        alt: with its values filled in or still to be filled in.
        shown: every text in the drawing, on the knobs and in the sentences.
        says: the sentences of that state.
        words: what the text says for a sentence, such as `on the slope`.
    """
    numbers = {_plain(number) for text in shown for number in _NUMBER.findall(text)}
    bare = re.sub(r"\{\{.*?\}\}", " ", alt)
    for number in _NUMBER.findall(bare):
        if _plain(number) not in numbers:
            yield f"its alternative text says {number}, which it does not show at the start"
    for word in re.findall(r"[A-Za-z]+", bare):
        number = _SPELLED.get(word.casefold(), "")
        if number and int(number) > _FEW and number not in numbers:
            yield f"its alternative text says {word!r}, and it does not show {number} at the start"
    for case, said in words.items():
        if (case in says) is not _has(bare, said):
            yield (
                f"its alternative text says that it begins {said!r}"
                if case not in says
                else (f"its alternative text does not say that it begins {said!r}")
            )


def _plain(number: str) -> str:
    return number.replace(",", "").replace("−", "-")
