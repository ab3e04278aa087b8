"""Our Triton kernels for cards that are not here, AMD's among them: two sources, and the tile that each would get."""

from __future__ import annotations

from typing import Any

# mypy: allow-untyped-defs
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from course_kernels.attention import k03_flash
from course_kernels.gemm import k05_triton

SOURCES = {
    "multiply": "src/course_kernels/gemm/k05_triton.py",
    "attention": "src/course_kernels/attention/k03_flash.py",
}
D = 128
HOPPER = GPUTarget("cuda", 90, 32)
# gfx950 has no TF32, and Triton refuses the word there, even of bfloat16, of which it says nothing. So it is allowed.
AMD_OPTIONS = {"allowed_dot_input_precisions": ("bf16x3", "bf16x6", "ieee", "tf32")}


def compiled(problem: str, target: GPUTarget) -> tuple[Any, dict[str, Any]]:
    """Return what Triton makes of a kernel in bfloat16, and the tile it was given.

    Args:
        problem: "multiply" or "attention".
        target: a card, by back end, architecture and threads of a warp. As in the launcher, Hopper has its own tiles.
    """
    hopper = target == HOPPER
    tile: Any
    blocks: dict[str, tuple[int, ...]]
    if problem == "multiply":
        kernel = k05_triton.gemm_kernel
        tile = (k05_triton.HOPPER if hopper else k05_triton.GENERIC)[2]
        m, n, k = tile.block_m, tile.block_n, tile.block_k
        tma = hopper
        blocks = {"A": (m, k), "B": (k, n), "C": (m, n // tile.strips)}
        sizes = {"M": "i32", "N": "i32", "K": "i32"}
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": tile.group_m, "STRIPS": tile.strips}
        constants |= {"DTYPE": tl.bfloat16, "TURNED": False, "TMA": tma}
    else:
        kernel = k03_flash.attention_kernel
        tile = (k03_flash.HOPPER if hopper else k03_flash.GENERIC)[2, D]
        m, n = tile.block_m, tile.block_n
        tma = tile.tma
        blocks = {name: (1, rows, D) for name, rows in (("Q", m), ("K", n), ("V", n), ("O", m))}
        sizes = {"lse_ptr": "*fp32", "N": "i32", "scale": "fp32", "ln_2": "fp32"}
        constants = {"D": D, "CAUSAL": False, "BLOCK_M": m, "BLOCK_N": n, "PRECISION": "tf32", "TMA": tma}
    types = {name: f"tensordesc<bf16{list(block)}>" if tma else "*bf16" for name, block in blocks.items()}
    types |= sizes
    names = kernel.arg_names
    # As at a launch: torch's addresses, and lengths of whole tiles, are multiples of 16.
    even = [name for name, kind in types.items() if kind[0] == "*" or kind == "i32"]
    source = ASTSource(
        kernel,
        {name: types.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in even},
    )
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    options |= AMD_OPTIONS if target.backend == "hip" else {}
    given = {"M": m, "N": n} | ({"K": k} if problem == "multiply" else {"D": D})
    return triton.compile(source, target=target, options=options), given | options
