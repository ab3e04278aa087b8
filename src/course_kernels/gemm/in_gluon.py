"""Matrix multiply on the ladder of tools: Gluon, Triton without its scheduler.

Contract  problem.py
Idea      Triton's tensors and compiler, but layouts, shared memory, barriers and roles are said here: one warp fetches
          by TMA into a ring of tiles, two warpgroups multiply by wgmma, and each of them stores its rows by TMA while
          it begins the next tile
Against   k05_triton, where the compiler decides all of this, and all warps do the same
Cost      a program reads 128 rows of A and 256 columns of B to make 128 x 256 of C; tiles that run together are
          neighbours in both directions, so most of that comes from L2
Limits    Hopper only; rows of a multiple of 16 bytes, for the copy engine. No cluster shares what it fetches: Gluon of
          Triton 3.6 has no name for that
Tuning    by hand: the tiles in TILES, timed at 4096 and 8192
Source    Triton's Gluon tutorials; attention/k04_specialised
"""

from __future__ import annotations

from dataclasses import dataclass

# mypy: allow-untyped-defs
import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from course_kernels.gemm.by_tma import multiprocessors
from course_kernels.gemm.by_tma import supports as supports
from course_kernels.gemm.launch_cache import sizes_of
from course_kernels.problem import Workload
from course_kernels.rungs import Compiled

GL_TYPE = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}

