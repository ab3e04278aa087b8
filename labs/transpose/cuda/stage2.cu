// Lab transpose: the rows of x become the columns of y. launch.py calls this kernel with one block of 32 x 8 threads
// for every tile of x: blockIdx.x counts tiles along a row, blockIdx.y down a column.

constexpr int TILE = 32;
constexpr int ROWS = 8;  // rows of threads: every thread moves TILE / ROWS elements

extern "C" __global__ void transpose(const float *x,  // [M, N]
                                     float *y,        // [N, M]
                                     int M, int N) {
  __shared__ float tile[TILE][TILE];
  const int m = blockIdx.y * TILE, n = blockIdx.x * TILE;  // the tile's first row and column in x
  const int lane = threadIdx.x;
  for (int i = threadIdx.y; i < TILE; i += ROWS)
    if (m + i < M && n + lane < N)  // the last tiles reach past two edges
      tile[i][lane] = x[static_cast<long long>(m + i) * N + n + lane];
  __syncthreads();  // from here on the tile is whole
  for (int i = threadIdx.y; i < TILE; i += ROWS)
    if (m + i < M && n + lane < N)
      y[static_cast<long long>(m + i) * N + n + lane] = tile[i][lane];
}
