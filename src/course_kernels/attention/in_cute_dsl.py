"""Attention forward, in CuTe-DSL: CUTLASS's layouts and atoms in Python, with the roles and their waits written out.

Contract  problem.py
Idea      one warp fetches K and V by TMA into two rings; each of two warpgroups, or three, answers 64 query rows. It
          begins the scores of a tile, then the product of the weights and values of the tile before, and takes the
          exponentials of the one while the other runs. Weights go from the registers of one product into those of
          the next: to a layout, that is the same numbers by another name. The warpgroups hand the tensor cores to each
          other
Against   in_tilelang, where the roles are the compiler's, and a warpgroup waits for each of its products;
          k06_wgmma, the same in CUDA C++, which repairs rarely and lets blocks ask for their work
Cost      Q and O cross memory once; K and V once for every block of rows, mostly from L2
Limits    Hopper only; D = 64 or 128
Tuning    by hand: the tiles in TILES, timed at D = 128, N = 4096 and 16384; that of D = 64 is a guess. The number of
          heads and N are arguments, so one compile serves all sizes of a type, a D and a mask
Source    Shah et al. 2024, arXiv:2407.08608; CUTLASS 4, CuTe-DSL: the helpers for Hopper that come with the package
          (`cutlass.utils.hopper_helpers`)
"""

# Annotations stay values here: the language reads those of `program`.
import functools
import tempfile
from dataclasses import dataclass
from math import e, inf, log2, sqrt
from typing import Any

# mypy: allow-untyped-defs
import torch

from course_kernels.attention.arguments import HEAD_SIZES, heads_of
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, Compiled, NotInstalled

DTYPES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Tile:
    """Tile shape.

    Attributes:
        consumers: warpgroups that compute, of 64 query rows each.
        block_n: keys of one step, a multiple of 16.
        stages: tiles of K, and of V, in shared memory at once.
    """

    consumers: int
    block_n: int
    stages: int


# Scores of 128 keys, sums of 128 columns and weights are 160 registers of a thread; of 176 keys, 196.
TILES = {
    "128 keys": Tile(2, 128, stages=2),
    "160 keys": Tile(2, 160, stages=2),
    "176 keys": Tile(2, 176, stages=2),
}
BEST = {64: Tile(3, 128, stages=2), 128: TILES["176 keys"]}  # by D

ROWS = 64  # of a warpgroup: what one wgmma makes
WARPGROUP = 128  # threads
# Of a thread. A multiprocessor has 65536: two warpgroups that compute take 240 each, or three 160; the one that fetches
# computes addresses only.
REGISTERS = {2: 240, 3: 160}
PRODUCER_REGISTERS = {2: 24, 3: 32}

MISSING = f"CuTe-DSL: not installed here: {INSTALL}"


# --- on the device -----------------------------------------------------------


