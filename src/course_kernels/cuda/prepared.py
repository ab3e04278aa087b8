"""A kernel made ready once, and launched for little: clusters, tensor maps, and a start before the last grid has ended.

`launch` in launch.py builds what the driver wants anew at every call, which is easy to read. Here all that stays the
same is written down once, and a call fills in addresses, numbers, grid and stream.

    @functools.cache
    def _kernel(device: int) -> Prepared:
        return prepare(SOURCE, "gemm", block=384, shared_bytes=SHARED_BYTES, cluster=2)

    _kernel(a.get_device())(grid, tensor_map(a, (128, 64)), tensor_map(b, (64, 64)), c, M, N, K)

A launch that comes again with the same addresses needs not even that: `written` gives it as the driver takes it.

Source  CUDA driver API, cuLaunchKernelEx and cuTensorMapEncodeTiled
"""

from __future__ import annotations

import ctypes
import functools
import re
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.headers import CudaMissingError
from course_kernels.cuda.launch import load_kernel
from course_kernels.cuda.shared_memory import WITHOUT_ASKING
from course_kernels.cuda.signature import Kernel, Parameter, kernels_of

PORTABLE_CLUSTER = 8  # blocks; more only on cards that happen to have room
MAP_BYTES = 128
MAPS_KEPT = 4096  # an allocator that never gives the same address twice must not fill the memory

# CUfunction_attribute and CUlaunchAttributeID of the driver.
_MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 8, 14
_COOPERATIVE, _CLUSTER, _BEFORE_THE_LAST_GRID_ENDED = 2, 4, 6
_ATTRIBUTE = struct.Struct("<I4x64s")
# CUlaunchConfig: grid, block, shared memory, stream; then the attributes and how many there are.
_CONFIG, _CONFIG_END = struct.Struct("<7I4xQ"), struct.Struct("<QI4x")

_LETTERS = {
    "float32": "f",
    "float64": "d",
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
}
_LETTERS |= {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"}
# CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion. The engine moves 8-bit floats as plain bytes.
_TYPES = {torch.uint8: 0, torch.float8_e4m3fn: 0, torch.float8_e5m2: 0, torch.int32: 3, torch.float16: 6}
_TYPES |= {torch.float32: 7, torch.bfloat16: 9}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}


class Driver:
    """Calls to libcuda and to torch. A test puts another in its place."""

    @functools.cached_property
    def _library(self) -> Any:
        try:
            # PyDLL keeps Python's lock: letting it go and taking it back would cost as much as the rest of a call.
            return ctypes.PyDLL("libcuda.so.1")
        except OSError as error:
            raise CudaMissingError(f"{error}; it comes with NVIDIA's driver") from None

    def _function(self, name: str, *takes: Any) -> Any:
        function = getattr(self._library, name)
        function.argtypes, function.restype = takes, ctypes.c_int
        return function

    @functools.cached_property
    def launch(self) -> Any:
        """cuLaunchKernelEx(config, kernel, parameters, None), all of them addresses."""
        return self._function("cuLaunchKernelEx", *[ctypes.c_void_p] * 4)

    @functools.cached_property
    def encode(self) -> Any:
        """cuTensorMapEncodeTiled."""
        numbers, sizes = ctypes.c_uint32, ctypes.c_void_p
        return self._function("cuTensorMapEncodeTiled", sizes, numbers, numbers, *[sizes] * 5, *[numbers] * 4)

    def current(self) -> tuple[int, int]:
        """Torch's current GPU, and its current stream there."""
        device = torch._C._cuda_getDevice()
        return device, torch._C._cuda_getCurrentRawStream(device)

    def load(self, path: Path, name: str, defines: Mapping[str, str | int] | None) -> int:
        """Return the handle of a compiled kernel (CUkernel, which cuLaunchKernelEx takes for a CUfunction)."""
        return int(load_kernel(path, name, defines).handle)

    def set_attribute(self, attribute: int, value: int, kernel: int, device: int) -> int:
        """cuKernelSetAttribute; its error, 0 for none."""
        ask = self._function(
            "cuKernelSetAttribute", ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_int
        )
        return int(ask(attribute, value, kernel, device))

    def name_of(self, error: int) -> str:
        """Return the driver's own name of an error."""
        name = ctypes.c_char_p()
        self._function("cuGetErrorName", ctypes.c_int, ctypes.c_void_p)(error, ctypes.addressof(name))
        return (name.value or f"error {error}".encode()).decode()


