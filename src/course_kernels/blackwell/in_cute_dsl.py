"""Matrix multiply for Blackwell in CuTe-DSL: what one_block.cu does, by layouts and atoms.

Contract  ../gemm/problem.py, with M a multiple of 128 and N of 256
Idea      the layouts of both operands, the descriptors, the swizzle and TMEM's columns follow from one atom, a product
          of 128 x 256 x 16; a warp fetches, a warp multiplies, all four write
Against   one_block.cu, which works out each of these numbers by a named function
Limits    compute capability 10.0. One tile a block, whole tiles only. COMPILED, NOT RUN: no such card was there
Source    CUTLASS 4, CuTe-DSL: `cutlass.utils.blackwell_helpers`; its guide to tcgen05
"""

# Annotations stay values here: the language reads those of `program`.
import functools
import tempfile
from typing import Any

# mypy: allow-untyped-defs
from course_kernels.rungs import INSTALL, Compiled, NotInstalled

BM, BN, BK = 128, 256, 64  # as in one_block.cu
STAGES = 4
THREADS = 128
STRIP = 32  # columns that a thread has in registers at once
EIGHT = 8
MISSING = f"CuTe-DSL: not installed here: {INSTALL}"


# --- on the device -----------------------------------------------------------


@functools.cache
def _program(element: str) -> Any:
    """Return the program of an element type, as `cute.compile` takes it.

    Raises:
        NotInstalled: the language is not there.
    """
    try:
        import cutlass
        from cuda.bindings.driver import CUstream
        from cutlass import cute, pipeline
        from cutlass.cute.nvgpu import (
            OperandMajorMode,
            cpasync,
            make_tiled_tma_atom_A,
            make_tiled_tma_atom_B,
            tcgen05,
        )
        from cutlass.memory import SmemAllocator, TmemAllocator
        from cutlass.utils import blackwell_helpers as blackwell
    except ModuleNotFoundError as error:
        raise NotInstalled(MISSING) from error

    dtype = {"bfloat16": cutlass.BFloat16, "float16": cutlass.Float16}[element]
    ONE = tcgen05.CtaGroup.ONE
    SHAPE = (BM, BN, BK)

    # region kernel
    @cute.kernel
    def gemm_kernel(mma, copy_a, A, copy_b, B, C, lay_a, lay_b):
        """C = A @ B, a tile by a block. A, B: coordinates as the copy engine counts them; lay_*: in shared memory."""
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        m, n, _ = cute.arch.block_idx()

        shared = SmemAllocator()
        tiles_full = shared.allocate_array(cutlass.Int64, 2 * STAGES)
        sums_done = shared.allocate_array(cutlass.Int64, 2)
        where = shared.allocate_array(cutlass.Int32, 1)
        sA = shared.allocate_tensor(dtype, lay_a.outer, 1024, lay_a.inner)
        sB = shared.allocate_tensor(dtype, lay_b.outer, 1024, lay_b.inner)

        one, all_of_them = (pipeline.CooperativeGroup(pipeline.Agent.Thread, k) for k in (1, THREADS))
        ring = pipeline.PipelineTmaUmma.create(
            num_stages=STAGES,
            producer_group=one,
            consumer_group=one,
            tx_count=(BM + BN) * BK * dtype.width // 8,
            barrier_storage=tiles_full,
            cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
        )
        sums = pipeline.PipelineUmmaAsync.create(
            num_stages=1,
            producer_group=one,
            consumer_group=all_of_them,
            barrier_storage=sums_done,
            cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
        )
        together = pipeline.NamedBarrier(barrier_id=1, num_threads=THREADS)
        tmem = TmemAllocator(where, barrier_for_retrieve=together, allocator_warp_id=2)
        tmem.allocate(BN)
        tmem.wait_for_alloc()
        address = tmem.retrieve_ptr(cutlass.Float32)

        # The strips of A and of B that this tile needs, as the product takes them and as the copy engine brings them.
        mine = mma.get_slice(0)
        gA = mine.partition_A(cute.local_tile(A, (BM, BK), (m, None)))
        gB = mine.partition_B(cute.local_tile(B, (BN, BK), (n, None)))
        gC = mine.partition_C(cute.local_tile(C, (BM, BN), (m, n)))
        alone = cute.make_layout(1)
        to_a, from_a = cpasync.tma_partition(
            copy_a, 0, alone, cute.group_modes(sA, 0, 3), cute.group_modes(gA, 0, 3)
        )
        to_b, from_b = cpasync.tma_partition(
            copy_b, 0, alone, cute.group_modes(sB, 0, 3), cute.group_modes(gB, 0, 3)
        )
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)  # descriptors
        acc = cute.make_tensor(address, mma.make_fragment_C(mma.partition_shape_C((BM, BN))).layout)
        steps = cute.size(gA, mode=[3])

        if warp == 0:
            filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            for k in cutlass.range(steps, unroll=1):
                ring.producer_acquire(filled)
                full = ring.producer_get_barrier(filled)
                cute.copy(copy_a, from_a[None, k], to_a[None, filled.index], tma_bar_ptr=full)
                cute.copy(copy_b, from_b[None, k], to_b[None, filled.index], tma_bar_ptr=full)
                filled.advance()
            ring.producer_tail(filled)
        elif warp == 1:
            read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            made = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            sums.producer_acquire(made)
            mma.set(tcgen05.Field.ACCUMULATE, False)
            for _ in cutlass.range(steps, unroll=1):
                ring.consumer_wait(read)
                for k in cutlass.range_constexpr(BK // 16):
                    at = (None, None, k, read.index)
                    cute.gemm(mma, acc, rA[at], rB[at], acc)
                    mma.set(tcgen05.Field.ACCUMULATE, True)
                ring.consumer_release(read)  # once these products are done
                read.advance()
            sums.producer_commit(made)

        ready = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        sums.consumer_wait(ready)
        strip = ((cute.size(acc, mode=[0, 0]), STRIP),)
        acc_strips, c_strips = cute.zipped_divide(acc, strip), cute.zipped_divide(gC, strip)
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
        loads = tcgen05.make_tmem_copy(load, acc_strips[None, 0])
        mine_of_it = loads.get_slice(thread)
        taken, given = mine_of_it.partition_S(acc_strips), mine_of_it.partition_D(c_strips)
        numbers = cute.make_rmem_tensor(given[None, None, 0].shape, cutlass.Float32)
        rounded = cute.make_rmem_tensor(given[None, None, 0].shape, dtype)
        for i in cutlass.range(cute.size(taken, mode=[2])):
            cute.copy(loads, taken[None, None, i], numbers)
            rounded.store(numbers.load().to(dtype))
            cute.autovec_copy(rounded, given[None, None, i])

        tmem.relinquish_alloc_permit()
        together.arrive_and_wait()  # everybody has read
        tmem.free(address)

    @cute.jit
    def program(
        a: cute.Pointer, b: cute.Pointer, c: cute.Pointer,
        M: cutlass.Int32, N: cutlass.Int32, K: cutlass.Int32, stream: CUstream,
    ):  # fmt: skip
        """Launch."""
        N, K = cute.assume(N, divby=EIGHT), cute.assume(K, divby=EIGHT)
        row_a, row_b = (cute.assume(cutlass.Int64(size), divby=EIGHT) for size in (K, N))
        a = cute.make_tensor(a, cute.make_layout((M, K), stride=(row_a, 1)))
        b = cute.make_tensor(
            b, cute.make_layout((N, K), stride=(1, row_b))
        )  # said as (N, K), as tcgen05 has it
        c = cute.make_tensor(c, cute.make_layout((M, N), stride=(row_b, 1)))
        mma = blackwell.make_trivial_tiled_mma(
            dtype, dtype, OperandMajorMode.K, OperandMajorMode.MN, cutlass.Float32, ONE, (BM, BN)
        )
        lay_a = blackwell.make_smem_layout_a(mma, SHAPE, dtype, STAGES)
        lay_b = blackwell.make_smem_layout_b(mma, SHAPE, dtype, STAGES)
        by_tma = cpasync.CopyBulkTensorTileG2SOp(ONE)
        copy_a, A = make_tiled_tma_atom_A(by_tma, a, cute.select(lay_a, mode=[0, 1, 2]), SHAPE, mma)
        copy_b, B = make_tiled_tma_atom_B(by_tma, b, cute.select(lay_b, mode=[0, 1, 2]), SHAPE, mma)
        gemm_kernel(mma, copy_a, A, copy_b, B, c, lay_a, lay_b).launch(
            grid=(cute.ceil_div(M, BM), cute.ceil_div(N, BN), 1), block=(THREADS, 1, 1), stream=stream
        )

    # endregion
    return program


# --- on the host -------------------------------------------------------------


@functools.cache
def compiled(element: str = "bfloat16", arch: str = "sm_100a") -> Compiled:
    """Return what the compiler makes of an element type, without a card.

    Args:
        element: "bfloat16" or "float16".
        arch: sm_100a or sm_103a.
    Raises:
        NotInstalled: the language is not there.
        ValueError: another `arch`.
    """
    if arch not in ("sm_100a", "sm_103a"):
        raise ValueError(f"arch: expected sm_100a or sm_103a, for tcgen05, got {arch}")
    program = _program(element)
    import cutlass
    from cutlass import cute
    from cutlass.cute import AddressSpace
    from cutlass.cute.runtime import make_fake_stream, make_ptr

    dtype = {"bfloat16": cutlass.BFloat16, "float16": cutlass.Float16}[element]
    address = make_ptr(dtype, 16, AddressSpace.gmem, assumed_align=16)  # any
    with tempfile.TemporaryDirectory() as folder:
        made = cute.compile(
            program, address, address, address, BM, BN, EIGHT, make_fake_stream(),
            options=f"--gpu-arch {arch} --keep-ptx --keep-cubin --dump-dir {folder}",
        )  # fmt: skip
        return Compiled(cubin=made.__cubin__, ptx=made.__ptx__)
