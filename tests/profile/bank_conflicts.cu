// planted: bank conflicts
//
// A transpose by tiles whose columns lie in one bank: 32 lanes read 32 words of the same bank.

constexpr int TILE = 32, ROWS = 8;

// grid: (ceil(N / TILE), ceil(M / TILE))      block: (TILE, ROWS) threads
extern "C" __global__ void transpose(const float *x,  // [M, N]
                                     float *y,        // [N, M]
                                     int M, int N) {
  __shared__ float tile[TILE][TILE];
  const int m = blockIdx.y * TILE, n = blockIdx.x * TILE, lane = threadIdx.x;
  for (int i = threadIdx.y; i < TILE; i += ROWS)
    if (m + i < M && n + lane < N) tile[i][lane] = x[static_cast<long long>(m + i) * N + n + lane];
  __syncthreads();
  for (int i = threadIdx.y; i < TILE; i += ROWS)
    if (n + i < N && m + lane < M) y[static_cast<long long>(n + i) * M + m + lane] = tile[lane][i];
}
