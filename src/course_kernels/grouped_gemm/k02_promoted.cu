// Grouped matrix multiply of 8-bit numbers, kernel 2: Hopper's own instructions, for both forms of groups.
//
// Contract  problem.py      Launcher  k02_promoted.py      Instructions  ../cuda/hopper
// Idea      the scales of a block of K are applied when its sums leave the tensor cores, where these would lose bits
//           anyway: one fused multiply-add for each sum. Two blocks side by side share A, so both are of one group
// Against   k01_triton, one program a tile: here each block walks over the tiles of all groups, and the copies of the
//           next tile go on while this one is scaled and stored; A is fetched once for 384 columns, not for 128
// Cost      two registers for each sum, so tiles are 128 x 192 at most; of a tile with up to 64 rows the other 64 are
//           neither fetched nor multiplied
// Limits    Hopper (sm_90a) only; N is a multiple of 8
// Source    DeepSeek-AI 2024, arXiv:2412.19437, section 3.3.2; DeepGEMM, sm90_fp8_gemm_1d2d; gemm_fp8/k02_hopper

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

#ifndef MASKED
#define MASKED 0
#endif

// As wide as registers allow; for few rows narrower, so that as many blocks have the last tiles as the first.
constexpr int BM = 128, BN = MASKED ? 128 : 192;
constexpr int BK = 128;  // a row of the swizzle, and a block of scales
constexpr int STAGES = MASKED ? 5 : 4;
constexpr int GROUP = 8;  // rows of tiles that are walked together
constexpr int CONSUMERS = 2;
constexpr int CLUSTER = 2;    // blocks side by side, each of which fetches half of A for both
constexpr int PANELS = BN / 64;  // of C, 64 x 64: the places of a consumer
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr unsigned ROW_BYTES = 128, PANEL_BYTES = 64 * ROW_BYTES;
constexpr unsigned A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr unsigned C_BYTES = CONSUMERS * PANELS * PANEL_BYTES, SCALE_BYTES = BM * 4;
static_assert(BM == CLUSTER * 64, "a block fetches a panel of A");

struct Tile {
  int m, n;   // its first row and column
  int group;  // whose matrix
  int rows;   // that are there; of the contiguous form 0, 64 or 128: halves that have any
};

// Walks over the tiles of all groups; every thread of a role counts for itself.
struct Walk {
  int group = 0, before = 0;  // masked: the group that is looked at, and the pairs of all groups before it

  // The tile of this block in pair `number`, which only grows. False past the last pair.
  __device__ bool find(Tile &tile, int number, const int *groups, int G, int M, int pairs_n) {
    int tiles_m = M / BM, rows = 0;
    if (MASKED) {
      for (;; group++, before += tiles_m * pairs_n) {
        if (group == G) return false;
        rows = groups[group];
        tiles_m = (rows + BM - 1) / BM;
        if (number < before + tiles_m * pairs_n) break;
      }
      number -= before;
    } else if (number >= tiles_m * pairs_n) {
      return false;
    }
    // Down a column of GROUP tiles, then the next column: what runs together reads few rows and few columns.
    const int first = number / (GROUP * pairs_n) * GROUP, place = number % (GROUP * pairs_n);
    const int height = min(GROUP, tiles_m - first);
    tile.m = (first + place % height) * BM;
    tile.n = (place / height * CLUSTER + static_cast<int>(cluster_rank())) * BN;
    if (MASKED) {
      tile.group = group;
      tile.rows = min(BM, rows - tile.m);
    } else {
      tile.group = max(0, groups[tile.m]);
      tile.rows = groups[tile.m] < 0 ? 0 : groups[tile.m + 64] < 0 ? 64 : BM;
    }
    return true;
  }
};

