"""The course's own source as one file, for a site that has no repository to lead to.

Everything belongs to it that git tracks, records included: the build refuses a page without its record, so an archive
without them could not build the site again. The same source gives the same bytes.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

NAME = "percent-of-peak.tar.gz"
LICENCE = "LICENSE.txt"  # with an ending that a browser shows
TOP = "percent-of-peak"  # the folder that is unpacked
LEVEL = 2  # of 9: hardly larger than at the usual 6, and sooner done
KEPT = Path(".cache") / "source"


def archive(root: Path) -> Path:
    """Return the archive of a repository; made where none of the same files is kept."""
    found = [(name, (root / name).read_bytes()) for name in source_files(root)]
    digest = hashlib.sha256()
    for name, content in found:
        digest.update(f"{name}\0{len(content)}\0{_mode(root / name)}\0".encode())
        digest.update(content)
    file = root / KEPT / digest.hexdigest()[:16] / NAME
    if not file.exists():
        _write(file, _packed(root, found))
        for old in (root / KEPT).iterdir():
            if old != file.parent:
                shutil.rmtree(old, ignore_errors=True)
    return file


def source_files(root: Path) -> list[str]:
    """Return files that belong to the source, in order; without git all but what .gitignore names."""
    names = _tracked(root)
    if names is None:
        names = list(_not_ignored(root))
    return sorted(name for name in names if (root / name).is_file() and not (root / name).is_symlink())


def _tracked(root: Path) -> list[str] | None:
    """Return files that git tracks.

    They are None where there is no git, or where the repository is somebody else's around this folder.
    """
    if not (root / ".git").exists():
        return None
    command = ("git", "ls-files", "--cached", "-z")
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in done.stdout.decode().split("\0") if name]


def _not_ignored(root: Path) -> list[str]:
    file = root / ".gitignore"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    ignored = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    ignored.append(".git")

    def is_ignored(path: Path) -> bool:
        relative = path.relative_to(root).as_posix()
        for pattern in ignored:
            name = pattern.strip("/")
            here = relative if pattern.startswith("/") else path.name
            if fnmatch.fnmatchcase(here, name) and (path.is_dir() or not pattern.endswith("/")):
                return True
        return False

    names: list[str] = []
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = [name for name in folders if not is_ignored(here / name)]
        names += [(here / name).relative_to(root).as_posix() for name in files if not is_ignored(here / name)]
    return names


def _mode(path: Path) -> int:
    return 0o755 if os.access(path, os.X_OK) else 0o644


def _packed(root: Path, found: list[tuple[str, bytes]]) -> bytes:
    """Return files in their order, of nobody and of no date."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=LEVEL, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in found:
            entry = tarfile.TarInfo(f"{TOP}/{name}")
            entry.size, entry.mode = len(content), _mode(root / name)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "wb") as part:
        part.write(content)
    Path(temporary).chmod(0o644)
    os.replace(temporary, file)
