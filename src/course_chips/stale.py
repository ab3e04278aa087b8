"""Reasons why a chip's record holds no more: its files mean what they meant, and its compilers are the pinned ones.

Reads files alone: no compiler is needed.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from course_chips import kept
from course_kernels.cuda.includes import sources_of
from course_site.records.digest import file_digest


def sources(chip: str, root: Path = kept.ROOT) -> dict[str, str]:
    """Return the files that decide a chip's record, each with a hash of its meaning."""
    found: dict[str, str] = {}
    for path in kept.SOURCES[kept.CHIPS[chip][0]]:
        # A header is found where this course has it, wherever the source lies.
        files = sources_of(kept.ROOT / path) if path.endswith(".cu") else [kept.ROOT / path]
        names = [file.relative_to(kept.ROOT).as_posix() for file in files]
        found |= {name: file_digest(root, name) for name in names}
    return found


def pinned(root: Path = kept.ROOT) -> dict[str, str]:
    """Return the version that pyproject.toml pins of each package of the extra `chips`, and of each program beside."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    found = (
        re.match(r"([\w-]+)(?:\[\w+\])?==([\w.]+)", line)
        for line in project["project"]["optional-dependencies"]["chips"]
    )
    programs = project["tool"]["chips"]["programs"]
    # Behind a hyphen is which build of it Debian has.
    return {one[1]: one[2] for one in found if one} | {
        name: one["version"].partition("-")[0] for name, one in programs.items()
    }


def reasons(chip: str, root: Path = kept.ROOT) -> list[str]:
    """Return why the record of a chip does not hold any more, in words; [] where it does."""
    try:
        record = kept.read(chip)
    except FileNotFoundError:
        return ["has no record yet"]
    now, was = sources(chip, root), record["sources"]
    changed = [path for path in sorted({*now, *was}) if now.get(path) != was.get(path)]
    pins = pinned(root)
    # What is built for a processor alone has a word of its own behind the version: 2.13.0+cpu.
    moved = [
        f"{name} {had}, pinned {pins[name]}"
        for name, had in record["packages"].items()
        if name in pins and had.partition("+")[0] != pins[name]
    ]
    return [f"{path} has changed" for path in changed] + moved
