// Matrix multiply, kernel 7 with stamps: when each warpgroup waited, multiplied and stored.
//
// Contract  problem.py, and stamps as stamps.cuh says      Launcher  stamped.py
// Idea      k07_wide.cu line by line, and lines more, each with the word stamp in it; a test takes them out and compares
// Against   k07_wide, which notes nothing
// Cost      as k07_wide, and four looks at the clock of a step by one thread of a warpgroup; the one behind the barrier
//           reads 4 bytes first, or it would be taken before the barrier lets go
// Limits    as k07_wide
// Source    PTX ISA, %clock64

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"
#include "stamps.cuh"

constexpr int BM = 128, BN = 256;  // two warpgroups of 64 rows; the most columns that an instruction takes
constexpr int STAGES = 4;          // pairs of tiles in shared memory: what fits
constexpr int GROUP = 8;           // rows of tiles that blocks share which run together
constexpr int THREADS = 256;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16)
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_wide(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    long long *stamps,                        // [blocks, 3, steps + 1, 4]
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES);
  const Tile tile = tile_at(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), GROUP, BM, BN);
  const int steps = ceil_div(K, BK), warpgroup = same_in_warp(threadIdx.x / 128);
  const Stamps stamp(stamps, steps);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) barrier_init(&full[s], 1);
    fence_barrier_init();
  }
  __syncthreads();

  auto ask = [&](int step) {
    if (threadIdx.x != 0 || step >= steps) return;
    char *a = memory + step % STAGES * STAGE_BYTES, *b = a + A_BYTES;
    Barrier *there = &full[step % STAGES];
    arrive_and_expect_bytes(there, STAGE_BYTES);
    load_tile(a, a_map, there, step * BK, tile.m);
    for (int p = 0; p < BN / 64; p++) load_tile(b + p * PANEL_BYTES, b_map, there, tile.n + p * 64, step * BK);
  };

  for (int step = 0; step < STAGES - 1; step++) ask(step);
  float d[BN / 2];
  for (int step = 0; step < steps; step++) {
    const unsigned a = address_in_shared(memory + step % STAGES * STAGE_BYTES), b = a + A_BYTES;
    stamp.note(step, 0);
    wait(&full[step % STAGES], step / STAGES & 1);
    stamp.note(step, 1);
    wgmma_fence(d);
#pragma unroll
    for (int k = 0; k < BK / 16; k++) {
      const Descriptor rows = advance(k_major(a + warpgroup * PANEL_BYTES), k * 32);
      const Descriptor columns = advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES);
      products<BN, Type, Major::mn>(d, rows, columns, step + k > 0);
    }
    wgmma_commit();
    wgmma_wait<1>();          // my products of the step before are done; these go on
    stamp.note(step, 2);
    __syncthreads();          // and everybody's: that stage is free
    stamp.note_behind_barrier(step, 3, a);
    ask(step + STAGES - 1);
  }
  wgmma_wait<0>(d);
  stamp.note(steps, 0);
  write(d, C, M, N, tile.m + warpgroup * 64, tile.n);
  stamp.note(steps, 1);
}