driver = Driver()


class _Room:
    """Memory for one launch, as the driver reads it: arguments, where each lies, grid, stream, and the rest."""

    def __init__(self, size: int, offsets: list[int], handle: int, listed: tuple[int, int]) -> None:
        self.values, self.values_at = _aligned(size)
        start = ctypes.addressof(self.values) + self.values_at
        self._pointers = (ctypes.c_uint64 * max(len(offsets), 1))(*(start + offset for offset in offsets))
        self.config, self.config_at = _aligned(_CONFIG.size + _CONFIG_END.size)
        _CONFIG_END.pack_into(self.config, self.config_at + _CONFIG.size, *listed)
        self.asked = (
            ctypes.addressof(self.config) + self.config_at,
            handle,
            ctypes.addressof(self._pointers),
            None,
        )


@dataclass(frozen=True, slots=True)
class Written:
    """A launch that is written down: nobody writes there again, so many threads may ask for it.

    Attributes:
        go: launches; the driver's error, 0 for none. What `of.refused(error, grid)` says of it is one line.
        room: the memory that the driver reads.
        of: the kernel.
        grid: its blocks.
    """

    go: Callable[[], int]
    room: _Room
    of: Prepared
    grid: int | tuple[int, int, int]


class Prepared:
    """A kernel that is ready for launches on one GPU. Made by `prepare`."""

    def __init__(
        self,
        kernel: Kernel,
        where: str,
        handle: int,
        device: int,
        block: tuple[int, int, int],
        shared_bytes: int,
        attributes: list[bytes],
    ) -> None:
        self._kernel, self._where, self._device = kernel, where, device
        self._fixed = (*block, shared_bytes)
        self._are_tensors = tuple(parameter.pointer for parameter in kernel.parameters)
        self._n = len(self._are_tensors)
        self.current, self._launch = driver.current, driver.launch
        self._lock = threading.Lock()  # backward runs in a thread of its own, and the room below is one

        form, self._offsets = _form_of(where, kernel.parameters)
        self._values = struct.Struct(form)
        self._attributes = ctypes.create_string_buffer(b"".join(attributes))
        self._listed = (ctypes.addressof(self._attributes) if attributes else 0, len(attributes))
        self._handle = handle
        self._room = self._new_room()

    def _new_room(self) -> _Room:
        return _Room(self._values.size, self._offsets, self._handle, self._listed)

    def __call__(self, grid: int | tuple[int, int, int], *args: Any) -> None:
        """Launch on torch's current stream; returns before the kernel has finished.

        Args:
            grid: blocks, as one number or three.
            args: one for each parameter: a tensor for an address (its layout is not looked at), or None for no
                address; what `tensor_map` returned for a TensorMap; a number, which gets the width that the kernel's
                own line declares.
        Raises:
            TypeError, ValueError: an argument is not what its parameter takes; a tensor, or torch, is on another GPU.
            RuntimeError: the driver refused the launch.
        """
        with self._lock:
            self._fill(self._room, grid, args)
            error = self._launch(*self._room.asked)
        if error:
            raise self.refused(error, grid)

    def written(self, grid: int | tuple[int, int, int], *args: Any) -> Written:
        """Return this launch, written down for torch's current stream; it does not begin yet.

        Whoever keeps it answers for the addresses in it: its `go` is the driver's own call, and looks at nothing.

        Args:
            grid, args: as for a call.
        Raises:
            TypeError, ValueError: as for a call.
        """
        room = self._new_room()
        self._fill(room, grid, args)
        return Written(functools.partial(self._launch, *room.asked), room, self, grid)

    def _fill(self, room: _Room, grid: int | tuple[int, int, int], args: tuple[Any, ...]) -> None:
        """Write down arguments, grid and stream."""
        device, stream = self.current()
        if device != self._device or len(args) != self._n:
            raise self._fault(args, device)
        values: list[Any] = []
        try:
            for is_tensor, value in zip(self._are_tensors, args):  # noqa: B905  (counted above)
                if not is_tensor:
                    values.append(value)
                elif value is None:
                    values.append(0)
                elif value.get_device() != device:
                    raise ValueError
                else:
                    values.append(value.data_ptr())
            x, y, z = (grid, 1, 1) if isinstance(grid, int) else grid
            self._values.pack_into(room.values, room.values_at, *values)
            _CONFIG.pack_into(room.config, room.config_at, x, y, z, *self._fixed, stream)
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            raise self._fault(args, device, grid) from None

    def refused(self, error: int, grid: Any) -> RuntimeError:
        """Return what the driver said to a launch, in one line."""
        return RuntimeError(
            f"{self._where}: the driver refused the launch: {driver.name_of(error)}; grid {grid}, "
            f"block {self._fixed[:3]}, shared memory {self._fixed[3]} bytes"
        )

    def _fault(self, args: tuple[Any, ...], device: int, grid: Any = 1) -> Exception:
        """Return the one line that says what is wrong with a call."""
        if device != self._device:
            return ValueError(
                f"{self._where}: made ready for cuda:{self._device}, and torch's current GPU is cuda:{device}"
            )
        if len(args) != self._n:
            return ValueError(f"{self._where}: it takes {self._n} arguments, got {len(args)}: {self._kernel}")
        for parameter, value in zip(self._kernel.parameters, args, strict=True):
            fault = _fault_of(f"{self._where}: {parameter.name}", parameter, value, device)
            if fault:
                return fault
        return ValueError(f"{self._where}: grid: expected one positive number or three, got {grid!r}")


