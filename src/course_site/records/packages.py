"""Optional packages: whether those of an extra of pyproject.toml are installed here."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


def packages_lacking(extra: str) -> str | None:
    """Return which packages of an optional extra of pyproject.toml are not installed here, in one line, or None."""
    with (PROJECT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    if extra not in extras:
        return f"there is no such extra in pyproject.toml; there are {', '.join(extras)}"
    names = (re.match(r"[\w.-]+", line) for line in extras[extra])
    missing = [name[0] for name in names if name and not _is_installed(name[0])]
    return f"not installed here: {', '.join(missing)}; `-- --with {extra}` installs them" if missing else None


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
