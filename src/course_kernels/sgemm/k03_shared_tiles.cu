// Matrix multiply, kernel 3: a block carries a tile of A and a tile of B into shared memory, and all its threads eat
// from there.
//
// Contract  problem.py      Launcher  k03_shared_tiles.py
// Idea      K is walked in steps of 32; in each step the 1024 threads fetch 32 x 32 elements of A and of B, one of each
//           a thread, and every fetched element is used 32 times
// Against   k02_coalesced, which asks L1 and L2 for every operand of every multiply-add
// Cost      L1 and L2 are asked 32 times less; two elements out of shared memory for each multiply-add
// Next      a thread that computes several elements reads less for each
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 3

constexpr int TILE = 32;

// grid: (ceil(N / TILE), ceil(M / TILE))      block: (TILE, TILE)
extern "C" __global__ void sgemm_shared_tiles(const float *__restrict__ A,  // [M, K]
                                              const float *__restrict__ B,  // [K, N]
                                              float *__restrict__ C,        // [M, N]
                                              int M, int N, int K) {
  __shared__ float a_tile[TILE][TILE];  // [m, k]
  __shared__ float b_tile[TILE][TILE];  // [k, n]
  const int row = threadIdx.y, column = threadIdx.x;
  const long long m = blockIdx.y * TILE + row;
  const int n = blockIdx.x * TILE + column;

  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += TILE) {
    // Past an edge a zero is put on the tray: it adds nothing to any sum.
    const long long k = k0 + row;
    a_tile[row][column] = m < M && k0 + column < K ? A[m * K + k0 + column] : 0.0f;
    b_tile[row][column] = k < K && n < N ? B[k * N + n] : 0.0f;
    __syncthreads();  // nobody eats before the tray is full
    for (int i = 0; i < TILE; i++) sum += a_tile[row][i] * b_tile[i][column];
    __syncthreads();  // nobody refills before all have eaten
  }
  if (m < M && n < N) C[m * N + n] = sum;
}
