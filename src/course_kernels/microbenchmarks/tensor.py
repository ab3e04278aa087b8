"""What a matrix instruction can do at best: FLOPs for each cycle of a multiprocessor, with nothing to carry.

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
from course_kernels.microbenchmarks.checked import WrongAnswer, require_gpu, warm_up_and_empty_l2

SOURCE = Path(__file__).with_suffix(".cu")
UNROLL = 16  # as in tensor.cu
K = {"bf16": 16, "tf32": 8, "e4m3": 32}  # numbers along k in one instruction
ONES = {"bf16": 0x3F803F80, "tf32": 0x3F800000, "e4m3": 0x38383838}  # 1, four bytes wide
COLUMNS = (8, 16, 32, 64, 128, 256)

# Sums of e4m3 products are kept short inside the tensor cores; this many passes stay exact.
PASSES = 256
MMA_WARPS = 16  # four for each of the four tensor cores


def defines(instruction: str, kind: str, columns: int = 256, a_in: str = "shared") -> dict[str, int]:
    """The macros with which tensor.cu becomes one instruction; arguments as in `flops_per_clock`.

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
        WrongAnswer: a sum is wrong.
    """
    macros = defines(instruction, kind, columns, a_in)
    if n < 1:
        raise ValueError(f"n: expected at least 1, got {n}")
    require_gpu()
    device = torch.cuda.current_device()
    if instruction == "wgmma" and torch.cuda.get_device_capability(device) != (9, 0):
        raise ValueError(f"wgmma: expected compute capability 9.0, got {torch.cuda.get_device_name(device)}")
    grid = torch.cuda.get_device_properties(device).multi_processor_count
    # Small sums leave registers for more warpgroups, which hide the wait at the end of a pass.
    warps = MMA_WARPS if instruction == "mma" else 16 if columns <= 64 else 8
    sums = warps * 16 * 8 if instruction == "mma" else warps // 4 * 64 * columns
    flops = 2 * sums * K[kind] * UNROLL * PASSES
    operands = torch.full((6,), ONES[kind], dtype=torch.int32, device="cuda")
    warm_up_and_empty_l2()
    samples = []
    for number in range(n + 1):
        cycles = torch.zeros(grid, dtype=torch.int64, device="cuda")
        worst = torch.full((grid * warps * 32,), torch.nan, dtype=torch.float32, device="cuda")
        kernel = load_kernel(SOURCE, "multiply", macros)
        launch(kernel, grid, warps * 32, operands, np.int32(PASSES), cycles, worst)
        if not float(worst.max()) == 0.0:  # a NaN is no 0 either
            raise WrongAnswer(f"{instruction} in {kind}: a sum of ones is off by {float(worst.max())}")
        if number:  # the first launch loads the code
            samples.append(float((flops / cycles.double()).mean()))
    return samples
