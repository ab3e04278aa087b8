"""What the rungs of the ladder of tools have in common: a language that is not installed, and what its compiler made."""

from __future__ import annotations

from dataclasses import dataclass


class NotInstalled(RuntimeError):
    """Error: the language of a kernel is not installed here; its line says how to get it."""


@dataclass(frozen=True)
class Compiled:
    """What a compiler made of one kernel.

    Attributes:
        cubin: the machine code, an ELF file.
        ptx: the text that came before it; "" where the compiler shows none.
        source: the code that a higher language wrote, such as TileLang's C++; "" where it writes none.
        shared_bytes: shared memory of a block that the launcher asks for; 0 where the compiler does not say.
    """

    cubin: bytes
    ptx: str = ""
    source: str = ""
    shared_bytes: int = 0