@functools.cache
def _program(tile: Tile, D: int, causal: bool, element: str) -> Any:
    """Return the program of a tile, a head size, a mask and an element type, as `cute.compile` takes it.

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

    BN, STAGES, CONSUMERS = tile.block_n, tile.stages, tile.consumers
    BM = CONSUMERS * ROWS
    SCALE = log2(e) / sqrt(D)  # scores count in powers of two
    CAUSAL = causal
    dtype = {"bfloat16": cutlass.BFloat16, "float16": cutlass.Float16}[element]
    PAIR = {"bfloat16": "bf16x2", "float16": "f16x2"}[element]
    BY_TMA = cpasync.CopyBulkTensorTileG2SOp()
    # Barriers by number: 0 is all threads', then comes each consumer's own, then the turns.
    FIRST_TURN = 1 + CONSUMERS

    # region kernel
    def place_of(j, first_phase):
        """Return where tile j lies in a ring, and which phase of its barrier is meant."""
        return pipeline.PipelineState(STAGES, j, j % STAGES, (j // STAGES & 1) ^ first_phase)

    def ring_of(places, consumers, storage, rows):
        """Return a ring of places for tiles of so many rows, and its barriers."""
        return pipeline.PipelineTmaAsync.create(
            num_stages=places,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, consumers * WARPGROUP),
            tx_count=rows * D * dtype.width // 8,
            barrier_storage=storage,
            cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
            enable_multicast_signaling=True,  # one thread of a warp gives a place back
            defer_sync=True,
        )

    def parts(copy, tensor, shape, places):
        """Return the places of a tensor's tiles in shared memory, and its tiles by number and head."""
        tiles = cute.local_tile(tensor, shape, (None, None, None))
        one = cute.make_layout(1)
        return cpasync.tma_partition(
            copy, 0, one, cute.group_modes(places, 0, 2), cute.group_modes(tiles, 0, 2)
        )

    def fetch(ring, at, copy, source, to):
        """Ask the copy engine for a tile, once its place is free."""
        ring.producer_acquire(at)  # and the barrier expects the bytes
        cute.copy(copy, source, to[None, at.index], tma_bar_ptr=ring.producer_get_barrier(at))

    def my_turn(consumer):
        """Wait for the tensor cores, which the consumers hand to each other: one multiplies, one exponentiates."""
        cute.arch.barrier(barrier_id=FIRST_TURN + consumer, number_of_threads=2 * WARPGROUP)

    def your_turn(consumer):
        after = FIRST_TURN + (consumer + 1) % CONSUMERS
        cute.arch.barrier_arrive(barrier_id=after, number_of_threads=2 * WARPGROUP)

    def multiply(first_mma, mma, sums, a, b):
        """Start products along K: the first as `first_mma` has it, the others added to it."""
        for k in range(cute.size(b, mode=[2])):
            cute.gemm(first_mma if k == 0 else mma, sums, a[None, None, k], b[None, None, k], sums)
        warpgroup.commit_group()

    def mask(s, first, row, N):
        """Minus infinity where a row does not see a key; first: the key of this thread's first column."""
        for i in range(cute.size(s)):
            # Of a thread's scores, two are neighbours, the next two are of the row 8 below, and then come 8 columns on.
            key = i // 4 * 8 + i % 2
            # Causal needs no test against N: keys past the end are seen by rows past the end only.
            last = row + i // 2 % 2 * 8 if CAUSAL else N - 1
            s[i] = cutlass.select_(key <= last - first, s[i], -cutlass.Float32(inf))

    def scale_rows(acc, by):
        for i in range(cute.size(acc)):
            acc[i] = acc[i] * by[i // 2 % 2]

    def softmax(s, m, l, repair):
        """Scores to weights, in place; m, l: maximum and this thread's sum of both rows; repair: of sums so far."""
        for half in range(2):
            mine = [i for i in range(cute.size(s)) if i // 2 % 2 == half]
            top = m[half]
            for i in mine:
                top = cute.arch.fmax(top, s[i])
            for lanes in (1, 2):  # four threads share a row
                top = cute.arch.fmax(top, cute.arch.shuffle_sync_bfly(top, lanes))
            repair[half] = cute.math.exp2((m[half] - top) * SCALE, fastmath=True)
            m[half] = top
            zero, total = top * SCALE, l[half] * repair[half]
            for i in mine:
                s[i] = cute.math.exp2(s[i] * SCALE - zero, fastmath=True)
                total = total + s[i]
            l[half] = total

    def step(j, rings, mmas, operands, held, mine, masked):
        """Scores of tile j, beside the product of weights and values of the tile before."""
        (queries, keys, values), (set_s, add_s, add_o), (rQ, rK, rV) = rings, mmas, operands
        (s, p, acc, m, l, repair), (consumer, row, column, N) = held, mine
        k_at, v_at = place_of(j, 0), place_of(j - 1, 0)
        keys.consumer_wait(k_at)
        my_turn(consumer)
        warpgroup.fence()
        multiply(set_s, add_s, s, rQ, rK[None, None, None, k_at.index])
        values.consumer_wait(v_at)
        warpgroup.fence()  # without it the assembler adds one, and waits for every product
        multiply(add_o, add_o, acc, p, rV[None, None, None, v_at.index])
        your_turn(consumer)
        warpgroup.wait_group(1)  # products end in the order in which they began: the scores are there
        keys.consumer_release(k_at)
        if masked:
            mask(s, j * BN + column, row, N)
        softmax(s, m, l, repair)
        # The assembler likes to wait early, before the softmax, and all overlap is lost. It moves nothing across a
        # branch, and this wait is one that hangs on all exponentials: no sum is below zero, and the phase is long over.
        over = cutlass.Int32(l[0] + l[1] < 0)
        queries.consumer_wait(pipeline.PipelineState(CONSUMERS, consumer, consumer, over))
        warpgroup.wait_group(0)
        values.consumer_release(v_at)
        to_weights(s, p)
        scale_rows(acc, repair)

    def to_weights(s, p):
        """Round scores to weights, which lie in a thread's registers in the same order, two in one."""
        pairs = cute.recast_tensor(p, cutlass.Int32)
        for i in range(cute.size(pairs)):
            # Said as an instruction: the compiler would put a conversion off, past the next product's beginning.
            pairs[i] = cute.arch.inline_ptx(
                f"cvt.rn.{PAIR}.f32 {{$w0}}, {{$r0}}, {{$r1}};",
                write_only_types=[cutlass.Int32],
                read_only_args=[s[2 * i + 1], s[2 * i]],
            )

    @cute.kernel
    def attention_kernel(
        set_s, add_s, add_o, copy_q, Q, copy_k, K, copy_v, V, copy_o, O, lay_q, lay_k, lay_v
    ):
        """BM query rows of a head. Q, K, V, O: coordinates as the copy engine counts them; lay_*: in shared memory."""
        thread, _, _ = cute.arch.thread_idx()
        warp_index = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        role = cute.arch.make_warp_uniform(thread // WARPGROUP)
        x, head, _ = cute.arch.block_idx()
        N = Q.shape[0]

        if warp_index == 0:
            for copy in (copy_q, copy_k, copy_v, copy_o):
                cpasync.prefetch_descriptor(copy)

        shared = SmemAllocator()
        barriers = shared.allocate_array(cutlass.Int64, 2 * CONSUMERS + 4 * STAGES)
        # (ROWS, D, CONSUMERS), at the end O; (BN, D, STAGES); (D, BN, STAGES)
        sQ = shared.allocate_tensor(dtype, lay_q.outer, 1024, lay_q.inner)
        sK = shared.allocate_tensor(dtype, lay_k.outer, 1024, lay_k.inner)
        sV = shared.allocate_tensor(dtype, lay_v.outer, 1024, lay_v.inner)
        queries = ring_of(CONSUMERS, 1, barriers, ROWS)
        keys = ring_of(STAGES, CONSUMERS, barriers + 2 * CONSUMERS, BN)
        values = ring_of(STAGES, CONSUMERS, barriers + 2 * CONSUMERS + 2 * STAGES, BN)
        cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()

        # Causal: the longest rows first, so that short ones fill the end.
        blocks, _, _ = cute.arch.grid_dim()
        x = blocks - 1 - x if cutlass.const_expr(CAUSAL) else x
        end = cutlass.min((x + 1) * BM, N) if cutlass.const_expr(CAUSAL) else N
        tiles = cute.ceil_div(end, BN)

        if role == 0:
            cute.arch.setmaxregister_decrease(PRODUCER_REGISTERS[CONSUMERS])
            if warp_index == 0:
                to_q, from_q = parts(copy_q, Q, (ROWS, D), sQ)
                to_k, from_k = parts(copy_k, K, (BN, D), sK)
                to_v, from_v = parts(copy_v, V, (D, BN), sV)
                from_q, from_k, from_v = (
                    from_q[None, None, 0, head],
                    from_k[None, None, 0, head],
                    from_v[None, 0, None, head],
                )
                for w in cutlass.range_constexpr(CONSUMERS):
                    own = pipeline.PipelineState(
                        CONSUMERS, cutlass.Int32(w), cutlass.Int32(w), cutlass.Int32(1)
                    )
                    fetch(queries, own, copy_q, from_q[None, x * CONSUMERS + w], to_q)
                    if cutlass.const_expr(w == 0):
                        fetch(keys, place_of(cutlass.Int32(0), 1), copy_k, from_k[None, 0], to_k)
                # In the order in which they are used.
                for j in cutlass.range(1, tiles, unroll=1):
                    fetch(keys, place_of(j, 1), copy_k, from_k[None, j], to_k)
                    fetch(values, place_of(j - 1, 1), copy_v, from_v[None, j - 1], to_v)
                fetch(values, place_of(tiles - 1, 1), copy_v, from_v[None, tiles - 1], to_v)
        else:
            cute.arch.setmaxregister_increase(REGISTERS[CONSUMERS])
            consumer = role - 1
            lane = thread % WARPGROUP
            # Operands in shared memory are descriptors, the same for all threads of a warpgroup.
            rQ = add_s.make_fragment_A(add_s.get_slice(0).partition_A(sQ))  # (wgmma, 1, D / 16, CONSUMERS)
            rK = add_s.make_fragment_B(add_s.get_slice(0).partition_B(sK))  # (wgmma, 1, D / 16, STAGES)
            rV = add_o.make_fragment_B(add_o.get_slice(0).partition_B(sV))  # (wgmma, 1, BN / 16, STAGES)
            rQ = rQ[None, None, None, consumer]
            s = cute.make_rmem_tensor(add_s.partition_shape_C((ROWS, BN)), cutlass.Float32)
            acc = cute.make_rmem_tensor(add_o.partition_shape_C((ROWS, D)), cutlass.Float32)
            p = cute.make_rmem_tensor(add_o.partition_shape_A((ROWS, BN)), dtype)
            m = cute.make_rmem_tensor(2, cutlass.Float32)
            l = cute.make_rmem_tensor(2, cutlass.Float32)
            repair = cute.make_rmem_tensor(2, cutlass.Float32)
            first_row = x * BM + consumer * ROWS
            row = first_row + lane // 32 * 16 + lane % 32 // 4  # of 16 rows of a warp; and 8 rows below it
            column = lane % 4 * 2

            if consumer == CONSUMERS - 1:  # the first turn is the first consumer's
                cute.arch.barrier_arrive(barrier_id=FIRST_TURN, number_of_threads=2 * WARPGROUP)

            # Tile 0 has no values before it to multiply. Every row sees key 0: m is finite from here on.
            zero = cutlass.Int32(0)
            for half in cutlass.range_constexpr(2):
                m[half] = -cutlass.Float32(inf)
                l[half] = cutlass.Float32(0)
            acc.fill(0.0)
            queries.consumer_wait(pipeline.PipelineState(CONSUMERS, consumer, consumer, zero))
            keys.consumer_wait(place_of(zero, 0))
            warpgroup.fence()
            multiply(set_s, add_s, s, rQ, rK[None, None, None, 0])
            warpgroup.wait_group(0)
            keys.consumer_release(place_of(zero, 0))
            mask(s, column, row, N)
            softmax(s, m, l, repair)
            to_weights(s, p)

            # Most tiles need no mask; those that do come last.
            clear = (first_row + 1) // BN if cutlass.const_expr(CAUSAL) else N // BN
            clear = cutlass.max(cutlass.min(clear, tiles), 1)
            rings, mmas, operands = (queries, keys, values), (set_s, add_s, add_o), (rQ, rK, rV)
            held, mine = (s, p, acc, m, l, repair), (consumer, row, column, N)
            for j in cutlass.range(1, clear, unroll=1):
                step(j, rings, mmas, operands, held, mine, False)
            for j in cutlass.range(clear, tiles, unroll=1):
                step(j, rings, mmas, operands, held, mine, True)

            v_at = place_of(tiles - 1, 0)
            values.consumer_wait(v_at)
            warpgroup.fence()
            multiply(add_o, add_o, acc, p, rV[None, None, None, v_at.index])
            for half in cutlass.range_constexpr(2):
                total = l[half]
                for lanes in cutlass.range_constexpr(1, 3):
                    total = total + cute.arch.shuffle_sync_bfly(total, lanes)
                repair[half] = cute.arch.rcp_approx(total)
            warpgroup.wait_group(0)

            # The rows of Q have been read for the last time: their place takes the answer.
            scale_rows(acc, repair)
            out = cute.make_rmem_tensor(acc.layout, dtype)
            out.store(acc.load().to(dtype))
            matrices = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
            store = cute.make_tiled_copy_C(matrices, add_o).get_slice(lane)
            cute.copy(store, store.retile(out), store.partition_D(sQ)[None, None, None, consumer])
            cute.arch.fence_proxy("async.shared", space="cta")  # the copy engine sees it, too
            cute.arch.barrier(barrier_id=1 + consumer, number_of_threads=WARPGROUP)
            if warp_index % 4 == 0:
                from_o, to_o = parts(copy_o, O, (ROWS, D), sQ)
                # Rows past the end of the head are left out.
                cute.copy(copy_o, from_o[None, consumer], to_o[None, x * CONSUMERS + consumer, 0, head])
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0, read=True)  # shared memory goes with the block

    @cute.jit
    def program(
        q: cute.Pointer, k: cute.Pointer, v: cute.Pointer, o: cute.Pointer,
        heads: cutlass.Int32, N: cutlass.Int32, stream: CUstream,
    ):  # fmt: skip
        """Launch a block for every BM rows of every head."""
        # The copy engine wants to know that heads begin at multiples of 16 bytes. V is said as (D, N), as wgmma has it.
        of_head = cute.assume(cutlass.Int64(N) * D, divby=D)
        by_row = cute.make_layout((N, D, heads), stride=(D, 1, of_head))
        by_column = cute.make_layout((D, N, heads), stride=(1, D, of_head))
        q, k, o = (cute.make_tensor(pointer, by_row) for pointer in (q, k, o))
        v = cute.make_tensor(v, by_column)
        by_k, by_n = OperandMajorMode.K, OperandMajorMode.MN
        set_s, add_s = (
            hopper.make_trivial_tiled_mma(dtype, dtype, by_k, by_k, cutlass.Float32, (1, 1, 1), (ROWS, BN))
            for _ in range(2)
        )
        add_o = hopper.make_trivial_tiled_mma(
            dtype, dtype, by_k, by_n, cutlass.Float32, (1, 1, 1), (ROWS, D), warpgroup.OperandSource.RMEM
        )
        set_s.set(warpgroup.Field.ACCUMULATE, False)
        add_s.set(warpgroup.Field.ACCUMULATE, True)
        add_o.set(warpgroup.Field.ACCUMULATE, True)
        lay_q = hopper.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (ROWS, BN, D), dtype, CONSUMERS)
        lay_k = hopper.make_smem_layout_b(LayoutEnum.ROW_MAJOR, (ROWS, BN, D), dtype, STAGES)
        lay_v = hopper.make_smem_layout_b(LayoutEnum.COL_MAJOR, (ROWS, D, BN), dtype, STAGES)
        copy_q, Q = cpasync.make_tiled_tma_atom(BY_TMA, q, lay_q, (ROWS, D))
        copy_k, K = cpasync.make_tiled_tma_atom(BY_TMA, k, lay_k, (BN, D))
        copy_v, V = cpasync.make_tiled_tma_atom(BY_TMA, v, lay_v, (D, BN))
        copy_o, O = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), o, lay_q, (ROWS, D))
        attention_kernel(
            set_s, add_s, add_o, copy_q, Q, copy_k, K, copy_v, V, copy_o, O, lay_q, lay_k, lay_v
        ).launch(
            grid=(cute.ceil_div(N, BM), heads, 1),
            block=((1 + CONSUMERS) * WARPGROUP, 1, 1),
            min_blocks_per_mp=1,
            stream=stream,
        )

    # endregion
    return program


