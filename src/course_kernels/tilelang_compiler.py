"""TileLang: the package where it is installed, and what its compiler makes without a card.

Limits    nvcc and a host compiler must be there: TileLang writes CUDA C++ and lets nvcc read it
Source    https://github.com/tile-ai/tilelang, version 0.1.15
"""

from __future__ import annotations

import functools
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from course_kernels.cuda.headers import CudaMissingError
from course_kernels.rungs import INSTALL, Compiled, NotInstalled

# What `tilelang.compile` may be told of a kernel: its own options, by their names.
Options = dict[str, Any]


@functools.cache
def tilelang() -> Any:
    """Return the package.

    Raises:
        NotInstalled: it is not there.
    """
    # It would print two lines for every kernel.
    os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
    try:
        return import_module("tilelang")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tilelang":
            raise
        raise NotInstalled(f"TileLang: not installed here: {INSTALL}") from None


def ready(function: Any, options: Options, arch: str = "sm_90a") -> Any:
    """Return a kernel that can be called with tensors: (tensors) -> None.

    Args:
        function: a `T.prim_func`.
        options: what the compiler is told.
        arch: the card, with its suffix: without the `a` of sm_90a there is no wgmma.
    """
    return tilelang().compile(
        function,
        target={"kind": "cuda", "arch": arch},
        execution_backend="tvm_ffi",
        pass_configs=options,
    )


def compiled(function: Any, options: Options, arch: str = "sm_90a") -> Compiled:
    """Return what the compiler makes of a kernel, on a machine without a card: the same as `ready` launches.

    Args:
        function: a `T.prim_func` of one kernel.
        options: what the compiler is told.
        arch: the card, with its suffix.
    Raises:
        NotInstalled: TileLang is not there.
        CudaMissingError: nvcc is not there.
    """
    package = tilelang()
    nvcc, backend = import_module("tilelang.contrib.nvcc"), import_module("tilelang.cuda.backend")
    try:
        compiler = Path(nvcc.get_nvcc_compiler())
    except RuntimeError:  # there is no folder of CUDA
        compiler = None
    if compiler is None or not compiler.exists():
        raise CudaMissingError("nvcc: not found, and TileLang compiles by it; install CUDA or set CUDA_HOME")
    # As text, "cuda -arch=sm_90a", a target is refused; and the passes look for it around them.
    target = package.tvm.target.Target({"kind": "cuda", "arch": arch})
    with package.tvm.transform.PassContext(opt_level=3, config=options), target:
        made = package.lower(function, target=target)
        cubin = bytes(backend.tilelang_callback_cuda_compile(made.kernel_source, target, options))
        flags = ["-std=c++20", f"-I{nvcc.TILELANG_TEMPLATE_PATH}", f"-I{nvcc.CUTLASS_INCLUDE_DIR}"]
        flags += ["--use_fast_math"] if options.get("tl.enable_fast_math") else []
        ptx = bytes(nvcc.compile_cuda(made.kernel_source, "ptx", [f"-arch={arch}"], options=flags)).decode()
    (kernel,) = made.device_mod.functions.values()
    return Compiled(cubin, ptx, made.kernel_source, int(kernel.attrs.get("dyn_shared_memory_buf", 0)))
