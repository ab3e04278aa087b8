// Matrix multiply of 8-bit numbers, kernel 2: Hopper's own instructions, and sums that leave the tensor cores in time.
//
// Contract  problem.py      Launcher  k02_hopper.py      Instructions  ../cuda/hopper
// Idea      the tensor cores keep some 14 bits of a sum of 8-bit numbers. So they add up 128 of k only; then the
//           threads add that part to sums of their own, in float32. One consumer adds while the other multiplies
// Against   k01_triton, whose sums stay in the tensor cores over all of K
// Cost      two registers for each sum, so tiles are 128 x 192 and not 128 x 256; EXACT=0 leaves the sums where they are
// Limits    Hopper (sm_90a) only; K is a multiple of 16, N of 8
// Source    DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2; DeepGEMM; gemm/k12_stored for the rest

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

#ifndef EXACT
#define EXACT 1
#endif

using Half = unsigned short;

constexpr int BM = 128, BN = EXACT ? 192 : 256;
constexpr int BK = 128;  // a row of the swizzle: 128 bytes
constexpr int STAGES = 4;
constexpr int GROUP = 8;  // rows of pairs of tiles that are walked together
constexpr int CONSUMERS = 2;
constexpr int CLUSTER = 2;  // blocks one below the other, which fetch B once for both
constexpr int C_PANELS = EXACT ? 3 : 2;  // places for panels of C, 64 x 64, of a consumer
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr unsigned ROW_BYTES = 128, PANEL_BYTES = 64 * ROW_BYTES;
constexpr unsigned A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr unsigned C_BYTES = CONSUMERS * C_PANELS * PANEL_BYTES;
static_assert(BN / 64 % C_PANELS == 0, "every tile begins with the place that was written longest ago");

struct Tile {
  int m, n;
};

// Down a column of GROUP pairs of tiles, then the next column: what runs together reads few rows and few columns.
__device__ inline Tile tile_at(int pair, int pairs_m, int tiles_n) {
  const int first = pair / (GROUP * tiles_n) * GROUP, place = pair % (GROUP * tiles_n);
  const int height = min(GROUP, pairs_m - first);
  return {((first + place % height) * CLUSTER + static_cast<int>(cluster_rank())) * BM, place / height * BN};
}

// grid: a multiple of CLUSTER      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16) + C_BYTES
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_fp8_hopper(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 128
    const __grid_constant__ TensorMap b_map,  // [N, K], box BN / 2 x 128
    const __grid_constant__ TensorMap c_map,  // [M, N], box 64 x 64
    const float *scale_a,                     // [1]
    const float *scale_b,                     // [1]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  char *c_panels = memory + STAGES * STAGE_BYTES;
  Barrier *full = reinterpret_cast<Barrier *>(c_panels + C_BYTES), *empty = full + STAGES;
  const int pairs_m = (M + CLUSTER * BM - 1) / (CLUSTER * BM), tiles_n = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
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
        const Tile tile = tile_at(pair, pairs_m, tiles_n);
        for (int step = 0; step < steps; step++, at++) {
          const int s = at % STAGES;
          char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          arrive_and_expect_bytes(&full[s], STAGE_BYTES);
          load_tile(a, a_map, &full[s], step * BK, tile.m);
          load_tile_multicast(b + rank * (B_BYTES / 2), b_map, &full[s], 3, step * BK, tile.n + rank * (BN / 2));
        }
      }
    }
    __syncwarp();  // the warp is whole again, as the barrier at the end wants it
  } else {
    registers_up<232>();
    const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 16;  // the row that stmatrix wants of me
    const float scale = *scale_a * *scale_b;
    char *mine = c_panels + (warpgroup - 1) * C_PANELS * PANEL_BYTES;
    float part[BN / 2];                        // what the tensor cores add up
    float whole[EXACT ? BN / 2 : 1] = {0.0f};  // what the threads do
    for (int pair = first; pair < pairs_m * tiles_n; pair += hop) {
      const Tile tile = tile_at(pair, pairs_m, tiles_n);
      for (int step = 0; step < steps; step++, at++) {
        const int s = at % STAGES;
        const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES;
        wait(&full[s], at / STAGES & 1);
        wgmma_fence(part);
#pragma unroll
        for (int k = 0; k < BK / 32; k++) {
          const Descriptor rows = advance(k_major(a + (warpgroup - 1) * PANEL_BYTES), k * 32);
          products<BN, E4m3x32>(part, rows, advance(k_major(b), k * 32), EXACT ? k > 0 : step + k > 0);
        }
        wgmma_commit();
        wgmma_wait<0>(part);
        if (thread < CLUSTER) arrive_remote_after_reading(&empty[s], thread);
#pragma unroll
        for (int i = 0; i < (EXACT ? BN / 2 : 0); i++) whole[i] = step ? whole[i] + part[i] : part[i];
      }
#pragma unroll
      for (int i = 0; i < BN / 2; i++) part[i] = (EXACT ? whole[i] : part[i]) * scale;

#pragma unroll
      for (int p = 0; p < BN / 64; p++) {
        char *place = mine + p % C_PANELS * PANEL_BYTES;
        if (thread == 0) wait_until_read<C_PANELS - 1>();
        named_barrier_wait(warpgroup, 128);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          unsigned held[4];
          operand(held, part, p * 4 + j);
          store_matrices(place + swizzled(row * ROW_BYTES + j * 32 + thread % 32 / 16 * 16), held);
        }
        fence_async();
        named_barrier_wait(warpgroup, 128);
        if (thread == 0) {
          store_tile(c_map, place, tile.n + p * 64, tile.m + (warpgroup - 1) * 64);
          close_bulk_group();
        }
      }
    }
    if (thread == 0) wait_until_read<0>();
  }
  cluster_arrive();
  cluster_wait();
}
