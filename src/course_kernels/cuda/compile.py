"""CUDA C++ source to machine code with NVRTC: no nvcc, no GPU, and hardly a wait."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

SHARED = Path(__file__).parent  # headers that kernels of several problems use unchanged
QUOTED_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
TOOLKIT_INCLUDE = re.compile(r"^\s*#\s*include\s*<", re.MULTILINE)


class CompileError(RuntimeError):
    """The compiler refused a source; the message holds its whole log."""


class CudaMissingError(RuntimeError):
    """Something this needs is not installed; the message says what and how to get it."""


def sources_of(path: Path | str) -> list[Path]:
    """The file and everything it includes with quotes, each once, in the order first met.

    NVRTC opens includes where no audit hook sees it, so they are found and read here: this list is what a
    record of a run depends on. An include is looked for beside the file that names it, then in `cuda/`.

    Raises:
        FileNotFoundError: the file, or one it includes, does not exist.
    """
    return list(_texts_of(Path(path)))


def _texts_of(path: Path) -> dict[Path, str]:
    found: dict[Path, str] = {}
    _collect(path, found)
    return found


def _collect(path: Path, found: dict[Path, str], asked_by: str = "") -> None:
    path = path.resolve()
    if path in found:
        return
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file{asked_by}")
    with open(path, encoding="utf-8") as file:
        found[path] = file.read()
    for name in QUOTED_INCLUDE.findall(found[path]):
        beside, shared = path.parent / name, SHARED / name
        _collect(
            shared if shared.is_file() and not beside.is_file() else beside,
            found,
            f", included by {path.name}",
        )


def compile_cubin(path: Path | str, arch: str, defines: Mapping[str, str | int] | None = None) -> bytes:
    """Compile one `.cu` file to a cubin.

    The result is kept in memory under the text of every source, so a changed file is compiled again.

    Args:
        path: the source file.
        arch: what to compile for, such as "sm_90a"; see `arch_of`.
        defines: macros, as `-D NAME=VALUE`.
    Raises:
        CompileError: the source has errors; the message is the file's name and the compiler's whole log.
        CudaMissingError: cuda.core, NVRTC or the CUDA headers are not installed.
        FileNotFoundError: the file, or one it includes, does not exist.
    """
    texts = _texts_of(Path(path))
    macros = tuple((name, str(value)) for name, value in (defines or {}).items())
    return _compile(tuple(texts.items()), arch, macros)


@functools.cache
def _compile(texts: tuple[tuple[Path, str], ...], arch: str, macros: tuple[tuple[str, str], ...]) -> bytes:
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise CudaMissingError(f'cuda.core: {error}; pip install "cuda-core[cu13]>=1.0"') from error

    path, text = texts[0]
    folders = dict.fromkeys(str(folder) for p, _ in texts for folder in (p.parent, SHARED))
    if any(TOOLKIT_INCLUDE.search(t) for _, t in texts):
        folders[str(toolkit_headers())] = None
    options = ProgramOptions(
        name=str(path), std="c++17", arch=arch, include_path=list(folders), define_macro=list(macros) or None
    )
    try:
        return Program(text, "c++", options).compile("cubin").code
    except Exception as error:
        # cuda.core's error types moved between versions, so they are told apart by what they say.
        if "NotFound" in type(error).__name__ or "INVALID_OPTION" in str(error):
            raise CudaMissingError(
                f"{path.name}: NVRTC is missing, or does not know {arch}: {_first_line(error)}; "
                'pip install "cuda-core[cu13]>=1.0"'
            ) from error
        if "NVRTC" in str(error):
            raise CompileError(f"{path.name} does not compile for {arch}\n{error}") from None
        raise


def toolkit_headers() -> Path:
    """The folder of `cuda_fp16.h` and its kin: the CUDA toolkit's, or the copy in the Triton wheel.

    Raises:
        CudaMissingError: neither is installed.
    """
    folders = []
    try:
        from cuda.pathfinder import find_nvidia_header_directory

        folders.append(find_nvidia_header_directory("cudart"))
    except (ImportError, RuntimeError):
        pass
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin:
        folders.append(str(Path(triton.origin).parent / "backends/nvidia/include"))
    for folder in folders:
        if folder and (Path(folder) / "cuda_fp16.h").is_file():
            return Path(folder)
    raise CudaMissingError("CUDA headers: cuda_fp16.h not found; pip install nvidia-cuda-runtime==13.*")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