BK = gl.constexpr(64)  # a row of A's tile is 128 bytes: what the swizzle mixes
WARPS = gl.constexpr(4)  # warps of a warpgroup
CONSUMERS = gl.constexpr(2)  # warpgroups that multiply
STRIPS = gl.constexpr(2)  # strips of C in shared memory, a warpgroup
REGISTERS = gl.constexpr(240)  # of a thread that multiplies; the warp that fetches gives the rest away
PRODUCER_REGISTERS = gl.constexpr(24)  # the least that can be asked for; it computes addresses only


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m, block_n: the tile of C that a program makes at once; a consumer has half of the rows.
        stages: pairs of tiles of A and B in shared memory at once; the copies run that far ahead.
        strip: columns of C that a consumer hands to the copy engine at once.
        group_m: rows of tiles that are walked together, column by column.
    """

    block_m: int
    block_n: int
    stages: int
    strip: int
    group_m: int


# The sums of 128 x 256, or 256 x 128, are half of the registers of two warpgroups. Four pairs of tiles leave room for
# the strips of C in the 227 KB of a program.
TILES = {
    "wide": Tile(128, 256, stages=4, strip=64, group_m=8),
    "wide, low": Tile(128, 256, stages=4, strip=64, group_m=4),
    "wide, high": Tile(128, 256, stages=4, strip=64, group_m=16),
    "wide, short": Tile(128, 256, stages=3, strip=64, group_m=8),
    "tall": Tile(256, 128, stages=4, strip=32, group_m=8),
    "tall, low": Tile(256, 128, stages=4, strip=32, group_m=4),
    "square": Tile(128, 128, stages=6, strip=64, group_m=8),
}
BEST = TILES["wide"]


# --- on the device -----------------------------------------------------------


# region kernel
@gluon.jit
def _place(t, M, N, BM: gl.constexpr, BN: gl.constexpr, GROUP_M: gl.constexpr):
    """Return first row and column of tile t: down a column of GROUP_M, then the next column."""
    rows, columns = gl.cdiv(M, BM), gl.cdiv(N, BN)
    group = t // (GROUP_M * columns)
    height = gl.minimum(rows - group * GROUP_M, GROUP_M)  # the last group may be lower
    within = t % (GROUP_M * columns)
    return (group * GROUP_M + within % height) * BM, within // height * BN


@gluon.jit
def _produce(shared, BM: gl.constexpr, BN: gl.constexpr, STAGES: gl.constexpr, GROUP_M: gl.constexpr):
    """Keep the ring full, from one tile of C on to the next."""
    A, B, a_ring, b_ring, full, empty, M, N, K = shared
    j = 0
    for t in range(gl.program_id(0), gl.cdiv(M, BM) * gl.cdiv(N, BN), gl.num_programs(0)):
        m, n = _place(t, M, N, BM, BN, GROUP_M)
        for k in range(0, K, BK):
            stage = j % STAGES
            # A fresh barrier counts as having turned once already: the first pass over the ring does not wait.
            mbarrier.wait(empty.index(stage), (j // STAGES & 1) ^ 1)
            mbarrier.expect(full.index(stage), A.block_type.nbytes + B.block_type.nbytes)
            tma.async_copy_global_to_shared(A, [m, k], full.index(stage), a_ring.index(stage))
            tma.async_copy_global_to_shared(B, [k, n], full.index(stage), b_ring.index(stage))
            j += 1


@gluon.jit
def _store(C, row, col, sums, places, W: gl.constexpr, FIRST: gl.constexpr):
    """Store sums in strips of columns: while one goes out, the next is written to the other place."""
    STRIP: gl.constexpr = C.block_shape[1]
    HALF: gl.constexpr = sums.shape[1] // 2
    if sums.shape[1] > STRIP:
        left, right = sums.reshape(sums.shape[0], 2, HALF).permute(0, 2, 1).split()
        _store(C, row, col, left, places, W, FIRST)
        _store(C, row, col + HALF, right, places, W, FIRST + HALF // STRIP)
    else:
        place = places.index(W * STRIPS + FIRST % STRIPS)
        tma.store_wait(STRIPS - 1)  # the copy engine has read what lay at this place
        place.store(sums.to(C.dtype))
        fence_async_shared()  # it sees the new, too
        tma.async_copy_shared_to_global(C, [row, col], place)


@gluon.jit
def _consume(
    shared, W: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, STAGES: gl.constexpr, GROUP_M: gl.constexpr
):
    """Make the rows of consumer W of every tile."""
    C, a_ring, b_ring, places, full, empty, M, N, K = shared
    ROWS: gl.constexpr = BM // CONSUMERS
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BN, 16])
    steps = gl.cdiv(K, BK)
    done = 0
    for t in range(gl.program_id(0), gl.cdiv(M, BM) * gl.cdiv(N, BN), gl.num_programs(0)):
        m, n = _place(t, M, N, BM, BN, GROUP_M)
        acc = gl.zeros([ROWS, BN], gl.float32, SUMS)
        for k in range(steps):
            stage = (done + k) % STAGES
            mbarrier.wait(full.index(stage), (done + k) // STAGES & 1)
            a = a_ring.index(stage).slice(W * ROWS, ROWS)
            acc = warpgroup_mma(a, b_ring.index(stage), acc, use_acc=k > 0, is_async=True)
            # This product runs on; the one before is over, and its tiles are free.
            acc = warpgroup_mma_wait(1, deps=[acc])
            mbarrier.arrive(empty.index((done + k + STAGES - 1) % STAGES), count=1, pred=k > 0)
        done += steps
        acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(empty.index((done - 1) % STAGES), count=1)
        _store(C, m + W * ROWS, n, acc, places, W, 0)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "K"])  # one kernel for all sizes
def gemm_kernel(
    A, B, C, M, N, K,
    BM: gl.constexpr, BN: gl.constexpr, STRIP: gl.constexpr, STAGES: gl.constexpr, GROUP_M: gl.constexpr,
):  # fmt: skip
    """C = A @ B, tile by tile. A, B, C: descriptors, with the layouts that their tiles have in shared memory."""
    a_ring = gl.allocate_shared_memory(A.dtype, [STAGES, BM, BK], A.layout)
    b_ring = gl.allocate_shared_memory(B.dtype, [STAGES, BK, BN], B.layout)
    places = gl.allocate_shared_memory(C.dtype, [CONSUMERS * STRIPS, BM // CONSUMERS, STRIP], C.layout)
    # A barrier turns when all whom it counts have arrived: for `full` the copy engine, for `empty` every consumer.
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    fence_async_shared()  # the copy engine must see the barriers, too

    consume = (C, a_ring, b_ring, places, full, empty, M, N, K)
    produce = (A, B, a_ring, b_ring, full, empty, M, N, K)
    gl.warp_specialize(
        [
            (_consume, (consume, 0, BM, BN, STAGES, GROUP_M)),
            (_consume, (consume, 1, BM, BN, STAGES, GROUP_M)),
            (_produce, (produce, BM, BN, STAGES, GROUP_M)),
        ],
        [WARPS, 1],
        [REGISTERS, PRODUCER_REGISTERS],
    )


# endregion


# --- on the host -------------------------------------------------------------


def _blocks(tile: Tile) -> dict[str, list[int]]:
    """Return what the copy engine takes at once of each matrix."""
    return {
        "A": [tile.block_m, BK.value],
        "B": [BK.value, tile.block_n],
        "C": [tile.block_m // CONSUMERS.value, tile.strip],
    }


def _constants(tile: Tile) -> dict[str, int]:
    return {
        "BM": tile.block_m, "BN": tile.block_n, "STRIP": tile.strip, "STAGES": tile.stages, "GROUP_M": tile.group_m,
    }  # fmt: skip


def compiled(w: Workload, arch: str = "sm_90a", *, tile: Tile = BEST) -> Compiled:
    """Return what the compiler makes for a workload, without a card.

    Args:
        w: its element type; the kernel is the same for all sizes.
        arch: sm_90a.
        tile: one of TILES.
    Raises:
        ValueError: an `arch` other than sm_90a.
    """
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon._runtime import GluonASTSource

    if arch != "sm_90a":
        raise ValueError(f"arch: expected sm_90a, for wgmma, got {arch}")
    element = GL_TYPE[w.torch_dtype]
    signature = dict.fromkeys("MNK", "i32") | dict.fromkeys(_constants(tile), "constexpr")
    for name, block in _blocks(tile).items():
        layout = gl.NVMMASharedLayout.get_default_for(block, element)
        signature[name] = f"tensordesc<{element}{block},{layout!r}>"
    names = gemm_kernel.arg_names
    source = GluonASTSource(
        gemm_kernel,
        {name: signature[name] for name in names},
        {(names.index(name),): value for name, value in _constants(tile).items()},
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": WARPS.value})
    return Compiled(cubin=made.asm["cubin"], ptx=made.asm["ptx"], shared_bytes=made.metadata.shared)


def gemm(a: torch.Tensor, b: torch.Tensor, *, tile: Tile | None = None) -> torch.Tensor:
    """Return the product a @ b on Hopper; the first call of a type compiles.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N a multiple of 8, N <= 2**30.
        tile: one of TILES; without it, BEST.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError: see `sizes_of`.
        ValueError: see `sizes_of`; or a GPU of another compute capability than 9.0.
    """
    M, N, K = sizes_of(a, b)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    tile = tile or BEST

    def described(name: str, matrix: torch.Tensor) -> TensorDescriptor:
        block = _blocks(tile)[name]
        layout = gl.NVMMASharedLayout.get_default_for(block, GL_TYPE[matrix.dtype])
        # Not `from_tensor`: torch lets the only row of a contiguous matrix have any stride.
        return TensorDescriptor(matrix, list(matrix.shape), [matrix.shape[1], 1], block, layout)

    tiles = triton.cdiv(M, tile.block_m) * triton.cdiv(N, tile.block_n)
    gemm_kernel[(min(tiles, multiprocessors(a.get_device())),)](
        described("A", a), described("B", b), described("C", c), M, N, K,
        **_constants(tile), num_warps=WARPS.value,
    )  # fmt: skip
    return c
