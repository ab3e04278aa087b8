"""Matrix multiply in Helion: loops over tiles in PyTorch's words, of which it writes a kernel in Triton.

Contract  problem.py
Idea      say over what the tiles go and what is done with one, in PyTorch; the sizes of the tiles, their order, the
          grid, pointers or TMA are not said, but chosen from outside. `compiled` shows the Triton text that comes out
Against   k05_triton, where the tile, its place and its masks are written by hand
Cost      as k05_triton. A kernel is written and compiled anew for every size
Limits    TMA where every row is a multiple of 16 bytes and the tile no larger than the matrix; other sizes fall back to
          pointers without a word. M = N = 1 is refused: Triton does not take what Helion writes for it
Source    Helion, its example matmul.py

How it was tuned: eight configurations, timed at 4096 and 8192. Helion's own tuner, which tries hundreds for minutes,
never runs.
"""

from __future__ import annotations

# mypy: allow-untyped-defs
import functools
from typing import Any

import torch

from course_kernels.cuda.alignment import check_address
from course_kernels.gemm.arguments import SIXTEEN_BITS, product_of
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, Compiled, NotInstalled

try:
    import helion
    import helion.language as hl

except ImportError:  # Helion itself, or packaging, which it needs and does not name
    helion = hl = None

ARCH = "sm_90a"
PROGRAMS = 132  # of a persistent kernel that is compiled without a card: multiprocessors of an H100 or H200

# block_sizes: M, N, K. The sums of 128 x 256 are half of the registers of 8 warps, as in k05_triton. A kernel that
# walks over tiles keeps C beside the ring: three stages and not four. range_flattens: one loop over all steps
# of all tiles.
_WALKING = {"pid_type": "persistent_interleaved", "num_warps": 8, "num_stages": 3}
_APART = {"pid_type": "flat", "num_warps": 8, "num_stages": 4}
CONFIGS: dict[str, dict[str, Any]] = {
    "wide": {**_WALKING, "block_sizes": [128, 256, 64]},
    "wide, one loop": {**_WALKING, "block_sizes": [128, 256, 64], "range_flattens": [True, None]},
    "wide, C by threads": {
        **_WALKING,
        "block_sizes": [128, 256, 64],
        "num_stages": 4,
        "indexing": ["tensor_descriptor", "tensor_descriptor", "pointer"],
    },
    "wide, apart": {**_APART, "block_sizes": [128, 256, 64]},
    "tall": {**_WALKING, "block_sizes": [256, 128, 64]},
    "tall, one loop": {**_WALKING, "block_sizes": [256, 128, 64], "range_flattens": [True, None]},
    "square, two at once": {**_APART, "block_sizes": [128, 128, 64], "num_warps": 4, "num_stages": 3},
    "square, long": {**_APART, "block_sizes": [128, 128, 128], "num_stages": 3},
}
BEST = "wide"


# --- on the device -----------------------------------------------------------


# region kernel
def gemm_kernel(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """C (M, N) = A (M, K) @ B (K, N)."""
    M, K = a.size()
    N = b.size(1)
    for m, n in hl.tile([M, N]):
        acc = hl.zeros([m, n], dtype=torch.float32)
        for k in hl.tile(K):
            acc = torch.addmm(acc, a[m, k], b[k, n])
        c[m, n] = acc


# endregion


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether the kernel takes a workload: 16-bit types, more than one element of C."""
    return w.torch_dtype in SIXTEEN_BITS and w.M * w.N > 1


def gemm(a: torch.Tensor, b: torch.Tensor, *, tile: str | None = None) -> torch.Tensor:
    """Return the product a @ b. The first call of a size, a type and a tile writes the kernel and compiles it.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N <= 2**30, and M * N > 1.
        tile: one of CONFIGS; without it, BEST.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError, ValueError: see `product_of`; or M = N = 1, an address that is no multiple of 16 bytes, or a tile of
            another name.
        NotInstalled: Helion is not here.
    """
    c, M, N, _ = product_of(a, b)
    if M * N == 1:
        raise ValueError(
            "a, b: expected M * N > 1, since Triton does not take what Helion writes for one, got M=N=1"
        )
    # Helion looks at addresses when it writes a kernel, and launches it for the next tensors of that size unasked.
    check_address("a", a)
    check_address("b", b)
    kernel_of(tile)(a, b, c)
    return c


def compiled(w: Workload, arch: str = ARCH, *, tile: str | None = None) -> Compiled:
    """Return what Helion writes for a workload, and what Triton makes of it; no GPU is asked for.

    A persistent kernel is compiled for `PROGRAMS` programs.

    Raises:
        ValueError: a workload that `gemm` refuses, or another architecture than sm_90a.
        NotInstalled: Helion is not here.
    """
    if arch != ARCH:
        raise ValueError(f"arch: expected {ARCH}, for which the configurations were chosen, got {arch}")
    if not supports(w):
        raise ValueError(f"w: expected 16-bit types and M * N > 1, got {w.label}")
    # Kept to the end: Helion takes TMA for a tensor whose address it can look at, and looks when it writes.
    shapes = (w.M, w.K), (w.K, w.N), (w.M, w.N)
    tensors = tuple(torch.empty(shape, dtype=w.torch_dtype, device="cpu") for shape in shapes)
    bound = kernel_of(tile).bind(tensors)
    config = bound.kernel.configs[0]
    written = bound.compile_config(config, allow_print=False).__globals__[f"_helion_{gemm_kernel.__name__}"]
    text = bound.to_triton_code(config)
    del tensors
    return _compiled(written, text, w, config)


def _compiled(written: Any, text: str, w: Workload, config: Any) -> Compiled:
    """Return what Triton makes of the kernel in a text, as a launch with tensors of torch would have it made."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    pointer = {"bfloat16": "*bf16", "float16": "*fp16"}[w.dtype]
    types = {name: "constexpr" if name == "_NUM_SM" else pointer for name in written.arg_names}
    constants = {(i,): PROGRAMS for i, name in enumerate(types) if name == "_NUM_SM"}
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types.values()) if kind == pointer}
    made = triton.compile(
        ASTSource(written, types, constants, aligned),
        target=GPUTarget("cuda", 90, 32),  # Triton makes sm_90a of it
        options={name: config.config[name] for name in ("num_warps", "num_stages")},
    )
    return Compiled(made.asm["cubin"], ptx=made.asm["ptx"], source=text, shared_bytes=made.metadata.shared)


@functools.cache
def kernel_of(tile: str | None) -> Any:
    """Return Helion's kernel with the configuration of that name, and no other to choose from.

    Raises:
        ValueError: there is none.
        NotInstalled: Helion is not here.
    """
    name = BEST if tile is None else tile
    if name not in CONFIGS:
        raise ValueError(f"tile: expected one of {', '.join(map(repr, CONFIGS))}, got {tile!r}")
    if helion is None:
        raise NotInstalled(f"Helion: not installed here, or not packaging, which it needs: {INSTALL}")
    # Down a column of eight tiles, then the next column: what runs together reads few rows and few columns.
    facts = {"indexing": "tensor_descriptor", "l2_groupings": [8], **CONFIGS[name]}
    return helion.kernel(gemm_kernel, config=helion.Config(**facts), static_shapes=True)
