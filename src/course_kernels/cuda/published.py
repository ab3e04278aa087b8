"""CUDA kernels that others have published, for a race: read from a folder that a maintainer names.

None of that code is part of this course: what comes without a licence is not ours to pass on. So a file is taken from a
folder that an environment variable names, and only if it is, byte for byte, the one that was read when its peer was
written. What is cut out of it is the text of its kernels: nothing of the file is executed on the host.
"""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from course_kernels.cuda.compile import cubin_folder


@dataclass(frozen=True)
class Folder:
    """A folder in which a maintainer keeps a copy of a published repository.

    Attributes:
        variable: the environment variable that names the folder.
        repository, commit: what is in it.
    """

    variable: str
    repository: str
    commit: str


GOOD_KERNELS = Folder(
    variable="COURSE_GOOD_KERNELS",
    repository="github.com/ScalingIntelligence/good-kernels",
    commit="5c94620c59ab9839a4ad4ccad309f3d91752d042",
)


@dataclass(frozen=True)
class Published:
    """The kernels in one published file.

    Attributes:
        folder: where the file is.
        file: its path in there.
        sha256: of the whole file, in hexadecimal digits.
        first: the words with which the kernels begin, where they stand for the first time.
        behind: the words behind the last kernel, after `first`.
    """

    folder: Folder
    file: str
    sha256: str
    first: str
    behind: str

    def at_hand(self) -> bool:
        """Return whether the environment names a folder; what is in it `source` says."""
        return bool(os.environ.get(self.folder.variable))

    def source(self) -> Path:
        """Return a `.cu` file with the kernels, each `extern "C"`, to be compiled like any other.

        It is written beside the compiled kernels of this machine.

        Raises:
            RuntimeError: no folder is named.
            ValueError: the file is not there, or is another one than was read.
        """
        named = os.environ.get(self.folder.variable)
        if not named:
            raise RuntimeError(
                f"{self.file}: not at hand: clone {self.folder.repository}, check out {self.folder.commit[:7]}, "
                f"and let {self.folder.variable} name the folder"
            )
        return _cut_out(self, Path(named) / self.file)


@functools.cache
def _cut_out(published: Published, path: Path) -> Path:
    try:
        data = path.read_bytes()
    except OSError:
        raise ValueError(
            f"{published.folder.variable}: expected {published.file} in it, got no such file at {path}"
        ) from None
    found = hashlib.sha256(data).hexdigest()
    if found != published.sha256:
        raise ValueError(
            f"{path}: expected the file of {published.folder.commit[:7]}, SHA-256 {published.sha256[:16]}…, "
            f"got {found[:16]}…"
        )
    text = data.decode()
    begin = text.index(published.first)
    text = text[begin : text.index(published.behind, begin)].replace("__global__", 'extern "C" __global__')
    target = cubin_folder().parent / "published" / f"{published.sha256}.cu"
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    part.write_text(text)
    part.replace(target)
    return target
