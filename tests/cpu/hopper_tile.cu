// A matrix multiply with everything that cuda/hopper/ has, for its tests: small, whole, and not tuned.
//
// Contract  C = A @ B in bfloat16, sums in float32
// Idea      one thread asks the copy engine for tiles, two warpgroups multiply; a ring of mbarriers goes between them.
//           With CLUSTER 2 two blocks, one below the other, bring half of B each, and each half to both

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

#ifndef CLUSTER
#define CLUSTER 1
#endif

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 3;
constexpr unsigned ROW_BYTES = 128, PANEL_BYTES = 64 * ROW_BYTES;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + 2 * PANEL_BYTES, C_BYTES = 4 * PANEL_BYTES;

// grid: any multiple of CLUSTER      block: 384      dynamic shared memory: STAGES * STAGE_BYTES + C_BYTES + 64
extern "C" __global__ __launch_bounds__(384, 1) void hopper_tile(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    const __grid_constant__ TensorMap c_map,  // [M, N], box 64 x 64
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  char *c_tile = memory + STAGES * STAGE_BYTES;
  Barrier *full = reinterpret_cast<Barrier *>(c_tile + C_BYTES), *empty = full + STAGES;
  const int role = same_in_warp(threadIdx.x / 128);
  const int rank = CLUSTER > 1 ? cluster_rank() : 0;

  if (threadIdx.x == 0) {
    prefetch(a_map);
    prefetch(b_map);
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], 2 * CLUSTER);  // each multiplying warpgroup of each block that this stage is written from
    }
    fence_barrier_init();
  }
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }

  const int tiles_n = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
  const int pairs_m = (M + BM * CLUSTER - 1) / (BM * CLUSTER);
  int at = 0;  // steps so far, over all tiles: stage at % STAGES for the (at / STAGES)-th time

  if (role == 0) {
    registers_down<24>();
    if (threadIdx.x < 32 && elect_one()) {
      for (int tile = blockIdx.x / CLUSTER; tile < pairs_m * tiles_n; tile += gridDim.x / CLUSTER) {
        const int m = (tile / tiles_n * CLUSTER + rank) * BM, n = tile % tiles_n * BN;
        for (int k = 0; k < steps; k++, at++) {
          const int s = at % STAGES;
          char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          arrive_and_expect_bytes(&full[s], STAGE_BYTES);
          load_tile(a, a_map, &full[s], evict_first(), k * BK, m);
          if (CLUSTER > 1) {
            load_tile_multicast(b + rank * PANEL_BYTES, b_map, &full[s], 3, n + rank * 64, k * BK);
          } else {
            for (int p = 0; p < 2; p++) {
              load_tile(b + p * PANEL_BYTES, b_map, &full[s], evict_last(), n + p * 64, k * BK);
            }
          }
        }
      }
    }
  } else {
    registers_up<240>();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    char *mine = c_tile + (role - 1) * 2 * PANEL_BYTES;  // 64 rows of C
    auto release = [&](int step) {
      if (threadIdx.x % 128 >= CLUSTER) return;
      if (CLUSTER > 1) arrive_remote(&empty[step % STAGES], threadIdx.x % 128);
      else arrive(&empty[step % STAGES]);
    };
    for (int tile = blockIdx.x / CLUSTER; tile < pairs_m * tiles_n; tile += gridDim.x / CLUSTER) {
      const int m = (tile / tiles_n * CLUSTER + rank) * BM + (role - 1) * 64, n = tile % tiles_n * BN;
      float d[BN / 2];
      for (int k = 0; k < steps; k++, at++) {
        const unsigned a = address_in_shared(memory + at % STAGES * STAGE_BYTES), b = a + A_BYTES;
        const Descriptor rows = k_major(a + (role - 1) * 64 * ROW_BYTES), columns = mn_major(b, PANEL_BYTES);
        wait(&full[at % STAGES], at / STAGES & 1);
        wgmma_fence(d);
#pragma unroll
        for (int i = 0; i < 4; i++) {
          products<BN, Bf16x16, Major::mn>(d, advance(rows, i * 32), advance(columns, i * 16 * ROW_BYTES), k + i > 0);
        }
        wgmma_commit();
        wgmma_wait<1>();  // the step before
        if (k > 0) release(at - 1);
      }
      wgmma_wait<0>(d);
      release(at - 1);

      if (threadIdx.x % 128 == 0) wait_until_read<0>();  // C of the tile before
      named_barrier_wait(role, 128);
#pragma unroll
      for (int j = 0; j < BN / 16; j++) {
        unsigned held[4];
        operand(held, d, j);
        const unsigned row = warp * 16 + lane % 16, byte = j % 4 * 32 + lane / 16 * 16;
        store_matrices(mine + j / 4 * PANEL_BYTES + swizzled(row * ROW_BYTES + byte), held);
      }
      fence_async();
      named_barrier_wait(role, 128);
      if (threadIdx.x % 128 == 0) {
        for (int p = 0; p < 2; p++) store_tile(c_map, mine + p * PANEL_BYTES, n + p * 64, m);
        close_bulk_group();
      }
    }
    if (threadIdx.x % 128 == 0) wait_until_read<0>();
  }
  if (CLUSTER > 1) {  // nobody's shared memory goes while the other block still arrives there
    cluster_arrive();
    cluster_wait();
  }
}
