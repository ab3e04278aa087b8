// Matrix multiply, kernel 6: the copy engine brings the tiles. One thread asks, and the bytes say when they are there.
//
// Contract  problem.py      Launcher  k06_tma.py      Instructions  ../cuda/hopper
// Idea      one thread asks the copy engine (TMA) for a tile, with its place in the tensor; a barrier in shared
//           memory (an mbarrier) counts the bytes that arrive. The swizzle and the zeros past the edges are the
//           engine's work
// Against   k04_wgmma, where every thread works out addresses and copies 16 bytes at a time
// Cost      a block reads 128 rows of A and 128 columns of B to make 128 x 128 of C; two blocks share a
//           multiprocessor
// Limits    Hopper (sm_90a) only; K and N are multiples of 8, for the engine wants rows of whole 16 bytes. In every
//           step everybody waits for everybody
// Next      k07_wide: more work for every byte
// Source    PTX ISA, cp.async.bulk.tensor and mbarrier; Shankhdhar 2024, Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"

constexpr int BM = 128, BN = 128;
constexpr int STAGES = 3;  // pairs of tiles in shared memory: so many that two blocks fit
constexpr int GROUP = 8;   // rows of tiles that blocks share which run together
constexpr int THREADS = 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16)
extern "C" __global__ __launch_bounds__(THREADS, 2) void gemm_tma(
    const __grid_constant__ TensorMap a_map,  // [M, K], box 128 x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64
    Half *C,                                  // [M, N]
    int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES);
  const Tile tile = tile_at(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), GROUP, BM, BN);
  const int steps = ceil_div(K, BK);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) barrier_init(&full[s], 1);
    fence_barrier_init();
  }
  __syncthreads();

  // region ask
  auto ask = [&](int step) {
    if (threadIdx.x != 0 || step >= steps) return;
    char *a = memory + step % STAGES * STAGE_BYTES, *b = a + A_BYTES;
    Barrier *there = &full[step % STAGES];
    arrive_and_expect_bytes(there, STAGE_BYTES);
    load_tile(a, a_map, there, step * BK, tile.m);  // the innermost coordinate first
    for (int p = 0; p < BN / 64; p++) load_tile(b + p * PANEL_BYTES, b_map, there, tile.n + p * 64, step * BK);
  };
  // endregion

  for (int step = 0; step < STAGES - 1; step++) ask(step);
  float d[2][BN / 2];  // two times 64 rows
  for (int step = 0; step < steps; step++) {
    const unsigned a = address_in_shared(memory + step % STAGES * STAGE_BYTES), b = a + A_BYTES;
    wait(&full[step % STAGES], step / STAGES & 1);  // a stage is filled once every STAGES steps: its parity turns
    wgmma_fence(d[0], d[1]);
#pragma unroll
    for (int k = 0; k < BK / 16; k++) {
      const Descriptor columns = advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES);  // 16 rows on
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const Descriptor rows = advance(k_major(a + r * PANEL_BYTES), k * 32);  // 16 columns on
        products<BN, Type, Major::mn>(d[r], rows, columns, step + k > 0);
      }
    }
    wgmma_commit();
    wgmma_wait<1>();          // my products of the step before are done; these go on
    __syncthreads();          // and everybody's: that stage is free
    ask(step + STAGES - 1);
  }
  wgmma_wait<0>(d[0], d[1]);

#pragma unroll
  for (int r = 0; r < 2; r++) write(d[r], C, M, N, tile.m + r * 64, tile.n);
}
