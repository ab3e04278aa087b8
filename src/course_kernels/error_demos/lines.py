"""Compile a `.cu` file so that a tool can name the line a machine instruction came from.

The library's own `load_kernel` leaves the line numbers out; they change no instruction, only the file's size.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import CompileError
from course_kernels.cuda.headers import CudaMissingError


def cubin_with_lines(path: Path, arch: str) -> bytes:
    """Machine code with line numbers; the file may include nothing.

    Raises:
        CompileError: the source has errors; the message is the compiler's log.
        CudaMissingError: cuda.core is not installed.
    """
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError as error:
        raise CudaMissingError(f'cuda.core: {error}; pip install "cuda-core[cu13]>=1.0"') from error
    options = ProgramOptions(name=path.name, std="c++17", arch=arch, lineinfo=True)
    try:
        return Program(path.read_text(encoding="utf-8"), "c++", options).compile("cubin").code
    except Exception as error:
        if "NVRTC" in str(error):
            raise CompileError(f"{path.name} does not compile for {arch}\n{error}") from None
        raise


def load_with_lines(path: Path, name: str) -> Any:
    """Return the kernel `name` of a `.cu` file, for the current GPU, with line numbers inside.

    Raises:
        CompileError, CudaMissingError: see `cubin_with_lines`.
    """
    import torch
    from cuda.core import ObjectCode

    code = cubin_with_lines(path, arch_of(torch.cuda.get_device_capability()))
    return ObjectCode.from_cubin(code).get_kernel(name)
