"""What a cubin holds: its instructions, disassembled once by a run; and what its file says of registers and stacks.

Whatever is spilled, or indexed in local memory, needs a stack, and to read of it takes no disassembler, which runs for
a third of a second. That both say the same is seen in test_kernels_sgemm.py.
"""

import struct
from functools import cached_property
from typing import NamedTuple

from once import once

from course_kernels.cuda import disassemble

REGISTERS, STACK = 0x2F, 0x11  # what the list of a cubin calls them


class Resources(NamedTuple):
    """Of one kernel: registers of a thread, bytes of its stack, and bytes of the block's shared memory."""

    registers: int
    stack: int
    shared: int


def sass(cubin):
    """As `course_kernels.cuda.disassemble.sass`."""

    def instructions(folder):
        (folder / "sass").write_text(disassemble.sass(cubin))

    return (once(instructions, cubin) / "sass").read_text()


class Code:
    """A cubin, and its instructions once somebody asks for them."""

    def __init__(self, cubin):
        self.cubin = cubin

    @cached_property
    def text(self):
        return sass(self.cubin)

    @cached_property
    def resources(self):
        return resources_of(self.cubin)


def resources_of(cubin):
    """By the names of its kernels, from its ELF file."""
    (table,), (size, count, names) = struct.unpack_from("<Q", cubin, 40), struct.unpack_from("<3H", cubin, 58)
    heads = [struct.unpack_from("<2I4Q2I", cubin, table + size * i) for i in range(count)]

    def text_at(place):
        return cubin[place : cubin.index(b"\0", place)].decode()

    sections = {text_at(heads[names][4] + head[0]): (head[4], head[5]) for head in heads}
    first, length = sections[".symtab"]
    symbols = [
        text_at(sections[".strtab"][0] + struct.unpack_from("<I", cubin, place)[0])
        for place in range(first, first + length, 24)
    ]
    place, length = sections[".nv.info"]
    end, found = place + length, {REGISTERS: {}, STACK: {}}
    while place < end:
        form, what, value = struct.unpack_from("<2BH", cubin, place)
        if form == 4:  # `value` bytes follow; here a symbol's number and what is said of it
            symbol, said = struct.unpack_from("<2I", cubin, place + 4)
            if what in found:
                found[what][symbols[symbol]] = said
        place += 4 + (value if form == 4 else 0)
    return {
        name: Resources(registers, found[STACK].get(name, 0), sections.get(f".nv.shared.{name}", (0, 0))[1])
        for name, registers in found[REGISTERS].items()
    }


def stacks(cubin):
    """Bytes of the stack of every kernel; there is one at least."""
    found = [each.stack for each in resources_of(cubin).values()]
    assert found, "a cubin without a kernel"
    return found
