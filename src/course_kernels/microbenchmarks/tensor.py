"""Best rate of a matrix instruction: FLOPs for each cycle of a multiprocessor, with nothing to carry.

Contract  every sum is compared with the truth, and a wrong one is refused
Idea      read tensor.cu first
Limits    cycles of the multiprocessor's own clock, so the card's power limit does not show. Operands are all 1: numbers
          that change cost more power and the same cycles
Source    PTX ISA 9.2, sections 9.7.14 (mma) and 9.7.15 (wgmma)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.microbenchmarks.checked import (
    WrongAnswer,
    require_gpu,
    require_room,
    warm_up_and_empty_l2,
)

SOURCE = Path(__file__).with_suffix(".cu")
UNROLL = 16  # as in tensor.cu
K = {"bf16": 16, "tf32": 8, "e4m3": 32}  # numbers along k in one instruction
ONES = {"bf16": 0x3F803F80, "tf32": 0x3F800000, "e4m3": 0x38383838}  # 1, four bytes wide
COLUMNS = (8, 16, 32, 64, 128, 256)

# For e4m3 few, so that the sums stay exact: a Hopper keeps only so many bits of them, see `sum_of_ones`.
PASSES = {"bf16": 256, "tf32": 256, "e4m3": 32}
MMA_WARPS = 16  # four for each of the four tensor cores


def defines(instruction: str, kind: str, columns: int = 256, a_in: str = "shared") -> dict[str, int]:
    """Return the macros with which tensor.cu becomes one instruction; arguments as in `flops_per_clock`.

    Raises:
        ValueError: an unknown instruction, kind, number of columns, or place of A.
    """
    for name, value, known in (
        ("instruction", instruction, ("mma", "wgmma")),
        ("kind", kind, tuple(K)),
        ("columns", columns, COLUMNS),
        ("a_in", a_in, ("shared", "registers")),
    ):
        if value not in known:
            raise ValueError(f"{name}: expected one of {', '.join(map(str, known))}, got {value!r}")
    if instruction == "mma":
        if kind == "e4m3":  # the compiler then multiplies once and adds the same product many times
            raise ValueError(
                "kind: mma has no e4m3 of its own on Hopper, it becomes conversions and fp16; take wgmma"
            )
        return {kind.upper(): 1, "MMA": 1}
    return {kind.upper(): 1, "N": columns, **({"A_IN_REGISTERS": 1} if a_in == "registers" else {})}


def flops_per_clock(
    instruction: str, n: int = 10, *, kind: str = "bf16", columns: int = 256, a_in: str = "shared"
) -> list[float]:
    """FLOPs in each cycle of one multiprocessor, while all of them multiply.

    Args:
        instruction: "mma" (`mma.sync`, 16 x 8 sums, both operands in registers) or "wgmma" (64 x `columns` sums, B in
            shared memory).
        n: samples, one launch each: the mean of all multiprocessors.
        kind: type of the operands, "bf16", "tf32" or "e4m3"; sums are fp32.
        columns: of "wgmma", columns of B: one of `COLUMNS`.
        a_in: of "wgmma", where A lies: "shared" or "registers".
    Returns:
        n numbers of FLOPs per cycle.
    Raises:
        ValueError: see `defines`; or n below 1; or "wgmma" on a card that is no Hopper.
        RuntimeError: there is no GPU.
        WrongAnswer: a sum is wrong.
    """
    if n < 1:
        raise ValueError(f"n: expected at least 1, got {n}")
    launches = _Launches(instruction, kind, columns, a_in)
    passes = PASSES[kind]
    warm_up_and_empty_l2()
    samples = []
    for number in range(n + 1):
        cycles, off = launches.run(passes)
        if not off == 0.0:  # a NaN is no 0 either
            raise WrongAnswer(f"{instruction} in {kind}: a sum of ones is off by {off}")
        if number:  # the first launch loads the code
            samples.append(float((launches.flops * passes / cycles.double()).mean()))
    return samples


def sum_of_ones(kind: str, passes: int = 256) -> tuple[int, int]:
    """Return how many ones went into each sum of a long row of `wgmma`, and what the sum says.

    Products of 8-bit numbers are added with fewer bits than fp32 has: past a power of two a sum no longer grows.

    Args:
        kind: as in `flops_per_clock`.
        passes: of 16 instructions each.
    Returns:
        The number of ones, and the sum of them that is furthest from it.
    Raises:
        ValueError: passes below 1, or as `flops_per_clock`.
    """
    if passes < 1:
        raise ValueError(f"passes: expected at least 1, got {passes}")
    launches = _Launches("wgmma", kind, 64, "shared")
    ones = K[kind] * UNROLL * passes
    return ones, ones - round(launches.run(passes)[1])


class _Launches:
    """One instruction, ready to run on all multiprocessors."""

    def __init__(self, instruction: str, kind: str, columns: int, a_in: str) -> None:
        macros = defines(instruction, kind, columns, a_in)
        require_gpu()
        device = torch.cuda.current_device()
        if instruction == "wgmma" and torch.cuda.get_device_capability(device) != (9, 0):
            raise ValueError(
                f"wgmma: expected compute capability 9.0, got {torch.cuda.get_device_name(device)}"
            )
        self.grid = torch.cuda.get_device_properties(device).multi_processor_count
        # Small sums leave registers for more warpgroups, which hide the wait at the end of a pass.
        self.warps = MMA_WARPS if instruction == "mma" else 16 if columns <= 64 else 8
        sums = self.warps * 16 * 8 if instruction == "mma" else self.warps // 4 * 64 * columns
        self.flops = 2 * sums * K[kind] * UNROLL  # of one pass of one multiprocessor
        self.operands = torch.full((6,), ONES[kind], dtype=torch.int32, device="cuda")
        self.kernel = load_kernel(SOURCE, "multiply", macros)

    def run(self, passes: int) -> tuple[torch.Tensor, float]:
        """Cycles of every multiprocessor, (multiprocessors,) int64; and how far the worst sum is off."""
        threads = self.warps * 32
        cycles = torch.zeros(self.grid, dtype=torch.int64, device="cuda")
        worst = torch.full((self.grid * threads,), torch.nan, dtype=torch.float32, device="cuda")
        arrived = torch.zeros(1, dtype=torch.int32, device="cuda")
        require_room(self.kernel, self.grid, threads)
        launch(self.kernel, self.grid, threads, self.operands, np.int32(passes), cycles, worst, arrived)
        return cycles, float(worst.max())
