"""Run a `.cu` file of your own in one line.

    from course_kernels.cuda.run import run

    run("mine.cu", grid, block, x, y, z, N)

The file is compiled, its kernel found, and plain numbers get the width that the kernel's own line declares: an int
becomes 32 bits for `int` and 64 for `long long`. Whatever does not fit is refused in one line.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.launch import launch
from course_kernels.cuda.signature import Kernel, Parameter, kernels_of

MAX_BLOCK, MAX_THREADS = (1024, 1024, 64), 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
SHARED_WITHOUT_ASKING = 48 * 1024  # bytes; a kernel that wants more must be told so before it is launched
TO_TRY = "sm_90a"  # what to compile for where there is no GPU


def run(
    path: str | Path,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *args: Any,
    shared_bytes: int = 0,
    defines: Mapping[str, str | int] | None = None,
    kernel: str | None = None,
    wait: bool = True,
) -> None:
    """Compile a `.cu` file and run its kernel.

    Args:
        path: the file. It is compiled again whenever it, or a file it includes with quotes, has changed.
        grid: blocks, as one number or up to three.
        block: threads of a block, as one number or up to three; at most 1024 in all.
        args: one for each parameter of the kernel: a contiguous tensor on the GPU for an address, a number otherwise.
        shared_bytes: dynamic shared memory of a block.
        defines: macros, such as {"TILE": 32}.
        kernel: which one, where the file has several.
        wait: come back when the kernel is done, so that a fault in it is told here. Without it, this only puts the
            kernel into torch's current stream, as anything that is timed must.
    Raises:
        TypeError: an argument is of the wrong kind: no tensor, another element type, a fraction for a whole number.
        ValueError: anything else about the arguments, the grid, the block, or what kernels the file has.
        FileNotFoundError, CompileError, CudaMissingError: see `compile_cubin`.
        RuntimeError: there is no GPU, or the kernel faulted while it ran.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{path}: no such file; Python runs in {Path.cwd()}")
    found = _choose(file, kernel, defines)
    where = f"{file.name}: {found.name}"
    grid, block = _sizes(where, "grid", grid, MAX_GRID), _sizes(where, "block", block, MAX_BLOCK)
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise ValueError(f"{where}: block: at most {MAX_THREADS} threads, got {_times(block)} = {threads}")
    if shared_bytes < 0:
        raise ValueError(f"{where}: shared_bytes: expected at least 0, got {shared_bytes}")
    if len(args) != len(found.parameters):
        raise ValueError(
            f"{where}: it takes {_count(len(found.parameters), 'argument')}, got {len(args)}: {found}"
        )
    here = _here()
    pairs = zip(found.parameters, args, strict=True)
    values = [_value(f"{where}: {parameter.name}", parameter, value, here) for parameter, value in pairs]

    cubin = compile_cubin(file, arch_of(torch.cuda.get_device_capability()) if here else TO_TRY, defines)
    if here is None:
        raise RuntimeError(
            f"{where}: it compiles, and the arguments fit; torch finds no GPU here to run it on"
        )
    loaded = _load(cubin, found.name, torch.cuda.current_device())
    _check_room(where, loaded, threads, shared_bytes)
    launch(loaded, grid, block, *values, shared_bytes=shared_bytes)
    if wait:
        _wait(where)


# --- what to run ----------------------------------------------------------------------------------


def _choose(file: Path, name: str | None, defines: Mapping[str, str | int] | None) -> Kernel:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.name}: not UTF-8 text, at byte {error.start}: save it as UTF-8") from None
    found = kernels_of(text, defines)
    found = list({kernel.name: kernel for kernel in found}.values())  # two, under an #if: the later one
    names = ", ".join(kernel.name for kernel in found)
    if not found:
        raise ValueError(f'{file.name}: no kernel in it; one begins with extern "C" __global__ void')
    if name is not None:
        found = [kernel for kernel in found if kernel.name == name]
        if not found:
            raise ValueError(f"{file.name}: no kernel {name} in it; there is {names}")
    callable_ones = [kernel for kernel in found if kernel.is_extern_c and not kernel.is_template]
    if not callable_ones and found[0].is_template:
        raise ValueError(
            f"{file.name}: {found[0].name} is a template, which Python cannot find by name; write out one type"
        )
    if not callable_ones:
        raise ValueError(
            f'{file.name}: {found[0].name} is not extern "C", so Python cannot find it by name; '
            f'write extern "C" __global__ void {found[0].name}(…)'
        )
    if len(callable_ones) > 1:
        names = ", ".join(kernel.name for kernel in callable_ones)
        raise ValueError(
            f'{file.name}: several kernels in it, {names}; say which, as in kernel="{callable_ones[0].name}"'
        )
    return callable_ones[0]


@functools.cache
def _load(cubin: bytes, name: str, device: int) -> Any:
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(cubin).get_kernel(name)


# --- what it is given -----------------------------------------------------------------------------