def prepare(
    path: Path,
    name: str,
    *,
    block: int | tuple[int, int, int],
    shared_bytes: int = 0,
    cluster: int | tuple[int, int, int] = 1,
    defines: Mapping[str, str | int] | None = None,
    before_the_last_grid_ended: bool = False,
    cooperative: bool = False,
) -> Prepared:
    """Compile a kernel for torch's current GPU and write down everything about its launches that stays the same.

    It looks at the file once: who edits it calls `prepare` again.

    Args:
        path: the source file. The kernel's parameters are read from its own line in it.
        name: a function declared `extern "C" __global__`.
        block: threads of a block, as one number or three.
        shared_bytes: dynamic shared memory of a block.
        cluster: blocks that run together on neighbouring multiprocessors, as one number or three; the grid is a
            multiple of it. More than 8 is asked of the card as a favour.
        defines: macros, as `-D NAME=VALUE`.
        before_the_last_grid_ended: let the grid begin while the last one of the stream still runs (programmatic
            dependent launch). The kernel calls `wait_for_last_grid` before it touches what that one writes or reads.
        cooperative: all blocks are to run at once, or the launch is refused.
    Raises:
        CompileError, CudaMissingError, FileNotFoundError: see `compile_cubin`.
        ValueError: no such kernel, a parameter that is neither an address, a number nor a TensorMap, or a size that the
            driver refuses.
    """
    where = f"{path.name}: {name}"
    device, _ = driver.current()
    handle = driver.load(path, name, defines)
    found = [
        kernel for kernel in kernels_of(path.read_text(encoding="utf-8"), defines) if kernel.name == name
    ]
    if not found:
        raise ValueError(f"{where}: its line is not in this file; prepare reads the parameters there")
    blocks = _three(cluster)
    together = blocks[0] * blocks[1] * blocks[2]
    wanted = {
        _MAX_DYNAMIC_SHARED: shared_bytes if shared_bytes > WITHOUT_ASKING else 0,
        _NON_PORTABLE_CLUSTER: int(together > PORTABLE_CLUSTER),
    }
    for attribute, value in wanted.items():
        error = driver.set_attribute(attribute, value, handle, device) if value else 0
        if error:
            what = "shared_bytes" if attribute == _MAX_DYNAMIC_SHARED else "cluster"
            raise ValueError(
                f"{where}: {what}: this GPU refuses {shared_bytes if what == 'shared_bytes' else together}: "
                f"{driver.name_of(error)}"
            )
    settings = {
        _CLUSTER: struct.pack("<3I", *blocks) if together > 1 else b"",
        _BEFORE_THE_LAST_GRID_ENDED: struct.pack("<i", 1) if before_the_last_grid_ended else b"",
        _COOPERATIVE: struct.pack("<i", 1) if cooperative else b"",
    }
    attributes = [_ATTRIBUTE.pack(number, value) for number, value in settings.items() if value]
    return Prepared(found[-1], where, handle, device, _three(block), shared_bytes, attributes)


