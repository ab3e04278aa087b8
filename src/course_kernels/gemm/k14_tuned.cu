// Matrix multiply, kernel 14: what is left. Products that do not stop between steps, hints for L2, an early start.
//
// Contract  problem.py      Launcher  k14_tuned.py, plans.py      Instructions  ../cuda/hopper
// Idea      three small things. A consumer asks for the products of a step while those of the step before still run,
//           and gives back the stage behind. C is not read again here, so L2 is told to let it go first, and keeps A
//           and B. And a grid may begin while the last one of the stream ends: its barriers and maps are ready when
//           it may read
// Against   k13_by_size, whose consumers wait for their products at the end of every step
// Cost      as k13_by_size; a stage stays taken for one step longer
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. B may lie as [K, N] or as [N, K]
// Source    PTX ISA, wgmma.wait_group, createpolicy and griddepcontrol; CUTLASS, Efficient GEMM; Shankhdhar 2024,
//           Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"

// What plans.py asks for.
#ifndef BM
#define BM 128
#define BN 256
#define STAGES 4
#define CONSUMERS 2
#define CLUSTER_M 2  // blocks one below the other, which share what they fetch of B
#define CLUSTER_N 1  // blocks beside each other, which share what they fetch of A; one of the two is 1
#define C_PANELS 2   // places for panels of C of a consumer
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 0  // B lies as [N, K]
#endif
#ifndef SPLIT
#define SPLIT 0  // blocks share tiles
#endif

// The small things, each with its switch: so that what it brings can be measured.
#ifndef GO_ON
#define GO_ON 1  // groups of products under way while the next step's tiles are waited for
#endif
#ifndef HINTS
#define HINTS 1  // 1: C leaves L2 first; 2: and A and B leave it last
#endif

constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int STRIPS = BM / 64 / CONSUMERS;  // of 64 rows: what a consumer makes
constexpr unsigned A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr unsigned C_BYTES = CONSUMERS * C_PANELS * PANEL_BYTES;
constexpr Major B_MAJOR = TRANSPOSED ? Major::k : Major::mn;
static_assert(BM % (64 * CONSUMERS) == 0 && BN % (64 * CLUSTER_M) == 0 && CLUSTER <= 2, "a tile that cannot be cut so");
static_assert(STRIPS * (BN / 64) % C_PANELS == 0, "every tile begins with the place that was written longest ago");

struct Part {
  int m, n, begin, end, split;  // the block's tile, its steps of k, and which part of the tile these are
};

// The cluster's tile, and of it the one of this block. Every second group of rows is walked from right to left.
__device__ inline Part part_at(int number, int M, int N, int K, int group, int splits) {
  const int tiles_m = ceil_div(M, BM * CLUSTER_M), tiles_n = ceil_div(N, BN * CLUSTER_N), steps = ceil_div(K, BK);
  const int split = SPLIT ? number / (tiles_m * tiles_n) : 0;
  if (SPLIT) number -= split * (tiles_m * tiles_n);
  const int which = number / (group * tiles_n), place = number - which * (group * tiles_n);
  const int height = min(group, tiles_m - which * group), column = place / height;
  const int rank = CLUSTER > 1 ? cluster_rank() : 0;
  const int m = which * group + place - column * height, n = which % 2 ? tiles_n - 1 - column : column;
  return {(m * CLUSTER_M + (CLUSTER_M > 1 ? rank : 0)) * BM, (n * CLUSTER_N + (CLUSTER_N > 1 ? rank : 0)) * BN,
          SPLIT ? steps * split / splits : 0, SPLIT ? steps * (split + 1) / splits : steps, split};
}

// --- the producer -----------------------------------------------------------

template <bool SHARED>
__device__ inline void bring(char *to, const TensorMap &map, Barrier *full, int x, int y) {
  if (SHARED && HINTS == 2) {
    load_tile_multicast(to, map, full, 3, evict_last(), x, y);
  } else if (SHARED) {
    load_tile_multicast(to, map, full, 3, x, y);
  } else if (HINTS == 2) {
    load_tile(to, map, full, evict_last(), x, y);
  } else {
    load_tile(to, map, full, x, y);
  }
}

__device__ inline void fetch(char *a, Barrier *full, const TensorMap &a_map, const TensorMap &b_map, int m, int n,
                             int k) {
  char *b = a + A_BYTES;
  const int rank = CLUSTER > 1 ? cluster_rank() : 0;
  const int of_a = CLUSTER_N > 1 ? rank : 0, of_b = CLUSTER_M > 1 ? rank : 0;  // which half is mine to ask for
  arrive_and_expect_bytes(full, STAGE_BYTES);
  bring<(CLUSTER_N > 1)>(a + of_a * (A_BYTES / 2), a_map, full, k, m + of_a * (BM / 2));
  if (TRANSPOSED) {
    bring<(CLUSTER_M > 1)>(b + of_b * (B_BYTES / 2), b_map, full, k, n + of_b * (BN / 2));
  } else {
    for (int i = 0; i < BN / 64 / CLUSTER_M; i++) {
      const int p = of_b * (BN / 128) + i;
      bring<(CLUSTER_M > 1)>(b + p * PANEL_BYTES, b_map, full, n + p * 64, k);
    }
  }
}

