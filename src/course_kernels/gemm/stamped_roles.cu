// Matrix multiply, kernel 8 with stamps: when each warpgroup waited, multiplied and stored.
//
// Contract  problem.py, and stamps as stamps.cuh says      Launcher  stamped.py
// Idea      k08_roles.cu line by line, and lines more, each with the word stamp in it; a test takes them out and compares
// Against   k08_roles, which notes nothing
// Cost      as k08_roles, and three looks at the clock of a step by one thread of a warpgroup
// Limits    as k08_roles
// Source    PTX ISA, %clock64

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"
#include "stamps.cuh"

constexpr int BM = 128, BN = 256;
constexpr int STAGES = 4;
constexpr int GROUP = 8;
constexpr int CONSUMERS = 2;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16)
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_roles(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    long long *stamps,                        // [blocks, 3, steps + 1, 4]
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  const Tile tile = tile_at(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), GROUP, BM, BN);
  const int steps = ceil_div(K, BK), warpgroup = same_in_warp(threadIdx.x / 128);
  const Stamps stamp(stamps, steps);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);           // the producer arrives, and then the bytes
      barrier_init(&empty[s], CONSUMERS);  // each consumer arrives
    }
    fence_barrier_init();
  }
  __syncthreads();

  // region roles
  if (warpgroup == 0) {  // the producer
    if (threadIdx.x == 0) {
      for (int step = 0; step < steps; step++) {
        const int s = step % STAGES;
        char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES;
        stamp.note(step, 0);
        wait(&empty[s], step / STAGES & 1 ^ 1);  // the first time round there is nothing to wait for
        stamp.note(step, 1);
        arrive_and_expect_bytes(&full[s], STAGE_BYTES);
        load_tile(a, a_map, &full[s], step * BK, tile.m);
        for (int p = 0; p < BN / 64; p++) load_tile(b + p * PANEL_BYTES, b_map, &full[s], tile.n + p * 64, step * BK);
        stamp.note(step, 2);
      }
    }
  } else {  // a consumer, for 64 rows
    float d[BN / 2];
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES;
      const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES;
      stamp.note(step, 0);
      wait(&full[s], step / STAGES & 1);
      stamp.note(step, 1);
      wgmma_fence(d);
#pragma unroll
      for (int k = 0; k < BK / 16; k++) {
        const Descriptor rows = advance(k_major(a + (warpgroup - 1) * PANEL_BYTES), k * 32);
        const Descriptor columns = advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES);
        products<BN, Type, Major::mn>(d, rows, columns, step + k > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();  // my products of the step before are done, so I need that stage no more; these go on
      stamp.note(step, 2);
      if (step > 0 && threadIdx.x % 128 == 0) arrive(&empty[(step - 1) % STAGES]);
    }
    wgmma_wait<0>(d);
    stamp.note(steps, 0);
    write(d, C, M, N, tile.m + (warpgroup - 1) * 64, tile.n);
    stamp.note(steps, 1);
  }
  // endregion
}