_MAPS: dict[tuple[Any, ...], bytes] = {}


def tensor_map(x: torch.Tensor, box: tuple[int, ...], swizzle: int = 128, *, promotion: int = 256) -> bytes:
    """Return how the copy engine finds its way through a tensor: a kernel's argument of type TensorMap.

    Coordinates in the kernel count from the innermost dimension; here everything has torch's order, outermost first.
    Maps are kept, so the same question is answered at once.

    Args:
        x: two to five dimensions; the last has stride 1, the others strides of a multiple of 16 bytes, in any order.
        box: what one copy moves: elements in each dimension, at most 256.
        swizzle: 128, 64 or 32: bytes of a row in shared memory among which pieces of 16 change places, and as many as
            the box has in its last dimension; 0 for none.
        promotion: bytes that L2 fetches at least: 256, 128, 64, or 0 for what is asked.
    Raises:
        TypeError: a dtype that the engine does not know.
        ValueError: dimensions, strides, box, swizzle, promotion or the address are not as above.
    """
    key = (x.data_ptr(), x.shape, x.stride(), x.dtype, box, swizzle, promotion)
    found = _MAPS.get(key)
    if found is None:
        if len(_MAPS) >= MAPS_KEPT:
            _MAPS.clear()
        found = _MAPS[key] = _encoded(x, box, swizzle, promotion)
    return found


def check_map(x: torch.Tensor, box: tuple[int, ...], swizzle: int = 128, promotion: int = 256) -> list[int]:
    """Return the strides in bytes, outermost first and without the last, of a tensor that `tensor_map` takes.

    Raises:
        TypeError, ValueError: see `tensor_map`.
    """
    if x.dtype not in _TYPES:
        raise TypeError(f"tensor_map: no map of {str(x.dtype).removeprefix('torch.')}")
    if not 2 <= x.dim() <= 5:
        raise ValueError(f"tensor_map: expected two to five dimensions, got shape {tuple(x.shape)}")
    if swizzle not in _SWIZZLES or promotion not in _PROMOTIONS:
        raise ValueError(
            f"tensor_map: expected a swizzle of {tuple(_SWIZZLES)} and a promotion of {tuple(_PROMOTIONS)}, "
            f"got {swizzle} and {promotion}"
        )
    size = x.element_size()
    if len(box) != x.dim() or not all(1 <= n <= 256 for n in box) or box[-1] * size % 16:
        raise ValueError(
            f"tensor_map: box: expected {x.dim()} numbers from 1 to 256, the last of a multiple of 16 bytes, got {box}"
        )
    if (
        swizzle and box[-1] * size != swizzle
    ):  # a narrower one is allowed, and where its rows then lie is told nowhere
        raise ValueError(
            f"tensor_map: box: expected {swizzle} bytes in the last dimension, as the swizzle, got {box[-1] * size}"
        )
    if 0 in x.shape or x.stride(-1) != 1:
        raise ValueError(
            f"tensor_map: expected elements, with stride 1 in the last dimension, got shape {tuple(x.shape)}, "
            f"strides {x.stride()}"
        )
    check_address("tensor_map", x)
    # Nobody ever goes along a dimension of one element, whatever stride torch gives it.
    strides = [16 if n == 1 else s * size for n, s in zip(x.shape[:-1], x.stride()[:-1], strict=True)]
    if any(s % 16 or not 0 < s < 2**40 for s in strides):
        raise ValueError(
            f"tensor_map: expected strides of a multiple of 16 bytes, got strides {x.stride()} of {size} bytes"
        )
    return strides


