"""Matrix multiply on the ladder of tools: CuTe-DSL, CUTLASS's layouts and atoms in Python.

Contract  problem.py
Idea      say how every tile lies (a layout) and which instruction moves or multiplies it (an atom), and the language
          works out every address; one warp fetches by TMA into a ring of tiles, two warpgroups multiply by wgmma,
          and each of them stores its 64 rows by TMA while it begins the next tile
Against   k05_triton, which is told the shape of a tile and decides all of this itself
Cost      blocks of a cluster read a tile of A or B once between them; tiles that run together are neighbours in both
          directions, so most of the rest comes from L2
Limits    Hopper only; rows of a multiple of 16 bytes, for the copy engine
Tuning    by hand: the tiles in TILES, timed at 4096 and 8192
Source    CUTLASS 4, CuTe-DSL: the helpers for Hopper that come with the package (`cutlass.utils.hopper_helpers`)
"""

# Annotations stay values here: the language reads those of `program`.
import functools
import tempfile
from dataclasses import dataclass
from typing import Any

# mypy: allow-untyped-defs
import torch

from course_kernels.gemm.by_tma import multiprocessors
from course_kernels.gemm.by_tma import supports as supports
from course_kernels.gemm.launch_cache import EIGHT, sizes_of
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, Compiled, NotInstalled


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        block_m, block_n: the tile of C that a block makes at once.
        cluster_m, cluster_n: blocks of a cluster, one below the other and side by side: those side by side share what
            they fetch of A, those one below the other what they fetch of B.
        stages: pairs of tiles of A and B in shared memory at once; the copies run that far ahead.
        group_m: rows of clusters that are walked together, column by column.
    """

    block_m: int
    block_n: int
    cluster_m: int
    cluster_n: int
    stages: int
    group_m: int


# The sums of 128 x 256, or 256 x 128, are half of the registers of two warpgroups. Four pairs of tiles leave room for
# four strips of C in the 227 KB of a block.
TILES = {
    "wide": Tile(128, 256, 2, 1, stages=4, group_m=8),
    "wide, low": Tile(128, 256, 2, 1, stages=4, group_m=4),
    "wide, high": Tile(128, 256, 2, 1, stages=4, group_m=16),
    "wide, side by side": Tile(128, 256, 1, 2, stages=4, group_m=8),
    "wide, alone": Tile(128, 256, 1, 1, stages=4, group_m=8),
    "tall": Tile(256, 128, 1, 2, stages=4, group_m=8),
    "tall, below": Tile(256, 128, 2, 1, stages=4, group_m=8),
    "square": Tile(128, 128, 2, 1, stages=6, group_m=8),
}
BEST = TILES["wide"]

BK = 64  # a row of A's tile is 128 bytes: what the swizzle mixes
WARPGROUP = 128  # threads
CONSUMERS = 2  # warpgroups that multiply, of 64 rows at a time: what one wgmma makes
STRIP = 64  # rows and columns of C that a warpgroup hands to the copy engine at once
STRIPS = 2  # of them in shared memory, a warpgroup
REGISTERS = 240  # of a thread that multiplies; the one that fetches gives the rest away
PRODUCER_REGISTERS = 24  # the least that can be asked for; it computes addresses only

MISSING = f"CuTe-DSL: not installed here: {INSTALL}"


# --- on the device -----------------------------------------------------------


@functools.cache
def _program(tile: Tile, element: str) -> Any:
    """Return the program of a tile and an element type, as `cute.compile` takes it.

    The language is imported here, and not before: this file can be read where it is not installed.

    Raises:
        NotInstalled: the language is not there.
    """
    try:
        import cutlass
        from cuda.bindings.driver import CUstream
        from cutlass import cute, pipeline
        from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
        from cutlass.memory import SmemAllocator
        from cutlass.tensor_utils import LayoutEnum
        from cutlass.utils import hopper_helpers as hopper
    except ModuleNotFoundError as error:
        raise NotInstalled(MISSING) from error

    BM, BN, CM, CN, STAGES = tile.block_m, tile.block_n, tile.cluster_m, tile.cluster_n, tile.stages
    GROUP_M = tile.group_m
    dtype = {"bfloat16": cutlass.BFloat16, "float16": cutlass.Float16}[element]
    BY_TMA = cpasync.CopyBulkTensorTileG2SOp()
    TO_ALL = cpasync.CopyBulkTensorTileG2SMulticastOp()

    # region kernel
    @cute.jit
    def place_of(t, rows, columns):
        """Return row and column of cluster t: down a column of GROUP_M, then the next column."""
        group = t // (GROUP_M * columns)
        height = cutlass.min(rows - group * GROUP_M, GROUP_M)  # the last group may be lower
        within = t % (GROUP_M * columns)
        return group * GROUP_M + within % height, within // height

    @cute.kernel
    def gemm_kernel(set_mma, add_mma, strip_mma, copy_a, A, copy_b, B, copy_c, C, lay_a, lay_b, lay_c):
        """C = A @ B, tile by tile. A, B, C: coordinates as the copy engine counts them; lay_*: in shared memory."""
        thread, _, _ = cute.arch.thread_idx()
        warp_index = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        role = cute.arch.make_warp_uniform(thread // WARPGROUP)
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        row, column = rank % CM, rank // CM  # of this block in its cluster

        if warp_index == 0:
            for copy in (copy_a, copy_b, copy_c):
                cpasync.prefetch_descriptor(copy)

        shared = SmemAllocator()
        barriers = shared.allocate_array(cutlass.Int64, 2 * STAGES)
        sA = shared.allocate_tensor(dtype, lay_a.outer, 1024, lay_a.inner)  # (BM, BK, STAGES)
        sB = shared.allocate_tensor(dtype, lay_b.outer, 1024, lay_b.inner)  # (BN, BK, STAGES)
        # (STRIP, STRIP, CONSUMERS * STRIPS)
        sC = shared.allocate_tensor(dtype, lay_c.outer, 1024, lay_c.inner)

        ring = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMERS * WARPGROUP),
            tx_count=(BM + BN) * BK * dtype.width // 8,
            barrier_storage=barriers,
            cta_layout_vmnk=cute.make_layout((1, CM, CN, 1)),
            enable_multicast_signaling=True,
            defer_sync=True,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=(CM, CN), is_relaxed=True)

        # Every tile of A, of B and every strip of C, by its place; what the copy engine takes of the first two, and
        # lets the cluster's other blocks have.
        gA = cute.local_tile(A, (BM, BK), (None, None))  # (BM, BK, tiles_m, tiles_k)
        gB = cute.local_tile(B, (BN, BK), (None, None))  # (BN, BK, tiles_n, tiles_k)
        gC = cute.local_tile(C, (STRIP, STRIP), (None, None))
        across, below = cute.make_layout(CN), cute.make_layout(CM)
        to_a, from_a = cpasync.tma_partition(
            copy_a, column, across, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        to_b, from_b = cpasync.tma_partition(
            copy_b, row, below, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        from_c, to_c = cpasync.tma_partition(
            copy_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2)
        )
        cluster = cute.make_layout((CM, CN, 1))
        share_a = cute.make_layout_image_mask(cluster, (row, column, 0), mode=1)
        share_b = cute.make_layout_image_mask(cluster, (row, column, 0), mode=0)

        rows = cute.ceil_div(C.shape[0], BM * CM)
        columns = cute.ceil_div(C.shape[1], BN * CN)
        steps = cute.size(gA, mode=[3])
        first, _, _ = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        first, clusters = first // (CM * CN), blocks // (CM * CN)

        pipeline.pipeline_init_wait(cluster_shape_mn=(CM, CN))

        if role == 0:
            cute.arch.setmaxregister_decrease(PRODUCER_REGISTERS)
            if warp_index == 0:
                filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
                for t in cutlass.range(first, rows * columns, clusters, unroll=1):
                    m, n = place_of(t, rows, columns)
                    a_row, b_row = from_a[None, m * CM + row, None], from_b[None, n * CN + column, None]
                    for k in cutlass.range(steps, unroll=1):
                        ring.producer_acquire(filled)  # and the barrier expects the bytes of both
                        full = ring.producer_get_barrier(filled)
                        cute.copy(
                            copy_a, a_row[None, k], to_a[None, filled.index], tma_bar_ptr=full,
                            mcast_mask=share_a if CN > 1 else None,
                        )  # fmt: skip
                        cute.copy(
                            copy_b, b_row[None, k], to_b[None, filled.index], tma_bar_ptr=full,
                            mcast_mask=share_b if CM > 1 else None,
                        )  # fmt: skip
                        ring.producer_commit(filled)
                        filled.advance()
                ring.producer_tail(filled)  # no block may end while another still writes to its barriers
        else:
            cute.arch.setmaxregister_increase(REGISTERS)
            consumer = role - 1
            lane = thread % WARPGROUP
            # Operands are descriptors of shared memory, the same for all threads of a warpgroup.
            mine = add_mma.get_slice(consumer * WARPGROUP)
            rA = add_mma.make_fragment_A(mine.partition_A(sA))  # (wgmma, BM / 128, BK / 16, STAGES)
            rB = add_mma.make_fragment_B(mine.partition_B(sB))  # (wgmma, 1, BK / 16, STAGES)
            acc = cute.make_rmem_tensor(mine.partition_shape_C((BM, BN)), cutlass.Float32)

            matrices = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
            store = cute.make_tiled_copy_C(matrices, strip_mma).get_slice(lane)
            strip = cute.make_rmem_tensor(strip_mma.get_slice(lane).partition_shape_C((STRIP, STRIP)), dtype)
            strip_out, strip_in = store.retile(strip), store.partition_D(sC)
            stores = pipeline.PipelineTmaStore.create(
                num_stages=STRIPS, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, WARPGROUP)
            )
            together = pipeline.NamedBarrier(barrier_id=1 + consumer, num_threads=WARPGROUP)

            set_mma.set(warpgroup.Field.ACCUMULATE, False)
            add_mma.set(warpgroup.Field.ACCUMULATE, True)
            read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            for t in cutlass.range(first, rows * columns, clusters, unroll=1):
                m, n = place_of(t, rows, columns)
                ring.consumer_wait(read)
                multiply(set_mma, add_mma, acc, rA, rB, read.index)
                read.advance()
                for _ in cutlass.range(steps - 1, unroll=1):
                    ring.consumer_wait(read)
                    multiply(add_mma, add_mma, acc, rA, rB, read.index)
                    # This product runs on; the one before is over, and its tiles are free.
                    warpgroup.wait_group(1)
                    ring.consumer_release(done)
                    read.advance()
                    done.advance()
                warpgroup.wait_group(0)
                ring.consumer_release(done)
                done.advance()

                for i in cutlass.range_constexpr(BM // (CONSUMERS * STRIP)):
                    for j in cutlass.range_constexpr(BN // STRIP):
                        s = i * (BN // STRIP) + j
                        place = consumer * STRIPS + s % STRIPS
                        for v in cutlass.range_constexpr(cute.size(strip)):
                            strip[v] = acc[s * cute.size(strip) + v].to(dtype)
                        if warp_index % 4 == 0:
                            stores.producer_acquire()  # the copy engine has read what lay at this place
                        together.arrive_and_wait()
                        cute.copy(store, strip_out, strip_in[None, None, None, place])
                        cute.arch.fence_proxy("async.shared", space="cta")  # the copy engine sees it, too
                        together.arrive_and_wait()
                        if warp_index % 4 == 0:
                            c_row = (m * CM + row) * (BM // STRIP) + i * CONSUMERS + consumer
                            c_column = (n * CN + column) * (BN // STRIP) + j
                            cute.copy(copy_c, from_c[None, place], to_c[None, c_row, c_column])
                            stores.producer_commit()
            if warp_index % 4 == 0:
                stores.producer_tail()

    @cute.jit
    def multiply(first_mma, mma, acc, rA, rB, stage):
        """Start the products of a stage: the first as `first_mma` has it, the others added to it."""
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(rA, mode=[2])):
            a, b = rA[None, None, k, stage], rB[None, None, k, stage]
            cute.gemm(first_mma if k == 0 else mma, acc, a, b, acc)
        warpgroup.commit_group()

    @cute.jit
    def program(
        a: cute.Pointer, b: cute.Pointer, c: cute.Pointer,
        M: cutlass.Int32, N: cutlass.Int32, K: cutlass.Int32, most: cutlass.Int32, stream: CUstream,
    ):  # fmt: skip
        """Launch; most: blocks that run at once."""
        # The copy engine wants to know that rows begin at multiples of 16 bytes. B is said as (N, K), as wgmma has it.
        N, K = cute.assume(N, divby=EIGHT), cute.assume(K, divby=EIGHT)
        row_a, row_b = (cute.assume(cutlass.Int64(size), divby=EIGHT) for size in (K, N))
        a = cute.make_tensor(a, cute.make_layout((M, K), stride=(row_a, 1)))
        b = cute.make_tensor(b, cute.make_layout((N, K), stride=(1, row_b)))
        c = cute.make_tensor(c, cute.make_layout((M, N), stride=(row_b, 1)))
        by_k, by_n = OperandMajorMode.K, OperandMajorMode.MN
        set_mma, add_mma, strip_mma = (
            hopper.make_trivial_tiled_mma(
                dtype, dtype, by_k, by_n, cutlass.Float32, (groups, 1, 1), (64, width)
            )
            for groups, width in ((CONSUMERS, BN), (CONSUMERS, BN), (1, STRIP))
        )
        shape = (BM, BN, BK)
        lay_a = hopper.make_smem_layout_a(LayoutEnum.ROW_MAJOR, shape, dtype, STAGES)
        lay_b = hopper.make_smem_layout_b(LayoutEnum.COL_MAJOR, shape, dtype, STAGES)
        lay_c = hopper.make_smem_layout_epi(dtype, LayoutEnum.ROW_MAJOR, (STRIP, STRIP), CONSUMERS * STRIPS)
        copy_a, A = cpasync.make_tiled_tma_atom(TO_ALL if CN > 1 else BY_TMA, a, lay_a, (BM, BK), CN)
        copy_b, B = cpasync.make_tiled_tma_atom(TO_ALL if CM > 1 else BY_TMA, b, lay_b, (BN, BK), CM)
        copy_c, C = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), c, lay_c, (STRIP, STRIP))

        clusters = cute.ceil_div(c.shape[0], BM * CM) * cute.ceil_div(c.shape[1], BN * CN)
        blocks = cutlass.min(clusters, most // (CM * CN)) * (CM * CN)
        gemm_kernel(set_mma, add_mma, strip_mma, copy_a, A, copy_b, B, copy_c, C, lay_a, lay_b, lay_c).launch(
            grid=(blocks, 1, 1),
            block=((1 + CONSUMERS) * WARPGROUP, 1, 1),
            cluster=(CM * CN, 1, 1),
            min_blocks_per_mp=1,
            stream=stream,
        )

    # endregion
    return program


# --- on the host -------------------------------------------------------------


def _pointer(element: str, address: int) -> Any:
    """Return an address in the card's memory, a multiple of 16 bytes, as the language takes it."""
    import cutlass
    from cutlass.cute import AddressSpace
    from cutlass.cute.runtime import make_ptr

    dtype = {"bfloat16": cutlass.BFloat16, "float16": cutlass.Float16}[element]
    return make_ptr(dtype, address, AddressSpace.gmem, assumed_align=16)


