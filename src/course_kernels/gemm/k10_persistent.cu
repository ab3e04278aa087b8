// Matrix multiply, kernel 10: blocks that stay. As many as there are multiprocessors, each walks over many tiles.
//
// Contract  problem.py      Launcher  k10_persistent.py      Instructions  ../cuda/hopper
// Idea      the ring goes on from tile to tile: while the consumers write one tile of C, the producer already fetches
//           the next one's operands. And the order is ours: at any time the tiles under way lie close together, so
//           their strips of A and B are in L2
// Against   k09_registers, where a block ends with its tile, and the next one starts with an empty ring
// Cost      a tile reads 128 rows of A and 256 columns of B to make 128 x 256 of C
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. Tiles that no whole number of rounds holds leave some
//           multiprocessors idle in the last
// Next      k11_cluster: what two blocks both need comes once
// Source    CUTLASS, Efficient GEMM, persistent kernels; Shankhdhar 2024, Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"

#ifndef GROUP
#define GROUP 16  // rows of tiles that are walked together: 132 tiles of 128 x 256 cover about 2048 x 2048
#endif

constexpr int BM = 128, BN = 256;
constexpr int STAGES = 4;
constexpr int CONSUMERS = 2;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;

// grid: at most ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16)
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_persistent(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), steps = ceil_div(K, BK);
  const int warpgroup = same_in_warp(threadIdx.x / 128);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], CONSUMERS);
    }
    fence_barrier_init();
  }
  __syncthreads();

  // region walk
  unsigned at = 0;  // steps so far, over all tiles
  if (warpgroup == 0) {
    registers_down<40>();
    if (threadIdx.x == 0) {
      for (int number = blockIdx.x; number < tiles_m * tiles_n; number += gridDim.x) {
        const Tile tile = tile_at(number, tiles_m, tiles_n, GROUP, BM, BN);
        for (int step = 0; step < steps; step++, at++) {
          const int s = at % STAGES;
          char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          arrive_and_expect_bytes(&full[s], STAGE_BYTES);
          load_tile(a, a_map, &full[s], step * BK, tile.m);
          for (int p = 0; p < BN / 64; p++) load_tile(b + p * PANEL_BYTES, b_map, &full[s], tile.n + p * 64, step * BK);
        }
      }
    }
  } else {
    registers_up<232>();
    float d[BN / 2];
    for (int number = blockIdx.x; number < tiles_m * tiles_n; number += gridDim.x) {
      const Tile tile = tile_at(number, tiles_m, tiles_n, GROUP, BM, BN);
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
        if (step > 0 && threadIdx.x % 128 == 0) arrive(&empty[(at - 1) % STAGES]);
      }
      wgmma_wait<0>(d);
      if (threadIdx.x % 128 == 0) arrive(&empty[(at - 1) % STAGES]);  // the next tile wants it
      write(d, C, M, N, tile.m + (warpgroup - 1) * 64, tile.n);
    }
  }
  // endregion
}
