// Matrix multiply, kernel 9, a side note: registers go to those who need them.
//
// Contract  problem.py      Launcher  k09_registers.py      Instructions  ../cuda/hopper
// Idea      a block gets the same number of registers for each of its threads. The producer gives its own back, the
//           consumers take them (setmaxnreg): 232 each instead of 168
// Against   k08_roles, where the thread that asks holds as many as those with 128 sums
// Cost      as k08_roles
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. A side note, since 168 registers hold 128 sums and what
//           goes with them: nothing here waits for more. Who wants the rest is WIDE, whose consumers make 128 x 192, and
//           k14_tuned, which keeps a rounded tile beside the next one's sums. CONSUMERS=1 gives one warpgroup all 256
//           sums of a row of the tile: more than a thread can have, so they spill, to be looked at once
// Next      k10_persistent: a block does more than one tile
// Source    PTX ISA, setmaxnreg; Shankhdhar 2024, Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"

#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#ifndef WIDE
#define WIDE 0
#endif

constexpr int BM = WIDE ? 256 : 128, BN = WIDE ? 192 : 256;
constexpr int STAGES = 4;
constexpr int GROUP = 8;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int STRIPS = BM / 64 / CONSUMERS;  // of 64 rows: what a consumer makes
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16)
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_registers(
    const __grid_constant__ TensorMap a_map,  // [M, K], box BM x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  const Tile tile = tile_at(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), GROUP, BM, BN);
  const int steps = ceil_div(K, BK), warpgroup = same_in_warp(threadIdx.x / 128);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], CONSUMERS);
    }
    fence_barrier_init();
  }
  __syncthreads();

  if (warpgroup == 0) {
    registers_down<40>();
    if (threadIdx.x == 0) {
      for (int step = 0; step < steps; step++) {
        const int s = step % STAGES;
        char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
        wait(&empty[s], step / STAGES & 1 ^ 1);
        arrive_and_expect_bytes(&full[s], STAGE_BYTES);
        load_tile(a, a_map, &full[s], step * BK, tile.m);
        for (int p = 0; p < BN / 64; p++) load_tile(b + p * PANEL_BYTES, b_map, &full[s], tile.n + p * 64, step * BK);
      }
    }
  } else {
    registers_up<CONSUMERS == 1 ? 256 : 232>();  // with the 40, no more than the block got
    float d[STRIPS][BN / 2];
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES;
      const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES;
      wait(&full[s], step / STAGES & 1);
#pragma unroll
      for (int r = 0; r < STRIPS; r++) wgmma_fence(d[r]);
#pragma unroll
      for (int k = 0; k < BK / 16; k++) {
        const Descriptor columns = advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES);
#pragma unroll
        for (int r = 0; r < STRIPS; r++) {
          const Descriptor rows = advance(k_major(a + ((warpgroup - 1) * STRIPS + r) * PANEL_BYTES), k * 32);
          products<BN, Type, Major::mn>(d[r], rows, columns, step + k > 0);
        }
      }
      wgmma_commit();
      wgmma_wait<1>();
      if (step > 0 && threadIdx.x % 128 == 0) arrive(&empty[(step - 1) % STAGES]);
    }
#pragma unroll
    for (int r = 0; r < STRIPS; r++) wgmma_wait<0>(d[r]);
#pragma unroll
    for (int r = 0; r < STRIPS; r++) {
      write(d[r], C, M, N, tile.m + ((warpgroup - 1) * STRIPS + r) * 64, tile.n);
    }
  }
}
