// Matrix multiply, kernel 1: one thread computes one element of C, and neighbours walk down a column.
//
// Contract  problem.py      Launcher  k01_naive.py
// Idea      the formula as it stands: a thread picks an m and an n and adds up K products
// Cost      threadIdx.x counts rows, so the 32 threads of a warp read 32 rows of A and write 32 rows of C:
//           every access to them is scattered over 32 places K (or N) floats apart
// Next      the same kernel with threadIdx.x along a row
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 1

// grid: (ceil(M / 32), ceil(N / 32))      block: (32, 32)
extern "C" __global__ void sgemm_naive(const float *__restrict__ A,  // [M, K]
                                       const float *__restrict__ B,  // [K, N]
                                       float *__restrict__ C,        // [M, N]
                                       int M, int N, int K) {
  // A row's start can pass 2**31 elements, so the row is widened before it is multiplied.
  const long long m = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = blockIdx.y * blockDim.y + threadIdx.y;
  if (m >= M || n >= N) return;  // the last blocks reach past the edges

  float sum = 0.0f;
  for (long long k = 0; k < K; k++) sum += A[m * K + k] * B[k * N + n];
  C[m * N + n] = sum;
}
