"""Colophon of the course: who makes it, where to get it, under which licence. pyproject.toml may leave out each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FILE = "pyproject.toml"


class AboutError(ValueError):
    """A setting that cannot be used: which one, what is wrong and what to write, in one line."""


@dataclass(frozen=True)
class About:
    """Facts that the site tells of itself; "" for what nobody said.

    Attributes:
        organisation: who makes it.
        repository: where its source is to be had; without one the site offers its own source as an archive.
        site_url: where the site will stand, with a slash at its end; without it there is no address for machines:
            no canonical link, no sitemap, no picture of a shared link.
        licence: as SPDX names it.
    """

    organisation: str = ""
    repository: str = ""
    site_url: str = ""
    licence: str = ""


def about(pyproject: Mapping[str, Any]) -> About:
    """Read the tables [tool.course] and [project].

    Raises:
        AboutError: see the class.
    """
    course = pyproject["tool"]["course"]
    known = {field.name for field in fields(About)} - {"licence"}
    if unknown := sorted(set(course) - known - {"reference"}):
        raise AboutError(
            f"[tool.course] has {unknown[0]!r}, known are {', '.join(sorted(known | {'reference'}))}"
        )
    said = {name: course.get(name, "") for name in known}
    for name, value in said.items():
        if not isinstance(value, str):
            raise AboutError(f"[tool.course] {name} is {value!r}: write it in quotes")
    for name in ("repository", "site_url"):
        parts = urlsplit(said[name])
        if said[name] and (parts.scheme not in ("http", "https") or not parts.netloc):
            raise AboutError(
                f"[tool.course] {name} is {said[name]!r}: write an address, https://…, or leave it out"
            )
    if said["site_url"]:
        said["site_url"] = said["site_url"].rstrip("/") + "/"
    licence = pyproject.get("project", {}).get("license", "")
    return About(**said, licence=licence if isinstance(licence, str) else "")


def reference_of(root: Path) -> str:
    """Return the edition whose claims gate the build, by its folder under records/."""
    with (root / FILE).open("rb") as file:
        return str(tomllib.load(file)["tool"]["course"]["reference"])