def _encoded(x: torch.Tensor, box: tuple[int, ...], swizzle: int, promotion: int) -> bytes:
    strides, rank = check_map(x, box, swizzle, promotion), x.dim()
    memory, at = _aligned(MAP_BYTES)
    sizes = (ctypes.c_uint64 * rank)(*reversed(x.shape))
    steps = (ctypes.c_uint64 * (rank - 1))(*reversed(strides))
    boxes, ones = (ctypes.c_uint32 * rank)(*reversed(box)), (ctypes.c_uint32 * rank)(*[1] * rank)
    start = ctypes.addressof(memory) + at
    lists = (ctypes.addressof(numbers) for numbers in (sizes, steps, boxes, ones))
    # No interleaving, and zeros past the edges.
    rest = (0, _SWIZZLES[swizzle], _PROMOTIONS[promotion], 0)
    error = driver.encode(start, _TYPES[x.dtype], rank, x.data_ptr(), *lists, *rest)
    if error:
        raise ValueError(
            f"tensor_map: the driver refused shape {tuple(x.shape)}, strides {x.stride()}, box {box}, "
            f"swizzle {swizzle}: {driver.name_of(error)}"
        )
    return ctypes.string_at(start, MAP_BYTES)


# --- what a call packs ----------------------------------------------------------------------------


def _is_map(parameter: Parameter) -> bool:
    return not parameter.pointer and re.search(r"\bTensorMap\b", parameter.declared) is not None


def _form_of(where: str, parameters: tuple[Parameter, ...]) -> tuple[str, list[int]]:
    """Return how struct packs the arguments, and where each begins.

    At a multiple of its own size, a map of 64 bytes.
    """
    form, end, offsets = "<", 0, []
    for parameter in parameters:
        letter = "Q" if parameter.pointer else _LETTERS.get(parameter.number, "")
        letter = f"{MAP_BYTES}s" if _is_map(parameter) else letter
        if not letter:
            raise ValueError(
                f"{where}: {parameter.declared}: expected an address, a number of {', '.join(_LETTERS)}, "
                "or a TensorMap"
            )
        bytes_ = struct.calcsize(f"<{letter}")
        pad = -end % min(bytes_, 64)
        offsets.append(end + pad)
        form, end = f"{form}{pad}x{letter}", end + pad + bytes_
    return form, offsets


def _fault_of(where: str, parameter: Parameter, value: Any, device: int) -> Exception | None:
    if _is_map(parameter):
        if isinstance(value, bytes):
            return None
        return TypeError(f"{where}: expected what tensor_map returns, got {_short(value)}")
    if parameter.pointer:
        if value is None:
            return None
        if not isinstance(value, torch.Tensor):
            return TypeError(f"{where}: expected a tensor, got {_short(value)}")
        if value.get_device() != device:
            return ValueError(f"{where}: expected a tensor on cuda:{device}, got one on {value.device}")
        return None
    try:
        struct.pack(f"<{_LETTERS[parameter.number]}", value)
    except (struct.error, TypeError, OverflowError) as error:
        return TypeError(
            f"{where}: expected a number for {parameter.declared}, got {_short(value)} ({error})"
        )
    return None


def _short(value: Any) -> str:
    return f"a tensor on {value.device}" if isinstance(value, torch.Tensor) else repr(value)[:60]


def _aligned(n_bytes: int) -> tuple[Any, int]:
    """Memory, and where in it a multiple of 64 lies with so many bytes behind it."""
    memory = ctypes.create_string_buffer(n_bytes + 64)
    return memory, -ctypes.addressof(memory) % 64


def _three(sizes: int | tuple[int, int, int]) -> tuple[int, int, int]:
    return (sizes, 1, 1) if isinstance(sizes, int) else sizes
