"""Matrix multiply in CuTe-DSL by the product of a warp: one source for every card from Ampere on.

Contract  ../course_kernels/gemm/problem.py, in bfloat16, with M and N multiples of 128 and K of 32
Idea      the atom is `mma.sync`'s, and so is the instruction, whatever the card has beside it
Against   ../course_kernels/gemm/in_cute_dsl.py and ../course_kernels/blackwell/in_cute_dsl.py, the same language with
          the atoms of one generation
Limits    one pair of tiles at a time: each step waits for its copies. It is here to be read, not to be raced
Source    NVIDIA, CuTe-DSL: the reference of `cute.nvgpu.warp` and `cute.nvgpu.cpasync`
"""

# Annotations stay values here: the language reads those of `program`.
from typing import Any

# mypy: allow-untyped-defs
import cutlass
from cuda.bindings.driver import CUstream
from cutlass import cute
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.memory import SmemAllocator

BM, BN, BK = 128, 128, 32
WARPS = 2, 2  # below each other and side by side: each has 64 x 64 sums, 128 registers of a thread
THREADS = 32 * WARPS[0] * WARPS[1]
VECTOR = 8  # numbers of 16 bits in what a thread copies at once
DTYPE = cutlass.BFloat16
SHARED_BYTES = 2 * BK * (BM + BN)


@cute.kernel
def multiply_kernel(mma, copy_a, A, copy_b, B, C, lay_a, lay_b):
    """C = A @ B, a tile by a block. A: (M, K), B: (N, K), C: (M, N); lay_*: tiles in shared memory."""
    thread, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    shared = SmemAllocator()
    # So that eight rows of a matrix come from eight different banks. A swizzle of an address counts bytes, not numbers.
    sA = shared.allocate_tensor(DTYPE, lay_a, 1024, cute.make_swizzle(2, 4, 3))
    sB = shared.allocate_tensor(DTYPE, lay_b, 1024, cute.make_swizzle(3, 4, 3))

    gA = cute.local_tile(A, (BM, BK), (m, None))  # (BM, BK, steps)
    gB = cute.local_tile(B, (BN, BK), (n, None))
    gC = cute.local_tile(C, (BM, BN), (m, n))
    mine_a, mine_b = copy_a.get_slice(thread), copy_b.get_slice(thread)
    from_a, to_a = mine_a.partition_S(gA), mine_a.partition_D(sA)
    from_b, to_b = mine_b.partition_S(gB), mine_b.partition_D(sB)

    mine = mma.get_slice(thread)
    rA, rB = mma.make_fragment_A(mine.partition_A(sA)), mma.make_fragment_B(mine.partition_B(sB))
    rC = mine.partition_C(gC)
    acc = cute.make_rmem_tensor(rC.shape, cutlass.Float32)
    acc.fill(0.0)
    # Rows of A lie along K, as the product has them; those of B do not, and are turned on their way.
    straight, turned = (
        cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose, 4), DTYPE) for transpose in (False, True)
    )
    load_a, load_b = cute.make_tiled_copy_A(straight, mma), cute.make_tiled_copy_B(turned, mma)
    taken_a, given_a = load_a.get_slice(thread).partition_S(sA), load_a.retile(rA)
    taken_b, given_b = load_b.get_slice(thread).partition_S(sB), load_b.retile(rB)

    for k in cutlass.range(cute.size(gA, mode=[2]), unroll=1):
        cute.copy(copy_a, from_a[None, None, None, k], to_a)
        cute.copy(copy_b, from_b[None, None, None, k], to_b)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()  # everybody's copies have come
        for i in cutlass.range_constexpr(BK // 16):
            cute.copy(load_a, taken_a[None, None, i], given_a[None, None, i])
            cute.copy(load_b, taken_b[None, None, i], given_b[None, None, i])
            cute.gemm(mma, acc, rA[None, None, i], rB[None, None, i], acc)
        cute.arch.sync_threads()  # everybody has read

    out = cute.make_rmem_tensor(rC.shape, DTYPE)
    out.store(acc.load().to(DTYPE))
    cute.autovec_copy(out, rC)


@cute.jit
def program(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer,
    M: cutlass.Int32, N: cutlass.Int32, K: cutlass.Int32, stream: CUstream,
):  # fmt: skip
    """Launch a block for every tile of C."""
    # Vectors of 16 bytes begin at multiples of 16 bytes. B is said as (N, K), as the product has it.
    N, K = cute.assume(N, divby=VECTOR), cute.assume(K, divby=VECTOR)
    row_a, row_b = (cute.assume(cutlass.Int64(size), divby=VECTOR) for size in (K, N))
    a = cute.make_tensor(a, cute.make_layout((M, K), stride=(row_a, 1)))
    b = cute.make_tensor(b, cute.make_layout((N, K), stride=(1, row_b)))
    c = cute.make_tensor(c, cute.make_layout((M, N), stride=(row_b, 1)))
    # Two products side by side, so that a load of four matrices of B feeds both.
    mma = cute.make_tiled_mma(
        warp.MmaF16BF16Op(DTYPE, cutlass.Float32, (16, 8, 16)),
        cute.make_layout((*WARPS, 1)),
        permutation_mnk=(16 * WARPS[0], 2 * 8 * WARPS[1], 16),
    )
    vector = cute.make_copy_atom(cpasync.CopyG2SOp(), DTYPE, num_bits_per_copy=128)
    rows = cute.make_layout((THREADS // 4, 4), stride=(4, 1))  # four threads take a row of A
    columns = cute.make_layout((16, THREADS // 16), stride=(1, 16))  # sixteen take a row of B
    copy_a = cute.make_tiled_copy_tv(vector, rows, cute.make_layout((1, VECTOR)))
    copy_b = cute.make_tiled_copy_tv(vector, columns, cute.make_layout((VECTOR, 1)))
    # A row of A's tile is 64 bytes; of B's, a panel of 64 columns, it is 128 bytes.
    lay_a = cute.make_layout((BM, BK), stride=(BK, 1))
    lay_b = cute.tile_to_shape(cute.make_layout((64, 8), stride=(1, 64)), (BN, BK), (0, 1))
    multiply_kernel(mma, copy_a, a, copy_b, b, c, lay_a, lay_b).launch(
        grid=(cute.ceil_div(M, BM), cute.ceil_div(N, BN), 1), block=(THREADS, 1, 1), stream=stream
    )


def arguments() -> tuple[Any, ...]:
    """Return what `program` is compiled with: addresses of any value, and sizes that stay open."""
    from cutlass.cute import AddressSpace
    from cutlass.cute.runtime import make_fake_stream, make_ptr

    address = make_ptr(DTYPE, 16, AddressSpace.gmem, assumed_align=16)
    return address, address, address, BM, BN, BK, make_fake_stream()
