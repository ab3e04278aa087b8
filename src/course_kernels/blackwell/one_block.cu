// Matrix multiply for Blackwell: one thread multiplies 128 x 256 at a time, and no thread holds a sum.
//
// Contract  ../gemm/problem.py      Launcher  one_block.py      Instructions  tcgen05.cuh
// Idea      the tensor core keeps its sums in a memory of its own (TMEM): one thread asks for products, one other for
//           tiles, and registers see the sums once, at the end
// Against   ../gemm/k08_roles, where the 128 threads of a warpgroup ask together and half of their registers are sums
// Cost      a block reads 128 rows of A and 256 columns of B to make 128 x 256 of C
// Limits    compute capability 10.0 and 10.3; K and N are multiples of 8. One tile a block: nothing is multiplied while
//           sums are written. COMPILED, NOT RUN: no such card was there
// Next      pair.cu: two blocks for one product
// Source    PTX ISA, tcgen05.mma, tcgen05.alloc, tcgen05.commit, tcgen05.ld

#include "tcgen05.cuh"
#include "tiles.cuh"

#ifndef FLOAT16
#define FLOAT16 0
#endif
#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif

constexpr int BM = 128, BN = 256, BK = 64;  // BN: columns of TMEM, half of what there is
constexpr int STAGES = 4;                   // pairs of tiles in shared memory
constexpr int THREADS = 128;                // four warps: one for each quarter of TMEM's lanes
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16) + 16
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_one_block(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  Barrier *done = empty + STAGES;
  unsigned *where = reinterpret_cast<unsigned *>(done + 1);
  const Tile tile = tile_at(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), BM, BN);
  const int steps = ceil_div(K, BK), warp = same_in_warp(threadIdx.x / 32);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], 1);
    }
    barrier_init(done, 1);
    fence_barrier_init();
  }
  if (warp == 2) {
    tmem_allocate<1>(where, BN);
    tmem_no_more<1>();
  }
  tcgen05_before_barrier();
  __syncthreads();
  tcgen05_after_barrier();
  const unsigned sums = *where;

  // region roles
  if (warp == 0 && elect_one()) {
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES;
      char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
      wait(&empty[s], step / STAGES & 1 ^ 1);
      arrive_and_expect_bytes(&full[s], STAGE_BYTES);
      load_tile(a, a_map, &full[s], step * BK, tile.m);
      for (int p = 0; p < BN / 64; p++) load_tile(b + p * PANEL_BYTES, b_map, &full[s], tile.n + p * 64, step * BK);
    }
  } else if (warp == 1 && elect_one()) {
    constexpr unsigned how = f16_instruction<BM, BN>(!FLOAT16, false, true);
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES;
      const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES;
      wait(&full[s], step / STAGES & 1);
      tcgen05_after_barrier();
#pragma unroll
      for (int k = 0; k < BK / 16; k++) {
        const Descriptor rows = in_shared(advance(k_major(a), k * 32));                                  // 16 columns on
        const Descriptor columns = in_shared(advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES));  // 16 rows on
        multiply_f16<1>(sums, rows, columns, how, step + k > 0);
      }
      tcgen05_commit<1>(&empty[s]);  // the stage is free once these products are done
    }
    tcgen05_commit<1>(done);
  }
  __syncwarp();  // the warp is whole again
  // endregion

  wait(done, 0);
  tcgen05_after_barrier();
  write_sums<BN, Type>(sums, C, M, N, tile.m, tile.n);

  tcgen05_before_barrier();
  __syncthreads();  // everybody has read
  tcgen05_after_barrier();
  if (warp == 2) tmem_give_back<1>(sums, BN);
}
