// Matrix multiply, kernel 5: a thread computes a square of eight by eight elements.
//
// Contract  problem.py      Launcher  k05_register_tile.py
// Idea      eight elements of A and eight of B, once in registers, make 64 products: an outer product. A quarter of an
//           element out of shared memory for each multiply-add
// Against   k04_register_column: nine elements for eight multiply-adds
// Cost      a block tile of 128 x 128; 64 sums in the registers of every thread
// Next      sixteen bytes in every access
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 5

constexpr int BM = 128, BN = 128, BK = 8;     // block tile, and the step along K
constexpr int TM = 8, TN = 8;                 // register tile
constexpr int THREADS = BM * BN / (TM * TN);  // 256
constexpr int BLOCKS = 2;                     // an SM is to hold, so a thread may have 128 registers at most

// grid: (ceil(N / BN), ceil(M / BM))      block: THREADS
// A [M, K], B [K, N], C [M, N]
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sgemm_register_tile(
    const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  __shared__ float a_tile[BM][BK];  // [m, k]
  __shared__ float b_tile[BK][BN];  // [k, n]
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  const int row = threadIdx.x / (BN / TN) * TM, column = threadIdx.x % (BN / TN) * TN;

  float sums[TM][TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
    for (int v = 0; v < BM * BK / THREADS; v++) {
      const int e = threadIdx.x + v * THREADS;
      const long long m = m0 + e / BK;
      const int k = k0 + e % BK;
      a_tile[e / BK][e % BK] = m < M && k < K ? A[m * K + k] : 0.0f;
    }
#pragma unroll
    for (int v = 0; v < BK * BN / THREADS; v++) {
      const int e = threadIdx.x + v * THREADS;
      const long long k = k0 + e / BN;
      const int n = n0 + e % BN;
      b_tile[e / BN][e % BN] = k < K && n < N ? B[k * N + n] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; i++) {
      float a[TM], b[TN];
#pragma unroll
      for (int c = 0; c < TN; c++) b[c] = b_tile[i][column + c];
#pragma unroll
      for (int r = 0; r < TM; r++) a[r] = a_tile[row + r][i];
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
    for (int c = 0; c < TN; c++) {
      const long long m = m0 + row + r;
      const int n = n0 + column + c;
      if (m < M && n < N) C[m * N + n] = sums[r][c];
    }
  }
}
