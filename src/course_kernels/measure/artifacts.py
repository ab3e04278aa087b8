"""Artifacts: files that a page's cell makes and its record seals: a checkpoint, the report of a profiler.

    record(weights=artifact("small.safetensors", path))

The file lies beside the record afterwards and is published with the page. Needs neither torch nor NumPy nor a GPU.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from course_kernels.measure.record_types import Quantity, Text

FOLDER = "COURSE_ARTIFACTS"  # where the page that runs leaves its files; set by who runs it
LIMIT_BYTES = 8 * 2**20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def artifact(name: str, content: bytes | os.PathLike[str] | str) -> dict[str, Quantity | Text]:
    """Keep a file beside the record of the page that runs; outside of such a page nothing is kept.

    What stands in the file is published as it is: take out host names and paths first.

    Args:
        name: of the file, such as "small.safetensors".
        content: its bytes, or the path of a file.
    Returns:
        For `record`: the file's name, its size in bytes and its sha256.
    Raises:
        TypeError: content that is neither bytes nor a path.
        ValueError: a name that is no plain file name, one given twice, an empty file or one above 8 MiB.
        FileNotFoundError: no file at the path.
    """
    if fault := fault_of_name(name):
        raise ValueError(f"artifact: {fault}")
    if isinstance(content, bytes | bytearray | memoryview):
        data = bytes(content)
    elif isinstance(content, str | os.PathLike):
        data = _read(name, Path(content))
    else:
        raise TypeError(f"artifact: {name}: expected bytes or a path, got {type(content).__name__}")
    if fault := fault_of_size(name, len(data)):
        raise ValueError(f"artifact: {fault}")
    if os.environ.get(FOLDER):
        _keep(Path(os.environ[FOLDER]), name, data)
    return {
        "file": Text(name),
        "size": Quantity(len(data), "B", "counted"),
        "sha256": Text(hashlib.sha256(data).hexdigest()),
    }


def fault_of_name(name: object) -> str:
    """Return why a file may not have this name; empty where it may."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return ""
    return f"expected a plain file name such as small.safetensors, without a folder, got {name!r}"


def fault_of_size(name: str, size: int) -> str:
    """Return why a file may not have this size; empty where it may."""
    if not size:
        return f"{name}: is empty"
    if size > LIMIT_BYTES:
        return f"{name}: has {size} bytes, and at most {LIMIT_BYTES} (8 MiB) can lie beside a record"
    return ""


def _read(name: str, path: Path) -> bytes:
    try:
        # A large one is refused by its size, before it is read.
        if fault := fault_of_size(name, path.stat().st_size):
            raise ValueError(f"artifact: {fault}")
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"artifact: {name}: there is no file {path}") from None


def _keep(folder: Path, name: str, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Some file systems know no capitals.
    if name.casefold() in {other.name.casefold() for other in folder.iterdir()}:
        raise ValueError(f"artifact: {name}: this page has made a file of that name already")
    write(folder, name, data)


def write(folder: Path, name: str, data: bytes) -> None:
    """Write a file to a temporary name, then rename it."""
    temporary = folder / f".{name}.{os.getpid()}.part"
    try:
        temporary.write_bytes(data)
        os.replace(temporary, folder / name)
    finally:
        temporary.unlink(missing_ok=True)
