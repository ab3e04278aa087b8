// Matrix multiply on tensor cores, kernel 3: the warp's own instructions, fed without a pause.
//
// Contract  problem.py      Launcher  k03_mma_sync.py      -D TYPE=Bf16 or Fp16, WHOLE, and the tile constants
// Idea      STAGES tiles of A and B are under way from memory while one is multiplied; ldmatrix hands a warp its
//           fragments in the order that mma.sync wants, one step ahead of the multiply that needs them
// Against   k02_wmma, where a warp waits for its tile, then for its fragments, then for the multiply
// Cost      a block reads (BM + BN) * K numbers for BM * BN sums, a warp (WM + WN) * K of shared memory for WM * WN;
//           a block stays for several tiles of C, and copies for the next one before it has stored this one
// Limits    16-byte copies need M x K and K x N with K and N divisible by 8; other sizes go through registers and are
//           slower. On Hopper mma.sync does not reach what the tensor cores do for wgmma
// Next      k04_wgmma, which multiplies straight out of shared memory
// Source    PTX ISA, mma and ldmatrix; NVIDIA CUTLASS documentation, Efficient GEMM in CUDA

#include "asynchronous_copy.cuh"
#include "matrix_instructions.cuh"

// The launcher says why these.
#ifndef BM
#define TYPE Bf16
#define WHOLE 1
#define BM 128
#define BN 256
#define BK 64
#define WM 64
#define WN 64
#define STAGES 3
#define GROUP 8
#define BLOCKS 1
#endif

constexpr int WARPS = BM / WM * (BN / WN), THREADS = WARPS * 32;
constexpr int STEPS = BK / 16;  // multiplies along k in a tile
constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = A_BYTES + BK * BN * 2;
constexpr int PITCH = WN * 2 + 16;  // bytes of a row of sums: 16 more, so that eight rows begin in different banks

// What one thread copies of a tile: one column of vectors, in every A_ROWS-th row of A and every B_ROWS-th of B.
constexpr int A_ROWS = THREADS / (BK / 8), B_ROWS = THREADS / (BN / 8);
static_assert(A_ROWS % 8 == 0 && B_ROWS % 8 == 0, "the swizzle repeats every eight rows");

// Where vector `column` (16 bytes) of a tile's row lies. ldmatrix reads eight vectors of neighbouring rows at a time;
// the XOR sends them to different banks.
template <int ROW_BYTES>
__device__ inline unsigned swizzled(int row, int column) {
  constexpr int VECTORS = ROW_BYTES / 16 < 8 ? ROW_BYTES / 16 : 8;
  return row * ROW_BYTES + (column ^ (row * VECTORS / 8 % VECTORS)) * 16;
}

// One vector of a tile, `left` of its eight numbers inside the matrix.
__device__ inline void copy(char *to, const unsigned short *from, int left) {
#if WHOLE
  copy_16_bytes(to, from, left > 0 ? 16 : 0);
#else
  for (int i = 0; i < 8; i++) reinterpret_cast<unsigned short *>(to)[i] = i < left ? from[i] : 0;
#endif
}

struct Corner {
  int m, n;
};

// Where tile number `tile` of C begins. Tiles that are computed together share GROUP strips of A, so that these and the
// strips of B they meet stay in L2.
__device__ inline Corner corner_of(int tile, int M, int N) {
  const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN;
  const int first = tile / (GROUP * tiles_n) * GROUP, place = tile % (GROUP * tiles_n);
  const int height = min(GROUP, tiles_m - first);
  return {(first + place % height) * BM, place / height * BN};
}

