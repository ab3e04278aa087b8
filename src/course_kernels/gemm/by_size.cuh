// What kernels 13 and 14 share: a tile of any shape, which part of C is whose, how a step is brought and multiplied,
// how sums leave.
//
// Contract  macros BM, BN, STAGES, CONSUMERS, CLUSTER_M, CLUSTER_N, C_PANELS, TRANSPOSED, SPLIT, FLOAT16, as plans.py
//           gives them; without them, the tile of k12_stored
// Source    CUTLASS, Efficient GEMM: threadblock swizzle, split-K; PTX ISA, cp.async.bulk.tensor and stmatrix
#pragma once

#include "hopper_tiles.cuh"

#ifndef BM
#define BM 128
#define BN 256
#define STAGES 4
#define CONSUMERS 2
#define CLUSTER_M 2  // blocks one below the other, which share what they fetch of B
#define CLUSTER_N 1  // blocks beside each other, which share what they fetch of A
#define C_PANELS 2   // places for panels of C of a consumer
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 0  // B lies as [N, K]
#endif
#ifndef SPLIT
#define SPLIT 0  // blocks share tiles
#endif

constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
constexpr int PEERS = CLUSTER_M + CLUSTER_N - 1;  // blocks to which one brings something, itself among them
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int STRIPS = BM / 64 / CONSUMERS;  // of 64 rows: what a consumer makes
constexpr int WIDE = BN / 64;                // panels of a strip of C
constexpr int PANELS = STRIPS * WIDE;        // and of all that a consumer makes
constexpr unsigned A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr unsigned C_BYTES = CONSUMERS * C_PANELS * PANEL_BYTES;
static_assert(BM % (64 * CONSUMERS) == 0 && BN % (64 * CLUSTER_M) == 0 && CLUSTER_M <= 2 && CLUSTER_N <= 2, "a tile that cannot be cut so");
static_assert(PANELS % C_PANELS == 0, "every tile begins with the place that was written longest ago");

// --- which tile ---------------------------------------------------------------

struct Part {
  int m, n, begin, end, split;  // the block's tile, its steps of k, and which part of the tile these are
};

// What a cluster does in its turns, one after the other.
struct Turns {
  int mine, hop, all;  // the cluster's number, how many there are, and how many turns this one has
};

__device__ inline Turns turns_of(int M, int N, int splits) {
  const int mine = blockIdx.x / CLUSTER, hop = gridDim.x / CLUSTER;
  const int parts = ceil_div(M, BM * CLUSTER_M) * ceil_div(N, BN * CLUSTER_N) * splits;
  return {mine, hop, mine < parts ? (parts - 1 - mine) / hop + 1 : 0};
}

// Where a block lies in its cluster, down and to the right: the rank counts down first.
__device__ inline int rank_m() { return CLUSTER_M == 1 ? 0 : CLUSTER_N == 1 ? cluster_rank() : cluster_rank() % CLUSTER_M; }
__device__ inline int rank_n() { return CLUSTER_N == 1 ? 0 : CLUSTER_M == 1 ? cluster_rank() : cluster_rank() / CLUSTER_M; }

// The cluster's tile, and of it the one of this block. Every second group of rows is walked from right to left.
__device__ inline Part part_at(int number, int M, int N, int K, int group, int splits) {
  const int tiles_m = ceil_div(M, BM * CLUSTER_M), tiles_n = ceil_div(N, BN * CLUSTER_N), steps = ceil_div(K, BK);
  const int split = SPLIT ? number / (tiles_m * tiles_n) : 0;
  if (SPLIT) number -= split * (tiles_m * tiles_n);
  const int which = number / (group * tiles_n), place = number - which * (group * tiles_n);
  const int height = min(group, tiles_m - which * group), column = place / height;
  const int m = which * group + place - column * height, n = which % 2 ? tiles_n - 1 - column : column;
  return {(m * CLUSTER_M + rank_m()) * BM, (n * CLUSTER_N + rank_n()) * BN,
          SPLIT ? steps * split / splits : 0, SPLIT ? steps * (split + 1) / splits : steps, split};
}

// --- the ring -------------------------------------------------------------------

// All threads: the barriers are there, for the other block of the cluster, too.
__device__ inline void begin_ring(Barrier *full, Barrier *empty) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], PEERS * CONSUMERS);
    }
    fence_barrier_init();
  }
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }
}

