"""cuTile, NVIDIA's language of tiles: loaded when it is asked for, and compiled for a card that is not there.

The launch of the language looks at its arguments first: what it sees of an array (a length of 1, a stride of 1, what is
divisible by 16 bytes) becomes a property of the kernel, and every other pattern is compiled anew. `array_like` repeats
these rules for a tensor that does not exist, so that `compile_for` makes the very kernel that a launch would.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import Any

from course_kernels.rungs import INSTALL, Compiled, NotInstalled

MISSING = f"cuTile: not installed here: {INSTALL} (cuda-tile and its compiler, tileiras)"

ALIGNED_BYTES = 16  # addresses and strides of such a multiple are what the copy engine takes
ALIGNED_SIZE = 16  # elements: lengths of such a multiple are noted as well


@cache
def language() -> Any:
    """Return the module `cuda.tile`.

    Raises:
        NotInstalled: it is not installed.
    """
    try:
        return import_module("cuda.tile")
    except ModuleNotFoundError as error:
        if error.name not in ("cuda", "cuda.tile"):
            raise
        raise NotInstalled(MISSING) from None


def launch(stream: Any, grid: tuple[int, ...], kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Start a kernel; the first launch with arguments of a new pattern compiles it, or finds it in the cache on disk.

    Args:
        stream: of torch.
        grid: blocks in each dimension. A block is a cluster where the kernel asks for several CTAs.
        kernel: of `cuda.tile`.
        arguments: tensors and numbers, as the kernel has them.
    Raises:
        NotInstalled: the language is installed, but not its compiler.
    """
    try:
        language().launch(stream, grid, kernel, arguments)
    except FileNotFoundError:
        raise NotInstalled(MISSING) from None


def array_like(dtype: str, shape: tuple[int, ...]) -> Any:
    """Return what a launch would assume of a contiguous tensor at an address divisible by 16.

    Args:
        dtype: of its elements, such as "bfloat16"; two bytes wide.
        shape: its lengths.
    """
    ct, signature = language(), import_module("cuda.tile.compilation")
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
    vector = ALIGNED_BYTES // 2
    return signature.ArrayConstraint(
        getattr(ct, dtype),
        len(shape),
        index_dtype=ct.int32,
        stride_lower_bound_incl=[None if stride == 1 else 0 for stride in strides],
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=[1 if stride == 1 else None for stride in strides],
        stride_divisible_by=[1 if stride == 1 or stride % vector else vector for stride in strides],
        shape_constant=[1 if length == 1 else None for length in shape],
        shape_divisible_by=[1 if length % ALIGNED_SIZE else ALIGNED_SIZE for length in shape],
        base_addr_divisible_by=ALIGNED_BYTES,
    )


def compile_for(arch: str, kernel: Any, arguments: Sequence[Any]) -> Compiled:
    """Compile a kernel as a launch would, for a card that need not be here.

    Args:
        arch: such as "sm_90a". The language has no letter behind the number; its compiler adds the `a` by itself.
        kernel: of `cuda.tile`.
        arguments: `array_like` for a tensor, `ScalarConstraint` for a number of the launch, a constant as it is.
    Raises:
        NotInstalled: the language or its compiler is not installed.
        ValueError: no such arch.
    """
    found = re.fullmatch(r"(sm_\d+)[af]?", arch)
    if not found:
        raise ValueError(f"arch: expected one such as sm_90a, got {arch!r}")
    language()
    compilation = import_module("cuda.tile.compilation")
    # The launch takes the older convention unless a length is part of the kernel.
    lengths = [length for a in arguments if hasattr(a, "shape_constant") for length in a.shape_constant]
    convention = compilation.CallingConvention
    convention = convention.cutile_python_v1() if set(lengths) <= {None} else convention.cutile_python_v2()
    made = io.BytesIO()
    try:
        compilation.export_kernel(
            kernel,
            [compilation.KernelSignature(arguments, convention)],
            made,
            gpu_code=found[1],
            output_format="cubin",
        )
    except FileNotFoundError:
        raise NotInstalled(MISSING) from None
    ptx = ptx_in(made.getvalue())
    shared = [int(size) for size in re.findall(r"^\.shared .*\[(\d+)\];", ptx, re.MULTILINE)]
    return Compiled(cubin=made.getvalue(), ptx=ptx, shared_bytes=sum(shared))


def ptx_in(cubin: bytes) -> str:
    """Return the PTX that a cubin with line numbers keeps in a section of its own; "" if there is none."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    entry, count, names = struct.unpack_from("<HHH", cubin, 0x3A)

    def section(index: int) -> tuple[int, bytes]:
        name, _, _, _, start, size = struct.unpack_from("<IIQQQQ", cubin, table + index * entry)
        return name, cubin[start : start + size]

    strings = section(names)[1]
    for index in range(count):
        name, content = section(index)
        if strings[name : strings.index(b"\0", name)] == b".nv_debug_ptx_txt":
            return content.replace(b"\0", b"\n").decode()  # lines end with a zero
    return ""
