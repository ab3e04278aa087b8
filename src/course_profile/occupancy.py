"""Occupancy of a multiprocessor, and what sets its limit; and the resources that a cubin names.

The numbers of each generation are those of the CUDA C++ Programming Guide, table of technical specifications.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

REGISTERS = 65536  # of one multiprocessor, on every generation here
WARP = 32
PARTS = 4  # each with a fourth of the registers, for the warps of its own scheduler
REGISTERS_TOGETHER = 256  # a warp is given registers in steps of so many
RESERVED_SHARED = 1024  # bytes that the system takes of each block
SHARED_TOGETHER = 128


@dataclass(frozen=True)
class Generation:
    """Most that one multiprocessor holds: warps, blocks, and bytes of shared memory for blocks."""

    warps: int
    blocks: int
    shared_bytes: int


GENERATIONS = {
    "sm_80": Generation(64, 32, 164 * 1024),
    "sm_89": Generation(48, 24, 100 * 1024),
    "sm_90": Generation(64, 32, 228 * 1024),
    "sm_100": Generation(64, 32, 228 * 1024),
}


@dataclass(frozen=True)
class Occupancy:
    """Blocks on one multiprocessor.

    Attributes:
        blocks: how many fit.
        warps: how many warps they are.
        most: warps that it could hold.
        limits: blocks by what limits them.
    """

    blocks: int
    warps: int
    most: int
    limits: dict[str, int]

    @property
    def limiter(self) -> str:
        """Name of the limit; several at once are all named."""
        return " and ".join(name for name, blocks in self.limits.items() if blocks == self.blocks)

    @property
    def share(self) -> float:
        """Share of the places for warps that is taken."""
        return self.warps / self.most


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> Occupancy | None:
    """Occupancy of a launch on one multiprocessor; None for an unknown generation.

    Args:
        arch: such as "sm_90a".
        threads: of a block.
        registers: of a thread.
        shared_bytes: of a block, static and dynamic.
    """
    card = GENERATIONS.get(arch.rstrip("af"))
    if card is None:
        return None
    warps = -(-threads // WARP)
    of_a_warp = -(-max(registers, 1) * WARP // REGISTERS_TOGETHER) * REGISTERS_TOGETHER
    shared = -(-(shared_bytes + RESERVED_SHARED) // SHARED_TOGETHER) * SHARED_TOGETHER
    limits = {
        "registers": REGISTERS // PARTS // of_a_warp * PARTS // warps,
        "shared memory": card.shared_bytes // shared,
        "warps": card.warps // warps,
        "blocks": card.blocks,
    }
    blocks = min(limits.values())
    return Occupancy(blocks, blocks * warps, card.warps, limits)


@dataclass(frozen=True)
class Resources:
    """Resources that the compiler gave one kernel.

    Attributes:
        registers: of a thread.
        shared_bytes: of a block, static.
        local_bytes: of a thread: spilled registers, and arrays that are indexed at run time.
    """

    registers: int
    shared_bytes: int
    local_bytes: int


# Kinds of a record in the section .nv.info, whose payload is a symbol's number and a value.
_SIZED = 4
_REGISTERS, _FRAME = 0x2F, 0x11


def resources(cubin: bytes, kernel: str) -> Resources | None:
    """Resources of a kernel, from a cubin; None where it has none of that name.

    A cubin is an ELF file: registers and local memory are in its section .nv.info, and shared memory is a section
    of its own, with what the system reserves where the compiler says that it does.
    """
    if cubin[:4] != b"\x7fELF":
        return None
    sections = _sections(cubin)
    if f".text.{kernel}" not in sections:
        return None
    at, size = sections[".symtab"]
    names, _ = sections[".strtab"]
    numbers = [
        n
        for n in range(size // _SYMBOL)
        if _text(cubin, names + struct.unpack_from("<I", cubin, at + n * _SYMBOL)[0]) == kernel
    ]
    told: dict[int, int] = {}
    at, size = sections[".nv.info"]
    end = at + size
    while at < end:
        kind, what, length = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if kind != _SIZED:
            continue
        if length >= 8:
            symbol, value = struct.unpack_from("<II", cubin, at)
            if symbol in numbers:
                told[what] = value
        at += length
    _, shared = sections.get(f".nv.shared.{kernel}", (0, 0))
    if shared and ".nv.shared.reserved.0" in sections:
        shared -= RESERVED_SHARED
    return Resources(told.get(_REGISTERS, 0), shared, told.get(_FRAME, 0))


_SYMBOL = 24  # bytes of an entry


def _sections(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Offset and bytes of each section, by name."""
    (at,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, at + n * size) for n in range(count)]
    return {_text(cubin, headers[names][4] + header[0]): (header[4], header[5]) for header in headers}


def _text(cubin: bytes, at: int) -> str:
    return cubin[at : cubin.index(b"\0", at)].decode()
