"""Kernels of cuda/hopper/ on the CPU: what stands in for `prepare` and `tensor_map` of cuda/prepared.py."""

import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from cuda_on_cpu import build

from course_kernels.cuda import prepared
from course_kernels.cuda.signature import kernels_of

KINDS = {torch.float32: 1, torch.bfloat16: 2, torch.float16: 3}
MAGIC = 0x70616D2D726F736E


@dataclass(frozen=True)
class TensorMap:
    """What the copy engine is told of a tensor, in the words of hopper_on_cpu.cpp."""

    tensor: torch.Tensor
    box: tuple[int, ...]
    swizzle: int
    strides: tuple[int, ...]

    def encoded(self, address):
        """128 bytes; the tensor may have been moved to that address."""
        rank, x = len(self.box), self.tensor

        def five(numbers, most):
            return (*reversed(numbers), *[0] * most)[:most]

        return struct.pack(
            "<QQ4Q5I5I4B",
            MAGIC,
            address,
            *five(self.strides, 4),
            *five(x.shape, 5),
            *five(self.box, 5),
            rank,
            x.element_size(),
            self.swizzle,
            KINDS.get(x.dtype, 0),
        ).ljust(prepared.MAP_BYTES, b"\0")


def tensor_map(x, box, swizzle=128, *, promotion=256):
    """As `tensor_map` of prepared.py, with its checks; the tensor lies on the CPU."""
    return TensorMap(x, box, swizzle, tuple(prepared.check_map(x, box, swizzle, promotion)))


def prepare_in(folder):
    """A function like `prepare` of prepared.py; what it builds lies in the folder. `text` replaces the file's own."""

    def prepare(path, name, *, block, shared_bytes=0, cluster=1, defines=None, text=None, **_):
        text = path.read_text() if text is None else text
        (kernel,) = (k for k in kernels_of(text, defines) if k.name == name)
        launch = build(Path(tempfile.mkdtemp(dir=folder)), path, name, defines, text)

        def call(grid, *args):
            assert len(args) == len(kernel.parameters), f"{kernel}: got {len(args)} arguments"
            nothing = torch.empty(0)
            args = [nothing if a is None else a for a in args]
            held = [
                a if hasattr(a, "dtype") or isinstance(a, TensorMap) else getattr(np, p.number)(a)
                for a, p in zip(args, kernel.parameters, strict=True)
            ]
            launch(grid, block, *held, shared_bytes=shared_bytes, cluster=cluster)

        # It holds its tensors, so no address comes again, and every launch is written down anew.
        call.written = lambda grid, *args: SimpleNamespace(go=lambda: call(grid, *args))
        call.current = lambda: (-1, 0)
        return call

    return prepare