@functools.cache
def _compiled(tile: Tile, element: str, options: str = "") -> Any:
    """Return the compiled program of a tile and an element type; the sizes stay open.

    Raises:
        NotInstalled: the language is not there.
    """
    program = _program(tile, element)
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_stream

    address = _pointer(element, 16)  # any
    return cute.compile(
        program, address, address, address, 1, EIGHT, EIGHT, 1, make_fake_stream(),
        options=f"--gpu-arch sm_90a {options}",
    )  # fmt: skip


def compiled(w: Workload, arch: str = "sm_90a", *, tile: Tile = BEST) -> Compiled:
    """Return what the compiler makes for a workload, without a card.

    Args:
        w: its element type; the kernel is the same for all sizes.
        arch: sm_90a.
        tile: one of TILES.
    Raises:
        NotInstalled: the language is not there.
        ValueError: an `arch` other than sm_90a.
    """
    if arch != "sm_90a":
        raise ValueError(f"arch: expected sm_90a, for wgmma, got {arch}")
    with tempfile.TemporaryDirectory() as folder:
        made = _compiled(tile, w.dtype, f"--keep-ptx --keep-cubin --dump-dir {folder}")
        return Compiled(cubin=made.__cubin__, ptx=made.__ptx__, shared_bytes=shared_bytes(tile))


def shared_bytes(tile: Tile) -> int:
    """Return the shared memory of a block: barriers, up to the 1024 bytes that the swizzle aligns to; ring; strips."""
    return 1024 + 2 * BK * tile.stages * (tile.block_m + tile.block_n) + 2 * STRIP**2 * CONSUMERS * STRIPS


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
        NotInstalled: the language is not there.
    """
    M, N, K = sizes_of(a, b)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    most, element = multiprocessors(a.get_device()), str(a.dtype).removeprefix("torch.")
    run = _compiled(tile or BEST, element)
    from cuda.bindings.driver import CUstream

    at = (_pointer(element, x.data_ptr()) for x in (a, b, c))
    run(*at, M, N, K, most, CUstream(torch.cuda.current_stream().cuda_stream))
    return c
