"""Memory of the card that two processes see, by CUDA's own handles.

Not by torch's: its memory comes from a pool, and a handle would open all of the pool.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

HANDLE_BYTES = 64
PAGE_BYTES = 2**21  # what ends within one is mapped by small pages, which the other process reads slowly
_LAZY_PEER_ACCESS = 1  # the one flag there is


class CardFailed(RuntimeError):
    """Error: a call of the driver failed; one line."""


@cache
def _driver() -> Any:
    import torch

    torch.cuda.init()
    torch.empty(1, device="cuda")  # makes torch's context the current one
    return ctypes.CDLL("libcuda.so.1")


def _do(name: str, *arguments: Any) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorName(code, ctypes.byref(text))
        raise CardFailed(f"{name}: {(text.value or b'?').decode()}")


def allocate(size: int) -> tuple[int, str]:
    """Return bytes on the card: their address, and a ticket with which another process opens them."""
    address, handle = ctypes.c_uint64(), (ctypes.c_byte * HANDLE_BYTES)()
    _do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(-(-size // PAGE_BYTES) * PAGE_BYTES))
    _do("cuIpcGetMemHandle", ctypes.byref(handle), address)
    return address.value, bytes(handle).hex()


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_byte * HANDLE_BYTES),)


def opened(ticket: str) -> int:
    """Return the address, in this process, of what another has allocated."""
    address = ctypes.c_uint64()
    handle = _Handle.from_buffer_copy(bytes.fromhex(ticket))
    _do("cuIpcOpenMemHandle_v2", ctypes.byref(address), handle, ctypes.c_uint(_LAZY_PEER_ACCESS))
    return address.value


def close(address: int) -> None:
    """Let go of memory that was opened."""
    _do("cuIpcCloseMemHandle", ctypes.c_uint64(address))


def free(address: int) -> None:
    """Give memory back that was allocated here."""
    _do("cuMemFree_v2", ctypes.c_uint64(address))
