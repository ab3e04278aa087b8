"""A block-scaled product in Triton, compiled for cards that are not here: one line of source, a different machine each.

    C[m, n] = sum over k of A[m, k] * a_scales[m, k / share] * B[k, n] * b_scales[n, k / share]

Contract  scaled.py's formats, and MXFP4; scales one behind the other, (M, K / share) and (N, K / share), not in blocks;
          B (K / 2, N) where two numbers are in a byte, so along k. Sizes are multiples of the tile. C is float32
Idea      `tl.dot_scaled` says what is multiplied. The compiler decides which instruction does it, where the scales go,
          and whether the numbers are decoded first: on a card without such an instruction they are, without a word
Against   scaled.cu, which says all of that itself
Limits    COMPILED, NOT RUN. Triton has no NVFP4 for Hopper: there the compiler ends with an error
Source    Triton, tl.dot_scaled; OCP Microscaling Formats
"""

from __future__ import annotations

from dataclasses import dataclass

# mypy: allow-untyped-defs
import triton
import triton.language as tl

from course_kernels.rungs import Compiled

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 128
WARPS = 4


@dataclass(frozen=True)
class Form:
    """A format as Triton names it.

    Attributes:
        name: of the numbers, in `tl.dot_scaled`.
        scales: type of the scales; E8M0 has none in Triton, and comes as bytes.
        share: numbers that one scale is for.
        packed: numbers in an element.
        numbers: type of an element.
    """

    name: str
    scales: str
    share: int
    packed: int
    numbers: str


FORMS = {
    "nvfp4": Form("e2m1", "*fp8e4nv", 16, 2, "*u8"),
    "mxfp4": Form("e2m1", "*u8", 32, 2, "*u8"),
    "mxfp8": Form("e4m3", "*u8", 32, 1, "*fp8e4nv"),
}


@triton.jit
def scaled_kernel(
    A, a_scales, B, b_scales, C, N, K,
    FORM: tl.constexpr, PACKED: tl.constexpr, SHARE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Multiply one tile of C by a program."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K // PACKED)
    s = tl.arange(0, BLOCK_K // SHARE)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(0, K, BLOCK_K):
        at, scale_at = first // PACKED + k, first // SHARE + s
        a = tl.load(A + m[:, None] * (K // PACKED) + at[None, :])  # [BLOCK_M, BLOCK_K / PACKED]
        b = tl.load(B + at[:, None] * N + n[None, :])  # [BLOCK_K / PACKED, BLOCK_N]
        of_a = tl.load(a_scales + m[:, None] * (K // SHARE) + scale_at[None, :])  # [BLOCK_M, BLOCK_K / SHARE]
        of_b = tl.load(b_scales + n[:, None] * (K // SHARE) + scale_at[None, :])  # [BLOCK_N, BLOCK_K / SHARE]
        total = tl.dot_scaled(a, of_a, FORM, b, of_b, FORM, total)
    tl.store(C + m[:, None] * N + n[None, :], total)


def source_of(form: str) -> object:
    """Return the kernel with everything fixed that a launch would fix, as `triton.compile` takes it.

    Raises:
        ValueError: there is no such form.
    """
    from triton.compiler import ASTSource

    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, got {form!r}")
    what = FORMS[form]
    names = scaled_kernel.arg_names
    types = {"A": what.numbers, "B": what.numbers, "a_scales": what.scales, "b_scales": what.scales}
    types |= {"C": "*fp32", "N": "i32", "K": "i32"}
    constants = {"FORM": what.name, "PACKED": what.packed, "SHARE": what.share}
    constants |= {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    # As at a launch: torch's addresses, and sizes that are multiples of the tile.
    even = {(names.index(name),): [["tt.divisibility", 16]] for name in types}
    signature = {name: types.get(name, "constexpr") for name in names}
    return ASTSource(scaled_kernel, signature, {(names.index(n),): x for n, x in constants.items()}, even)


def compiled(form: str, capability: int) -> Compiled:
    """Compile the kernel for a card that need not be here; in a process where Triton does not interpret.

    Args:
        form: one of FORMS.
        capability: 100 for a B200, 120 for an RTX 50, 90 for Hopper.
    Raises:
        ValueError: there is no such form.
        RuntimeError: Triton cannot compile it for that card.
    """
    from triton.backends.compiler import GPUTarget

    target = GPUTarget("cuda", capability, 32)
    made = triton.compile(source_of(form), target=target, options={"num_warps": WARPS})
    return Compiled(made.asm["cubin"], made.asm["ptx"], shared_bytes=made.metadata.shared)
