// Matrix multiply, kernel 12: C leaves by the copy engine, too, while the next tile is multiplied.
//
// Contract  problem.py      Launcher  k12_stored.py      Instructions  ../cuda/hopper
// Idea      a consumer rounds 64 columns of its sums, puts them into shared memory (stmatrix, as the swizzle wants
//           it) and one thread asks the copy engine to store that panel. Nobody waits for memory: a panel's place is
//           written again two panels later, most often in the next tile
// Against   k11_cluster, whose threads write pairs of 4 bytes and wait for their turn at the memory in every tile
// Cost      as k11_cluster, and 32 KiB of shared memory for C
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. Rounding and stmatrix still take the consumer's time;
//           the other consumer multiplies meanwhile if it is not at the same place
// Next      k13_by_size: another tile for another size
// Source    PTX ISA, stmatrix and cp.async.bulk.tensor; Shankhdhar 2024, Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"

#ifndef GROUP
#define GROUP 8
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef C_PANELS
#define C_PANELS 2  // places for panels of C, 64 x 64, of a consumer. 4 hold all it makes, beside 3 stages
#endif

constexpr int BM = 128, BN = 256;
constexpr int CONSUMERS = 2;
constexpr int CLUSTER = 2;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;
constexpr unsigned C_BYTES = CONSUMERS * C_PANELS * PANEL_BYTES;
constexpr int MINE = BN / 64 / CLUSTER;

// grid: a multiple of CLUSTER      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16) + C_BYTES
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_stored(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    const __grid_constant__ TensorMap c_map,  // [M, N], box 64 x 64
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  char *c_panels = memory + STAGES * STAGE_BYTES;
  Barrier *full = reinterpret_cast<Barrier *>(c_panels + C_BYTES), *empty = full + STAGES;
  const int pairs_m = ceil_div(M, CLUSTER * BM), tiles_n = ceil_div(N, BN), steps = ceil_div(K, BK);
  const int warpgroup = same_in_warp(threadIdx.x / 128), rank = cluster_rank();
  const int first = blockIdx.x / CLUSTER, hop = gridDim.x / CLUSTER;

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], CLUSTER * CONSUMERS);
    }
    fence_barrier_init();
  }
  cluster_arrive();
  cluster_wait();

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
          arrive_and_expect_bytes(&full[s], STAGE_BYTES);
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
    const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 16;  // the row that stmatrix wants of me
    char *mine = c_panels + (warpgroup - 1) * C_PANELS * PANEL_BYTES;
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
        if (step > 0 && thread < CLUSTER) arrive_remote_after_reading(&empty[(at - 1) % STAGES], thread);
      }
      wgmma_wait<0>(d);
      if (thread < CLUSTER) arrive_remote_after_reading(&empty[(at - 1) % STAGES], thread);

      // region store
#pragma unroll
      for (int p = 0; p < BN / 64; p++) {
        char *place = mine + p % C_PANELS * PANEL_BYTES;
        if (thread == 0) wait_until_read<C_PANELS - 1>();  // what lay here has left
        named_barrier_wait(warpgroup, 128);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          unsigned held[4];
          operand<Type>(held, d, p * 4 + j);
          store_matrices(place + swizzled(row * ROW_BYTES + j * 32 + thread % 32 / 16 * 16), held);
        }
        fence_async();
        named_barrier_wait(warpgroup, 128);
        if (thread == 0) {
          store_tile(c_map, place, tile.n + p * 64, tile.m + rank * BM + (warpgroup - 1) * 64);
          close_bulk_group();
        }
      }
      // endregion
    }
    if (thread == 0) wait_until_read<0>();  // shared memory stays until the last panel has left
  }
  cluster_arrive();
  cluster_wait();
}
