// Lab sgemm_tiles: C = A B in fp32. launch.py calls this kernel with one block of 32 x 32 threads for every tile of
// 32 x 32 numbers of C: blockIdx.x counts tiles along a row of C, blockIdx.y down a column.

constexpr int TILE = 32;

extern "C" __global__ void sgemm(const float *A,  // [M, K]
                                 const float *B,  // [K, N]
                                 float *C,        // [M, N]
                                 int M, int N, int K) {
  const long long m = blockIdx.y * TILE + threadIdx.y;
  const int n = blockIdx.x * TILE + threadIdx.x;  // neighbours stand side by side in a row of B and of C
  if (m >= M || n >= N) return;  // the last blocks reach past two edges
  float sum = 0.0f;
  for (long long k = 0; k < K; k++) sum += A[m * K + k] * B[k * N + n];
  C[m * N + n] = sum;
}
