"""Artifacts of a record: files that a page's cells made, in a folder beside the record, and sealed by it.

`records/<gpu>/docs/page.ipynb` states the size and the sha256 of every file in `records/<gpu>/docs/page.artifacts/`.
A file that changed, is missing or is stated by no record is refused at every build.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from course_kernels.measure.artifacts import FOLDER, fault_of_name, fault_of_size, write

SUFFIX = ".artifacts"
__all__ = ["FOLDER", "SUFFIX", "collected", "faults", "folder_of", "ownerless", "put", "stated"]


def folder_of(record: Path) -> Path:
    """Return the folder beside a record where its artifacts lie."""
    return record.with_suffix(SUFFIX)


def collected(folder: Path) -> dict[str, bytes]:
    """Read what a page that has just run left in its folder, by name.

    Raises:
        ValueError: something there that is no artifact; one line.
    """
    found = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        regular = path.is_file() and not path.is_symlink()
        fault = fault_of_name(path.name) or ("" if regular else f"{path.name}: is not a file")
        if fault := fault or fault_of_size(path.name, path.stat().st_size):
            raise ValueError(f"artifact: {fault}")
        found[path.name] = path.read_bytes()
    return found


def stated(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Statement of artifacts in a record: size in bytes and sha256, by name."""
    return {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sorted(files.items())
    }


def put(record: Path, files: Mapping[str, bytes]) -> None:
    """Write a record's artifacts beside it, each to a temporary name first; what lay there before goes."""
    folder = folder_of(record)
    if files:
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write(folder, name, data)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in files:
            path.unlink()
    if folder.is_dir() and not files:
        folder.rmdir()


def faults(record: Path, artifacts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield files beside a record that are not what it states: the path below its folder, what is wrong and what to do.

    Args:
        record: where it lies.
        artifacts: what it states, as of `stated`.
    """
    folder = folder_of(record)
    again = "restore it with git, or measure the page again"
    for name, said in artifacts.items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            yield name, f"is missing, and {record.name} states it; {again}"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != said["sha256"]:
            yield name, f"is not the file that {record.name} states (its sha256 does not match); {again}"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in artifacts:
            yield path.name, f"{record.name} states no such file; delete it"


def ownerless(root: Path, slug: str) -> Iterator[Path]:
    """Yield the folders of artifacts that lie beside no record."""
    for folder in sorted((root / "records" / slug).rglob(f"*{SUFFIX}")):
        if not folder.with_suffix(".ipynb").is_file():
            yield folder