def _here() -> torch.device | None:
    """Return the GPU that torch uses now; None where there is none."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None


def _sizes(where: str, what: str, given: Any, most: tuple[int, ...]) -> tuple[int, int, int]:
    parts = given if isinstance(given, tuple | list) else (given,)
    try:
        sizes = [operator.index(part) for part in parts]
    except TypeError:
        raise TypeError(f"{where}: {what}: expected whole numbers, got {given!r}") from None
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{where}: {what}: expected one to three numbers, got {len(sizes)}")
    for size, limit, axis in zip(sizes, most, "xyz", strict=False):
        if not 1 <= size <= limit:
            raise ValueError(f"{where}: {what}: expected from 1 to {limit} along {axis}, got {size}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _value(where: str, parameter: Parameter, value: Any, here: torch.device | None) -> Any:
    if parameter.number == "?":
        raise TypeError(
            f"{where}: its type, {parameter.declared}, is neither a number nor an address of numbers; "
            "course_kernels.cuda.launch takes whatever you can build"
        )
    return _tensor(where, parameter, value, here) if parameter.pointer else _scalar(where, parameter, value)


def _tensor(where: str, parameter: Parameter, value: Any, here: torch.device | None) -> torch.Tensor:
    wanted = f"a {parameter.number} tensor" if parameter.number else "a tensor"
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{where}: expected {wanted}, got {_kind(value)}")
    if parameter.number and value.dtype not in _dtypes(parameter):
        raise TypeError(
            f"{where}: expected {wanted}, got {_short(value.dtype)}: the file says {parameter.declared}"
        )
    if here and value.device != here:
        raise ValueError(f"{where}: expected a tensor on {here}, got one on {value.device}")
    if not value.is_contiguous():
        raise ValueError(
            f"{where}: expected a contiguous tensor, got strides {value.stride()} for shape {tuple(value.shape)}: "
            "a kernel sees an address and no strides; pass .contiguous()"
        )
    if value.data_ptr() % parameter.alignment:
        raise ValueError(
            f"{where}: expected an address divisible by {parameter.alignment}, for {parameter.declared}, "
            f"got one {value.data_ptr() % parameter.alignment} bytes past it"
        )
    return value


def _dtypes(parameter: Parameter) -> tuple[torch.dtype, ...]:
    """Return the element types an address may have. Few torch operations know uint32, so int32 stands in for it."""
    signed = parameter.number.removeprefix("u")
    return tuple(getattr(torch, name) for name in dict.fromkeys((parameter.number, signed)))


def _scalar(where: str, parameter: Parameter, value: Any) -> np.generic:
    number = parameter.number
    if isinstance(value, torch.Tensor):
        raise TypeError(f"{where}: expected a number, got a tensor: the file says {parameter.declared}")
    if not hasattr(np, number):
        raise TypeError(f"{where}: run() cannot pass a single {number}; pass a tensor of one element")
    if number == "bool":
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{where}: expected True or False, got {value!r}")
        return np.bool_(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{where}: expected a number, got {_kind(value)}")
    if number.startswith("float"):
        with np.errstate(over="ignore"):
            result = getattr(np, number)(value)
        if np.isinf(result) and not np.isinf(float(value)):
            raise ValueError(f"{where}: {value} is too large for {parameter.declared}")
        return result
    if not isinstance(value, int | np.integer):
        raise TypeError(f"{where}: expected a whole number for {parameter.declared}, got {value!r}")
    limits = np.iinfo(number)
    if not limits.min <= value <= limits.max:
        wider = "; declare it long long" if number == "int32" and -(2**63) <= value < 2**63 else ""
        raise ValueError(
            f"{where}: {value} does not fit {parameter.declared}, which holds {limits.min} to {limits.max}{wider}"
        )
    return getattr(np, number)(value)


# --- on the card ----------------------------------------------------------------------------------


def _check_room(where: str, loaded: Any, threads: int, shared_bytes: int) -> None:
    most = _number(loaded.attributes.max_threads_per_block)
    if threads > most:
        raise ValueError(
            f"{where}: block: {threads} threads, and the kernel can have at most {most}: "
            f"each takes {_number(loaded.attributes.num_regs)} registers"
        )
    if shared_bytes > SHARED_WITHOUT_ASKING:
        from cuda.bindings import driver

        limit = torch.cuda.get_device_properties(torch.cuda.current_device()).shared_memory_per_block_optin
        if shared_bytes > limit:
            raise ValueError(f"{where}: shared_bytes: at most {limit} on this card, got {shared_bytes}")
        (error,) = driver.cuKernelSetAttribute(
            driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            shared_bytes,
            driver.CUkernel(int(loaded.handle)),
            driver.CUdevice(torch.cuda.current_device()),
        )
        if error != driver.CUresult.CUDA_SUCCESS:
            raise ValueError(f"{where}: shared_bytes: the card refuses {shared_bytes}: {error.name}")


def _wait(where: str) -> None:
    try:
        torch.cuda.current_stream().synchronize()
    except RuntimeError as error:
        raise RuntimeError(
            f"{where}: it faulted: {str(error).splitlines()[0]}. `compute-sanitizer python your_script.py` names the "
            "thread. This Python can no longer use the GPU: start a new one"
        ) from None


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "a NumPy array: torch.from_numpy(…).cuda() makes a tensor of it"
    if isinstance(value, list):
        return "a list: torch.tensor(…, device='cuda') makes a tensor of it"
    return repr(value)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _times(sizes: tuple[int, ...]) -> str:
    return " × ".join(str(size) for size in sizes)


def _count(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'s' if number != 1 else ''}"


def _number(attribute: Any) -> int:
    """Return a number of a kernel: some releases of cuda.core give it at once, others when they are called."""
    return int(attribute() if callable(attribute) else attribute)
