// Matrix multiply, kernel 8: a warp computes a compact tile.
//
// Contract  problem.py, vectors.cuh      Launcher  k08_warp_tiles.py
// Idea      the 32 threads of a warp stand 4 x 8 over a warp tile of 32 x 64: together they read 32 elements of A and 64
//           of B for 2048 multiply-adds
// Against   k07_conflict_free, whose warps stand 2 x 16 over 16 x 128 and read 16 and 128
// Cost      fewer different elements; whether shared memory takes fewer turns for them, a counter must say
// Next      the tiles come while others are eaten
// Source    NVIDIA CUTLASS, "Efficient GEMM in CUDA"; S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 10

#include "vectors.cuh"

constexpr int BM = 128, BN = 128, BK = 8;            // block tile, and the step along K
constexpr int WM = 32, WN = 64;                      // warp tile
constexpr int TM = 8, TN = 8;                        // register tile, in groups of four rows and of four columns
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;  // how the 32 lanes of a warp stand over its tile
constexpr int THREADS = BM * BN / (TM * TN);         // 256: each fetches one vector of A and one of B
constexpr int BLOCKS = 2;                            // an SM is to hold, so a thread may have 128 registers at most

template <bool VECTORS>
__device__ inline void multiply(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                                int N, int K) {
  __shared__ alignas(16) float a_tile[BK][BM + 4];  // [k, m]
  __shared__ alignas(16) float b_tile[BK][BN];      // [k, n]
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
  const int column = warp % (BN / WN) * WN + lane % LANES_N * 4;
  const int a_row = threadIdx.x / (BK / 4), a_k = threadIdx.x % (BK / 4) * 4;
  const int b_k = threadIdx.x / (BN / 4), b_column = threadIdx.x % (BN / 4) * 4;

  float sums[TM][TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    const long long m = m0 + a_row, k = k0 + b_k;
    const int n = n0 + b_column;
    const float4 a = load_4<VECTORS>(A + m * K + k0 + a_k, m < M ? K - k0 - a_k : 0);
    const float4 b = load_4<VECTORS>(B + k * N + n, k < K ? N - n : 0);
    a_tile[a_k + 0][a_row] = a.x;
    a_tile[a_k + 1][a_row] = a.y;
    a_tile[a_k + 2][a_row] = a.z;
    a_tile[a_k + 3][a_row] = a.w;
    copy_4(&b_tile[b_k][b_column], &b.x);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; i++) {
      alignas(16) float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; r += 4) copy_4(&a[r], &a_tile[i][row + r * LANES_M]);
#pragma unroll
      for (int c = 0; c < TN; c += 4) copy_4(&b[c], &b_tile[i][column + c * LANES_N]);
#pragma unroll
      for (int r = 0; r < TM; r++) {
#pragma unroll
        for (int c = 0; c < TN; c++) sums[r][c] += a[r] * b[c];
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < TM; r++) {
#pragma unroll
    for (int c = 0; c < TN; c += 4) {
      const long long m = m0 + row + r / 4 * 4 * LANES_M + r % 4;
      const int n = n0 + column + c * LANES_N;
      store_4<VECTORS>(C + m * N + n, m < M ? N - n : 0, {sums[r][c], sums[r][c + 1], sums[r][c + 2], sums[r][c + 3]});
    }
  }
}

// grid: (ceil(N / BN), ceil(M / BM))      block: THREADS
// A [M, K], B [K, N], C [M, N]
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sgemm_warp_tiles(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  multiply<true>(A, B, C, M, N, K);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    sgemm_any(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  multiply<false>(A, B, C, M, N, K);
}
