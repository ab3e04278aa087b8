"""Instructions that a kernel of this folder spends on a byte of a and its scales, counted in its machine code.

What a multiprocessor may spend on a byte is what it issues in the time in which its share of memory's bandwidth
brings one. Counted are the instructions of the loop that walks along a row, or down the rows, and the bytes that it
asks for; what comes before and after is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.gemv_fp4.by_shares import cut_of
from course_kernels.gemv_fp4.problem import HACKATHON
from course_kernels.problem import Workload

VECTOR_BYTES = 16 + 2  # of a, and their two scales
COPIED_BYTES = (
    16 * 9 / 10
)  # by k12's copies: of four vectors by 32 lanes and of their scales by 16, five for a lane
BYTE_BYTES = 1 + 1 / 8
LOADS_OF_A_BYTE = 4  # a, its scale, b, its scale
WITHOUT_B = 8  # from this kernel on no loop loads b from global memory
BY_SHARES = 11  # from this kernel on by_shares.py decides what is compiled
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
_LABEL = re.compile(r"^(\.L_x_\d+):")


@dataclass(frozen=True)
class Loop:
    """The loop that does a kernel's work.

    Attributes:
        instructions: how many of each, by the name without its modifiers.
        a_bytes: of a and its scales, what one thread asks for in one round.
    """

    instructions: Counter[str]
    a_bytes: float

    @property
    def per_byte(self) -> float:
        """Instructions of a thread for each byte."""
        return self.instructions.total() / self.a_bytes


def loop_in(text: str, *, loads_b: bool) -> Loop:
    """Return the loop that loads most, of those that hold no other loop.

    Args:
        text: what nvdisasm prints of a kernel.
        loads_b: whether the loop loads b as it loads a.
    Raises:
        ValueError: no loop loads anything.
    """
    code: list[tuple[str, str]] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif found := _LINE.match(line):
            code.append((found[2], found[3]))
    ends = [
        (labels[target[0]], place)
        for place, (name, rest) in enumerate(code)
        if name == "BRA" and (target := re.findall(r"\.L_x_\d+", rest)) and labels[target[0]] <= place
    ]
    inner = [
        (start, end)
        for start, end in ends
        if not any(start <= other and last <= end and (start, end) != (other, last) for other, last in ends)
    ]
    loops = [_loop([name for name, _ in code[start : end + 1]], loads_b) for start, end in inner]
    loops = [loop for loop in loops if loop.a_bytes]
    if not loops:
        raise ValueError("machine code: expected a loop that loads from global memory, found none")
    return max(loops, key=lambda loop: (loop.a_bytes, loop.instructions.total()))


def _loop(names: list[str], loads_b: bool) -> Loop:
    copied = sum(name.startswith("LDGSTS.") for name in names)
    vectors = sum(name.startswith("LDG.") and ".128" in name for name in names) / (2 if loads_b else 1)
    single = sum(name.startswith("LDG.") and ".U8" in name for name in names) / LOADS_OF_A_BYTE
    a_bytes = COPIED_BYTES * copied + VECTOR_BYTES * vectors + BYTE_BYTES * single
    return Loop(Counter(name.split(".")[0] for name in names), a_bytes)


def loop_of(
    kernel: str, w: Workload = HACKATHON[0], *, arch: str = "sm_90a", multiprocessors: int = 132
) -> Loop:
    """Return the loop of a kernel of this folder, compiled for a card that need not be there.

    Args:
        kernel: its file's name, such as "k07_pairs".
        w: the workload; the kernels that share out rows are compiled for its K.
        arch: see `arch_of`.
        multiprocessors: of that card.
    Raises:
        FileNotFoundError: there is no such kernel.
        CudaMissingError: NVRTC or nvdisasm is not installed.
    """
    source = Path(__file__).with_name(f"{kernel}.cu")
    number = int(kernel[1:3])
    defines = cut_of(w.L, w.M, w.K, multiprocessors).defines if number >= BY_SHARES else None
    return loop_in(sass(compile_cubin(source, arch, defines)), loads_b=number < WITHOUT_B)
