// Matrix multiply, kernel 4: a thread computes a column of eight elements.
//
// Contract  problem.py      Launcher  k04_register_column.py
// Idea      one element of B, once in a register, is multiplied with eight elements of A: nine elements
//           out of shared memory for eight multiply-adds, where there were sixteen
// Against   k03_shared_tiles, which reads two elements for each multiply-add and keeps nothing but a sum
// Cost      a block tile of 64 x 64, so each fetched element is used 64 times
// Next      eight columns as well as eight rows
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 4

constexpr int BM = 64, BN = 64, BK = 8;  // block tile, and the step along K
constexpr int TM = 8;                    // register tile: TM rows, one column
constexpr int THREADS = BM * BN / TM;    // 512: each fetches one element of A and one of B

// grid: (ceil(N / BN), ceil(M / BM))      block: THREADS
extern "C" __global__ void sgemm_register_column(const float *__restrict__ A,  // [M, K]
                                                 const float *__restrict__ B,  // [K, N]
                                                 float *__restrict__ C,        // [M, N]
                                                 int M, int N, int K) {
  __shared__ float a_tile[BM][BK];  // [m, k]
  __shared__ float b_tile[BK][BN];  // [k, n]
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  // What this thread computes, and, in the tiles, what it fetches.
  const int row = threadIdx.x / BN * TM, column = threadIdx.x % BN;
  const int a_row = threadIdx.x / BK, a_k = threadIdx.x % BK;
  const int b_k = threadIdx.x / BN, b_column = threadIdx.x % BN;

  float sums[TM] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    const long long m = m0 + a_row, k = k0 + b_k;
    const int n = n0 + b_column;
    a_tile[a_row][a_k] = m < M && k0 + a_k < K ? A[m * K + k0 + a_k] : 0.0f;
    b_tile[b_k][b_column] = k < K && n < N ? B[k * N + n] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BK; i++) {
      const float b = b_tile[i][column];
#pragma unroll
      for (int r = 0; r < TM; r++) sums[r] += a_tile[row + r][i] * b;
    }
    __syncthreads();
  }

  const int n = n0 + column;
#pragma unroll
  for (int r = 0; r < TM; r++) {
    const long long m = m0 + row + r;
    if (m < M && n < N) C[m * N + n] = sums[r];
  }
}
