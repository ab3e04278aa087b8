"""Rungs of the ladder of tools: a language that is not installed, and what its compiler made of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

INSTALL = "pip install -e '.[ladder]'"


class NotInstalled(RuntimeError):
    """Error: the language of a kernel is not installed here; its line says how to get it."""


@dataclass(frozen=True)
class Compiled:
    """Product of a compiler: one kernel's machine code, and the texts on the way to it.

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
