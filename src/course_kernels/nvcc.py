"""CUDA C++ source to a shared library with nvcc: for what NVRTC does not compile, such as CUTLASS with its host code.

It takes most of a minute and needs a host compiler, so the result is kept on disk.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from course_kernels.cuda.compile import CompileError, cubin_folder
from course_kernels.cuda.headers import MACHINE, CudaMissingError
from course_kernels.cuda.includes import project_folders, texts_of

# CUTLASS calls constexpr functions of the host on the device; a shared library's code may lie anywhere.
FLAGS = ("-std=c++17", "-O3", "--expt-relaxed-constexpr", "-shared", "-Xcompiler", "-fPIC")
HOST_COMPILER = "g++"


@dataclass(frozen=True)
class Library:
    """A compiled source: files in a folder.

    Attributes:
        folder: where they are.
    """

    folder: Path

    @property
    def library(self) -> Path:
        """Path of the shared library, for ctypes."""
        return self.folder / "kernel.so"

    @property
    def cubin(self) -> bytes:
        """Machine code of the same compilation."""
        return (self.folder / "kernel.cubin").read_bytes()

    @property
    def ptx(self) -> str:
        """PTX that the machine code was made of."""
        return (self.folder / "kernel.ptx").read_text(encoding="utf-8")

    @property
    def log(self) -> str:
        """Warnings, one a line; "" where there are none."""
        return (self.folder / "log.txt").read_text(encoding="utf-8")


def compile_library(
    path: Path | str,
    arch: str,
    defines: Mapping[str, str | int],
    includes: Iterable[Path] = (),
    also: tuple[Path, ...] = (),
) -> Library:
    """Compile one `.cu` file to a shared library.

    The result is kept in a folder of `cubin_folder()`, under the text of every source, the macros, `arch`, nvcc's
    version and `also`, but under no path and no time: a folder made elsewhere by the same compiler is found.

    Args:
        path: the source file.
        arch: what to compile for, such as "sm_90a".
        defines: macros, as `-D NAME=VALUE`.
        includes: folders of headers that are not the project's.
        also: files that decide the result as well, such as the one with the version of these headers.
    Raises:
        CompileError: the source has errors; the message is the file's name and the compiler's whole log.
        CudaMissingError: nvcc or a host compiler is not installed.
        FileNotFoundError: the file, or one it includes, does not exist.
    """
    path = Path(path)
    texts = [(file.name, text) for file, text in texts_of(path).items()]
    macros = sorted((name, str(value)) for name, value in defines.items())
    facts = [texts, arch, macros, version(), FLAGS, [file.read_text(encoding="utf-8") for file in also]]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    kept = Library(cubin_folder() / f"{key}.nvcc")
    if kept.library.is_file():
        return kept
    return _compile(path, arch, macros, tuple(includes), kept)


def _compile(
    path: Path, arch: str, macros: list[tuple[str, str]], includes: tuple[Path, ...], kept: Library
) -> Library:
    if shutil.which(HOST_COMPILER) is None:
        raise CudaMissingError(
            f"{HOST_COMPILER}: not found; nvcc compiles the host's part of {path.name} with it"
        )
    # Beside the place of the result, so that one rename makes all of it appear at once.
    new = Library(_room_for(kept.folder))
    nvcc = nvcc_file()
    libraries = [place for place in (nvcc.parents[1] / "lib64", nvcc.parents[1] / "lib") if place.is_dir()]
    with tempfile.TemporaryDirectory() as parts:  # what the steps hand to each other is a hundred megabytes
        command = [str(nvcc), *FLAGS, "-gencode", f"arch=compute_{arch.removeprefix('sm_')},code={arch}"]
        command += [f"-D{name}={value}" for name, value in macros]
        command += [f"-I{folder}" for folder in (*project_folders(path), *includes)]
        command += [f"-L{folder}" for folder in libraries]
        command += ["-keep", "-keep-dir", parts, "-o", str(new.library), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            for suffix in ("cubin", "ptx"):
                shutil.copyfile(Path(parts) / f"{path.stem}.{suffix}", new.folder / f"kernel.{suffix}")
            (new.folder / "log.txt").write_text(done.stderr, encoding="utf-8")
    if done.returncode != 0:
        shutil.rmtree(new.folder, ignore_errors=True)
        raise CompileError(f"{path.name} does not compile for {arch}\n{done.stderr or done.stdout}")
    try:
        new.folder.rename(kept.folder)
    except (
        OSError
    ):  # another process was first; or nothing can be written there, and this one is for this process
        if kept.library.is_file():
            shutil.rmtree(new.folder, ignore_errors=True)
            return kept
        return new
    return kept


def _room_for(folder: Path) -> Path:
    """Return a new empty folder beside `folder`, or anywhere if nothing can be written there."""
    with contextlib.suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{folder.stem[:16]}.", dir=folder.parent))
    return Path(tempfile.mkdtemp(prefix="nvcc."))


def nvcc_file() -> Path:
    """Return the path of nvcc: from the toolkit that is named, the PATH, the machine's toolkit, or a wheel.

    A wheel comes last: nvcc is often there only because another package brings it, without the headers that a whole
    toolkit has.

    Raises:
        CudaMissingError: none of them has it.
    """
    homes = [Path(home) for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    on_path = shutil.which("nvcc")
    places = [home / "bin/nvcc" for home in homes]
    places += [Path(on_path)] if on_path else []
    places += [MACHINE / "bin/nvcc"]
    for entry in sys.path:
        places += sorted(Path(entry or ".").glob("nvidia/cu[0-9]*/bin/nvcc"), reverse=True)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise CudaMissingError(
            "nvcc: not found; install a CUDA toolkit, or pip install nvidia-cuda-nvcc==13.* nvidia-cuda-cccl==13.*"
        )
    return found


def version() -> str:
    """Return the version line of nvcc.

    Raises:
        CudaMissingError: there is no nvcc, or it does not run.
    """
    return _version(nvcc_file())


@functools.cache
def _version(nvcc: Path) -> str:
    try:
        done = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CudaMissingError(f"nvcc: {nvcc} does not run: {error.strerror}") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise CudaMissingError(f"nvcc: {nvcc} does not say its version")
    return lines[-1]