// grid: as many blocks as fit on the card, or as there are tiles      block: THREADS
// dynamic shared memory: STAGES * STAGE_BYTES + WARPS * 16 * PITCH
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_mma_sync(const unsigned short *__restrict__ A,  // [M, K]
                  const unsigned short *__restrict__ B,  // [K, N]
                  unsigned short *__restrict__ C,        // [M, N]
                  int M, int N, int K) {
  extern __shared__ __align__(128) char tiles[];  // of each stage: A [BM, BK], B [BK, BN]
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tiles_of_c = (M + BM - 1) / BM * ((N + BN - 1) / BN);

  // region copy_tile
  const int a_row = threadIdx.x / (BK / 8), a_column = threadIdx.x % (BK / 8) * 8;
  const int b_row = threadIdx.x / (BN / 8), b_column = threadIdx.x % (BN / 8) * 8;
  const unsigned a_to = swizzled<BK * 2>(a_row, a_column / 8);
  const unsigned b_to = A_BYTES + swizzled<BN * 2>(b_row, b_column / 8);
  const unsigned short *a_from, *b_from;  // the next vectors to be copied
  int rows_left, columns_left, k_left;    // of the matrices, from there on
  int copied = blockIdx.x;                // the tile of C they are for
  unsigned filled = 0;                    // the stage they go to

  auto begin_tile = [&] {
    const Corner corner = corner_of(copied, M, N);
    a_from = A + static_cast<long long>(corner.m + a_row) * K + a_column;
    b_from = B + static_cast<long long>(b_row) * N + corner.n + b_column;
    rows_left = M - corner.m - a_row, columns_left = N - corner.n - b_column, k_left = K;
  };
  auto copy_part = [&](int part, int parts) {
    if (k_left <= 0) return;
#pragma unroll
    for (int i = part * (BM / A_ROWS) / parts; i < (part + 1) * (BM / A_ROWS) / parts; i++)
      copy(tiles + filled + a_to + i * A_ROWS * BK * 2, a_from + static_cast<long long>(i * A_ROWS) * K,
           i * A_ROWS < rows_left ? k_left - a_column : 0);
#pragma unroll
    for (int i = part * (BK / B_ROWS) / parts; i < (part + 1) * (BK / B_ROWS) / parts; i++)
      copy(tiles + filled + b_to + i * B_ROWS * BN * 2, b_from + static_cast<long long>(i * B_ROWS) * N,
           i * B_ROWS < k_left - b_row ? columns_left : 0);
  };
  auto next_stage = [&] {
    filled = filled == (STAGES - 1) * STAGE_BYTES ? 0 : filled + STAGE_BYTES;
    a_from += BK, b_from += static_cast<long long>(BK) * N, k_left -= BK;
    if (k_left <= 0 && (copied += gridDim.x) < tiles_of_c) begin_tile();  // no pause between two tiles of C
  };
  // endregion

  // region fragments
  // Two steps of fragments: one is multiplied while the other is on its way from shared memory.
  unsigned a[2][WM / 16][4], b[2][WN / 16][4];
  float sums[WM / 16][WN / 8][4];
  const int warp_m = warp / (BN / WN) * WM, warp_n = warp % (BN / WN) * WN;
  // A step along k of A, and two columns of fragments along n of B, flip bits of a swizzled address.
  const unsigned a_lane = swizzled<BK * 2>(warp_m + lane % 16, lane / 16);
  const unsigned b_lane = A_BYTES + swizzled<BN * 2>(lane % 16, warp_n / 8 + lane / 16);

  auto load_fragments = [&](unsigned stage, int step, int to) {
#pragma unroll
    for (int i = 0; i < WM / 16; i++) load_matrices(a[to][i], tiles + (a_lane ^ step * 32) + stage + i * 16 * BK * 2);
#pragma unroll
    for (int j = 0; j < WN / 16; j++)
      load_matrices_transposed(b[to][j], tiles + (b_lane ^ j * 32) + stage + step * 16 * BN * 2);
  };
  auto multiply = [&](int from) {
#pragma unroll
    for (int i = 0; i < WM / 16; i++) {
#pragma unroll
      for (int there = 0; there < WN / 8; there++) {
        const int j = i % 2 ? WN / 8 - 1 - there : there;  // and back: the next multiply finds b still at hand
        TYPE::multiply(sums[i][j], a[from][i], b[from][j / 2] + j % 2 * 2);
      }
    }
  };
  // endregion

  // region store
  // A lane holds pairs of numbers; by way of shared memory it gets vectors of eight, and a warp writes whole lines.
  char *strip = tiles + STAGES * STAGE_BYTES + warp * 16 * PITCH;
  auto store = [&](Corner corner) {
#pragma unroll
    for (int i = 0; i < WM / 16; i++) {
#pragma unroll
      for (int j = 0; j < WN / 8; j++) {
        char *to = strip + lane / 4 * PITCH + j * 16 + lane % 4 * 4;
        *reinterpret_cast<unsigned *>(to) = TYPE::pair(sums[i][j][0], sums[i][j][1]);
        *reinterpret_cast<unsigned *>(to + 8 * PITCH) = TYPE::pair(sums[i][j][2], sums[i][j][3]);
      }
      __syncwarp();
#pragma unroll
      for (int p = 0; p < 16 * WN / 8 / 32; p++) {
        const int v = lane + p * 32, row = v / (WN / 8), column = v % (WN / 8) * 8;
        const int m = corner.m + warp_m + i * 16 + row, n = corner.n + warp_n + column;
        const char *from = strip + row * PITCH + column * 2;
        unsigned short *to = C + static_cast<long long>(m) * N + n;
#if WHOLE
        if (m < M && n < N) *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
#else
        for (int e = 0; e < 8; e++)
          if (m < M && n + e < N) to[e] = reinterpret_cast<const unsigned short *>(from)[e];
#endif
      }
      __syncwarp();  // the strip may be written again
    }
  };
  // endregion

  // region pipeline
  begin_tile();
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) copy_part(0, 1), close_group(), next_stage();
  wait_for_all_but<STAGES - 2>();
  __syncthreads();
  load_fragments(0, 0, 0);

  unsigned stage = 0;
  for (int tile = blockIdx.x; tile < tiles_of_c; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < WM / 16 * (WN / 8) * 4; i++) sums[i / 4 / (WN / 8)][i / 4 % (WN / 8)][i % 4] = 0.0f;

    for (int k = 0; k < K; k += BK) {
#pragma unroll
      for (int step = 0; step < STEPS; step++) {
        if (step == STEPS - 1) {  // the next fragments come from the next stage
          close_group();
          wait_for_all_but<STAGES - 2>();
          __syncthreads();  // it is filled, and nobody reads this one any more
          stage = stage == (STAGES - 1) * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
        }
        load_fragments(stage, (step + 1) % STEPS, (step + 1) % 2);
        if (step < STEPS - 1) copy_part(step, STEPS - 1);
        multiply(step % 2);
      }
      next_stage();
    }
    store(corner_of(tile, M, N));
  }
  // endregion
}
