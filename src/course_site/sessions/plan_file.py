"""A plan in TOML, read strictly: the first fault is raised, in one line. Standard library only."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any


class PlanError(ValueError):
    """A plan or what was typed is wrong: one line, what, where, what to do."""


class Plan:
    """One table of a plan: every question is answered as asked for, or raises `PlanError` with its place."""

    def __init__(self, file: str, data: Mapping[str, Any], keys: Collection[str], where: str = "") -> None:
        self.file, self.data, self.where = file, data, where
        for key in data:
            if key not in keys:
                raise self.wrong(f"unknown key; known: {', '.join(sorted(keys))}", key)

    def wrong(self, message: str, key: str = "") -> PlanError:
        """Return the error to raise: the file, the place in it, and the message."""
        place = ", ".join(filter(None, (self.where, key)))
        return PlanError(f"{self.file}: {place}: {message}" if place else f"{self.file}: {message}")

    def whole(self, key: str) -> int:
        """Return a whole number."""
        value = self.data.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(f"needs a whole number, got {value!r}", key)
        return value

    def hours(self, key: str) -> float:
        """Return a number of hours."""
        value = self.data.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise self.wrong(f"needs a number of hours above 0, got {value!r}", key)
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, none if it is left out."""
        values = self.data.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise self.wrong(f"needs a list of texts, got {values!r}", key)
        return tuple(values)

    def text(self, key: str) -> str:
        """Return a text that says something."""
        value = self.data.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"needs a text, got {value!r}", key)
        return value.strip()

    def sessions(self, key: str, known: Collection[str] | None = None) -> tuple[str, ...]:
        """Return a list of sessions; with `known`, of these."""
        names = self.data.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise self.wrong(f"needs a list of sessions, got {names!r}", key)
        for name in names if known is not None else ():
            self.check_session(name, known or (), key)
        return tuple(names)

    def check_session(self, name: str, known: Collection[str], key: str = "") -> None:
        """Refuse an unknown session."""
        if name not in known:
            raise self.wrong(f"{name!r} is not a session; known: {', '.join(known)}", key)

    def tables(self, key: str, keys: Collection[str]) -> Iterator[Plan]:
        """Yield the tables of [[key]], none if it is left out; or those of [key.NAME], by their names."""
        value, inside = self.data.get(key, []), ".".join(filter(None, (self.where, key)))
        if isinstance(value, dict):
            named = [(f"{inside}.{name}", table) for name, table in value.items()]
        elif isinstance(value, list):
            named = [(f"{inside} {i}", table) for i, table in enumerate(value, 1)]
        else:
            raise self.wrong(f"is not a list of tables: write [[{key}]]", key)
        for where, table in named:
            if not isinstance(table, dict):
                raise PlanError(f"{self.file}: {where}: is not a table")
            yield Plan(self.file, table, keys, where)


def read_plan(root: Path, file: str, keys: Collection[str]) -> Plan:
    """Return the whole of a file as one table.

    Raises:
        PlanError: it is not TOML, or has a key that is not among these.
    """
    try:
        return Plan(file, tomllib.loads((root / file).read_text(encoding="utf-8")), keys)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{file}: cannot be read as TOML: {str(error).splitlines()[0]}") from None