// grid: a multiple of CLUSTER      block: THREADS
// dynamic shared memory: STAGES * (STAGE_BYTES + SCALE_BYTES + 16) + C_BYTES
extern "C" __global__ __launch_bounds__(THREADS, 1) void grouped_gemm_promoted(
    const __grid_constant__ TensorMap a_map,  // [1 or G, M, K], box 1 x 64 x 128
    const __grid_constant__ TensorMap b_map,  // [G, N, K], box 1 x BN x 128
    const __grid_constant__ TensorMap c_map,  // [1 or G, M, N], box 1 x 64 x 64
    const float *scale_a,                     // [1 or G, K / 128, M]
    const float *scale_b,                     // [G, ceil(N / 128), K / 128]
    const int *groups,                        // [M], whose row; or [G], how many rows
    unsigned short *C, int G, int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  char *c_panels = memory + STAGES * STAGE_BYTES;
  float *scales = reinterpret_cast<float *>(c_panels + C_BYTES);  // of A, BM a stage
  Barrier *full = reinterpret_cast<Barrier *>(scales + STAGES * BM), *empty = full + STAGES;
  const int pairs_n = (N + CLUSTER * BN - 1) / (CLUSTER * BN), blocks_n = (N + BK - 1) / BK, steps = K / BK;
  const int warpgroup = same_in_warp(threadIdx.x / 128), rank = cluster_rank();
  const int first = blockIdx.x / CLUSTER, hop = gridDim.x / CLUSTER;

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], CONSUMERS * (128 + CLUSTER));  // who read scales, and of both blocks who multiplied
    }
    fence_barrier_init();
  }
  cluster_arrive();
  cluster_wait();

  unsigned at = 0;
  Walk walk;
  Tile tile;
  if (warpgroup == 0) {
    registers_down<40>();
    if (threadIdx.x == 0) {
      for (int pair = first; walk.find(tile, pair, groups, G, M, pairs_n); pair += hop) {
        const int of_a = MASKED ? tile.group : 0, halves = (tile.rows + 63) / 64;
        const unsigned scale_bytes = min(BM, M - tile.m) * 4;
        for (int step = 0; step < (halves ? steps : 0); step++, at++) {
          const int s = at % STAGES;
          char *a = memory + s * STAGE_BYTES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          arrive_and_expect_bytes(&full[s], B_BYTES + halves * PANEL_BYTES + scale_bytes);
          if (rank < halves)
            load_tile_multicast(a + rank * PANEL_BYTES, a_map, &full[s], 3, step * BK, tile.m + rank * 64, of_a);
          load_tile(a + A_BYTES, b_map, &full[s], step * BK, tile.n, tile.group);
          load_bytes(scales + s * BM, scale_a + (static_cast<long long>(of_a) * steps + step) * M + tile.m,
                     scale_bytes, &full[s]);
        }
      }
    }
    __syncwarp();  // the warp is whole again, as the barrier at the end wants it
  } else {
    registers_up<232>();
    const int thread = threadIdx.x % 128, half = (warpgroup - 1) * 64;
    const int row = thread / 32 * 16 + thread % 16;         // the row that stmatrix wants of me
    const int mine = half + thread / 32 * 16 + thread % 32 / 4;  // the first of the two whose sums I have
    char *panels = c_panels + (warpgroup - 1) * PANELS * PANEL_BYTES;
    float part[BN / 2], whole[BN / 2];  // what the tensor cores add up, and what I do
    for (int pair = first; walk.find(tile, pair, groups, G, M, pairs_n); pair += hop) {
      const float *of_b[PANELS];
#pragma unroll
      for (int p = 0; p < PANELS; p++)
        of_b[p] = scale_b + (tile.group * blocks_n + min((tile.n + p * 64) / BK, blocks_n - 1)) * steps;
#pragma unroll
      for (int i = 0; i < BN / 2; i++) whole[i] = 0.0f;
      for (int step = 0; step < (tile.rows ? steps : 0); step++, at++) {
        const int s = at % STAGES;
        const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES;
        wait(&full[s], at / STAGES & 1);
        if (tile.rows > half) {
          float scale[PANELS][2];
#pragma unroll
          for (int p = 0; p < PANELS; p++) {
            const float of_block = of_b[p][step];
            scale[p][0] = scales[s * BM + mine] * of_block;
            scale[p][1] = scales[s * BM + mine + 8] * of_block;
          }
          wgmma_fence(part);
#pragma unroll
          for (int k = 0; k < BK / 32; k++)
            products<BN, E4m3x32>(part, advance(k_major(a + half * ROW_BYTES), k * 32), advance(k_major(b), k * 32),
                                  k > 0);
          wgmma_commit();
          arrive(&empty[s]);  // each who has read scales: no other could speak for it
          wgmma_wait<0>(part);
          if (thread < CLUSTER) arrive_remote_after_reading(&empty[s], thread);
#pragma unroll
          for (int i = 0; i < BN / 2; i++) whole[i] += part[i] * scale[i / 32][i / 2 % 2];
        } else {
          arrive(&empty[s]);
          if (thread < CLUSTER) arrive_remote_after_reading(&empty[s], thread);
        }
      }
      if (MASKED && tile.rows <= half) continue;

      // A row of padding is answered by zeros, whatever lies in A.
      const bool there = MASKED || groups[tile.m + mine] >= 0, below = MASKED || groups[tile.m + mine + 8] >= 0;
#pragma unroll
      for (int i = 0; i < BN / 2; i++) part[i] = (i / 2 % 2 ? below : there) ? whole[i] : 0.0f;
      const int rows = MASKED ? tile.rows - half : 64;
#pragma unroll
      for (int p = 0; p < PANELS; p++) {
        char *place = panels + p * PANEL_BYTES;
        const int n = tile.n + p * 64;
        if (thread == 0) wait_until_read<PANELS - 1>();
        named_barrier_wait(warpgroup, 128);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          unsigned held[4];
          operand(held, part, p * 4 + j);
          store_matrices(place + swizzled(row * ROW_BYTES + j * 32 + thread % 32 / 16 * 16), held);
        }
        fence_async();
        named_barrier_wait(warpgroup, 128);
        if (rows >= 64) {
          if (thread == 0) store_tile(c_map, place, n, tile.m + half, MASKED ? tile.group : 0);
        } else {  // the rows behind stay as they were: the copy engine would write all of them
#pragma unroll 1
          for (int i = thread; i < rows * 8; i += 128) {
            const int column = n + i % 8 * 8;
            const long long m = static_cast<long long>(tile.group) * M + tile.m + half + i / 8;
            if (column < N)
              *reinterpret_cast<uint4 *>(C + m * N + column) = *reinterpret_cast<uint4 *>(place + swizzled(i * 16));
          }
        }
        if (thread == 0) close_bulk_group();  // an empty one too: the wait above counts them
      }
    }
    if (thread == 0) wait_until_read<0>();
  }
  cluster_arrive();
  cluster_wait();
}
