"""TOML files of the capstone: read whole, and refused in one line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_judge.__main__ import Unusable


def read_table(path: Path) -> dict[str, Any]:
    """Return a TOML file.

    Raises:
        Unusable: it is not there, or cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Unusable(f"{path}: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file that holds an object.

    Raises:
        Unusable: it is not there, or is none.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Unusable(f"{path}: cannot be read as JSON") from None
    if not isinstance(found, dict):
        raise Unusable(f"{path}: expected an object, got {type(found).__name__}")
    return found


def text_of(table: Mapping[str, Any], key: str, where: str) -> str:
    """Return a text that is not empty.

    Raises:
        Unusable: it is missing, empty or no text.
    """
    found = table.get(key)
    if not isinstance(found, str) or not found.strip():
        raise Unusable(f"{where}: {key}: expected a text, got {found!r}")
    return found.strip()
