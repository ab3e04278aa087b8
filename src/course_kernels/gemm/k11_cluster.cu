// Matrix multiply, kernel 11: clusters. Two blocks, one tile below the other, fetch B once for both.
//
// Contract  problem.py      Launcher  k11_cluster.py      Instructions  ../cuda/hopper
// Idea      two neighbouring multiprocessors work on tiles with the same columns. Each asks for two of the four panels
//           of B, and the copy engine delivers them to both (multicast): a block takes 32 KiB from L2 in a step, not 48
// Against   k10_persistent, where each block fetches all of its own
// Cost      two blocks read 256 rows of A and 256 columns of B to make 256 x 256 of C
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. A stage is free when the consumers of both blocks say
//           so: the two keep step with each other. An odd number of tiles from top to bottom leaves one half at work
//           for nothing
// Next      k12_stored: C leaves while the next tile is multiplied
// Source    PTX ISA, cp.async.bulk.tensor with .multicast::cluster; Shankhdhar 2024, Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"

#ifndef GROUP
#define GROUP 8  // rows of pairs of tiles that are walked together: 66 pairs of 256 x 256 cover about 2048 x 2048
#endif

constexpr int BM = 128, BN = 256;
constexpr int STAGES = 4;
constexpr int CONSUMERS = 2;
constexpr int CLUSTER = 2;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;
constexpr int MINE = BN / 64 / CLUSTER;  // panels of B that a block asks for

// grid: a multiple of CLUSTER      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16)
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_cluster(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  const int pairs_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), steps = ceil_div(K, BK);
  const int warpgroup = same_in_warp(threadIdx.x / 128), rank = cluster_rank();
  const int first = blockIdx.x / CLUSTER, hop = gridDim.x / CLUSTER;

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], CLUSTER * CONSUMERS);  // all who read what this block brings
    }
    fence_barrier_init();
  }
  cluster_arrive();
  cluster_wait();  // nobody writes to a block whose barriers are not there yet

  unsigned at = 0;
  if (warpgroup == 0) {
    registers_down<40>();
    if (threadIdx.x == 0) {
      for (int pair = first; pair < pairs_m * tiles_n; pair += hop) {
        const Tile tile = tile_at(pair, pairs_m, tiles_n, GROUP, CLUSTER * BM, BN);
        for (int step = 0; step < steps; step++, at++) {
          const int s = at % STAGES;
          char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          arrive_and_expect_bytes(&full[s], STAGE_BYTES);  // with those that the other block asks for
          load_tile(a, a_map, &full[s], step * BK, tile.m + rank * BM);
          for (int p = rank * MINE; p < (rank + 1) * MINE; p++) {
            load_tile_multicast(b + p * PANEL_BYTES, b_map, &full[s], 3, tile.n + p * 64, step * BK);
          }
        }
      }
    }
    __syncwarp();  // the warp is whole again, as the barrier at the end wants it
  } else {
    registers_up<232>();
    const int thread = threadIdx.x % 128;
    float d[BN / 2];
    for (int pair = first; pair < pairs_m * tiles_n; pair += hop) {
      const Tile tile = tile_at(pair, pairs_m, tiles_n, GROUP, CLUSTER * BM, BN);
      for (int step = 0; step < steps; step++, at++) {
        const int s = at % STAGES;
        const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES;
        wait(&full[s], at / STAGES & 1);
        wgmma_fence(d);
#pragma unroll
        for (int k = 0; k < BK / 16; k++) {
          const Descriptor rows = advance(k_major(a + (warpgroup - 1) * PANEL_BYTES), k * 32);
          const Descriptor columns = advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES);
          products<BN, Type, Major::mn>(d, rows, columns, step + k > 0);
        }
        wgmma_commit();
        wgmma_wait<1>();
        if (step > 0 && thread < CLUSTER) {  // one for each producer
          arrive_remote_after_reading(&empty[(at - 1) % STAGES], thread);
        }
      }
      wgmma_wait<0>(d);
      if (thread < CLUSTER) arrive_remote_after_reading(&empty[(at - 1) % STAGES], thread);
      write(d, C, M, N, tile.m + rank * BM + (warpgroup - 1) * 64, tile.n);
    }
  }
  cluster_arrive();
  cluster_wait();  // nobody's shared memory goes while the other block still arrives there
}
