// Lab sgemm_tiles: C = A B in fp32. launch.py calls this kernel with one block of 32 x 32 threads for every tile of
// 32 x 32 numbers of C: blockIdx.x counts tiles along a row of C, blockIdx.y down a column.

constexpr int TILE = 32;

extern "C" __global__ void sgemm(const float *A,  // [M, K]
                                 const float *B,  // [K, N]
                                 float *C,        // [M, N]
                                 int M, int N, int K) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long m = blockIdx.y * TILE + y;
  const int n = blockIdx.x * TILE + x;  // neighbours stand side by side in a row of B and of C
  float sum = 0.0f;
  for (int first = 0; first < K; first += TILE) {  // the next tile of A to the right, the next tile of B below
    a[y][x] = m < M && first + x < K ? A[m * K + first + x] : 0.0f;
    b[y][x] = n < N && first + y < K ? B[static_cast<long long>(first + y) * N + n] : 0.0f;
    __syncthreads();  // both tiles are whole
    for (int k = 0; k < TILE; k++) sum += a[y][k] * b[k][x];
    __syncthreads();  // nobody needs them any more
  }
  if (m < M && n < N) C[m * N + n] = sum;  // the last blocks reach past two edges
}
