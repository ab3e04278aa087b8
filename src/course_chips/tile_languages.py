"""Our kernels in cuTile and in CuTe-DSL for NVIDIA cards that are not here, and what each says where it refuses one.

cuTile's sources say no card, so each is compiled for every one, with the same tile. CuTe-DSL's name the product of one
generation; they too are asked for every card, and a refusal is kept in the language's own words. `cute_multiply` is the
one that names a product that every card has.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from course_kernels.problem import Workload
from course_kernels.rungs import Compiled

MULTIPLY = Workload.of("bfloat16", M=4096, N=4096, K=4096)
ATTENTION = Workload.of("bfloat16", B=1, H=16, N=4096, D=128, causal=False)
# Tiles for which every card has registers: Hopper's best asks for two blocks together, and on an A100 its sums spill.
MULTIPLY_TILE = "one"
ATTENTION_TILE = "square"
CUTILE = {
    "multiply": "src/course_kernels/gemm/in_cutile.py",
    "attention": "src/course_kernels/attention/in_cutile.py",
}
CUTE = {
    "multiply_cute": "src/course_chips/cute_multiply.py",
    "multiply_cute_wgmma": "src/course_kernels/gemm/in_cute_dsl.py",
    "multiply_cute_tcgen05": "src/course_kernels/blackwell/in_cute_dsl.py",
    "attention_cute_wgmma": "src/course_kernels/attention/in_cute_dsl.py",
}
CHECKED = "multiply_cute"  # no card has ever run it: its PTX is, on the CPU
_MATRICES = re.compile(r"(ldmatrix\S+\s+\{%\w+, )(%\w+), (%\w+)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def in_cutile(problem: str, arch: str) -> tuple[Compiled, dict[str, Any]]:
    """Return what cuTile makes of a kernel in bfloat16, and the tile it was given.

    Args:
        problem: "multiply" or "attention".
        arch: such as "sm_90a".
    Raises:
        NotInstalled: the language or its compiler is not installed.
    """
    from course_kernels.attention import in_cutile as attention
    from course_kernels.gemm import in_cutile as multiply

    if problem == "multiply":
        tile = multiply.TILES[MULTIPLY_TILE]
        given = {"M": tile.block_m, "N": tile.block_n, "K": tile.block_k}
        return multiply.compiled(MULTIPLY, arch, tile=tile), given | {"worker_warps": tile.warps}
    rows = attention.TILES[ATTENTION_TILE]
    given = {"M": rows.block_m, "N": rows.block_n, "D": ATTENTION.D}
    return attention.compiled(ATTENTION, arch, tile=rows), given | {"worker_warps": rows.warps}


def in_cute(name: str, arch: str) -> tuple[Compiled, dict[str, Any]] | str:
    """Return what CuTe-DSL makes of a kernel in bfloat16 and the tile that the source has, or how it refuses the card.

    Args:
        name: one of CUTE.
        arch: such as "sm_90a". Where none is said and no card is there, the language takes one without a word.
    Returns:
        code and tile; or the first line of the refusal.
    Raises:
        ImportError: the language is not installed.
    """
    from cutlass import cute
    from cutlass.base_dsl.common import DSLUserCodeError

    program, arguments, tile, shared_bytes = _PROGRAMS[name]()
    with tempfile.TemporaryDirectory() as folder:
        options = f"--gpu-arch {arch} --keep-ptx --keep-cubin --dump-dir {folder}"
        try:
            made = cute.compile(program, *arguments, options=options)
        except DSLUserCodeError as refused:
            return first_line(str(refused))
        return Compiled(cubin=made.__cubin__, ptx=made.__ptx__, shared_bytes=shared_bytes), tile


def checked(ptx: str) -> dict[str, dict[str, float]]:
    """Return how far off the PTX of `cute_multiply` is, run on the CPU, and how far with two matrices of A exchanged.

    Args:
        ptx: what the language made of it.
    Returns:
        by what was run: `error`, of the worst element, by its own size, and what is `allowed`: half a step of bfloat16.
    Raises:
        PtxError: see `ptx_on_cpu.run`.
        ValueError: it takes no four matrices at once.
    """
    exchanged, times = _MATRICES.subn(r"\1\3, \2", ptx, count=1)
    if not times:
        raise ValueError("ptx: expected ldmatrix of four matrices, got none")
    runs = {"multiply in CuTe-DSL": ptx, "planted: two matrices of A exchanged": exchanged}
    return {name: {"error": _error(text), "allowed": 2.0**-8} for name, text in runs.items()}


def _error(ptx: str) -> float:
    from course_chips import cute_multiply as source
    from course_chips import ptx_on_cpu as cpu

    M, N, K = 2 * source.BM, 2 * source.BN, 3 * source.BK
    random = np.random.default_rng(0)
    A, B = (cpu.bfloat16(random.standard_normal(shape)) for shape in ((M, K), (K, N)))
    C = cpu.bfloat16(np.full((M, N), np.nan))
    parameters = [  # B is said as (N, K)
        cpu.matrix_parameter(at, *sizes) for at, sizes in enumerate(((M, K, K), (N, K, N), (M, N, N)))
    ]
    arrays = [x.reshape(-1).view(np.uint8) for x in (A, B, C)]
    cpu.run(ptx, parameters, arrays, (2, 2), source.THREADS, source.SHARED_BYTES)
    due = cpu.float32(A).astype(np.float64) @ cpu.float32(B).astype(np.float64)
    # Next to zero, sums in float32 are off by more than half a step.
    off = np.abs(cpu.float32(C) - due) / (np.abs(due) + 0.01)
    return float(np.nan_to_num(off, nan=np.inf).max())


def first_line(refusal: str) -> str:
    """Return the first line of a message, without its colours.

    Raises:
        ValueError: there is none.
    """
    lines = [line.strip() for line in _COLOUR.sub("", refusal).splitlines() if line.strip()]
    if not lines:
        raise ValueError("refusal: expected a line, got none")
    return lines[0]


# --- what each source is compiled with: its own `compiled` refuses other cards before the language does ---

_Program = tuple[Any, tuple[Any, ...], dict[str, Any], int]


def _by_warps() -> _Program:
    from course_chips import cute_multiply as source

    tile = {"M": source.BM, "N": source.BN, "K": source.BK, "warps": source.WARPS[0] * source.WARPS[1]}
    return source.program, source.arguments(), tile, source.SHARED_BYTES


def _by_warpgroups() -> _Program:
    from course_kernels.gemm import in_cute_dsl as source

    best, address = source.BEST, source._pointer("bfloat16", 16)
    arguments = (address, address, address, 1, source.EIGHT, source.EIGHT, 1, _stream())
    tile = {"M": best.block_m, "N": best.block_n, "K": source.BK, "stages": best.stages}
    return source._program(best, "bfloat16"), arguments, tile, source.shared_bytes(best)


def _by_one_thread() -> _Program:
    from course_kernels.blackwell import in_cute_dsl as source
    from course_kernels.gemm.in_cute_dsl import _pointer

    address = _pointer("bfloat16", 16)
    arguments = (address, address, address, source.BM, source.BN, source.EIGHT, _stream())
    tile = {"M": source.BM, "N": source.BN, "K": source.BK, "stages": source.STAGES}
    # The ring; barriers and what aligns it are left out.
    return (
        source._program("bfloat16"),
        arguments,
        tile,
        2 * source.STAGES * source.BK * (source.BM + source.BN),
    )


def _attention() -> _Program:
    from course_kernels.attention import in_cute_dsl as source

    best, address = source.BEST[ATTENTION.D], source._pointer("bfloat16", 16)
    arguments = (address, address, address, address, 1, 1, _stream())
    tile = {"M": best.consumers * source.ROWS, "N": best.block_n, "D": ATTENTION.D, "stages": best.stages}
    program = source._program(best, ATTENTION.D, False, "bfloat16")
    return program, arguments, tile, source.shared_bytes(best, ATTENTION.D)


def _stream() -> Any:
    from cutlass.cute.runtime import make_fake_stream

    return make_fake_stream()


_PROGRAMS: dict[str, Callable[[], _Program]] = {
    "multiply_cute": _by_warps,
    "multiply_cute_wgmma": _by_warpgroups,
    "multiply_cute_tcgen05": _by_one_thread,
    "attention_cute_wgmma": _attention,
}
