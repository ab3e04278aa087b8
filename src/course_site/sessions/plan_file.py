"""A plan in TOML, read strictly: the first fault is raised, in one line. Standard library only."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

Table = Mapping[str, Any]


class PlanError(ValueError):
    """A plan or what was typed is wrong: one line, what, where, what to do."""


class PlanFile:
    """One file and what stands in it; `data` is the whole, every question names its own place.

    Raises:
        PlanError: the file is no TOML, here; or what was asked for is not what stands there, later.
    """

    def __init__(self, root: Path, file: str) -> None:
        self.file = file
        try:
            self.data: Table = tomllib.loads((root / file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise self.wrong(f"cannot be read as TOML: {str(error).splitlines()[0]}") from None

    def wrong(self, message: str, *places: str) -> PlanError:
        """The error to raise: the file, the place in it, and the message."""
        place = ", ".join(filter(None, places))
        return PlanError(f"{self.file}: {place}: {message}" if place else f"{self.file}: {message}")

    def known(self, table: Table, keys: Collection[str], where: str = "") -> None:
        """Refuse every key but these."""
        for key in table:
            if key not in keys:
                raise self.wrong(f"unknown key; known: {', '.join(sorted(keys))}", where, key)

    def tables(self, key: str) -> list[Table]:
        """The tables of [[key]]; none if it is left out."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(f"is not a list of tables: write [[{key}]]", key)
        return value

    def whole(self, table: Table, key: str, where: str = "") -> int:
        """A whole number."""
        value = table.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(f"needs a whole number, got {value!r}", where, key)
        return value

    def text(self, table: Table, key: str, where: str = "") -> str:
        """A text that says something."""
        value = table.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"needs a text, got {value!r}", where, key)
        return value.strip()
