// Matrix multiply, kernel 2: the same work, handed out along the rows.
//
// Contract  problem.py      Launcher  k02_coalesced.py
// Idea      threadIdx.x counts columns, so the 32 threads of a warp are 32 neighbours in a row of C
// Against   k01_naive, whose warps walk down a column: 32 rows of A and of C, each somewhere else
// Cost      a warp reads one element of A for all its threads and 128 bytes in a row of B: two loads and one
//           multiply-add, K times over, and every element is fetched again by every thread that needs it
// Next      a block fetches a tile once, for all its threads
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 2

// grid: (ceil(N / 32), ceil(M / 32))      block: (32, 32)
extern "C" __global__ void sgemm_coalesced(const float *__restrict__ A,  // [M, K]
                                           const float *__restrict__ B,  // [K, N]
                                           float *__restrict__ C,        // [M, N]
                                           int M, int N, int K) {
  // A row's start can pass 2**31 elements, so the row is widened before it is multiplied.
  const long long m = blockIdx.y * blockDim.y + threadIdx.y;
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= M || n >= N) return;  // the last blocks reach past the edges

  float sum = 0.0f;
  for (long long k = 0; k < K; k++) sum += A[m * K + k] * B[k * N + n];
  C[m * N + n] = sum;
}