// grid: a multiple of CLUSTER      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16) + C_BYTES
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_tuned(
    const __grid_constant__ TensorMap a_map,  // [M, K], box BM / CLUSTER_N x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64; TRANSPOSED: [N, K], box BN / CLUSTER_M x 64
    const __grid_constant__ TensorMap c_map,  // [M, N], box 64 x 64
    float *partial,                           // SPLIT: [splits, M, N]
    int M, int N, int K, int group, int splits) {
  extern __shared__ __align__(1024) char memory[];
  char *c_panels = memory + STAGES * STAGE_BYTES;
  Barrier *full = reinterpret_cast<Barrier *>(c_panels + C_BYTES), *empty = full + STAGES;
  const int warpgroup = same_in_warp(threadIdx.x / 128);
  const int first = blockIdx.x / CLUSTER, hop = gridDim.x / CLUSTER;
  const int parts = ceil_div(M, BM * CLUSTER_M) * ceil_div(N, BN * CLUSTER_N) * splits;

  if (threadIdx.x == 0) {
    prefetch(a_map);
    prefetch(b_map);
    prefetch(c_map);
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], CLUSTER * CONSUMERS);
    }
    fence_barrier_init();
  }
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }
  let_next_grid_begin();  // it finds room when blocks of this one end
  wait_for_last_grid();   // it may have written A or B, or still read C

  unsigned at = 0;
  if (warpgroup == 0) {
    registers_down<40>();
    if (threadIdx.x == 0) {
      for (int number = first; number < parts; number += hop) {
        const Part part = part_at(number, M, N, K, group, splits);
        for (int step = part.begin; step < part.end; step++, at++) {
          const int s = at % STAGES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          fetch(memory + s * STAGE_BYTES, &full[s], a_map, b_map, part.m, part.n, step * BK);
        }
      }
    }
    __syncwarp();  // the warp is whole again, as the barrier at the end wants it
  } else {
    registers_up<232>();
    const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 16;  // the row that stmatrix wants of me
    char *mine = c_panels + (warpgroup - 1) * C_PANELS * PANEL_BYTES;
    float d[STRIPS][BN / 2];
    auto give_back = [&](unsigned step) {
      if (CLUSTER > 1) {
        if (thread < CLUSTER) arrive_remote_after_reading(&empty[step % STAGES], thread);
      } else {
        if (thread == 0) arrive(&empty[step % STAGES]);
      }
    };
    for (int number = first; number < parts; number += hop) {
      const Part part = part_at(number, M, N, K, group, splits);
      for (int step = part.begin; step < part.end; step++, at++) {
        const unsigned a = address_in_shared(memory + at % STAGES * STAGE_BYTES), b = a + A_BYTES;
        wait(&full[at % STAGES], at / STAGES & 1);
#pragma unroll
        for (int r = 0; r < STRIPS; r++) wgmma_fence(d[r]);
#pragma unroll
        for (int k = 0; k < BK / 16; k++) {
          const Descriptor columns = TRANSPOSED ? advance(k_major(b), k * 32)
                                                : advance(mn_major(b, PANEL_BYTES), k * 16 * ROW_BYTES);
#pragma unroll
          for (int r = 0; r < STRIPS; r++) {
            const Descriptor rows = advance(k_major(a + ((warpgroup - 1) * STRIPS + r) * PANEL_BYTES), k * 32);
            products<BN, Type, B_MAJOR>(d[r], rows, columns, step > part.begin || k > 0);
          }
        }
        wgmma_commit();
        wgmma_wait<GO_ON>();  // of the step before, or of this one
        if (step - GO_ON >= part.begin) give_back(at - GO_ON);
      }
#pragma unroll
      for (int r = 0; r < STRIPS; r++) wgmma_wait<0>(d[r]);
      if (GO_ON) give_back(at - 1);

#pragma unroll
      for (int r = 0; r < STRIPS; r++) {
        const int m = part.m + ((warpgroup - 1) * STRIPS + r) * 64;
        if (SPLIT) write_floats(d[r], partial + static_cast<long long>(part.split) * M * N, M, N, m, part.n);
#pragma unroll
        for (int p = 0; p < (SPLIT ? 0 : BN / 64); p++) {
          char *place = mine + (r * (BN / 64) + p) % C_PANELS * PANEL_BYTES;
          if (thread == 0) wait_until_read<C_PANELS - 1>();
          named_barrier_wait(warpgroup, 128);
#pragma unroll
          for (int j = 0; j < 4; j++) {
            unsigned held[4];
            operand<Type>(held, d[r], p * 4 + j);
            store_matrices(place + swizzled(row * ROW_BYTES + j * 32 + thread % 32 / 16 * 16), held);
          }
          fence_async();
          named_barrier_wait(warpgroup, 128);
          if (thread == 0) {
            if (HINTS) {
              store_tile(c_map, place, evict_first(), part.n + p * 64, m);
            } else {
              store_tile(c_map, place, part.n + p * 64, m);
            }
            close_bulk_group();
          }
        }
      }
    }
    if (thread == 0) wait_until_read<0>();
  }
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  }
}

// C = the sum of the parts, always in the same order. grid: ceil(size / 1024)      block: 256
extern "C" __global__ __launch_bounds__(256) void add_parts(const float *partial,  // [splits, size]
                                                            Half *C,               // [size], a multiple of 8
                                                            long long size, int splits) {
  let_next_grid_begin();
  wait_for_last_grid();
  const long long i = (static_cast<long long>(blockIdx.x) * 256 + threadIdx.x) * 4;
  if (i >= size) return;
  float4 sum = *reinterpret_cast<const float4 *>(partial + i);
  for (int s = 1; s < splits; s++) {
    const float4 x = *reinterpret_cast<const float4 *>(partial + s * size + i);
    sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
  }
  unsigned *to = reinterpret_cast<unsigned *>(C + i);
  to[0] = rounded_pair<Type>(sum.x, sum.y);
  to[1] = rounded_pair<Type>(sum.z, sum.w);
}
