"""A lab of several kernels, each slow for one reason, is known by what lies beside it. Standard library only."""

from __future__ import annotations

from pathlib import Path

from course_labs.lab import Lab

FOLDER = "given"  # the slow kernels, and profile.toml, which says how they are launched


def has_suspects(lab: Lab) -> bool:
    """True for a lab of this kind."""
    return (lab.folder / FOLDER).is_dir()


def given_files(lab: Lab) -> list[Path]:
    """The kernels that a student is given, and then how they are launched."""
    files = [file for file in (lab.folder / FOLDER).iterdir() if file.suffix in (".cu", ".py", ".toml")]
    return sorted(files, key=lambda file: (file.suffix == ".toml", file.name))
