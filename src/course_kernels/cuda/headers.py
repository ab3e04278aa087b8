"""Folders of the CUDA toolkit's headers on this machine: often more than one."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

MACHINE = Path("/usr/local/cuda")
# Which wheel holds a header, and one header that tells whether that wheel, or as much of a toolkit, is there.
PACKAGES = (
    (r"crt/.*", "nvidia-cuda-crt", "crt/host_defines.h"),
    (r"(cuda/|cub/|thrust/|nv/).*", "nvidia-cuda-cccl", "cuda/std/version"),
    (
        r"(cuda\w*|mma|cooperative_groups|vector_\w+|math_constants)\.h.*",
        "nvidia-cuda-runtime",
        "cuda_fp16.h",
    ),
)


class CudaMissingError(RuntimeError):
    """Something this needs is not installed; the message says what and how to get it."""


def toolkit_headers() -> list[Path]:
    """Return every folder that holds headers of the CUDA toolkit, in the order in which a compiler is to look.

    One install may be spread over several: each wheel brings a part, and `pip install --target` puts a part beside
    those that the machine has. So all of them are given to the compiler. First comes the folder that belongs to the
    NVRTC that is used, then the wheels as Python finds them, then a toolkit of the machine, and Triton's copy last. A
    folder of another major version than NVRTC's is left out: a header of one CUDA that includes one of another may
    compile, and mean something else. Only where no folder fits is such a copy used, alone.

    Raises:
        CudaMissingError: none of them has `cuda_fp16.h`.
    """
    return list(_toolkit_headers(tuple(sys.path), os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")))


@functools.lru_cache(maxsize=16)
def _toolkit_headers(search: Sequence[str], *homes: str | None) -> tuple[Path, ...]:
    wanted = _major_of_file(nvrtc_file())
    found: dict[Path, int | None] = {}
    for folder in _candidates(search, homes):
        if folder.is_dir():
            found.setdefault(folder.resolve(), _major_of(folder))
    fitting = [folder for folder, major in found.items() if wanted is None or major in (None, wanted)]
    if not _holds(fitting, "cuda_fp16.h"):
        fitting = [folder for folder in found if _holds([folder], "cuda_fp16.h")][:1]
    if not fitting:
        raise CudaMissingError("CUDA headers: cuda_fp16.h not found; pip install nvidia-cuda-runtime==13.*")
    return tuple(place for folder in fitting for place in (folder, folder / "cccl") if place.is_dir())


def _candidates(search: Sequence[str], homes: Iterable[str | None]) -> Iterator[Path]:
    library = nvrtc_file()
    if library is not None:
        yield from (library.parents[up] / "include" for up in (1, 2) if len(library.parents) > up)
    # Not by asking for the package `nvidia`: it lies in several places, and one with an __init__ hides the others.
    for entry in search:
        for pattern in ("nvidia/cu[0-9]*/include", "nvidia/cuda_*/include"):
            yield from sorted(Path(entry or ".").glob(pattern), reverse=True)
    try:
        from cuda.pathfinder import find_nvidia_header_directory

        named = [find_nvidia_header_directory(part) for part in ("cudart", "nvcc")]
    except (ImportError, RuntimeError):
        named = []
    yield from (Path(folder) for folder in named if folder)
    yield from (Path(home) / "include" for home in homes if home)
    yield MACHINE / "include"
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin:
        yield Path(triton.origin).parent / "backends/nvidia/include"


def package_of(header: str, folders: Iterable[Path]) -> str | None:
    """Return the pip requirement that brings a header; None for one that is of no wheel, or whose wheel is there."""
    folders = list(folders)
    for pattern, package, sign in PACKAGES:
        if re.fullmatch(pattern, header):
            return None if _holds(folders, sign) else f"{package}==13.*"
    return None


def _holds(folders: Iterable[Path], header: str) -> bool:
    return any((folder / header).is_file() for folder in folders)


def nvrtc_file() -> Path | None:
    """Return the library that compiles, loaded; None where there is none, or its place cannot be told."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        return None
    try:
        path = load_nvidia_dynamic_lib("nvrtc").abs_path
    except (RuntimeError, OSError):
        return _carried_nvrtc()
    return Path(path).resolve() if path else None


def _carried_nvrtc() -> Path | None:
    """NVRTC from any folder of sys.path: cuda.pathfinder looks into site-packages alone, and takes what is loaded."""
    for entry in sys.path:
        for pattern in ("nvidia/cu[0-9]*/lib/libnvrtc.so.*", "nvidia/cuda_nvrtc/lib/libnvrtc.so.*"):
            for file in sorted(Path(entry or ".").glob(pattern), reverse=True):
                try:  # NVRTC opens its other half by name alone, so that is loaded first
                    for library in (*file.parent.glob("libnvrtc-builtins.so.*"), file):
                        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
                except OSError:
                    continue
                return file.resolve()
    return None


def _major_of_file(library: Path | None) -> int | None:
    found = library and re.search(r"\.so\.(\d+)|nvrtc64_(\d\d)", library.name)
    return int(found[1] or found[2]) if found else None


def _major_of(folder: Path) -> int | None:
    """Return the major version of CUDA that a folder of headers belongs to; None if nothing tells."""
    try:
        text = (folder / "cuda.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^\s*#\s*define\s+CUDA_VERSION\s+(\d+)\d{3}\b", text, re.MULTILINE)
    named = re.fullmatch(r"cu(\d+)", folder.parent.name)
    return int(found[1]) if found else int(named[1]) if named else None
