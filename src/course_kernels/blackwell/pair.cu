// Matrix multiply for Blackwell: two blocks, one product of 256 x 256; each brings half of what it needs.
//
// Contract  ../gemm/problem.py      Launcher  pair.py      Instructions  tcgen05.cuh
// Idea      two neighbouring multiprocessors multiply as one (cta_group::2): a thread of the first block asks, and both
//           tensor cores read both blocks' columns of B. Each block fetches its own rows of A and half of B
// Against   one_block.cu, where 128 x 256 of C want all 256 columns of B in one shared memory; with ../gemm/k11_cluster,
//           where two blocks fetch B once and then hold it twice
// Cost      a pair reads 256 rows of A and 256 columns of B to make 256 x 256 of C; 32 KiB a block and step, not 48
// Limits    compute capability 10.0 and 10.3; K and N are multiples of 8. One tile a pair. COMPILED, NOT RUN: no such card
//           was there
// Next      scaled.cu: numbers of four bits, with scales
// Source    PTX ISA, tcgen05.mma and tcgen05.commit with .cta_group::2, cp.async.bulk.tensor with .cta_group::2

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

constexpr int BM = 128, BN = 256, BK = 64;  // of a block: 128 rows of C, and in TMEM all 256 columns of them
constexpr int MINE = BN / 2;                // columns of B that a block fetches
constexpr int STAGES = 6;
constexpr int THREADS = 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + MINE / 64 * PANEL_BYTES;

// grid: two blocks a tile, ceil(M / 256) * ceil(N / BN) tiles      block: THREADS      cluster: 2
// dynamic shared memory: STAGES * (STAGE_BYTES + 16) + 16
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_pair(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  Barrier *done = empty + STAGES;
  unsigned *where = reinterpret_cast<unsigned *>(done + 1);
  const Tile tile = tile_at(blockIdx.x / 2, ceil_div(M, 2 * BM), ceil_div(N, BN), 2 * BM, BN);
  const int steps = ceil_div(K, BK), warp = same_in_warp(threadIdx.x / 32), rank = cluster_rank();

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);  // the first block's count for both; the second's are not used
      barrier_init(&empty[s], 1);
    }
    barrier_init(done, 1);
    fence_barrier_init();
  }
  if (warp == 2) {
    tmem_allocate<2>(where, BN);
    tmem_no_more<2>();
  }
  tcgen05_before_barrier();
  cluster_arrive();
  cluster_wait();  // barriers and TMEM of both blocks are there
  tcgen05_after_barrier();
  const unsigned sums = *where;

  // region roles
  if (warp == 0 && elect_one()) {
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES;
      char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
      wait(&empty[s], step / STAGES & 1 ^ 1);
      if (rank == 0) arrive_and_expect_bytes(&full[s], 2 * STAGE_BYTES);  // what both blocks bring
      load_tile_for_pair(a, a_map, &full[s], step * BK, tile.m + rank * BM);
      for (int p = 0; p < MINE / 64; p++) {
        load_tile_for_pair(b + p * PANEL_BYTES, b_map, &full[s], tile.n + rank * MINE + p * 64, step * BK);
      }
    }
  } else if (warp == 1 && rank == 0 && elect_one()) {
    constexpr unsigned how = f16_instruction<2 * BM, BN>(!FLOAT16, false, true);
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES;
      const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES;  // the same in both blocks
      wait(&full[s], step / STAGES & 1);
      tcgen05_after_barrier();
#pragma unroll
      for (int k = 0; k < BK / 16; k++) {
        const Descriptor rows = in_shared(advance(k_major(a), k * 32));
        const Descriptor columns = in_shared(advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES));
        multiply_f16<2>(sums, rows, columns, how, step + k > 0);
      }
      tcgen05_commit<2>(&empty[s]);  // the stage is free in both blocks
    }
    tcgen05_commit<2>(done);
  }
  __syncwarp();
  // endregion

  wait(done, 0);
  tcgen05_after_barrier();
  write_sums<BN, Type>(sums, C, M, N, tile.m + rank * BM, tile.n);

  tcgen05_before_barrier();
  cluster_arrive();
  cluster_wait();  // nobody's shared memory or TMEM goes while the other block is at work
  tcgen05_after_barrier();
  if (warp == 2) tmem_give_back<2>(sums, BN);
}
