"""CUDA C++ source to machine code with NVRTC: no nvcc, no GPU, and hardly a wait."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path

from course_kernels.cuda.headers import CudaMissingError, nvrtc_file, package_of, toolkit_headers
from course_kernels.cuda.includes import IncludeRefused, project_folders, texts_of, toolkit_includes

CORE_MISSING = 'pip install "cuda-core[cu13]>=1.0"'


class CompileError(RuntimeError):
    """The compiler refused a source; the message holds its whole log."""


def compile_cubin(path: Path | str, arch: str, defines: Mapping[str, str | int] | None = None) -> bytes:
    """Compile one `.cu` file to a cubin.

    The result is kept in memory and on disk, in `cubin_folder()`, under the text of every source, the macros, `arch`,
    and what compiled it: a changed file is compiled again, and so is every file after an upgrade of the compiler.

    Args:
        path: the source file.
        arch: what to compile for, such as "sm_90a"; see `arch_of`.
        defines: macros, as `-D NAME=VALUE`.
    Raises:
        CompileError: the source has errors; the message is the file's name and the compiler's whole log. Or an include
            names its file by a macro, see `sources_of`.
        CudaMissingError: cuda.core, NVRTC or a CUDA header is not installed.
        FileNotFoundError: the file, or one it includes, does not exist.
    """
    try:
        texts = texts_of(path)
    except IncludeRefused as error:
        raise CompileError(str(error)) from None
    macros = tuple((name, str(value)) for name, value in (defines or {}).items())
    return _compile(tuple(texts.items()), arch, macros)


def cubin_folder() -> Path:
    """Return where cubins are kept: under COURSE_CACHE_DIR, else XDG_CACHE_HOME, else ~/.cache."""
    named = os.environ.get("COURSE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return Path(named or Path("~/.cache").expanduser()) / "percent-of-peak" / "cubins"


@functools.cache
def _compile(texts: tuple[tuple[Path, str], ...], arch: str, macros: tuple[tuple[str, str], ...]) -> bytes:
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise CudaMissingError(f"cuda.core: {error}; {CORE_MISSING}") from error

    path, text = texts[0]
    project = project_folders(path)
    toolkit = tuple(toolkit_headers()) if toolkit_includes(path) else ()
    compiler = _compiler()
    kept = cubin_folder() / f"{_key(texts, arch, macros, compiler, toolkit)}.cubin"
    cubin = _read(kept)
    if cubin is not None:
        return cubin
    options = ProgramOptions(
        name=str(path),
        std="c++17",
        arch=arch,
        include_path=[str(folder) for folder in (*project, *toolkit)],
        define_macro=list(macros) or None,
    )
    try:
        cubin = Program(text, "c++", options).compile("cubin").code
    except Exception as error:
        # cuda.core's error types moved between versions, so they are told apart by what they say.
        if "NotFound" in type(error).__name__ or "INVALID_OPTION" in str(error):
            raise CudaMissingError(
                f"{path.name}: NVRTC is missing, or does not know {arch}: {_first_line(error)}; {CORE_MISSING}"
            ) from error
        header = re.search(r'(?:cannot|could not) open source file "([^"]+)"', str(error))
        package = header and package_of(header[1], toolkit)
        if header and package:
            raise CudaMissingError(
                f"{path.name}: the CUDA header {header[1]} is not installed; pip install {package}"
            ) from None
        if "NVRTC" in str(error):
            raise CompileError(f"{path.name} does not compile for {arch}\n{error}") from None
        raise
    _keep(kept, cubin)
    return cubin


def _key(
    texts: tuple[tuple[Path, str], ...],
    arch: str,
    macros: tuple[tuple[str, str], ...],
    compiler: list[object],
    toolkit: tuple[Path, ...],
) -> str:
    """Everything that decides what a cubin holds, as a hash."""
    # Paths too: a cubin names what is private to a file after its path.
    files = [(str(path), text) for path, text in texts]
    facts = [files, arch, macros, compiler, [_content(folder) for folder in toolkit]]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@functools.cache
def _compiler() -> list[object]:
    """Return what tells one compiler from another.

    Versions, and the library's file, since NVRTC hides its patch version.
    """
    import cuda.core
    from cuda.bindings import nvrtc

    file = nvrtc_file()
    try:
        version = [str(part) for part in nvrtc.nvrtcVersion()]
    except Exception as error:  # cuda.bindings' error types moved between versions
        raise CudaMissingError(f"NVRTC is missing: {_first_line(error)}; {CORE_MISSING}") from error
    about = file.stat() if file else None
    return [
        version,
        cuda.core.__version__,
        [str(file), about.st_size, about.st_mtime_ns] if about else [],
    ]


@functools.cache
def _content(folder: Path) -> list[object]:
    """Return what tells one set of headers from another, without reading megabytes: names, sizes and times."""
    found = []
    for place in (folder, folder / "crt"):
        if place.is_dir():
            with os.scandir(place) as entries:
                found += [(e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in entries if e.is_file()]
    return [str(folder), sorted(found)]


def _read(file: Path) -> bytes | None:
    """Return a kept cubin; None where there is none, or none that is whole."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    digest, cubin = data[:32], data[32:]
    return cubin if cubin and hashlib.sha256(cubin).digest() == digest else None


def _keep(file: Path, cubin: bytes) -> None:
    """Write a cubin for the next process; a folder that cannot be written to costs that process a compilation."""
    part = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(hashlib.sha256(cubin).digest() + cubin)
        part.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