// `blocks`: a bit for each that it is for.
template <bool SHARED>
__device__ inline void bring(char *to, const TensorMap &map, Barrier *full, unsigned short blocks, int x, int y) {
  if (SHARED) {
    load_tile_multicast(to, map, full, blocks, x, y);
  } else {
    load_tile(to, map, full, x, y);
  }
}

// The producer: tiles of A and B from (m, k) and (k, n) on. What two blocks share, each asks for one half of.
__device__ inline void fetch(char *a, Barrier *full, const TensorMap &a_map, const TensorMap &b_map, int m, int n,
                             int k) {
  char *b = a + A_BYTES;
  const int of_a = rank_n(), of_b = rank_m();
  // Blocks beside this one read the same of A, the ones above and below it the same of B.
  const unsigned short beside = CLUSTER < 4 ? 3 : 5 << of_b, along = CLUSTER < 4 ? 3 : 3 << of_a * 2;
  arrive_and_expect_bytes(full, STAGE_BYTES);
  bring<(CLUSTER_N > 1)>(a + of_a * (A_BYTES / 2), a_map, full, beside, k, m + of_a * (BM / 2));
  if (TRANSPOSED) {
    bring<(CLUSTER_M > 1)>(b + of_b * (B_BYTES / 2), b_map, full, along, k, n + of_b * (BN / 2));
  } else {
    for (int i = 0; i < BN / 64 / CLUSTER_M; i++) {
      const int p = of_b * (BN / 128) + i;
      bring<(CLUSTER_M > 1)>(b + p * PANEL_BYTES, b_map, full, along, n + p * 64, k);
    }
  }
}

// A consumer: its products of a step, asked for as one group. `add`: to what the sums are already.
__device__ inline void multiply(float (&d)[STRIPS][BN / 2], const char *stage, int consumer, bool add) {
  const unsigned a = address_in_shared(stage), b = a + A_BYTES;
#pragma unroll
  for (int r = 0; r < STRIPS; r++) wgmma_fence(d[r]);
#pragma unroll
  for (int k = 0; k < BK / 16; k++) {
    const Descriptor columns = TRANSPOSED ? advance(k_major(b), k * 32)
                                          : advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES);
#pragma unroll
    for (int r = 0; r < STRIPS; r++) {
      const Descriptor rows = advance(k_major(a + (consumer * STRIPS + r) * PANEL_BYTES), k * 32);
      products<BN, Type, (TRANSPOSED ? Major::k : Major::mn)>(d[r], rows, columns, add || k > 0);
    }
  }
  wgmma_commit();
}

// A consumer: all of its products are done, the sums may be read.
__device__ inline void finish(float (&d)[STRIPS][BN / 2]) {
#pragma unroll
  for (int r = 0; r < STRIPS; r++) wgmma_wait<0>(d[r]);
}

// A consumer will read this stage no more: one arrival for each producer that brings to it.
__device__ inline void give_back(Barrier *empty) {
  const int thread = threadIdx.x % 128;
  if (CLUSTER > 1) {
    // Of four, the one at the other corner brings nothing here.
    if (thread < CLUSTER && (CLUSTER < 4 || (thread ^ cluster_rank()) != 3)) arrive_remote_after_reading(empty, thread);
  } else {
    if (thread == 0) arrive(empty);
  }
}

// --- C ----------------------------------------------------------------------------

// A consumer's panel p of its tile, 64 x 64, to shared memory: held(j) gives 16 columns of it as `operand` does.
template <class Held>
__device__ inline void put_panel(char *place, Held held) {
  const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 16;  // the row that stmatrix wants of me
#pragma unroll
  for (int j = 0; j < 4; j++) {
    unsigned four[4];
    held(j, four);
    store_matrices(place + swizzled(row * ROW_BYTES + j * 32 + thread % 32 / 16 * 16), four);
  }
  fence_async();
}

// One thread of the consumer: that panel to C. FIRST: it is to leave L2 before A and B.
template <int FIRST>
__device__ inline void store_panel(const TensorMap &c_map, const char *place, const Part &part, int consumer, int p) {
  const int n = part.n + p % WIDE * 64, m = part.m + (consumer * STRIPS + p / WIDE) * 64;
  if (FIRST) {
    store_tile(c_map, place, evict_first(), n, m);
  } else {
    store_tile(c_map, place, n, m);
  }
  close_bulk_group();
}
