"""CUDA C++ source to machine code with NVRTC: no nvcc, no GPU, and hardly a wait."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from course_kernels.cuda.includes import IncludeRefused, project_folders, texts_of, toolkit_includes


class CompileError(RuntimeError):
    """The compiler refused a source; the message holds its whole log."""


class CudaMissingError(RuntimeError):
    """Something this needs is not installed; the message says what and how to get it."""


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
    try:
        texts = texts_of(path)
    except IncludeRefused as error:
        raise CompileError(str(error)) from None
    macros = tuple((name, str(value)) for name, value in (defines or {}).items())
    return _compile(tuple(texts.items()), arch, macros)


@functools.cache
def _compile(texts: tuple[tuple[Path, str], ...], arch: str, macros: tuple[tuple[str, str], ...]) -> bytes:
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise CudaMissingError(f'cuda.core: {error}; pip install "cuda-core[cu13]>=1.0"') from error

    path, text = texts[0]
    folders = [str(folder) for folder in project_folders(path)]
    if toolkit_includes(path):
        folders.append(str(toolkit_headers()))
    options = ProgramOptions(
        name=str(path), std="c++17", arch=arch, include_path=folders, define_macro=list(macros) or None
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