# --- on the host -------------------------------------------------------------


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16 or float16, D = 64 or 128."""
    return w.dtype in ("bfloat16", "float16") and w.D in HEAD_SIZES


def _pointer(element: str, address: int) -> Any:
    """Return an address in the card's memory, a multiple of 16 bytes, as the language takes it."""
    import cutlass
    from cutlass.cute import AddressSpace
    from cutlass.cute.runtime import make_ptr

    dtype = {"bfloat16": cutlass.BFloat16, "float16": cutlass.Float16}[element]
    return make_ptr(dtype, address, AddressSpace.gmem, assumed_align=16)


@functools.cache
def _compiled(tile: Tile, D: int, causal: bool, element: str, options: str = "") -> Any:
    """Return the compiled program; the number of heads and N stay open.

    Raises:
        NotInstalled: the language is not there.
    """
    program = _program(tile, D, causal, element)
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_stream

    address = _pointer(element, 16)  # any
    return cute.compile(
        program, address, address, address, address, 1, 1, make_fake_stream(),
        options=f"--gpu-arch sm_90a {options}",
    )  # fmt: skip


def compiled(w: Workload, arch: str = "sm_90a", *, tile: Tile | None = None) -> Compiled:
    """Return what the compiler makes for a workload, without a card.

    Args:
        w: its element type, D and mask; the kernel is the same for all numbers of heads and all N.
        arch: sm_90a.
        tile: how to cut the work; without it, the tile for this D.
    Raises:
        NotInstalled: the language is not there.
        ValueError: an `arch` other than sm_90a, or a workload that the kernel does not take.
    """
    if arch != "sm_90a":
        raise ValueError(f"arch: expected sm_90a, for wgmma, got {arch}")
    if not supports(w):
        raise ValueError(f"w: expected bfloat16 or float16 and D = 64 or 128, got {w.label}")
    tile, causal = tile or BEST[w.D], bool(w.dims.get("causal", False))
    with tempfile.TemporaryDirectory() as folder:
        made = _compiled(tile, w.D, causal, w.dtype, f"--keep-ptx --keep-cubin --dump-dir {folder}")
        return Compiled(cubin=made.__cubin__, ptx=made.__ptx__, shared_bytes=shared_bytes(tile, w.D))


def shared_bytes(tile: Tile, D: int) -> int:
    """Return the shared memory of a block: barriers, up to the 1024 bytes that the swizzle aligns to; Q; the rings."""
    return 1024 + 2 * D * (tile.consumers * ROWS + 2 * tile.stages * tile.block_n)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, tile: Tile | None = None
) -> torch.Tensor:
    """Return attention on Hopper. The first call of a type, a D and a mask compiles.

    Args:
        q, k, v: (B, H, N, D) bfloat16 or float16, contiguous, D = 64 or 128, B * H <= 65535, N <= 1073741824, at
            addresses divisible by 16 (as torch allocates).
        causal: row m sees keys 0 to m only.
        tile: how to cut the work; without it, the tile for this D.
    Returns:
        (B, H, N, D) of the same type: every row a weighted mean of rows of v.
    Raises:
        NotInstalled: the language is not there.
        TypeError, ValueError: see `heads_of`; or a GPU of another compute capability than 9.0.
    """
    heads, N, D = heads_of(q, k, v, DTYPES, in_vectors=True)
    capability = torch.cuda.get_device_capability(q.device)
    if capability != (9, 0):
        found = ".".join(map(str, capability))
        raise ValueError(f"q: expected a GPU of compute capability 9.0 (Hopper, for wgmma), got {found}")
    o = torch.empty_like(q)
    element = str(q.dtype).removeprefix("torch.")
    run = _compiled(tile or BEST[D], D, causal, element)
    from cuda.bindings.driver import CUstream

    at = (_pointer(element, x.data_ptr()) for x in (q, k, v, o))
    run(*at, heads, N, CUstream(torch.cuda.current_stream().cuda_stream))
    return o
